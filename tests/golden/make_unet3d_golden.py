#!/usr/bin/python3
"""Makes unet3d_w32.h5: what PyTorch computes for the 3D U-Net from given initial weights, for the golden tests.

    make_unet3d_golden.py INITIAL_CHECKPOINT.h5     # from `halograd train CONFIG --max-steps 0`
    make_unet3d_golden.py --random-init SEED        # to try the script; --save-init FILE keeps those weights

The network: one input channel, the stored 16-bit numbers as they are (transform none), 3 classes. Mini-batches of 2 in
the fixed order of /order; the learning rate stays constant. Curves minimise plain cross entropy, the mean over voxels.
SGD: v = 0.9 v + g, w -= rate v. Adam: betas 0.9, 0.999, epsilon 1e-8 beside the corrected root. The running averages
give the new value of step t (from 0) the weight max(1 - 0.999, 1 / (t + 1)); running_var is unbiased.

Layout of the file (float64 where nothing else is said; N volumes, B per mini-batch, S steps, K classes):
  /                       attributes width, batch_size, classes, transform, batch_norm_decay, torch_version
  /volume                 [N,W,W,W] int16
  /segmentation           [N,W,W,W] uint8, labels 0 to K - 1
  /order                  [S,B] int64: the volumes of each step's mini-batch
  /first_step/loss        scalar: of the mini-batch order[0], training mode
  /parameters/<layer>/<entry>   names and shapes as in a checkpoint; attributes
      shape, initial_norm, initial_dot, gradient_norm, gradient_dot,
      gradient_float32_difference: |g32 - g64| / |g64|, how well PyTorch itself keeps it in float32; and
      positions           [P] integer, rising flat indices (C order), at most 256
      initial_samples     [P] float32: the initial weight there
      gradient_samples    [P]: the first step's gradient there
  /losses/<weighted|dice> the first step with another loss (below), each with
      loss                scalar
      gradients/<layer>/<entry>   attributes and samples of the gradient as above, at the same positions
      weighted: cross entropy, sum of w[label] (-log p[label]) over sum of w[label]; class_weights [K];
                segmentation [B,W,W,W] uint8, where voxels of the attribute ignore_label count in neither sum
      dice:     cross entropy + 1 - mean over samples and classes of (2 sum p g + s) / (sum p + sum g + s), with p the
                softmax, g = 1 where the label is the class; s is the attribute smooth
  /curves/<sgd|adam>      attributes learning_rate, momentum (sgd)
      loss_float32, loss_float64   [S]: each step's loss before its update
      evaluation_float32, evaluation_float64   scalar: loss of all N volumes after the steps, evaluation mode
      overlap_float32, overlap_float64   [N,3,K] int64: of that evaluation, voxels where class and label agree, voxels
                                         given the class, voxels with the label: Dice = 2 [0] / ([1] + [2])
      running/<bn layer>/running_mean, running_var   [C]: after the steps, of the float64 run
      running_float32/<bn layer>/...                 the same of the float32 run
      updates/<layer>/<entry>   attributes norm, dot: of (final - initial), float64 run, and float32_difference
What norm and dot are: golden_file.py.
"""

import numpy as np
import torch
from torch.nn import functional

import golden_file
import unet3d_torch

VOLUMES = 4
BATCH = 2
STEPS = 10
SAMPLES = 256
INPUT_SEED = 20160621
INTENSITIES = (-10.0, 10.0, 30.0)  # of the classes: background, organ, lesion
NOISE = 8.0
CLASS_WEIGHTS = (0.25, 1.0, 4.0)
IGNORE_LABEL = 255
SMOOTH = 1e-5


def ball(width, centre, radii):
    """The voxels [W,W,W] of an ellipsoid; in units of the width."""
    axes = [((np.arange(width) + 0.5) / width - c) / r for c, r in zip(centre, radii)]
    return sum(a**2 for a in np.meshgrid(*axes, indexing="ij")) < 1.0


def make_volume(rng, width):
    """(volume, segmentation): an organ with lesions in it, and noise."""
    segmentation = np.zeros((width,) * 3, dtype=np.uint8)
    centre, radii = rng.uniform(0.4, 0.6, 3), rng.uniform(0.25, 0.4, 3)
    segmentation[ball(width, centre, radii)] = 1
    for _ in range(3):
        lesion = ball(width, centre + rng.uniform(-0.5, 0.5, 3) * radii, rng.uniform(0.08, 0.15, 3))
        segmentation[lesion & (segmentation == 1)] = 2
    volume = np.take(INTENSITIES, segmentation) + NOISE * rng.standard_normal(segmentation.shape)
    return np.rint(volume).astype(np.int16), segmentation


def make_inputs(width):
    rng = np.random.default_rng(INPUT_SEED)
    volumes, segmentations = zip(*(make_volume(rng, width) for _ in range(VOLUMES)))
    return np.stack(volumes), np.stack(segmentations)


