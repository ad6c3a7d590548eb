#pragma once

#include "halograd/core/bf16.hpp"
#include "halograd/device/cuda_device.hpp"
#include "kernels/device_array.hpp"
#include "kernels/support.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

namespace halograd::test {

/// A test on a device.
class DeviceTest : public testing::Test {
protected:
  /// The backend's device: the process's first GPU, or the processor. Skips the test where there is none.
  void open(Backend backend) {
    device = Device(backend);
    if (backend == Backend::cuda) {
      const auto devices = cuda_devices();
      if (devices.empty()) GTEST_SKIP() << why_no_cuda();
      device = open_cuda_device(devices.front().index);
    }
    queue = device.make_queue();
  }

  template <typename T>
  [[nodiscard]] DeviceArray array(const std::vector<T>& values, std::int64_t shift = 0) const {
    return {device, queue, values, shift};
  }

  template <typename List>
  void run(const List& list, const std::vector<const DeviceArray*>& written) const {
    run_repeatedly(queue, list, written);
  }

  Device device;
  Queue queue;
};

/// Where a test runs, and the type that its activations are kept in.
struct Place {
  Backend backend = Backend::cpu;
  DType type = DType::f32;
};

inline std::string place_name(const Place& place) {
  return std::string(backend_name(place.backend)) + (place.type == DType::bf16 ? "_bf16" : "_f32");
}

inline void PrintTo(const Place& place, std::ostream* out) {
  *out << place_name(place);
}

// The tests of one body run on the processor too, so that a machine without a GPU shows that they are right themselves.

inline auto all_places() {
  return testing::Values(Place{Backend::cpu, DType::f32}, Place{Backend::cpu, DType::bf16},
                         Place{Backend::cuda, DType::f32}, Place{Backend::cuda, DType::bf16});
}

/// For operations without activations.
inline auto float_places() {
  return testing::Values(Place{Backend::cpu, DType::f32}, Place{Backend::cuda, DType::f32});
}

inline std::string place_test_name(const testing::TestParamInfo<Place>& info) {
  return place_name(info.param);
}

/// What activations of `type` can hold of these values.
inline std::vector<float> rounded(std::vector<float> values, DType type) {
  if (type == DType::bf16) {
    for (float& value : values) value = static_cast<float>(Bf16(value));
  }
  return values;
}

/// A test that runs in every place.
class OnDevice : public DeviceTest, public testing::WithParamInterface<Place> {
protected:
  void SetUp() override { open(GetParam().backend); }

  [[nodiscard]] DType type() const { return GetParam().type; }
  /// What rounding to the type of activations may change of a number, relatively: half a unit in the last place.
  [[nodiscard]] double half_unit() const { return type() == DType::bf16 ? 0x1p-8 : 0x1p-24; }

  [[nodiscard]] std::vector<float> random_activations(std::int64_t count, std::uint64_t seed, double low = -1,
                                                      double high = 1) const {
    return rounded(random_values(count, seed, low, high), type());
  }

  [[nodiscard]] DeviceArray activations(const std::vector<float>& values, std::int64_t shift = 0) const {
    if (type() == DType::f32) return array(values, shift);
    std::vector<Bf16> narrow;
    for (const float value : values) narrow.emplace_back(value);
    return array(narrow, shift);
  }

  [[nodiscard]] std::vector<float> floats(const DeviceArray& activations) const {
    if (type() == DType::f32) return activations.values<float>();
    std::vector<float> values;
    for (const Bf16 value : activations.values<Bf16>()) values.push_back(static_cast<float>(value));
    return values;
  }

  /// The largest of |a − b| − half a unit of b, over all values: what is not due to rounding the result to its type.
  [[nodiscard]] double beyond_rounding(const DeviceArray& activations, const std::vector<float>& expected) const {
    const std::vector<float> got = floats(activations);
    if (got.size() != expected.size()) return 1e30;
    double worst = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double apart = std::abs(static_cast<double>(got[i]) - static_cast<double>(expected[i]));
      // Not a number is as wrong as can be.
      const double allowed = half_unit() * std::abs(static_cast<double>(expected[i]));
      worst = std::max(worst, apart <= 1e30 ? apart - allowed : 1e30);
    }
    return worst;
  }
};

}  // namespace halograd::test
