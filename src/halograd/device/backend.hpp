#pragma once

namespace halograd {

/// Which implementation of the kernels runs: `reference` is plain loops that sum in double (the oracle), `cpu` is
/// oneDNN and vectorised code, `cuda` is cuDNN and kernels of our own on an NVIDIA GPU.
enum class Backend { cpu, reference, cuda };

constexpr const char* backend_name(Backend backend) {
  return backend == Backend::reference ? "reference" : backend == Backend::cpu ? "cpu" : "cuda";
}

}  // namespace halograd
