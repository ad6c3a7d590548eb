"""What the PyTorch networks share: HaloGrad's names of their weights, checkpoints, running averages."""

import numpy as np
import torch
from torch import nn

BATCH_NORM_EPSILON = 1e-5


def count_parameters(model):
    return sum(parameter.numel() for parameter in model.parameters())


def set_running_average_step(model, step, decay=0.999):
    """Gives the new value of training step `step` (from 0) the weight max(1 - decay, 1 / (step + 1))."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm3d):
            module.momentum = max(1.0 - decay, 1.0 / (step + 1))


def checkpoint_name(torch_name):
    """The path under /model of one entry of the state_dict, or None for one that checkpoints don't hold."""
    layer, entry = torch_name.split(".")
    if entry == "num_batches_tracked":
        return None
    if layer.startswith("bn"):
        entry = {"weight": "gamma", "bias": "beta"}.get(entry, entry)
    return f"{layer}/{entry}"


def load_weights(model, path):
    """Copies every weight and running average of a HaloGrad checkpoint into the model; raises if one lacks or differs."""
    import h5py  # only for files: a machine that times steps may lack it

    with h5py.File(path, "r") as file, torch.no_grad():
        if "model" not in file:
            raise ValueError(f"{path}: no group /model; is it a checkpoint?")
        unused = set()
        file["model"].visititems(lambda name, node: unused.add(name) if isinstance(node, h5py.Dataset) else None)
        for torch_name, tensor in model.state_dict().items():
            name = checkpoint_name(torch_name)
            if name is None:
                continue
            if name not in unused:
                raise ValueError(f"{path}: /model/{name} is missing")
            values = file["model"][name][()]
            if values.shape != tuple(tensor.shape):
                raise ValueError(f"{path}: /model/{name} is {values.shape}, the network has {tuple(tensor.shape)}")
            tensor.copy_(torch.from_numpy(np.ascontiguousarray(values)))
            unused.discard(name)
        if unused:
            raise ValueError(f"{path}: the network has no place for {', '.join(sorted(unused))}")


def save_weights(model, path):
    """Writes the weights and running averages as the /model part of a HaloGrad checkpoint (float32)."""
    import h5py

    with h5py.File(path, "w") as file:
        for torch_name, tensor in model.state_dict().items():
            name = checkpoint_name(torch_name)
            if name is not None:
                file[f"model/{name}"] = tensor.detach().contiguous().numpy().astype(np.float32)
