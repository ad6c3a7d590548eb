#include "halograd/kernels/cpu/dense.hpp"

#include "halograd/kernels/cpu/onednn.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace halograd::cpu {
namespace {

using onednn::borrowed;
using onednn::Call;
using onednn::Tag;

using Forward = dnnl::inner_product_forward;
using BackwardData = dnnl::inner_product_backward_data;
using BackwardWeights = dnnl::inner_product_backward_weights;

class OnednnDense final : public Dense {
public:
  explicit OnednnDense(const DenseDesc& desc) : desc_(desc) {
    if (desc.samples == 0) return;
    const auto src = onednn::f32({desc.samples, desc.in_features}, Tag::ab);
    const auto dst = onednn::f32({desc.samples, desc.out_features}, Tag::ab);
    const auto weights = onednn::f32({desc.out_features, desc.in_features}, Tag::ab);
    const auto bias = onednn::f32({desc.out_features}, Tag::a);
    const auto kind = desc.training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;

    const auto forward = onednn::forward_desc<Forward>(onednn::slowness, kind, src, weights, bias, dst);
    forward_ = call<Forward>(forward, {{DNNL_ARG_SRC, borrowed(src)},
                                       {DNNL_ARG_WEIGHTS, borrowed(weights)},
                                       {DNNL_ARG_BIAS, borrowed(bias)},
                                       {DNNL_ARG_DST, borrowed(dst)}});
    if (!desc.training) return;

    const auto data = onednn::backward_desc<BackwardData>(forward, src, weights, dst);
    backward_data_ = call<BackwardData>(data, {{DNNL_ARG_DIFF_DST, borrowed(dst)},
                                               {DNNL_ARG_WEIGHTS, borrowed(weights)},
                                               {DNNL_ARG_DIFF_SRC, borrowed(src)}});

    const auto gradient = onednn::backward_desc<BackwardWeights>(forward, src, weights, bias, dst);
    backward_weights_ = call<BackwardWeights>(gradient, {{DNNL_ARG_SRC, borrowed(src)},
                                                         {DNNL_ARG_DIFF_DST, borrowed(dst)},
                                                         {DNNL_ARG_DIFF_WEIGHTS, borrowed(weights)},
                                                         {DNNL_ARG_DIFF_BIAS, borrowed(bias)}});
  }

  void forward(const float* x, const float* w, const float* b, float* y) override {
    if (!forward_) return;
    forward_.bind(DNNL_ARG_SRC, x);
    forward_.bind(DNNL_ARG_WEIGHTS, w);
    forward_.bind(DNNL_ARG_BIAS, b);
    forward_.bind(DNNL_ARG_DST, y);
    forward_.run();
  }

  void backward_data(const float* dy, const float* w, float* dx) override {
    if (!backward_data_) return;
    backward_data_.bind(DNNL_ARG_DIFF_DST, dy);
    backward_data_.bind(DNNL_ARG_WEIGHTS, w);
    backward_data_.bind(DNNL_ARG_DIFF_SRC, dx);
    backward_data_.run();
  }

  void backward_weights(const float* x, const float* dy, float* dw, float* db) override {
    if (!backward_weights_) {
      std::fill_n(dw, desc_.out_features * desc_.in_features, 0.0F);
      std::fill_n(db, desc_.out_features, 0.0F);
      return;
    }
    backward_weights_.bind(DNNL_ARG_SRC, x);
    backward_weights_.bind(DNNL_ARG_DIFF_DST, dy);
    backward_weights_.bind(DNNL_ARG_DIFF_WEIGHTS, dw);
    backward_weights_.bind(DNNL_ARG_DIFF_BIAS, db);
    backward_weights_.run();
  }

  [[nodiscard]] std::int64_t held_bytes() const override { return held_bytes_; }
  [[nodiscard]] std::vector<std::string> implementations() const override { return implementations_; }

private:
  template <typename Primitive>
  Call call(const typename Primitive::primitive_desc& desc, std::unordered_map<int, dnnl::memory> arguments) {
    const auto scratch = desc.scratchpad_desc();
    if (scratch.get_size() > 0) {
      arguments.emplace(DNNL_ARG_SCRATCHPAD, onednn::owned(scratch));
      held_bytes_ += static_cast<std::int64_t>(scratch.get_size());
    }
    implementations_.emplace_back(desc.impl_info_str());
    return {Primitive(desc), std::move(arguments)};
  }

  DenseDesc desc_;
  std::int64_t held_bytes_ = 0;
  Call forward_;
  Call backward_data_;
  Call backward_weights_;
  std::vector<std::string> implementations_;
};

}  // namespace

std::unique_ptr<Dense> make_dense(const DenseDesc& desc) {
  try {
    return std::make_unique<OnednnDense>(desc);
  } catch (const dnnl::error& error) {
    throw ResourceError("dense layer {} to {} features, {} samples: oneDNN cannot make it ({})", desc.in_features,
                        desc.out_features, desc.samples, error.what());
  }
}

}  // namespace halograd::cpu
