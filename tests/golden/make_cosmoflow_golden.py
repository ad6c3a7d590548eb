#!/usr/bin/python3
"""Makes cosmoflow_w32.h5: what PyTorch computes for CosmoFlow from given initial weights, for the golden tests.

    make_cosmoflow_golden.py INITIAL_CHECKPOINT.h5     # from `halograd train CONFIG --max-steps 0`
    make_cosmoflow_golden.py --random-init SEED        # to try the script; --save-init FILE keeps those weights

The network: batch norm on, average pool, dropout off (keep 1), transform log1p, loss = mean squared error over the
mini-batch and the 4 targets. Mini-batches of 2 in the fixed order of /order; the learning rate stays constant.
SGD: v = 0.9 v + g, w -= rate v. Adam: betas 0.9, 0.999, epsilon 1e-8 beside the corrected root. The running averages
give the new value of step t (from 0) the weight max(1 - 0.999, 1 / (t + 1)); running_var is unbiased.

Adam's first steps are as long for a gradient that is mere rounding as for a real one, so with batch norm on 2^3 voxels
right programs part at rates of 1e-4 and more; 1e-5 is safe.

Layout of the file (float64 where nothing else is said; N universes, B per mini-batch, S steps):
  /                       attributes width, batch_size, dropout_keep, pool, transform, batch_norm_decay, torch_version
  /full                   [N,W,W,W,4] uint16, each universe as in a CosmoFlow file
  /unitPar, /physPar      [N,4] float32
  /order                  [S,B] int64: the universes of each step's mini-batch
  /first_step/outputs     [B,4]: the network's outputs for the mini-batch order[0], training mode
  /first_step/loss        scalar
  /parameters/<layer>/<entry>   names and shapes as in a checkpoint; attributes
      shape, initial_norm, initial_dot, gradient_norm, gradient_dot,
      gradient_float32_difference: |g32 - g64| / |g64|, how well PyTorch itself keeps it in float32; and
      positions           [P] integer, rising flat indices (C order), at most 1024
      initial_samples     [P] float32: the initial weight there
      gradient_samples    [P]: the first step's gradient there
  /curves/<sgd|adam>      attributes learning_rate, momentum (sgd)
      loss_float32, loss_float64   [S]: each step's loss before its update
      evaluation_float32, evaluation_float64   scalar: mean loss of all N universes after the steps, evaluation mode
      running/<bn layer>/running_mean, running_var   [C]: after the steps, of the float64 run
      running_float32/<bn layer>/...                 the same of the float32 run
      updates/<layer>/<entry>   attributes norm, dot: of (final - initial), float64 run, and float32_difference
What norm and dot are: golden_file.py.
"""

import numpy as np
import torch
from torch.nn import functional

import golden_file
import cosmoflow_torch

UNIVERSES = 4
BATCH = 2
STEPS = 10
SAMPLES = 1024
INPUT_SEED = 20190504
FIDUCIAL = np.array([0.3089, 0.8159, 0.9667, 67.74])  # Omega_M, sigma_8, n_s, H0
GROWTH = (1.4, 1.1, 0.8, 0.5)  # contrast of the four redshifts, latest first
MEAN_COUNT = 8.0


def clustered_counts(rng, width):
    """Counts [W,W,W,4] of a lognormal field with a red spectrum, the same structures at four redshifts."""
    frequencies = [np.fft.fftfreq(width)] * 2 + [np.fft.rfftfreq(width)]
    squared = sum(f**2 for f in np.meshgrid(*frequencies, indexing="ij"))
    squared[0, 0, 0] = np.inf
    spectrum = np.fft.rfftn(rng.standard_normal((width,) * 3)) / squared**0.6
    field = np.fft.irfftn(spectrum, s=(width,) * 3)
    field /= field.std()
    means = [MEAN_COUNT * np.exp(growth * field - growth**2 / 2) for growth in GROWTH]
    return np.minimum(rng.poisson(np.stack(means, axis=-1)), 65535).astype(np.uint16)


def make_inputs(width):
    rng = np.random.default_rng(INPUT_SEED)
    full = np.stack([clustered_counts(rng, width) for _ in range(UNIVERSES)])
    unit = rng.uniform(-1.0, 1.0, (UNIVERSES, 4)).astype(np.float32)
    return full, unit, (FIDUCIAL * (1.0 + 0.3 * unit)).astype(np.float32)


def network_inputs(full, unit, dtype):
    """x: [N,4,W,W,W] = log1p(counts) and the targets [N,4], computed in dtype."""
    counts = torch.from_numpy(full.astype(np.float64)).to(dtype)
    return torch.log1p(counts).permute(0, 4, 1, 2, 3).contiguous(), torch.from_numpy(unit).to(dtype)


def main():
    options = golden_file.parse_arguments(__doc__, "cosmoflow_w32.h5", sgd_rate=1e-4, adam_rate=1e-5)
    initial = cosmoflow_torch.CosmoFlow(options.width, batch_norm=True, dropout_keep=1.0)
    golden_file.set_initial_weights(initial, options, cosmoflow_torch.initialise)
    full, unit, physical = make_inputs(options.width)
    inputs = {name: network_inputs(full, unit, getattr(torch, name)) for name in golden_file.PRECISIONS}
    order = np.arange(STEPS * BATCH, dtype=np.int64).reshape(STEPS, BATCH) % UNIVERSES

    def first_step(precision):
        x, targets = (tensor[order[0]] for tensor in inputs[precision])
        return golden_file.first_gradients(initial, x, lambda outputs: functional.mse_loss(outputs, targets))

    outputs, loss, gradients = first_step("float64")
    _, loss_float32, gradients_float32 = first_step("float32")
    print(f"first loss: {loss:.12f} in float64, {loss_float32:.12f} in float32")

    def write(file):
        file.attrs.update({"width": options.width, "batch_size": BATCH, "dropout_keep": 1.0, "pool": "average",
                           "transform": "log1p"})
        file.create_dataset("full", data=full, compression="gzip", compression_opts=9, shuffle=True)
        file["unitPar"], file["physPar"], file["order"] = unit, physical, order
        file["first_step/outputs"], file["first_step/loss"] = outputs, loss
        parameters = file.create_group("parameters")
        positions = golden_file.write_weights(parameters, initial, SAMPLES, INPUT_SEED + 1)
        golden_file.write_gradients(parameters, gradients, gradients_float32, positions)
        for name, rate in (("sgd", options.sgd_rate), ("adam", options.adam_rate)):
            golden_file.write_curve(file, name, rate, initial, inputs, order, functional.mse_loss)

    golden_file.write_file(options.output, write)


if __name__ == "__main__":
    main()
