#include "halograd/exec/choose_device.hpp"

#include "halograd/device/cuda_device.hpp"

namespace halograd {

Backend choose_backend(const std::string& name, const Communicator& world) {
  if (name == "cpu") return Backend::cpu;
  if (name == "reference") return Backend::reference;
  if (name == "cuda") return Backend::cuda;
  // A rank without a GPU must not compute on its processor while the others wait for it all the time.
  const bool everywhere = world.all_reduce_max(std::int64_t{cuda_devices().empty() ? 1 : 0}) == 0;
  return everywhere ? Backend::cuda : Backend::cpu;
}

Device choose_device(const std::string& name, const Communicator& world) {
  const Backend backend = choose_backend(name, world);
  if (backend != Backend::cuda) return backend;
  const auto gpus = static_cast<int>(cuda_devices().size());
  Device device;
  agree(world, [&] { device = open_cuda_device(gpus == 0 ? 0 : world.rank_on_node() % gpus); });
  return device;
}

}  // namespace halograd
