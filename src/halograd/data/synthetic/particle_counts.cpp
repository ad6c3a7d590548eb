#include "halograd/data/synthetic/particle_counts.hpp"

#include <atomic>
#include <cmath>

#include "halograd/data/synthetic/random_words.hpp"

namespace halograd {
namespace {

constexpr std::int64_t batch = 8;  // particles handled side by side, so that the compiler can use vectors
using Lanes = std::array<float, batch>;

/// The quadratic spline's weights of the voxel below, at and above, for a particle `x` in [−1/2, 1/2) off its centre.
struct SplineWeights {
  std::array<Lanes, 3> at;
  Lanes offset;

  void set(std::int64_t lane, float x) {
    offset[lane] = x;
    at[0][lane] = 0.5F * (0.5F - x) * (0.5F - x);
    at[1][lane] = 0.75F - x * x;
    at[2][lane] = 0.5F * (0.5F + x) * (0.5F + x);
  }
};

/// The 27 displacements around a voxel, along one axis.
using Stencil = std::array<float, 27>;

Lanes interpolate(const Stencil& stencil, const std::array<SplineWeights, 3>& weights) {
  Lanes result{};
  for (std::size_t a = 0; a < 3; ++a) {
    for (std::size_t b = 0; b < 3; ++b) {
      const float* const row = stencil.data() + 9 * a + 3 * b;
      for (std::size_t p = 0; p < batch; ++p) {
        const float along = row[0] * weights[2].at[0][p] + row[1] * weights[2].at[1][p] + row[2] * weights[2].at[2][p];
        result[p] += weights[0].at[a][p] * weights[1].at[b][p] * along;
      }
    }
  }
  return result;
}

std::int64_t wrapped(std::int64_t index, std::int64_t width) {
  const std::int64_t rest = index % width;
  return rest < 0 ? rest + width : rest;
}

class Counter {
public:
  Counter(const Displacement& displacement, std::int64_t width, std::int64_t particles_per_side,
          const RandomStream& jitter, std::vector<std::uint32_t>& counts)
      : displacement_(displacement), width_(width), side_(particles_per_side), jitter_(jitter), counts_(counts) {}

  /// Counts the particles that start in voxel [d,h,w].
  void count_voxel(std::int64_t d, std::int64_t h, std::int64_t w) const {
    const std::array<std::int64_t, 3> voxel = {d, h, w};
    const auto stencils = gather(d, h, w);
    const std::int64_t particles = side_ * side_ * side_;
    const std::int64_t first = ((d * width_ + h) * width_ + w) * particles;
    for (std::int64_t begin = 0; begin < particles; begin += batch) {
      const std::int64_t lanes = std::min(batch, particles - begin);
      std::array<SplineWeights, 3> weights{};
      for (std::int64_t lane = 0; lane < lanes; ++lane) place(begin + lane, first + begin + lane, lane, weights);
      std::array<Lanes, 3> moved;
      for (std::size_t axis = 0; axis < 3; ++axis) moved[axis] = interpolate(stencils[axis], weights);
      for (std::int64_t lane = 0; lane < lanes; ++lane) {
        std::int64_t target = 0;
        for (std::size_t axis = 0; axis < 3; ++axis) {
          const float offset = weights[axis].offset[lane] + 0.5F + moved[axis][lane];
          target = target * width_ + wrapped(voxel[axis] + static_cast<std::int64_t>(std::floor(offset)), width_);
        }
        // Sums of integers don't depend on the order in which threads add to them.
        std::atomic_ref(counts_[target]).fetch_add(1, std::memory_order_relaxed);
      }
    }
  }

private:
  [[nodiscard]] std::array<Stencil, 3> gather(std::int64_t d, std::int64_t h, std::int64_t w) const {
    std::array<Stencil, 3> stencils;
    std::size_t point = 0;
    for (std::int64_t a = -1; a <= 1; ++a) {
      for (std::int64_t b = -1; b <= 1; ++b) {
        const std::int64_t row = (wrapped(d + a, width_) * width_ + wrapped(h + b, width_)) * width_;
        for (std::int64_t c = -1; c <= 1; ++c, ++point) {
          const std::int64_t index = row + wrapped(w + c, width_);
          for (std::size_t axis = 0; axis < 3; ++axis) stencils[axis][point] = displacement_[axis][index];
        }
      }
    }
    return stencils;
  }

  /// Puts a particle at a random place in its cell of the voxel.
  void place(std::int64_t cell, std::int64_t particle, std::int64_t lane, std::array<SplineWeights, 3>& weights) const {
    const auto words = random_words(jitter_, static_cast<std::uint64_t>(particle));
    const std::array<std::int64_t, 3> corner = {cell / (side_ * side_), cell / side_ % side_, cell % side_};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const float inside = static_cast<float>(words[axis] >> 8) * 0x1p-24F;
      weights[axis].set(lane, (static_cast<float>(corner[axis]) + inside) / static_cast<float>(side_) - 0.5F);
    }
  }

  const Displacement& displacement_;
  std::int64_t width_;
  std::int64_t side_;
  RandomStream jitter_;
  std::vector<std::uint32_t>& counts_;
};

}  // namespace

void count_particles(const Displacement& displacement, std::int64_t width, std::int64_t particles_per_side,
                     const RandomStream& jitter, std::vector<std::uint32_t>& counts) {
  counts.assign(static_cast<std::size_t>(width * width * width), 0);
  const Counter counter(displacement, width, particles_per_side, jitter, counts);
  parallel_for(width * width, [&](std::int64_t row) {
    for (std::int64_t w = 0; w < width; ++w) counter.count_voxel(row / width, row % width, w);
  });
}

}  // namespace halograd
