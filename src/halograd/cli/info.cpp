#include "halograd/cli/commands.hpp"
#include "halograd/cli/output.hpp"
#include "halograd/cli/processor.hpp"
#include "halograd/comm/mpi_version.hpp"
#include "halograd/comm/nccl_version.hpp"
#include "halograd/comm/transport.hpp"
#include "halograd/core/memory.hpp"
#include "halograd/core/parallel.hpp"
#include "halograd/core/system.hpp"
#include "halograd/core/version.hpp"
#include "halograd/data/hdf5_version.hpp"
#include "halograd/data/synthetic/fftw_version.hpp"
#include "halograd/device/cuda_device.hpp"
#include "halograd/device/cuda_version.hpp"
#include "halograd/exec/choose_device.hpp"
#include "halograd/kernels/cpu/onednn_version.hpp"
#include "halograd/kernels/cuda/versions.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace halograd {
namespace {

std::string gpus_text() {
  std::string text;
  for (const CudaDeviceInfo& gpu : cuda_devices()) {
    text += fmt::format("{}{}: {}, compute capability {}.{}, {}", text.empty() ? "" : "; ", gpu.index, gpu.name,
                        gpu.major, gpu.minor, format_bytes(static_cast<double>(gpu.memory_bytes)));
  }
  return text.empty() ? why_no_cuda() : text;
}

/// "cpu", or what each rank would use, where that differs.
std::string devices_text(const Communicator& world, const Device& own) {
  const std::vector<std::string> names = world.all_gather(own.name());
  if (std::ranges::count(names, names.front()) == world.size()) return names.front();
  std::string text;
  for (std::size_t rank = 0; rank < names.size(); ++rank) {
    text += fmt::format("{}rank {}: {}", rank == 0 ? "" : "; ", rank, names[rank]);
  }
  return text;
}

std::string messages_text(const Communicator& world, const Device& device) {
  if (world.size() == 1) return "none: one rank";
  if (device.backend() == Backend::cuda) return choose_transport(world, device).description;
  return world.on_one_node() ? "shared memory, and MPI where that is switched off (HALOGRAD_SHARED_MEMORY=0)" : "MPI";
}

/// Collective.
std::string info_text(const Communicator& world) {
  const Device device = choose_device("auto", world);
  const Processor processor = this_processor();
  const auto bytes = [](std::int64_t value) { return format_bytes(static_cast<double>(value)); };
  const std::vector<std::vector<std::string>> rows{
      {"HaloGrad", version()},
      {"build", fmt::format("{}, {}", build_type(), compiler_version())},
      {"oneDNN", cpu::onednn_version()},
      {"MPI", comm::mpi_version()},
      {"HDF5", hdf5_version()},
      {"FFTW", fftw_version()},
      {"CUDA", cuda_versions()},
      {"CUDA math", cuda::cuda_library_versions()},
      {"NCCL", comm::nccl_version()},
      {"processor", processor.model.empty() ? "unknown" : processor.model},
      {"features", fmt::format("{}", fmt::join(processor.features, " "))},
      {"threads", fmt::format("{} a rank", thread_count())},
      {"memory", fmt::format("{}, {} available", bytes(total_memory_bytes()), bytes(available_memory_bytes()))},
      {"GPUs", gpus_text()},
      {"ranks", fmt::to_string(world.size())},
      {"device", devices_text(world, device)},
      {"messages", messages_text(world, device)}};
  std::string text = format_table(rows, {false, false});
  text.pop_back();
  return text;
}

}  // namespace

void add_info_command(CLI::App& app, const Communicator& world) {
  CLI::App* const command = app.add_subcommand("info", "Version, build, libraries, processor, memory and ranks");
  command->callback([world] { print(world, info_text(world)); });
}

}  // namespace halograd
