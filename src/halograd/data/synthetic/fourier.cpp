#include "halograd/data/synthetic/fourier.hpp"

#include <fftw3.h>

#include "halograd/core/error.hpp"

namespace halograd {
namespace {

// A block of columns is copied together before it is transformed: neighbours along the depth axis lie far apart.
constexpr std::int64_t column_block = 16;

fftwf_complex* raw(Mode* mode) {
  return reinterpret_cast<fftwf_complex*>(mode);
}

fftwf_plan checked(fftwf_plan plan, std::int64_t width) {
  if (plan == nullptr) throw ResourceError("FFTW has no plan for a width of {}", width);
  return plan;
}

}  // namespace

void Fourier3d::PlanDeleter::operator()(fftwf_plan_s* plan) const {
  fftwf_destroy_plan(plan);
}

Fourier3d::Fourier3d(std::int64_t width) : width_(width) {
  // Unaligned: the planes of an odd width start anywhere. Estimated: plans chosen by timing differ between runs.
  constexpr unsigned flags = FFTW_ESTIMATE | FFTW_UNALIGNED;
  const int n = static_cast<int>(width);
  RealField plane(static_cast<std::size_t>(width * width));
  ModeField modes(static_cast<std::size_t>(width * std::max(width / 2 + 1, column_block)));
  plane_forward_.reset(checked(fftwf_plan_dft_r2c_2d(n, n, plane.data(), raw(modes.data()), flags), width));
  plane_inverse_.reset(checked(fftwf_plan_dft_c2r_2d(n, n, raw(modes.data()), plane.data(), flags), width));
  const auto columns = [&](int sign) {
    return checked(fftwf_plan_many_dft(1, &n, static_cast<int>(column_block), raw(modes.data()), nullptr, 1, n,
                                       raw(modes.data()), nullptr, 1, n, sign, flags),
                   width);
  };
  column_forward_.reset(columns(FFTW_FORWARD));
  column_inverse_.reset(columns(FFTW_BACKWARD));
}

void Fourier3d::forward(std::span<const float> values, std::span<Mode> modes) const {
  const std::int64_t plane = width_ * width_;
  const std::int64_t mode_plane = width_ * (width_ / 2 + 1);
  parallel_for(width_, [&](std::int64_t d) {
    // A transform from real values to modes leaves its input as it is, whatever its signature says.
    fftwf_execute_dft_r2c(plane_forward_.get(), const_cast<float*>(values.data()) + d * plane,
                          raw(modes.data() + d * mode_plane));
  });
  along_depth(modes, column_forward_.get());
}

void Fourier3d::inverse(std::span<Mode> modes, std::span<float> values) const {
  along_depth(modes, column_inverse_.get());
  const std::int64_t plane = width_ * width_;
  const std::int64_t mode_plane = width_ * (width_ / 2 + 1);
  parallel_for(width_, [&](std::int64_t d) {
    fftwf_execute_dft_c2r(plane_inverse_.get(), raw(modes.data() + d * mode_plane), values.data() + d * plane);
  });
}

void Fourier3d::along_depth(std::span<Mode> modes, const fftwf_plan_s* plan) const {
  const std::int64_t mode_plane = width_ * (width_ / 2 + 1);
  const std::int64_t blocks = (mode_plane + column_block - 1) / column_block;
  std::vector<ModeField> buffers(static_cast<std::size_t>(thread_count()),
                                 ModeField(static_cast<std::size_t>(column_block * width_)));
  parallel_ranges(blocks, [&](std::int64_t begin, std::int64_t end, int thread) {
    ModeField& columns = buffers[thread];
    for (std::int64_t block = begin; block < end; ++block) {
      Mode* const first = modes.data() + block * column_block;
      const std::int64_t count = std::min(column_block, mode_plane - block * column_block);
      for (std::int64_t d = 0; d < width_; ++d) {
        for (std::int64_t c = 0; c < count; ++c) columns[c * width_ + d] = first[d * mode_plane + c];
      }
      fftwf_execute_dft(const_cast<fftwf_plan_s*>(plan), raw(columns.data()), raw(columns.data()));
      for (std::int64_t d = 0; d < width_; ++d) {
        for (std::int64_t c = 0; c < count; ++c) first[d * mode_plane + c] = columns[c * width_ + d];
      }
    }
  });
}

}  // namespace halograd
