#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>
#include <memory>
#include <numbers>
#include <span>
#include <vector>

#include "halograd/core/parallel.hpp"

struct fftwf_plan_s;

namespace halograd {

using Mode = std::complex<float>;
using RealField = std::vector<float>;  ///< [W,W,W], periodic
using ModeField = std::vector<Mode>;   ///< [W,W,W/2+1], the half that a real field's transform is fixed by

/// The modes of a periodic cube of `width` voxels and `box` Mpc/h a side.
struct ModeGrid {
  std::int64_t width = 0;
  double box = 0.0;

  [[nodiscard]] std::int64_t half_width() const { return width / 2 + 1; }
  [[nodiscard]] std::int64_t mode_count() const { return width * width * half_width(); }
  [[nodiscard]] std::int64_t voxel_count() const { return width * width * width; }
  [[nodiscard]] double voxel() const { return box / static_cast<double>(width); }

  /// The wave number of the box, 2π/L in h/Mpc: every mode's is an integer times this.
  [[nodiscard]] double fundamental() const { return 2.0 * std::numbers::pi / box; }

  /// The signed integer frequency at `index` of a full axis.
  [[nodiscard]] std::int64_t frequency(std::int64_t index) const { return 2 * index <= width ? index : index - width; }

  /// As `frequency`, but 0 at the Nyquist frequency of an even width, whose first derivative a real field can't have.
  [[nodiscard]] std::int64_t odd_frequency(std::int64_t index) const {
    return 2 * index == width ? 0 : frequency(index);
  }

  /// Calls `body(mode, d, h, w)` with a mode's place in a ModeField and its indices, spread over the threads.
  template <typename Body>
  void for_each_mode(const Body& body) const {
    parallel_for(width * width, [&](std::int64_t row) {
      for (std::int64_t w = 0; w < half_width(); ++w) body(row * half_width() + w, row / width, row % width, w);
    });
  }
};

/// The discrete Fourier transform of real cubes by FFTW. One-dimensional and planar transforms are shared out over the
/// threads, each by the same plan made without timing, so that the result depends neither on threads nor on the run.
class Fourier3d {
public:
  /// Makes the plans for `width`³ voxels (not to be called by two threads at once with other users of FFTW's planner).
  explicit Fourier3d(std::int64_t width);

  /// modes(k) = Σ_x values(x) exp(−i k x).
  void forward(std::span<const float> values, std::span<Mode> modes) const;

  /// values(x) = Σ_k modes(k) exp(i k x), without the factor 1/W³. Overwrites `modes`.
  void inverse(std::span<Mode> modes, std::span<float> values) const;

private:
  struct PlanDeleter {
    void operator()(fftwf_plan_s* plan) const;
  };
  using Plan = std::unique_ptr<fftwf_plan_s, PlanDeleter>;

  void along_depth(std::span<Mode> modes, const fftwf_plan_s* plan) const;

  std::int64_t width_;
  Plan plane_forward_;
  Plan plane_inverse_;
  Plan column_forward_;
  Plan column_inverse_;
};

}  // namespace halograd
