#!/usr/bin/python3
"""Times a training step of HaloGrad and of PyTorch in turn, in one run on the same machine.

A step is forward + loss + backward + Adam (CosmoFlow: dropout on) with the same fixed input. Each round starts
`halograd bench step` and then a fresh PyTorch process, so that both meet the same noise; the table has every round, the
medians and the ratio PyTorch / HaloGrad (above 1: HaloGrad is faster). With --sweep it compares PyTorch's own settings.
With --precision bf16 both compute in bf16 with float32 sums; PyTorch's network has bf16 weights too (`best`: its step
is the faster) or is run under autocast.
"""

import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
# glibc keeps every block instead of giving it back after each step (a first touch costs about 0.9 ms per MB).
KEEP_MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": str(16 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(16 << 30),
    "MALLOC_TOP_PAD_": str(256 << 20),
}
# Each: environment of the process, tuning of the convolutions, further options of the step.
COSMOFLOW_SETTINGS = {
    "installed": ({}, "plain", ()),
    "malloc": (KEEP_MEMORY, "plain", ()),
    "onednn": (KEEP_MEMORY, "onednn", ()),
    "best": (KEEP_MEMORY, "split", ()),
}
UNET3D_SETTINGS = {
    "installed": ({}, "plain", ()),
    "malloc": (KEEP_MEMORY, "plain", ()),
    "best": (KEEP_MEMORY, "onednn", ()),
}


BF16 = KEEP_MEMORY | {"ATEN_CPU_CAPABILITY": "avx512"}
# PyTorch 1.13 does not pool bf16 volumes (autocast does it in float32); `onednn_pool` sends them to oneDNN.
COSMOFLOW_BF16_SETTINGS = {
    "installed": ({}, "plain", ("autocast",)),
    "malloc": (KEEP_MEMORY, "plain", ("autocast",)),
    "autocast": (BF16, "plain", ("autocast", "onednn_pool")),
    "best": (BF16, "plain", ("bf16", "onednn_pool")),
    "best+channels_last": (BF16, "plain", ("bf16", "onednn_pool", "channels_last")),
    "best+foreach": (BF16, "plain", ("bf16", "onednn_pool", "foreach")),
}


def with_extras(settings):
    """The settings and `best` with one more each."""
    _, tuning, _ = settings["best"]
    return settings | {
        "best+channels_last": (KEEP_MEMORY, tuning, ("channels_last",)),
        "best+foreach": (KEEP_MEMORY, tuning, ("foreach",)),
        "best+avx512": (KEEP_MEMORY | {"ATEN_CPU_CAPABILITY": "avx512"}, tuning, ()),
        "best+spin": (KEEP_MEMORY | {"OMP_WAIT_POLICY": "active"}, tuning, ()),
        "best+one_arena": (KEEP_MEMORY | {"MALLOC_ARENA_MAX": "1"}, tuning, ()),  # others' blocks end at 64 MB
        "best+hugepages": (KEEP_MEMORY | {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}, tuning, ()),
    }


SETTINGS = {
    ("cosmoflow", "f32"): with_extras(COSMOFLOW_SETTINGS),
    ("cosmoflow", "bf16"): COSMOFLOW_BF16_SETTINGS,
    ("unet3d", "f32"): with_extras(UNET3D_SETTINGS),
}


def settings_of(options):
    return SETTINGS[options.model, options.precision]


def settings_help():
    """The settings' names of each model in each precision."""
    return "; ".join(f"{model} in {precision}: {', '.join(names)}" for (model, precision), names in SETTINGS.items())


def pool_with_onednn():
    """Average pooling of bf16 volumes by oneDNN, which takes them from PyTorch only in its own tensors."""
    import torch
    from torch.nn import functional

    plain = functional.avg_pool3d

    def pool(x, *arguments, **named):
        if x.dtype != torch.bfloat16:
            return plain(x, *arguments, **named)
        with torch.autocast("cpu", enabled=False):
            return plain(x.to_mkldnn(), *arguments, **named).to_dense()

    functional.avg_pool3d = pool


def cosmoflow_step(options, tuning):
    """(network, input, loss of its outputs)."""
    import torch
    from torch.nn import functional

    import cosmoflow_torch

    model = cosmoflow_torch.CosmoFlow(options.width, options.batch_norm, tuning=tuning)
    cosmoflow_torch.initialise(model, seed=1)
    x = torch.rand(options.batch, cosmoflow_torch.INPUT_CHANNELS, *[options.width] * 3)
    targets = torch.rand(options.batch, 4) * 2.0 - 1.0
    return model, x, lambda outputs: functional.mse_loss(outputs, targets)


