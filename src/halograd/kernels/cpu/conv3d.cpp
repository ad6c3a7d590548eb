#include "halograd/kernels/cpu/conv3d.hpp"

#include "halograd/kernels/cpu/conv_problem.hpp"
#include "halograd/kernels/cpu/onednn.hpp"
#include "halograd/kernels/cpu/patch_conv3d.hpp"
#include "halograd/kernels/cpu/small_conv3d.hpp"
#include "halograd/kernels/cpu/winograd_conv3d.hpp"
#include "halograd/kernels/typed.hpp"

#include <algorithm>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace halograd::cpu {
namespace {

using onednn::borrowed;
using onednn::Call;
using onednn::owned;

using Problem = ConvProblem;
using Forward = Problem::Forward;
using BackwardData = Problem::BackwardData;
using BackwardWeights = Problem::BackwardWeights;

/// Output voxels of all samples up to which a convolution runs as a matrix product: unless direct ones are asked for,
/// or if it has no fast kernel.
constexpr std::int64_t few_matrix_rows = 32;
constexpr std::int64_t most_matrix_rows = 512;

/// No samples or no voxels on this rank: no sum has a term.
class EmptyConv3d final : public TypedConv3d<float> {
public:
  explicit EmptyConv3d(const Conv3dDesc& desc)
      : dx_elements_(desc.samples * desc.in_channels * desc.in.volume()),
        dw_elements_(desc.in_channels * desc.out_channels * desc.kernel.volume()) {}

  void set_weights(const float*) override {}
  void forward(const float*, float*) override {}
  void backward_data(const float*, float* dx) override { std::fill_n(dx, dx_elements_, 0.0F); }
  void backward_weights(const float*, const float*, float* dw) override { std::fill_n(dw, dw_elements_, 0.0F); }
  [[nodiscard]] std::int64_t held_bytes() const override { return 0; }
  [[nodiscard]] std::vector<std::string> implementations() const override { return {}; }

private:
  std::int64_t dx_elements_;
  std::int64_t dw_elements_;
};

class OnednnConv3d final : public Conv3d {
public:
  OnednnConv3d(const Conv3dDesc& desc, const Problem& problem) {
    const auto forward = problem.forward();
    std::optional<BackwardData::primitive_desc> data;
    std::optional<BackwardWeights::primitive_desc> weights;
    if (desc.calls_backward_data()) data = problem.backward_data(forward);
    if (desc.calls_backward_weights()) weights = problem.backward_weights(forward);

    if (desc.calls_forward()) reserve_scratch(forward.scratchpad_desc());
    if (data) reserve_scratch(data->scratchpad_desc());
    if (weights) reserve_scratch(weights->scratchpad_desc());
    if (desc.calls_forward()) make_forward(problem, forward);
    if (data) make_backward_data(problem, *data);
    if (weights) make_backward_weights(problem, *weights);
  }

  void set_weights(const float* w) override {
    for (Call& packing : packings_) {
      packing.bind(DNNL_ARG_FROM, w);
      packing.run();
    }
  }

  void forward(const void* x, void* y) override {
    forward_.bind(DNNL_ARG_SRC, x);
    forward_.bind(DNNL_ARG_DST, y);
    forward_.run();
  }

  void backward_data(const void* dy, void* dx) override {
    backward_data_.bind(DNNL_ARG_DIFF_DST, dy);
    backward_data_.bind(DNNL_ARG_DIFF_SRC, dx);
    backward_data_.run();
  }

  void backward_weights(const void* x, const void* dy, float* dw) override {
    backward_weights_.bind(DNNL_ARG_SRC, x);
    backward_weights_.bind(DNNL_ARG_DIFF_DST, dy);
    if (!unpacking_) backward_weights_.bind(DNNL_ARG_DIFF_WEIGHTS, dw);
    backward_weights_.run();
    if (unpacking_) {
      unpacking_.bind(DNNL_ARG_TO, dw);
      unpacking_.run();
    }
  }

  [[nodiscard]] std::int64_t held_bytes() const override { return held_bytes_; }
  [[nodiscard]] std::vector<std::string> implementations() const override { return implementations_; }

private:
  using Arguments = std::unordered_map<int, dnnl::memory>;

  dnnl::memory hold(const dnnl::memory::desc& desc) {
    held_bytes_ += static_cast<std::int64_t>(desc.get_size());
    return owned(desc);
  }

  /// The three primitives never run at once, so they share the largest one's scratch memory.
  void reserve_scratch(const dnnl::memory::desc& desc) {
    if (desc.get_size() > scratch_size_) {
      scratch_size_ = desc.get_size();
      scratch_desc_ = desc;
    }
  }

  void add_scratch(const dnnl::memory::desc& desc, Arguments& arguments) {
    if (desc.get_size() == 0) return;
    if (!scratch_) scratch_ = hold(scratch_desc_);
    arguments.emplace(DNNL_ARG_SCRATCHPAD, dnnl::memory(desc, onednn::engine(), scratch_.get_data_handle()));
  }

