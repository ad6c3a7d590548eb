#include "kernels/bytes/traced_kernels.hpp"
#include "kernels/chain_bytes.hpp"
#include "kernels/cuda_chain_support.hpp"
#include "kernels/software_launcher.hpp"

#include <fmt/format.h>

namespace halograd::test {
namespace {

/// Runs a chain's kernels thread after thread, each launch under the trace; scratch memory is the GPU's too.
class TracedLauncher {
public:
  TracedLauncher(MemoryTrace& trace, int processors) : trace_(&trace), software_(processors) {}

  [[nodiscard]] int processors() const { return software_.processors(); }
  void allocate(std::int64_t count) { scratch_ = trace_->buffer<double>(count); }
  [[nodiscard]] double* scratch() const { return scratch_; }
  template <typename Kernel>
  void launch(const typename Kernel::Args& args, std::int64_t blocks) const {
    trace_->launch([&] { software_.template launch<Kernel>(args, blocks); });
  }

private:
  MemoryTrace* trace_;
  SoftwareLauncher software_;
  double* scratch_ = nullptr;
};

/// Of each of a chain's kernels, how many times the least it may move.
struct ChainLimits {
  double moments = tight;
  double forward = tight;
  double faces = tight;
  double sums = tight;
  double data = tight;
};

template <typename T>
class TracedChain {
public:
  explicit TracedChain(const ChainDesc& desc)
      : desc_(desc),
        y_(trace_.buffer<T>(desc.samples * desc.src.sample_elements())),
        dst_(trace_.buffer<T>(desc.samples * desc.dst.sample_elements())),
        winners_(trace_.buffer<std::uint8_t>(elements(desc, desc.out))),
        norm_{floats(), floats(), floats(), floats()},
        statistics_{doubles(), doubles()},
        faces_(sides(false)),
        received_(sides(true)) {}

  std::vector<TracedKernel> run(const std::string& shape, const ChainLimits& most) {
    constexpr int processors = 132;
    const ChainBytes formula = chain_bytes(desc_, processors);
    cuda::chain::KernelChain<T, TracedLauncher> chain(desc_, TracedLauncher(trace_, processors));
    std::vector<TracedKernel> rows;
    const auto add = [&](const char* kernel, const KernelBytes& by_formula, double at_most) {
      const KernelBytes bytes = trace_.moved(by_formula.least);
      // The formulas leave the few numbers of each channel out.
      const double left_out = 64 * static_cast<double>(desc_.channels);
      EXPECT_NEAR(static_cast<double>(bytes.read), static_cast<double>(by_formula.read), left_out) << kernel << shape;
      EXPECT_NEAR(static_cast<double>(bytes.written), static_cast<double>(by_formula.written), left_out);
      if (bytes.least > 0) rows.push_back({kernel, shape, bytes, at_most});
    };
    double* const mean = doubles();
    double* const m2 = doubles();
    chain.moments(y_, mean, m2);
    add("moments", formula.moments, most.moments);
    chain.forward(y_, faces_, norm_, {}, desc_.out, dst_, winners_);
    add("chain forward", formula.forward, most.forward);
    chain.backward_faces(dst_, winners_, {}, faces_);
    add("chain backward, faces", formula.backward_faces, most.faces);
    chain.backward_sums(y_, received_, norm_, dst_, winners_, {}, desc_.in, trace_.buffer<double>(2 * desc_.channels));
    add("chain backward, sums", formula.backward_sums, most.sums);
    chain.backward_data(y_, received_, norm_, dst_, winners_, {}, statistics_, y_);
    add("chain backward, data", formula.backward_data, most.data);
    return rows;
  }

private:
  float* floats() { return trace_.buffer<float>(desc_.channels); }
  double* doubles() { return trace_.buffer<double>(desc_.channels); }
  FaceBuffers<void> sides(bool inside) {
    const auto side = [&](int i, bool high) -> T* {
      const Box box = inside ? returned_voxels(desc_, i, high) : face_voxels(desc_, i, high);
      return box.empty() ? nullptr : trace_.buffer<T>(elements(desc_, box));
    };
    FaceBuffers<void> result;
    for (int i = 0; i < 3; ++i) {
      result.lo[static_cast<std::size_t>(i)] = side(i, false);
      result.hi[static_cast<std::size_t>(i)] = side(i, true);
    }
    return result;
  }

  MemoryTrace trace_;
  ChainDesc desc_;
  T* y_;
  T* dst_;
  std::uint8_t* winners_;
  Normalisation norm_;
  NormGradient statistics_;
  FaceBuffers<void> faces_;
  FaceBuffers<void> received_;
};

const Window centred{Extent::cube(3), Extent::cube(2), Extent::cube(1)};
const Window halving{Extent::cube(2), Extent::cube(2), {}};

constexpr std::int64_t width = 64;

ChainCase network_chain(PoolKind pool, const Window& window) {
  return {.samples = 1,
          .channels = 16,
          .extent = Extent::cube(width),
          .normalise = true,
          .negative_slope = 0.01F,
          .pool = pool,
          .window = window};
}

/// The part in the middle of a 3×3×3 grid, with neighbours on all sides.
ChainDesc middle_part(const ChainCase& test) {
  return part_chain(test, Partition::even(test.extent, Extent::cube(3)), {1, 1, 1}, 1);
}

template <typename T>
void trace(std::vector<TracedKernel>& rows, const std::string& shape, ChainDesc desc, const ChainLimits& most) {
  desc.type = sizeof(T) == 2 ? DType::bf16 : DType::f32;
  const std::string name = fmt::format("{}, 16 channels, {}³, {}", shape, width, sizeof(T) == 2 ? "bf16" : "f32");
  for (const TracedKernel& row : TracedChain<T>(desc).run(name, most)) rows.push_back(row);
}

}  // namespace

std::vector<TracedKernel> traced_chains() {
  std::vector<TracedKernel> rows;
  const ChainDesc average = whole_chain(network_chain(PoolKind::average, centred));
  trace<float>(rows, "average 3/2/1", average, {.moments = 1.009, .sums = 1.008});
  trace<Bf16>(rows, "average 3/2/1", average, {.moments = 1.017, .sums = 1.008});
  ChainCase larger = network_chain(PoolKind::average, centred);
  larger.extent = Extent::cube(3 * width);
  trace<Bf16>(rows, "average 3/2/1 inside a grid", middle_part(larger), {.moments = 1.017, .sums = 1.008});
  // Winners, which could be found again from y.
  const ChainDesc largest = whole_chain(network_chain(PoolKind::max, halving));
  trace<float>(rows, "max 2/2", largest, {.moments = 1.009, .forward = 1.028, .sums = 1.039, .data = 1.015});
  trace<Bf16>(rows, "max 2/2", largest, {.moments = 1.017, .forward = 1.056, .sums = 1.070, .data = 1.030});
  const ChainDesc plain = whole_chain(network_chain(PoolKind::none, {}));
  trace<Bf16>(rows, "no pool", plain, {.moments = 1.017, .sums = 1.008});
  return rows;
}

}  // namespace halograd::test