def unet3d_step(options, tuning):
    """(network, input, loss of its outputs)."""
    import torch
    from torch.nn import functional

    import unet3d_torch

    model = unet3d_torch.UNet3d(onednn=tuning == "onednn")
    unet3d_torch.initialise(model, seed=1)
    x = torch.randn(options.batch, unet3d_torch.INPUT_CHANNELS, *[options.width] * 3)
    labels = torch.randint(unet3d_torch.CLASSES, (options.batch, *[options.width] * 3))
    return model, x, lambda outputs: functional.cross_entropy(outputs, labels)


MAKE_STEP = {"cosmoflow": cosmoflow_step, "unet3d": unet3d_step}


def measure_torch(options):
    """Runs in the child: the medians of `options.steps` PyTorch steps after a warm-up."""
    import torch

    _, tuning, extras = settings_of(options)[options.settings]
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    if "onednn_pool" in extras:
        pool_with_onednn()
    model, x, loss_of = MAKE_STEP[options.model](options, tuning)
    if "bf16" in extras:
        model, x = model.to(torch.bfloat16), x.to(torch.bfloat16)
    if "channels_last" in extras:
        model = model.to(memory_format=torch.channels_last_3d)
        x = x.contiguous(memory_format=torch.channels_last_3d)
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, foreach="foreach" in extras)
    rows = []
    for step in range(options.warmup + options.steps):
        before = resource.getrusage(resource.RUSAGE_SELF)
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled="autocast" in extras):
            outputs = model(x)
        loss = loss_of(outputs.float())
        forward = time.perf_counter()
        loss.backward()
        backward = time.perf_counter()
        optimizer.step()
        end = time.perf_counter()
        after = resource.getrusage(resource.RUSAGE_SELF)
        processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if step >= options.warmup:
            rows.append((end - start, forward - start, backward - forward, end - backward, processor,
                         after.ru_minflt - before.ru_minflt))
    if not torch.isfinite(loss):
        raise SystemExit("the PyTorch step's loss is not finite")
    medians = [statistics.median(column) for column in zip(*rows)]
    names = ("step_seconds", "forward_seconds", "backward_seconds", "update_seconds", "processor_seconds",
             "page_faults")
    result = dict(zip(names, medians))
    result |= {
        "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "threads": torch.get_num_threads(),
        "settings": options.settings,
        "version": str(torch.__version__),
    }
    print(json.dumps(result))


def last_json_object(text, command):
    """The object that ends `text` (a child may print other lines before it)."""
    for start in range(len(text)):
        if text[start] == "{" and (start == 0 or text[start - 1] == "\n"):
            try:
                return json.loads(text[start:])
            except json.JSONDecodeError:
                continue
    raise SystemExit(f"{' '.join(command)}: no JSON object in its output:\n{text}")


def run_child(command, environment):
    child = subprocess.run(command, env=os.environ | environment, stdout=subprocess.PIPE, text=True, check=False)
    if child.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit code {child.returncode}")
    return last_json_object(child.stdout, command)


def run_torch(options, settings):
    command = [
        sys.executable, __file__, "--torch-child", "--model", options.model, "--settings", settings, "--width",
        str(options.width), "--batch", str(options.batch), "--steps", str(options.steps), "--warmup",
        str(options.warmup), "--threads", str(options.threads), "--precision", options.precision
    ] + ([] if options.batch_norm else ["--no-batch-norm"])
    return run_child(command, settings_of(options)[settings][0] | {"OMP_NUM_THREADS": str(options.threads)})


def run_halograd(options):
    command = [
        options.halograd, "bench", "step", options.model, "--width", str(options.width), "--batch", str(options.batch),
        "--steps", str(options.steps), "--precision", options.precision, "--json"
    ] + (["--batch-norm"] if options.model == "cosmoflow" and options.batch_norm else [])
    return run_child(command, {"OMP_NUM_THREADS": str(options.threads)})


def summarise(runs):
    """Medians over the rounds of every number that all runs have, and the best step."""
    summary = {}
    for key, value in runs[0].items():
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            summary[key] = statistics.median(run[key] for run in runs)
    summary["best_step_seconds"] = min(run["step_seconds"] for run in runs)
    return summary


