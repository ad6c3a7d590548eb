#!/usr/bin/python3
"""The 3D U-Net in PyTorch, the same computation as HaloGrad's `unet3d` model (Cicek et al. 2016).

Down: two 3^3 convolutions (32, 64 / 64, 128 / 128, 256 channels), then a max pool of 2. Bottom: 256, 512. Up: a 2^3
deconvolution with stride 2 that keeps the channels, concatenation [up, skip], two convolutions (256 / 128 / 64 channels
each). Last a 1^3 convolution to the classes. 3^3 convolutions have padding 1 and are followed by batch norm and ReLU;
nothing has a bias. Layers are named conv1..conv15, bn1..bn14, deconv1..deconv3 as in a checkpoint.

Run as a script it checks the parameter count and prints the layers.
"""

import torch
from torch import nn
from torch.nn import functional

from checkpoint_torch import BATCH_NORM_EPSILON, count_parameters
from convolution_torch import Conv3d

INPUT_CHANNELS = 1
CLASSES = 3
DOWN_CHANNELS = ((32, 64), (64, 128), (128, 256))
BOTTOM_CHANNELS = (256, 512)
UP_CHANNELS = ((256, 256), (128, 128), (64, 64))
PARAMETERS = 19_070_560  # one channel in, three classes


class UNet3d(nn.Module):
    """The U-Net for inputs x: [N,1,D,H,W] whose extents are multiples of 8; returns logits [N,classes,D,H,W]."""

    def __init__(self, classes=CLASSES, onednn=False):
        super().__init__()
        self.onednn = onednn
        self.convolutions = 0
        skips = [self._add_pair(channels, pair) for channels, pair in
                 zip((INPUT_CHANNELS, *(pair[1] for pair in DOWN_CHANNELS)), DOWN_CHANNELS)]
        channels = self._add_pair(skips[-1], BOTTOM_CHANNELS)
        for index, pair in enumerate(UP_CHANNELS, start=1):
            setattr(self, f"deconv{index}", nn.ConvTranspose3d(channels, channels, 2, stride=2, bias=False))
            channels = self._add_pair(channels + skips[-index], pair)
        self.conv15 = nn.Conv3d(channels, classes, 1, bias=False)

    def _add_pair(self, channels, pair):
        for out_channels in pair:
            self.convolutions += 1
            setattr(self, f"conv{self.convolutions}", Conv3d(channels, out_channels, onednn=self.onednn))
            setattr(self, f"bn{self.convolutions}", nn.BatchNorm3d(out_channels, eps=BATCH_NORM_EPSILON))
            channels = out_channels
        return channels

    def _pair(self, x, first):
        for index in (first, first + 1):
            x = getattr(self, f"bn{index}")(getattr(self, f"conv{index}")(x))
            x = functional.relu(x, inplace=True)
        return x

    def forward(self, x):
        skips = []
        for level in range(3):
            skips.append(self._pair(x, 1 + 2 * level))
            x = functional.max_pool3d(skips[-1], 2)
        x = self._pair(x, 7)
        for level in range(3):
            up = getattr(self, f"deconv{level + 1}")(x)
            x = self._pair(torch.cat([up, skips.pop()], dim=1), 9 + 2 * level)
        return self.conv15(x)


def initialise(model, seed):
    """He normal weights, batch norm scale 1 and shift 0; not HaloGrad's random stream.

    A deconvolution's output voxel sees one tap of its kernel, so its fan-in is its input channels.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, module in model.named_children():
            if isinstance(module, nn.BatchNorm3d):
                continue
            weight = module.weight
            fan_in = weight.shape[0] if name.startswith("deconv") else weight[0].numel()
            weight.copy_(torch.randn(weight.shape, generator=generator) * (2.0 / fan_in)**0.5)


def main():
    model = UNet3d()
    for name, module in model.named_children():
        print(f"{name}: {module}, {count_parameters(module):,} parameters")
    print(f"{count_parameters(model):,} parameters")
    if count_parameters(model) != PARAMETERS:
        raise SystemExit(f"expected {PARAMETERS:,}")


if __name__ == "__main__":
    main()
