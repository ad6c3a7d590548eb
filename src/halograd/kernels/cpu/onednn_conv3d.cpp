#include "halograd/kernels/cpu/onednn_conv3d.hpp"

#include "halograd/kernels/cpu/onednn.hpp"
#include "halograd/kernels/cpu/onednn_gradient.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace halograd::cpu {
namespace {

using onednn::borrowed;
using onednn::Call;
using onednn::owned;

using Forward = ConvProblem::Forward;
using BackwardData = ConvProblem::BackwardData;

class OnednnConv3d final : public Conv3d {
public:
  OnednnConv3d(const Conv3dDesc& desc, const ConvProblem& problem) {
    const auto forward = problem.forward();
    std::optional<BackwardData::primitive_desc> data;
    if (desc.calls_backward_data()) data = problem.backward_data(forward);
    if (desc.calls_backward_weights()) gradient_.emplace(desc);

    if (desc.calls_forward()) reserve_scratch(forward.scratchpad_desc().get_size());
    if (data) reserve_scratch(data->scratchpad_desc().get_size());
    if (gradient_) reserve_scratch(gradient_->scratch_bytes());
    if (scratch_bytes_ > 0) scratch_ = hold(onednn::bytes(scratch_bytes_));
    if (desc.calls_forward()) make_forward(problem, forward);
    if (data) make_backward_data(problem, *data);
    if (gradient_) make_backward_weights(problem);
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
    if (!unpacking_) return gradient_->run(x, dy, dw);
    gradient_->run(x, dy, static_cast<float*>(packed_gradient_.get_data_handle()));
    unpacking_.bind(DNNL_ARG_TO, dw);
    unpacking_.run();
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
  void reserve_scratch(std::size_t bytes) { scratch_bytes_ = std::max(scratch_bytes_, bytes); }

  void add_scratch(const dnnl::memory::desc& desc, Arguments& arguments) {
    if (desc.get_size() == 0) return;
    arguments.emplace(DNNL_ARG_SCRATCHPAD, dnnl::memory(desc, onednn::engine(), scratch_.get_data_handle()));
  }

  dnnl::memory packed_weights(const ConvProblem& problem, const dnnl::memory::desc& desc) {
    dnnl::memory packed = hold(desc);
    packings_.push_back(onednn::reorder(borrowed(problem.plain_weights), packed));
    return packed;
  }

  void make_forward(const ConvProblem& problem, const Forward::primitive_desc& desc) {
    weights_ = packed_weights(problem, desc.weights_desc());
    Arguments arguments{
        {DNNL_ARG_SRC, borrowed(problem.src)}, {DNNL_ARG_DST, borrowed(problem.dst)}, {DNNL_ARG_WEIGHTS, weights_}};
    add_scratch(desc.scratchpad_desc(), arguments);
    forward_ = Call(Forward(desc), std::move(arguments));
    implementations_.emplace_back(desc.impl_info_str());
  }

  void make_backward_data(const ConvProblem& problem, const BackwardData::primitive_desc& desc) {
    const bool shared = weights_ && desc.weights_desc() == weights_.get_desc();
    const dnnl::memory weights = shared ? weights_ : packed_weights(problem, desc.weights_desc());
    Arguments arguments{{DNNL_ARG_DIFF_SRC, borrowed(problem.src)},
                        {DNNL_ARG_DIFF_DST, borrowed(problem.dst)},
                        {DNNL_ARG_WEIGHTS, weights}};
    add_scratch(desc.scratchpad_desc(), arguments);
    backward_data_ = Call(BackwardData(desc), std::move(arguments));
    implementations_.emplace_back(desc.impl_info_str());
  }

  void make_backward_weights(const ConvProblem& problem) {
    if (gradient_->format() != problem.plain_weights) {
      packed_gradient_ = hold(gradient_->format());
      unpacking_ = onednn::reorder(packed_gradient_, borrowed(problem.plain_weights));
    }
    if (scratch_) gradient_->use_scratch(scratch_.get_data_handle());
    held_bytes_ += gradient_->held_bytes();
    implementations_.push_back(gradient_->implementation());
  }

  std::int64_t held_bytes_ = 0;
  std::size_t scratch_bytes_ = 0;
  dnnl::memory scratch_;
  dnnl::memory weights_;
  std::vector<Call> packings_;
  Call forward_;
  Call backward_data_;
  std::optional<OnednnGradient> gradient_;
  dnnl::memory packed_gradient_;
  Call unpacking_;
  std::vector<std::string> implementations_;
};

}  // namespace

std::unique_ptr<Conv3d> make_onednn_conv3d(const Conv3dDesc& desc, const ConvProblem& problem) {
  return std::make_unique<OnednnConv3d>(desc, problem);
}

}  // namespace halograd::cpu
