#!/usr/bin/python3
"""The CosmoFlow network in PyTorch, the same computation as HaloGrad's `cosmoflow` model.

Seven 3^3 convolutions without bias (16, 32, 64, 128 with stride 2, 256, 256, 256 channels), each followed by
[batch norm] -> leaky ReLU -> pool; a pool that would leave fewer than 2 voxels is left out. Head: dense 2048 -> dense 256
-> dense 4, leaky ReLU and dropout after the first two. Layers are named conv1.., bn1.., fc1.. as in a checkpoint.

Run as a script it checks the parameter counts and prints one line for each width and variant.
"""

import math

import torch
from torch import nn
from torch.nn import functional

from checkpoint_torch import BATCH_NORM_EPSILON, count_parameters
from convolution_torch import Conv3d, convolution_backward

INPUT_CHANNELS = 4
CONV_CHANNELS = (16, 32, 64, 128, 256, 256, 256)
STRIDED_CONV = 4  # conv4 halves the volume
DENSE_FEATURES = (2048, 256, 4)
LEAKY_SLOPE = 0.01
# How convolutions are computed (float32 only; the same numbers within rounding): PyTorch's own choice, small ones sent to
# oneDNN too, and besides the first one's weight gradient in two halves.
TUNINGS = ("plain", "onednn", "split")
PARAMETERS_AT_128 = {False: 9_437_636, True: 9_437_636 + 2_016}  # by batch norm


class FirstConv3d(torch.autograd.Function):
    """The first convolution, whose weight gradient is taken for two input channels at a time.

    With PyTorch's plain layout oneDNN 2.6 sends 4 input channels to its im2col path; at 128^3 two halves were measured
    about 3 times faster (single channels, on the other hand, 8 times slower).
    """

    @staticmethod
    def forward(ctx, x, weight, stride):
        ctx.save_for_backward(x, weight)
        ctx.stride = stride
        return torch.mkldnn_convolution(x, weight, None, (1, 1, 1), (stride,) * 3, (1, 1, 1), 1)

    @staticmethod
    def backward(ctx, dy):
        x, weight = ctx.saved_tensors
        dy = dy.contiguous()
        parts = [
            convolution_backward(dy, part.contiguous(), weight[:, 2 * index:2 * index + 2].contiguous(), ctx.stride,
                                 (False, True))[1] for index, part in enumerate(x.split(2, dim=1))
        ]
        return None, torch.cat(parts, dim=1), None


class CosmoFlowConv3d(Conv3d):
    """A 3^3 convolution with padding 1 and no bias, in the ways of TUNINGS."""

    def __init__(self, in_channels, out_channels, stride, tuning):
        super().__init__(in_channels, out_channels, stride, onednn=tuning in ("onednn", "split"))
        self.split = tuning == "split" and in_channels == INPUT_CHANNELS

    def forward(self, x):
        if self.split and x.dtype == torch.float32 and torch.is_grad_enabled() and not x.requires_grad:
            return FirstConv3d.apply(x, self.weight, self.stride[0])
        return super().forward(x)


def pooled_width(width):
    """Width after a pool of window 3, stride 2, padding 1."""
    return (width - 1) // 2 + 1


def block_widths(width):
    """For each of the seven blocks: (width of the convolution's output, whether a pool follows)."""
    blocks = []
    for index in range(1, len(CONV_CHANNELS) + 1):
        if index == STRIDED_CONV:
            width = (width - 1) // 2 + 1
        pools = pooled_width(width) >= 2
        blocks.append((width, pools))
        width = pooled_width(width) if pools else width
    return blocks


class CosmoFlow(nn.Module):
    """CosmoFlow for inputs x: [N,4,W,W,W]; returns [N,4]."""

    def __init__(self, width, batch_norm=True, pool="average", dropout_keep=0.8, tuning="plain"):
        super().__init__()
        if width < 32 or width % 16 != 0:
            raise ValueError(f"width must be a multiple of 16 from 32 up, not {width}")
        if pool not in ("average", "max"):
            raise ValueError(f'pool must be "average" or "max", not "{pool}"')
        if tuning not in TUNINGS:
            raise ValueError(f"tuning must be one of {', '.join(TUNINGS)}, not {tuning}")
        self.width, self.pool, self.dropout_keep = width, pool, dropout_keep
        self.blocks = block_widths(width)
        channels = INPUT_CHANNELS
        for index, out_channels in enumerate(CONV_CHANNELS, start=1):
            stride = 2 if index == STRIDED_CONV else 1
            setattr(self, f"conv{index}", CosmoFlowConv3d(channels, out_channels, stride, tuning))
            if batch_norm:
                setattr(self, f"bn{index}", nn.BatchNorm3d(out_channels, eps=BATCH_NORM_EPSILON))
            channels = out_channels
        last_width, last_pools = self.blocks[-1]
        last_width = pooled_width(last_width) if last_pools else last_width
        features = channels * last_width**3
        for index, out_features in enumerate(DENSE_FEATURES, start=1):
            setattr(self, f"fc{index}", nn.Linear(features, out_features))
            features = out_features

    def forward(self, x):
        for index, (_, pools) in enumerate(self.blocks, start=1):
            x = getattr(self, f"conv{index}")(x)
            if hasattr(self, f"bn{index}"):
                x = getattr(self, f"bn{index}")(x)
            x = functional.leaky_relu(x, LEAKY_SLOPE, inplace=True)
            if pools and self.pool == "average":
                x = functional.avg_pool3d(x, 3, stride=2, padding=1, count_include_pad=True)
            elif pools:
                x = functional.max_pool3d(x, 3, stride=2, padding=1)
        x = torch.flatten(x, 1)  # logical order C,D,H,W in any memory format
        for name in ("fc1", "fc2"):
            x = functional.leaky_relu(getattr(self, name)(x), LEAKY_SLOPE, inplace=True)
            x = functional.dropout(x, 1.0 - self.dropout_keep, self.training)
        return self.fc3(x)


def initialise(model, seed):
    """Glorot uniform weights, dense biases 0.1, batch norm scale 1 and shift 0; not HaloGrad's random stream."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.startswith("fc") and name.endswith("bias"):
                parameter.fill_(0.1)
            elif name.startswith(("conv", "fc")):
                receptive = math.prod(parameter.shape[2:])
                limit = math.sqrt(6.0 / ((parameter.shape[0] + parameter.shape[1]) * receptive))
                parameter.copy_((torch.rand(parameter.shape, generator=generator) * 2.0 - 1.0) * limit)


def main():
    for width in (32, 48, 128, 256, 512):
        for batch_norm in (False, True):
            model = CosmoFlow(width, batch_norm)
            count = count_parameters(model)
            print(f"width {width}, batch norm {batch_norm}: {count:,} parameters, blocks {model.blocks}")
            if model.fc1.in_features == 2048 and count != PARAMETERS_AT_128[batch_norm]:
                raise SystemExit(f"expected {PARAMETERS_AT_128[batch_norm]:,} parameters")


if __name__ == "__main__":
    main()