def with_ignored_voxels(segmentation):
    """A copy of the mini-batch's labels in which a corner of each sample, another size each, is to be ignored."""
    ignored = segmentation.copy()
    width = segmentation.shape[-1]
    ignored[0, :width // 4] = IGNORE_LABEL
    ignored[1, width // 2:, :, width // 2:] = IGNORE_LABEL
    return ignored


def soft_dice(logits, labels):
    """1 - the mean over samples and classes of the soft Dice."""
    probability = torch.softmax(logits, 1)
    truth = functional.one_hot(labels, logits.shape[1]).movedim(-1, 1).to(logits.dtype)
    voxels = (2, 3, 4)
    both, sizes = (probability * truth).sum(voxels), probability.sum(voxels) + truth.sum(voxels)
    return 1.0 - ((2.0 * both + SMOOTH) / (sizes + SMOOTH)).mean()


def overlap(logits, segmentation):
    """[N,3,K]: voxels where class and label agree, voxels given the class, voxels with the label."""
    predicted = logits.argmax(1).numpy()
    classes = range(logits.shape[1])
    per_class = [((predicted == k) & (segmentation == k), predicted == k, segmentation == k) for k in classes]
    return np.array([[mask.sum((1, 2, 3)) for mask in masks] for masks in per_class]).transpose(2, 1, 0)


def write_first_step(file, initial, batch):
    """The first step's losses and gradients, of three kinds of loss. batch: precision -> (x, labels)."""
    labels = batch["float64"][1]
    ignored = torch.from_numpy(with_ignored_voxels(labels.numpy()))

    def weighted(logits):
        weights = torch.tensor(CLASS_WEIGHTS, dtype=logits.dtype)
        return functional.cross_entropy(logits, ignored, weights, ignore_index=IGNORE_LABEL)

    losses = {
        "": lambda logits: functional.cross_entropy(logits, labels),
        "weighted": weighted,
        "dice": lambda logits: functional.cross_entropy(logits, labels) + soft_dice(logits, labels),
    }
    positions = golden_file.write_weights(file.create_group("parameters"), initial, SAMPLES, INPUT_SEED + 1)
    for kind, loss_of in losses.items():
        _, loss, gradients = golden_file.first_gradients(initial, batch["float64"][0], loss_of)
        _, loss_float32, gradients_float32 = golden_file.first_gradients(initial, batch["float32"][0], loss_of)
        print(f"first loss {kind}: {loss:.12f} in float64, {loss_float32:.12f} in float32", flush=True)
        file[f"losses/{kind}/loss" if kind else "first_step/loss"] = loss
        parent = file.create_group(f"losses/{kind}/gradients") if kind else file["parameters"]
        golden_file.write_gradients(parent, gradients, gradients_float32, positions)
    file["losses/weighted/class_weights"] = np.array(CLASS_WEIGHTS)
    file["losses/weighted"].attrs["ignore_label"] = IGNORE_LABEL
    file["losses/weighted"].create_dataset("segmentation", data=ignored.numpy().astype(np.uint8), compression="gzip")
    file["losses/dice"].attrs["smooth"] = SMOOTH


def main():
    options = golden_file.parse_arguments(__doc__, "unet3d_w32.h5", sgd_rate=1e-3, adam_rate=1e-5)
    initial = unet3d_torch.UNet3d()
    golden_file.set_initial_weights(initial, options, unet3d_torch.initialise)
    volume, segmentation = make_inputs(options.width)
    labels = torch.from_numpy(segmentation.astype(np.int64))
    inputs = {name: (torch.from_numpy(volume[:, None]).to(getattr(torch, name)), labels)
              for name in golden_file.PRECISIONS}
    order = np.arange(STEPS * BATCH, dtype=np.int64).reshape(STEPS, BATCH) % VOLUMES

    def write(file):
        file.attrs.update({"width": options.width, "batch_size": BATCH, "classes": unet3d_torch.CLASSES,
                           "transform": "none"})
        file.create_dataset("volume", data=volume, compression="gzip", compression_opts=9, shuffle=True)
        file.create_dataset("segmentation", data=segmentation, compression="gzip", compression_opts=9)
        file["order"] = order
        write_first_step(file, initial, {name: (x[order[0]], labels[order[0]]) for name, (x, _) in inputs.items()})
        for name, rate in (("sgd", options.sgd_rate), ("adam", options.adam_rate)):
            group, logits = golden_file.write_curve(file, name, rate, initial, inputs, order, functional.cross_entropy)
            for precision in golden_file.PRECISIONS:
                group[f"overlap_{precision}"] = overlap(logits[precision], segmentation)

    golden_file.write_file(options.output, write)


if __name__ == "__main__":
    main()
