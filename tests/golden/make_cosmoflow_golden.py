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
      positions           [P] int64, rising flat indices (C order), at most 1024
      initial_samples     [P] float32: the initial weight there
      gradient_samples    [P]: the first step's gradient there
  /curves/<sgd|adam>      attributes learning_rate, momentum (sgd)
      loss_float32, loss_float64   [S]: each step's loss before its update
      evaluation_float32, evaluation_float64   scalar: mean loss of all N universes after the steps, evaluation mode
      running/<bn layer>/running_mean, running_var   [C]: after the steps, of the float64 run
      running_float32/<bn layer>/...                 the same of the float32 run
      updates/<layer>/<entry>   attributes norm, dot: of (final - initial), float64 run, and float32_difference
A norm is the L2 norm. A dot is sum over i of s(i) x[i], with s(i) = +1 if splitmix64(i) is odd, else -1, and
  splitmix64(i): z = i + 0x9E3779B97F4A7C15; z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
                 z = (z ^ z >> 27) * 0x94D049BB133111EB; z ^ z >> 31          (unsigned 64-bit, wrapping).
"""

import argparse
import copy
import pathlib
import sys

import h5py
import numpy as np
import torch
from torch.nn import functional

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "bench/peers"))
import cosmoflow_torch  # noqa: E402 (the folder must be on the path first)

UNIVERSES = 4
BATCH = 2
STEPS = 10
SAMPLES = 1024
MOMENTUM = 0.9
BATCH_NORM_DECAY = 0.999
INPUT_SEED = 20190504
FIDUCIAL = np.array([0.3089, 0.8159, 0.9667, 67.74])  # Omega_M, sigma_8, n_s, H0
GROWTH = (1.4, 1.1, 0.8, 0.5)  # contrast of the four redshifts, latest first
MEAN_COUNT = 8.0


def splitmix64_signs(count):
    """s(0) ... s(count - 1) of the docstring, as float64."""
    with np.errstate(over="ignore"):
        z = np.arange(count, dtype=np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return np.where(z & np.uint64(1), 1.0, -1.0)


def digest(values):
    """(L2 norm, dot with the signs) of values of any shape, in float64."""
    flat = np.asarray(values, dtype=np.float64).ravel()
    return float(np.sqrt(np.dot(flat, flat))), float(np.dot(flat, splitmix64_signs(flat.size)))


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


def make_optimizer(name, model, rate):
    if name == "sgd":
        return torch.optim.SGD(model.parameters(), lr=rate, momentum=MOMENTUM)
    return torch.optim.Adam(model.parameters(), lr=rate, betas=(0.9, 0.999), eps=1e-8)


def train(initial, optimizer_name, rate, x, targets, order):
    """Trains a copy of `initial` in x's precision; returns (losses, evaluation loss, model)."""
    model = copy.deepcopy(initial).to(x.dtype).train()
    optimizer = make_optimizer(optimizer_name, model, rate)
    losses = []
    for step, batch in enumerate(order):
        model.set_running_average_step(step, BATCH_NORM_DECAY)
        optimizer.zero_grad(set_to_none=True)
        loss = functional.mse_loss(model(x[batch]), targets[batch])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        evaluation = functional.mse_loss(model.eval()(x), targets).item()
    return losses, evaluation, model


def first_gradients(initial, x, targets, batch):
    """(outputs, loss, gradient by parameter name) of one mini-batch in x's precision."""
    model = copy.deepcopy(initial).to(x.dtype).train()
    outputs = model(x[batch])
    loss = functional.mse_loss(outputs, targets[batch])
    loss.backward()
    gradients = {name: parameter.grad.double().numpy() for name, parameter in model.named_parameters()}
    return outputs.detach().numpy(), loss.item(), gradients


def relative_difference(values, exact):
    norm = np.linalg.norm(exact)
    return float(np.linalg.norm(values - exact) / norm) if norm > 0 else float(np.linalg.norm(values))


def sample_positions(size, rng):
    if size <= SAMPLES:
        return np.arange(size, dtype=np.int64)
    return np.sort(rng.choice(size, SAMPLES, replace=False)).astype(np.int64)


def write_parameters(file, initial, gradients, gradients_float32):
    rng = np.random.default_rng(INPUT_SEED + 1)
    for name, parameter in initial.named_parameters():
        weights, gradient = parameter.detach().numpy(), gradients[name]
        positions = sample_positions(weights.size, rng)
        group = file.create_group(f"parameters/{cosmoflow_torch.checkpoint_name(name)}")
        group.attrs["shape"] = np.array(weights.shape, dtype=np.int64)
        group.attrs["initial_norm"], group.attrs["initial_dot"] = digest(weights)
        group.attrs["gradient_norm"], group.attrs["gradient_dot"] = digest(gradient)
        group.attrs["gradient_float32_difference"] = relative_difference(gradients_float32[name], gradient)
        group.create_dataset("positions", data=positions, compression="gzip", shuffle=True)
        group.create_dataset("initial_samples", data=weights.ravel()[positions], compression="gzip", shuffle=True)
        group.create_dataset("gradient_samples", data=gradient.ravel()[positions], compression="gzip", shuffle=True)


