#!/usr/bin/env python3
"""Draws the losses of training runs over their steps: learning_curves.py --out FILE.svg TITLE:NAME=RUN,NAME=RUN...

One panel a TITLE, one line a RUN (a run directory), the mean loss of the last WINDOW steps. Needs matplotlib (Debian's
python3-matplotlib).
"""

import argparse
import json
import pathlib

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend comes first)


def step_losses(run):
    with open(pathlib.Path(run) / "metrics.jsonl", encoding="utf-8") as lines:
        events = [json.loads(line) for line in lines]
    return [event["loss"] for event in events if event["event"] == "step"]


def running_mean(values, window):
    """Of the last `window` values; the first ones of as many as there are."""
    sums = [0.0]
    for value in values:
        sums.append(sums[-1] + value)
    return [(sums[i] - sums[max(0, i - window)]) / min(i, window) for i in range(1, len(sums))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("panels", nargs="+", metavar="TITLE:NAME=RUN,...")
    parser.add_argument("--window", type=int, default=32, help="steps averaged (default: 32)")
    parser.add_argument("--out", required=True, help="the picture, SVG")
    arguments = parser.parse_args()

    figure, axes = plt.subplots(1, len(arguments.panels), figsize=(5 * len(arguments.panels), 3.4), squeeze=False)
    for panel, axis in zip(arguments.panels, axes[0]):
        title, _, runs = panel.partition(":")
        for entry in runs.split(","):
            name, _, run = entry.partition("=")
            losses = running_mean(step_losses(run), arguments.window)
            drawn = range(0, len(losses), max(1, len(losses) // 500))  # more points than pixels only make a large file
            axis.plot(drawn, [losses[step] for step in drawn], label=name, linewidth=1)
        axis.set_title(title)
        axis.set_xlabel("step")
        axis.set_ylabel(f"training loss, mean of {arguments.window} steps")
        axis.set_yscale("log")
        axis.grid(True, which="both", linewidth=0.3)
        axis.legend()
    figure.tight_layout()
    figure.savefig(arguments.out, metadata={"Date": None})


if __name__ == "__main__":
    main()