  dnnl::memory packed_weights(const Problem& problem, const dnnl::memory::desc& desc) {
    dnnl::memory packed = hold(desc);
    packings_.push_back(onednn::reorder(borrowed(problem.plain_weights), packed));
    return packed;
  }

  template <typename Desc>
  void note(const Desc& desc) {
    implementations_.emplace_back(desc.impl_info_str());
  }

  void make_forward(const Problem& problem, const Forward::primitive_desc& desc) {
    weights_ = packed_weights(problem, desc.weights_desc());
    Arguments arguments{
        {DNNL_ARG_SRC, borrowed(problem.src)}, {DNNL_ARG_DST, borrowed(problem.dst)}, {DNNL_ARG_WEIGHTS, weights_}};
    add_scratch(desc.scratchpad_desc(), arguments);
    forward_ = Call(Forward(desc), std::move(arguments));
    note(desc);
  }

  void make_backward_data(const Problem& problem, const BackwardData::primitive_desc& desc) {
    const bool shared = weights_ && desc.weights_desc() == weights_.get_desc();
    const dnnl::memory weights = shared ? weights_ : packed_weights(problem, desc.weights_desc());
    Arguments arguments{{DNNL_ARG_DIFF_SRC, borrowed(problem.src)},
                        {DNNL_ARG_DIFF_DST, borrowed(problem.dst)},
                        {DNNL_ARG_WEIGHTS, weights}};
    add_scratch(desc.scratchpad_desc(), arguments);
    backward_data_ = Call(BackwardData(desc), std::move(arguments));
    note(desc);
  }

  void make_backward_weights(const Problem& problem, const BackwardWeights::primitive_desc& desc) {
    Arguments arguments{{DNNL_ARG_SRC, borrowed(problem.src)}, {DNNL_ARG_DIFF_DST, borrowed(problem.dst)}};
    if (desc.diff_weights_desc() == problem.plain_weights) {
      arguments.emplace(DNNL_ARG_DIFF_WEIGHTS, borrowed(problem.plain_weights));
    } else {
      const dnnl::memory packed = hold(desc.diff_weights_desc());
      arguments.emplace(DNNL_ARG_DIFF_WEIGHTS, packed);
      unpacking_ = onednn::reorder(packed, borrowed(problem.plain_weights));
    }
    add_scratch(desc.scratchpad_desc(), arguments);
    backward_weights_ = Call(BackwardWeights(desc), std::move(arguments));
    note(desc);
  }

  std::int64_t held_bytes_ = 0;
  std::size_t scratch_size_ = 0;
  dnnl::memory::desc scratch_desc_;
  dnnl::memory scratch_;
  dnnl::memory weights_;
  std::vector<Call> packings_;
  Call forward_;
  Call backward_data_;
  Call backward_weights_;
  Call unpacking_;
  std::vector<std::string> implementations_;
};

int slowest(const Conv3dDesc& desc, const Problem& problem) {
  const auto forward = problem.forward();
  int result = 0;
  const auto consider = [&](const auto& call) { result = std::max(result, onednn::slowness(call.impl_info_str())); };
  if (desc.calls_forward()) consider(forward);
  if (desc.backwards) consider(problem.backward_data(forward));
  if (desc.calls_backward_weights()) consider(problem.backward_weights(forward));
  return result;
}

/// Where reorders cost more than the arithmetic, and where oneDNN would go by way of a matrix itself (backward-weights
/// of 2³ voxels: 28 MB of scratch memory, and a gradient to reorder).
bool better_as_matrix(const Conv3dDesc& desc, const Problem& problem) {
  const std::int64_t rows = desc.samples * desc.out.volume();
  return rows <= most_matrix_rows && slowest(desc, problem) > 0;
}

}  // namespace

std::unique_ptr<Conv3d> make_conv3d(const Conv3dDesc& desc) {
  try {
    if (desc.samples * desc.out.volume() == 0) return std::make_unique<EmptyConv3d>(desc);
    const Problem problem(desc);
    if (!desc.direct && desc.samples * desc.out.volume() <= few_matrix_rows) return make_small_conv3d(desc);
    if (is_patchwise(desc)) return make_patch_conv3d(desc);
    if (prefers_winograd(desc)) return make_winograd_conv3d(desc);
    if (better_as_matrix(desc, problem)) return make_small_conv3d(desc);
    return std::make_unique<OnednnConv3d>(desc, problem);
  } catch (const dnnl::error& error) {
    throw ResourceError("{}: oneDNN cannot make it ({})", describe(desc), error.what());
  } catch (const std::bad_alloc&) {
    throw ResourceError("{}: no memory for packed weights or scratch", describe(desc));
  }
}

}  // namespace halograd::cpu
