#pragma once

// Reads the files of tests/golden; their layouts are told at the top of the scripts beside them.
#include "halograd/data/hdf5_handle.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace halograd::test {

/// Numbers of an HDF5 file, converted to the type asked for; throws where there are none of that name.
class NumberFile {
public:
  explicit NumberFile(const std::string& file) : file_(open_hdf5_file(file)) {}

  /// A dataset's elements in C order.
  template <typename T>
  [[nodiscard]] std::vector<T> array(const std::string& path) const {
    const Hdf5Lock lock;
    const Hdf5Handle dataset(H5Dopen2(file_.id(), path.c_str(), H5P_DEFAULT), H5Dclose);
    const Hdf5Handle space(H5Dget_space(dataset.id()), H5Sclose);
    std::vector<T> values(static_cast<std::size_t>(std::max<hssize_t>(H5Sget_simple_extent_npoints(space.id()), 0)));
    if (values.empty() || H5Dread(dataset.id(), type<T>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0) {
      throw std::runtime_error("cannot read " + path);
    }
    return values;
  }
  [[nodiscard]] double number(const std::string& path) const { return array<double>(path).at(0); }

  [[nodiscard]] double attribute(const std::string& object, const std::string& name) const {
    const Hdf5Lock lock;
    const Hdf5Handle attribute(H5Aopen_by_name(file_.id(), object.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT),
                               H5Aclose);
    double value = 0;
    if (H5Aread(attribute.id(), H5T_NATIVE_DOUBLE, &value) < 0) throw std::runtime_error("no " + object + "@" + name);
    return value;
  }

private:
  template <typename T>
  static hid_t type() {
    if constexpr (std::is_same_v<T, double>) return H5T_NATIVE_DOUBLE;
    if constexpr (std::is_same_v<T, float>) return H5T_NATIVE_FLOAT;
    if constexpr (std::is_same_v<T, std::int64_t>) return H5T_NATIVE_INT64;
    if constexpr (std::is_same_v<T, std::uint16_t>) return H5T_NATIVE_UINT16;
    if constexpr (std::is_same_v<T, std::int16_t>) return H5T_NATIVE_INT16;
    if constexpr (std::is_same_v<T, std::uint8_t>) return H5T_NATIVE_UINT8;
  }

  Hdf5Handle file_;
};

struct Digest {
  double norm = 0;  ///< L2
  double dot = 0;   ///< with signs that splitmix64 gives each index: another order of the values gives another dot
};

inline double splitmix64_sign(std::uint64_t i) {
  std::uint64_t z = i + 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return ((z ^ (z >> 31U)) & 1U) != 0 ? 1 : -1;
}

inline Digest digest(std::span<const float> values) {
  double squares = 0;
  double dot = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = values[i];
    squares += value * value;
    dot += splitmix64_sign(i) * value;
  }
  return {std::sqrt(squares), dot};
}

/// |values[positions] − expected| / |expected|, L2; positions empty: all of them.
inline double relative_difference(std::span<const float> values, std::span<const std::int64_t> positions,
                                  std::span<const double> expected) {
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::size_t at = positions.empty() ? i : static_cast<std::size_t>(positions[i]);
    difference += (values[at] - expected[i]) * (values[at] - expected[i]);
    norm += expected[i] * expected[i];
  }
  return std::sqrt(difference / norm);
}

/// Which samples each step's mini-batch has.
class Schedule {
public:
  explicit Schedule(const NumberFile& file)
      : order_(file.array<std::int64_t>("order")),
        batch_size_(static_cast<std::size_t>(file.attribute("/", "batch_size"))) {}

  [[nodiscard]] std::int64_t steps() const { return static_cast<std::int64_t>(order_.size() / batch_size_); }
  [[nodiscard]] std::span<const std::int64_t> members(std::int64_t step) const {
    return std::span(order_).subspan(static_cast<std::size_t>(step) * batch_size_, batch_size_);
  }

private:
  std::vector<std::int64_t> order_;  // [steps, batch]
  std::size_t batch_size_;
};

inline std::vector<std::int64_t> first_numbers(std::int64_t count) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

}  // namespace halograd::test
