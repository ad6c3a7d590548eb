#pragma once

#include "comm/paths.hpp"
#include "halograd/comm/link.hpp"
#include "halograd/device/cuda_device.hpp"
#include "support/recording_device.hpp"

#include <optional>
#include <string>
#include <tuple>

namespace halograd::testing {

/// Tests of what travels from a device's memory: through pinned host memory or by NCCL, both on a stand-in, and as
/// choose_transport says on the machine's GPUs, where it has any; between hosts by shared memory and by MPI.
class DeviceLinks : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {
protected:
  /// Collective. Nothing where there are no GPUs for a test of them.
  [[nodiscard]] std::optional<Link> link() const {
    const auto [transport, path] = GetParam();
    const Communicator ranks = over(path);
    if (std::string(transport) != "gpu") {
      const Device device = stand_in.device();
      return Link(ranks, device, device.make_queue(),
                  std::string(transport) == "staged" ? Transport::staged : Transport::nccl, stand_in.nccl());
    }
    const auto gpus = cuda_devices();
    if (ranks.all_reduce_max(std::int64_t{gpus.empty()}) != 0) return std::nullopt;
    const auto of_node = static_cast<std::size_t>(ranks.rank()) % gpus.size();
    const Device device = open_cuda_device(gpus[of_node].index);
    return Link(ranks, device, device.make_queue(), choose_transport(ranks, device).transport);
  }
  static constexpr const char* skipped = "no NVIDIA GPU here";

  RecordingDevice stand_in;
};

inline const auto device_links =
    ::testing::Combine(::testing::Values("staged", "nccl", "gpu"), ::testing::Values("shared", "mpi"));
inline std::string link_name(const ::testing::TestParamInfo<std::tuple<const char*, const char*>>& info) {
  return std::string(std::get<0>(info.param)) + "_" + std::get<1>(info.param);
}

}  // namespace halograd::testing