def print_table(report):
    columns = ("step_seconds", "best_step_seconds", "forward_seconds", "backward_seconds", "update_seconds",
               "processor_seconds")
    print(f"\n{'':<22}" + "".join(f"{name.removesuffix('_seconds'):>11}" for name in columns) + f"{'peak GiB':>11}")
    for peer, summary in report["medians"].items():
        cells = "".join(f"{summary[name] * 1e3:>8.1f} ms" if name in summary else f"{'-':>11}" for name in columns)
        print(f"{peer:<22}{cells}{summary.get('peak_rss_bytes', 0) / 2**30:>11.2f}")
    if "ratio" in report:
        print(f"\nPyTorch / HaloGrad: {report['ratio']:.2f} (median of the rounds' ratios; "
              f"{report['ratio_lowest']:.2f} to {report['ratio_highest']:.2f}), "
              f"best / best {report['ratio_of_best']:.2f}")


def compare(options, peers):
    """Runs every peer once per round, in turn; returns the report. peers: name -> function that runs it."""
    runs = {peer: [] for peer in peers}
    for round_index in range(options.rounds):
        for peer, run in peers.items():
            runs[peer].append(run())
            milliseconds = runs[peer][-1]["step_seconds"] * 1e3
            print(f"round {round_index + 1}: {peer:<22} {milliseconds:8.1f} ms", file=sys.stderr)
    report = {
        "model": options.model, "width": options.width, "batch": options.batch, "batch_norm": options.batch_norm,
        "precision": options.precision, "threads": options.threads, "rounds": runs,
        "medians": {peer: summarise(results) for peer, results in runs.items()},
    }
    if "halograd" in runs:
        (other,) = [peer for peer in runs if peer != "halograd"]
        ratios = [theirs["step_seconds"] / ours["step_seconds"] for ours, theirs in zip(runs["halograd"], runs[other])]
        best = {peer: summary["best_step_seconds"] for peer, summary in report["medians"].items()}
        report |= {"ratio": statistics.median(ratios), "ratio_lowest": min(ratios), "ratio_highest": max(ratios),
                   "ratio_of_best": best[other] / best["halograd"]}
    return report


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=MAKE_STEP, default="cosmoflow")
    parser.add_argument("--precision", choices=("f32", "bf16"), default="f32")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--no-batch-norm", dest="batch_norm", action="store_false", help="CosmoFlow without")
    parser.add_argument("--steps", type=int, default=8, help="steps measured per process")
    parser.add_argument("--warmup", type=int, default=2, help="PyTorch steps before those")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="OpenMP threads of both")
    parser.add_argument("--settings", default="best", help="PyTorch's settings. " + settings_help())
    parser.add_argument("--halograd", default=str(REPOSITORY / "build/bin/halograd"))
    parser.add_argument("--torch-only", action="store_true")
    parser.add_argument("--sweep", action="store_true", help="compare PyTorch's settings, without HaloGrad")
    parser.add_argument("--json", action="store_true", help="print one object instead of the table")
    parser.add_argument("--torch-child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if min(options.steps, options.rounds, options.threads, options.batch) < 1 or options.warmup < 0:
        parser.error("--steps, --rounds, --threads and --batch must be at least 1, --warmup at least 0")
    if (options.model, options.precision) not in SETTINGS:
        parser.error(f"{options.model} has no comparison in {options.precision}")
    if options.settings not in settings_of(options):
        parser.error(f"--settings of {options.model} in {options.precision}: {', '.join(settings_of(options))}")
    if options.model == "unet3d" and (options.width < 8 or options.width % 8 != 0 or not options.batch_norm):
        parser.error("--width must be a multiple of 8 for unet3d, which always has batch norm")
    needs_binary = not (options.torch_only or options.sweep or options.torch_child)
    if needs_binary and not os.access(options.halograd, os.X_OK):
        parser.error(f"{options.halograd} is not there: build it, give --halograd, or use --torch-only")
    return options


def main():
    options = parse_arguments()
    if options.torch_child:
        measure_torch(options)
        return
    settings = settings_of(options) if options.sweep else (options.settings,)
    peers = {} if options.sweep or options.torch_only else {"halograd": lambda: run_halograd(options)}
    for name in settings:
        peers[f"torch {name}"] = lambda name=name: run_torch(options, name)
    report = compare(options, peers)
    if options.json:
        print(json.dumps(report))
    else:
        print_table(report)


if __name__ == "__main__":
    main()
