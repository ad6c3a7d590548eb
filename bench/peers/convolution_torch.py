"""3^3 convolutions in PyTorch 1.13, sent round the choices of its that are slow (float32; the same numbers within
rounding)."""

import torch
from torch import nn


def convolution_backward(dy, x, weight, stride, wanted):
    """(dx, dw) of a 3^3 convolution with padding 1, by whichever library PyTorch chooses; `wanted` says which of them."""
    dx, dw, _ = torch.ops.aten.convolution_backward(
        dy, x, weight, None, [stride] * 3, [1, 1, 1], [1, 1, 1], False, [0, 0, 0], 1, [wanted[0], wanted[1], False])
    return dx, dw


class SmallConv3d(torch.autograd.Function):
    """A 3^3 convolution that oneDNN computes in both directions, whatever its size.

    At batch 1 PyTorch 1.13 gives float32 convolutions with channels x depth x height <= 20,480 to an im2col path.
    Forward, `mkldnn_convolution` goes round that choice; backward, only operands in oneDNN's own layout do.
    """

    @staticmethod
    def forward(ctx, x, weight, stride):
        ctx.save_for_backward(x, weight)
        ctx.stride = stride
        return torch.mkldnn_convolution(x, weight, None, (1, 1, 1), (stride,) * 3, (1, 1, 1), 1)

    @staticmethod
    def backward(ctx, dy):
        x, weight = ctx.saved_tensors
        dx, dw = convolution_backward(dy.to_mkldnn(), x.to_mkldnn(), weight, ctx.stride, (ctx.needs_input_grad[0], True))
        return (dx.to_dense() if dx is not None else None), (dw.to_dense() if dw.is_mkldnn else dw), None


def goes_to_slow_path(x):
    """Whether PyTorch 1.13 by itself would keep the 3^3 convolution of x: [N,C,D,H,W] from oneDNN."""
    n, c, d, h, _ = x.shape
    return n == 1 and c * d * h <= 20_480


class Conv3d(nn.Conv3d):
    """A 3^3 convolution with padding 1 and no bias; with `onednn` oneDNN computes it whatever its size."""

    def __init__(self, in_channels, out_channels, stride=1, onednn=False):
        super().__init__(in_channels, out_channels, 3, stride=stride, padding=1, bias=False)
        self.onednn = onednn

    def forward(self, x):
        if self.onednn and x.dtype == torch.float32 and torch.is_grad_enabled() and goes_to_slow_path(x):
            return SmallConv3d.apply(x, self.weight, self.stride[0])
        return super().forward(x)
