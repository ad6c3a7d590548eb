#!/usr/bin/env python3
"""Times a training step of PyTorch on a GPU, at its best there: channels last, cuDNN's own search for algorithms, fused
Adam. A step is forward + loss + backward + Adam (CosmoFlow: with batch norm and dropout) with the same input each time.

    step_torch_cuda.py --model cosmoflow --width 128 --precision bf16
    step_torch_cuda.py --ceilings

--precision: `f32` without TF32, `tf32`, or `bf16` (autocast; weights and optimiser in float32). --ceilings measures what
the GPU can do at most: a large matrix product in each precision, a large copy. Prints one JSON object either way.
"""

import argparse
import json
import statistics
import time

import torch
from torch.nn import functional

import cosmoflow_torch
import unet3d_torch

PRECISIONS = ("f32", "tf32", "bf16")
MATRIX = 8192
COPIED_BYTES = 4 << 30  # far more than any cache


def set_precision(precision):
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.allow_tf32 = precision == "tf32"


def cosmoflow_step(options):
    """(network, input, loss of its outputs)."""
    model = cosmoflow_torch.CosmoFlow(options.width, batch_norm=True)
    cosmoflow_torch.initialise(model, seed=1)
    x = torch.rand(options.batch, cosmoflow_torch.INPUT_CHANNELS, *[options.width] * 3)
    targets = (torch.rand(options.batch, 4) * 2.0 - 1.0).to(options.device)
    return model, x, lambda outputs: functional.mse_loss(outputs.float(), targets)


def unet3d_step(options):
    """(network, input, loss of its outputs)."""
    model = unet3d_torch.UNet3d()
    unet3d_torch.initialise(model, seed=1)
    x = torch.randn(options.batch, unet3d_torch.INPUT_CHANNELS, *[options.width] * 3)
    labels = torch.randint(unet3d_torch.CLASSES, (options.batch, *[options.width] * 3)).to(options.device)
    return model, x, lambda outputs: functional.cross_entropy(outputs, labels)


MAKE_STEP = {"cosmoflow": cosmoflow_step, "unet3d": unet3d_step}


def synchronize(device):
    if device == "cuda":
        torch.cuda.synchronize()


def measure_step(options):
    """The median of `options.steps` steps after a warm-up, in which cuDNN's search falls too."""
    set_precision(options.precision)
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(1)
    model, x, loss_of = MAKE_STEP[options.model](options)
    model = model.to(options.device, memory_format=torch.channels_last_3d).train()
    x = x.to(options.device, memory_format=torch.channels_last_3d)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=options.device == "cuda")
    seconds = []
    for step in range(options.warmup + options.steps):
        synchronize(options.device)
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(options.device, dtype=torch.bfloat16, enabled=options.precision == "bf16"):
            loss = loss_of(model(x))
        loss.backward()
        optimizer.step()
        value = loss.item()
        synchronize(options.device)
        if step >= options.warmup:
            seconds.append(time.perf_counter() - start)
    if value != value or abs(value) == float("inf"):
        raise SystemExit("the PyTorch step's loss is not finite")
    return {
        "model": options.model, "width": options.width, "batch": options.batch, "precision": options.precision,
        "step_seconds": statistics.median(seconds), "fastest_step_seconds": min(seconds), "loss": value,
        "peak_device_bytes": torch.cuda.max_memory_reserved() if options.device == "cuda" else 0,
        "version": str(torch.__version__),
    }


def median_seconds(work, repetitions=10):
    """Of one call, by the GPU's own clock."""
    for _ in range(3):
        work()
    times = []
    for _ in range(repetitions):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 1e3)
    return statistics.median(times)


def measure_ceilings():
    """Operations a second of a matrix product and bytes a second, read and written, of a copy."""
    result = {"name": torch.cuda.get_device_name(), "version": str(torch.__version__)}
    for precision in PRECISIONS:
        set_precision(precision)
        dtype = torch.bfloat16 if precision == "bf16" else torch.float32
        a, b = (torch.randn(MATRIX, MATRIX, device="cuda", dtype=dtype) for _ in range(2))
        out = torch.empty_like(a)
        result[f"{precision}_flops_per_second"] = 2.0 * MATRIX**3 / median_seconds(lambda: torch.matmul(a, b, out=out))
    room = torch.cuda.mem_get_info()[0]
    size = min(COPIED_BYTES, room // 4)
    source = torch.randint(256, (size,), device="cuda", dtype=torch.uint8)
    target = torch.empty_like(source)
    result["bytes_per_second"] = 2.0 * size / median_seconds(lambda: target.copy_(source))
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=MAKE_STEP, default="cosmoflow")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--precision", choices=PRECISIONS, default="f32")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: to try this script out")
    parser.add_argument("--ceilings", action="store_true")
    options = parser.parse_args()
    if min(options.steps, options.warmup, options.batch) < 1:
        parser.error("--steps, --warmup and --batch must be at least 1")
    if options.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit("this PyTorch sees no GPU")
    print(json.dumps(measure_ceilings() if options.ceilings else measure_step(options), indent=2))


if __name__ == "__main__":
    main()