def write_curve(file, name, rate, initial, inputs, order):
    """Trains in both precisions, writes /curves/<name> and prints the losses."""
    group = file.create_group(f"curves/{name}")
    group.attrs["learning_rate"] = rate
    if name == "sgd":
        group.attrs["momentum"] = MOMENTUM
    models = {}
    for precision, (x, targets) in inputs.items():
        losses, evaluation, models[precision] = train(initial, name, rate, x, targets, order)
        group[f"loss_{precision}"], group[f"evaluation_{precision}"] = np.array(losses), evaluation
        print(f"{name} rate {rate:g} {precision}: " + " ".join(f"{loss:.8f}" for loss in losses) +
              f" | evaluation {evaluation:.8f}")
    for precision, folder in (("float64", "running"), ("float32", "running_float32")):
        for layer, module in models[precision].named_modules():
            if layer.startswith("bn"):
                group[f"{folder}/{layer}/running_mean"] = module.running_mean.double().numpy()
                group[f"{folder}/{layer}/running_var"] = module.running_var.double().numpy()
    last = {precision: dict(model.named_parameters()) for precision, model in models.items()}
    for parameter_name, start in initial.named_parameters():
        start = start.detach().double()
        updates = {key: (model[parameter_name].detach().double() - start).numpy() for key, model in last.items()}
        update = group.create_group(f"updates/{cosmoflow_torch.checkpoint_name(parameter_name)}")
        update.attrs["norm"], update.attrs["dot"] = digest(updates["float64"])
        update.attrs["float32_difference"] = relative_difference(updates["float32"], updates["float64"])


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", nargs="?", help="initial weights, float32")
    parser.add_argument("--random-init", type=int, metavar="SEED", help="PyTorch's own Glorot weights instead")
    parser.add_argument("--save-init", metavar="FILE", help="also write the initial weights as a checkpoint's /model")
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--sgd-rate", type=float, default=1e-4)
    parser.add_argument("--adam-rate", type=float, default=1e-5)
    parser.add_argument("--output", default=str(pathlib.Path(__file__).with_name("cosmoflow_w32.h5")))
    options = parser.parse_args()
    if (options.checkpoint is None) == (options.random_init is None):
        parser.error("give either a checkpoint or --random-init SEED")
    return options


def main():
    options = parse_arguments()
    initial = cosmoflow_torch.CosmoFlow(options.width, batch_norm=True, dropout_keep=1.0)
    if options.checkpoint is not None:
        cosmoflow_torch.load_weights(initial, options.checkpoint)
    else:
        cosmoflow_torch.initialise(initial, options.random_init)
    if options.save_init is not None:
        cosmoflow_torch.save_weights(initial, options.save_init)
    full, unit, physical = make_inputs(options.width)
    inputs = {name: network_inputs(full, unit, getattr(torch, name)) for name in ("float32", "float64")}
    order = np.arange(STEPS * BATCH, dtype=np.int64).reshape(STEPS, BATCH) % UNIVERSES
    outputs, loss, gradients = first_gradients(initial, *inputs["float64"], order[0])
    _, loss_float32, gradients_float32 = first_gradients(initial, *inputs["float32"], order[0])
    print(f"first loss: {loss:.12f} in float64, {loss_float32:.12f} in float32")
    output = pathlib.Path(options.output)
    partial = output.with_name(output.name + ".partial")
    with h5py.File(partial, "w") as file:
        file.attrs.update({"width": options.width, "batch_size": BATCH, "dropout_keep": 1.0, "pool": "average",
                           "transform": "log1p", "batch_norm_decay": BATCH_NORM_DECAY,
                           "torch_version": str(torch.__version__)})
        file.create_dataset("full", data=full, compression="gzip", compression_opts=9, shuffle=True)
        file["unitPar"], file["physPar"], file["order"] = unit, physical, order
        file["first_step/outputs"], file["first_step/loss"] = outputs, loss
        write_parameters(file, initial, gradients, gradients_float32)
        for name, rate in (("sgd", options.sgd_rate), ("adam", options.adam_rate)):
            write_curve(file, name, rate, initial, inputs, order)
    partial.replace(output)
    print(f"{output}: {output.stat().st_size / 1e6:.2f} MB, counts up to {full.max()}, mean {full.mean():.2f}")


if __name__ == "__main__":
    main()
