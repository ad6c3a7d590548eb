"""What the scripts that make golden files share: digests, arrays' samples, training in two precisions.

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

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench/peers"))
import checkpoint_torch  # noqa: E402 (the folder must be on the path first)

PRECISIONS = ("float32", "float64")
MOMENTUM = 0.9
BATCH_NORM_DECAY = 0.999


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


def relative_difference(values, exact):
    norm = np.linalg.norm(exact)
    return float(np.linalg.norm(values - exact) / norm) if norm > 0 else float(np.linalg.norm(values))


def sample_positions(size, samples, rng):
    if size <= samples:
        return np.arange(size, dtype=np.int64)
    return np.sort(rng.choice(size, samples, replace=False)).astype(np.int64)


def first_gradients(initial, x, loss_of):
    """(outputs, loss, gradient by parameter name) of the mini-batch x, in its precision; loss_of: of the outputs."""
    model = copy.deepcopy(initial).to(x.dtype).train()
    outputs = model(x)
    loss = loss_of(outputs)
    loss.backward()
    gradients = {name: parameter.grad.double().numpy() for name, parameter in model.named_parameters()}
    return outputs.detach().numpy(), loss.item(), gradients


def write_gradients(parent, gradients, gradients_float32, positions):
    """<layer>/<entry> under the group `parent`, per array: norm, dot and, at its positions, samples of its gradient."""
    for name, gradient in gradients.items():
        group = parent.require_group(checkpoint_torch.checkpoint_name(name))
        group.attrs["gradient_norm"], group.attrs["gradient_dot"] = digest(gradient)
        group.attrs["gradient_float32_difference"] = relative_difference(gradients_float32[name], gradient)
        group["gradient_samples"] = gradient.ravel()[positions[name]]


def write_weights(parent, initial, samples, seed):
    """Likewise shapes, positions and initial weights; returns the positions by parameter name."""
    rng = np.random.default_rng(seed)
    positions = {}
    for name, parameter in initial.named_parameters():
        weights = parameter.detach().numpy()
        positions[name] = sample_positions(weights.size, samples, rng)
        group = parent.require_group(checkpoint_torch.checkpoint_name(name))
        group.attrs["shape"] = np.array(weights.shape, dtype=np.int64)
        group.attrs["initial_norm"], group.attrs["initial_dot"] = digest(weights)
        group["positions"] = positions[name].astype(np.int32)
        group["initial_samples"] = weights.ravel()[positions[name]]
    return positions


def make_optimizer(name, model, rate):
    if name == "sgd":
        return torch.optim.SGD(model.parameters(), lr=rate, momentum=MOMENTUM)
    return torch.optim.Adam(model.parameters(), lr=rate, betas=(0.9, 0.999), eps=1e-8)


def train(initial, optimizer_name, rate, x, targets, order, loss_of):
    """Trains a copy of `initial` in x's precision; returns (losses, model). loss_of: of outputs and targets."""
    model = copy.deepcopy(initial).to(x.dtype).train()
    optimizer = make_optimizer(optimizer_name, model, rate)
    losses = []
    for step, batch in enumerate(order):
        checkpoint_torch.set_running_average_step(model, step, BATCH_NORM_DECAY)
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(model(x[batch]), targets[batch])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, model


def write_curve(file, name, rate, initial, inputs, order, loss_of):
    """Trains in both precisions, writes /curves/<name> and prints the losses.

    inputs: precision -> (x, targets). Returns the group and precision -> (outputs of all x in evaluation mode).
    """
    group = file.create_group(f"curves/{name}")
    group.attrs["learning_rate"] = rate
    if name == "sgd":
        group.attrs["momentum"] = MOMENTUM
    models, outputs = {}, {}
    for precision, (x, targets) in inputs.items():
        losses, models[precision] = train(initial, name, rate, x, targets, order, loss_of)
        with torch.no_grad():
            outputs[precision] = models[precision].eval()(x)
            evaluation = loss_of(outputs[precision], targets).item()
        group[f"loss_{precision}"], group[f"evaluation_{precision}"] = np.array(losses), evaluation
        print(f"{name} rate {rate:g} {precision}: " + " ".join(f"{loss:.8f}" for loss in losses) +
              f" | evaluation {evaluation:.8f}", flush=True)
    apart = np.abs(group["loss_float32"][()] / group["loss_float64"][()] - 1.0)
    print(f"{name}: the losses of the two precisions are up to {apart.max():.1e} apart")
    write_running(group, models)
    write_updates(group, initial, models)
    return group, outputs


def write_running(group, models):
    for precision, folder in (("float64", "running"), ("float32", "running_float32")):
        for layer, module in models[precision].named_modules():
            if layer.startswith("bn"):
                group[f"{folder}/{layer}/running_mean"] = module.running_mean.double().numpy()
                group[f"{folder}/{layer}/running_var"] = module.running_var.double().numpy()


def write_updates(group, initial, models):
    last = {precision: dict(model.named_parameters()) for precision, model in models.items()}
    for parameter_name, start in initial.named_parameters():
        start = start.detach().double()
        updates = {key: (model[parameter_name].detach().double() - start).numpy() for key, model in last.items()}
        update = group.create_group(f"updates/{checkpoint_torch.checkpoint_name(parameter_name)}")
        update.attrs["norm"], update.attrs["dot"] = digest(updates["float64"])
        update.attrs["float32_difference"] = relative_difference(updates["float32"], updates["float64"])


def parse_arguments(description, output, sgd_rate, adam_rate, width=32):
    """The command line of a script that writes `output`, given its defaults."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", nargs="?", help="initial weights, float32")
    parser.add_argument("--random-init", type=int, metavar="SEED", help="PyTorch's own random weights instead")
    parser.add_argument("--save-init", metavar="FILE", help="also write the initial weights as a checkpoint's /model")
    parser.add_argument("--width", type=int, default=width)
    parser.add_argument("--sgd-rate", type=float, default=sgd_rate)
    parser.add_argument("--adam-rate", type=float, default=adam_rate)
    parser.add_argument("--output", default=str(pathlib.Path(__file__).with_name(output)))
    options = parser.parse_args()
    if (options.checkpoint is None) == (options.random_init is None):
        parser.error("give either a checkpoint or --random-init SEED")
    return options


def set_initial_weights(model, options, initialise):
    """Gives the model the weights that the command line asks for."""
    if options.checkpoint is not None:
        checkpoint_torch.load_weights(model, options.checkpoint)
    else:
        initialise(model, options.random_init)
    if options.save_init is not None:
        checkpoint_torch.save_weights(model, options.save_init)


def write_file(output, write):
    """Calls write(file) with a new HDF5 file that takes the place of `output` once it is whole; prints its size."""
    output = pathlib.Path(output)
    partial = output.with_name(output.name + ".partial")
    with h5py.File(partial, "w", libver="v108") as file:  # the oldest format takes 1 kB more for each small group
        file.attrs["batch_norm_decay"], file.attrs["torch_version"] = BATCH_NORM_DECAY, str(torch.__version__)
        write(file)
    partial.replace(output)
    print(f"{output}: {output.stat().st_size / 1e6:.2f} MB")
