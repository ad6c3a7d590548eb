#include "halograd/kernels/reference/dense.hpp"

#include "halograd/core/parallel.hpp"
#include "halograd/kernels/reference/f32_only.hpp"

namespace halograd::reference {
namespace {

class ReferenceDense final : public Dense {
public:
  explicit ReferenceDense(const DenseDesc& desc) : desc_(desc) {}

  void forward(const float* x, const float* w, const float* b, float* y) override {
    parallel_for(desc_.out_features, [&](std::int64_t o) {
      for (std::int64_t n = 0; n < desc_.samples; ++n) {
        double sum = static_cast<double>(b[o]);
        for (std::int64_t i = 0; i < desc_.in_features; ++i) {
          sum += static_cast<double>(x[n * desc_.in_features + i]) * static_cast<double>(w[o * desc_.in_features + i]);
        }
        y[n * desc_.out_features + o] = static_cast<float>(sum);
      }
    });
  }

  void backward_data(const float* dy, const float* w, float* dx) override {
    parallel_for(desc_.in_features, [&](std::int64_t i) {
      for (std::int64_t n = 0; n < desc_.samples; ++n) {
        double sum = 0;
        for (std::int64_t o = 0; o < desc_.out_features; ++o) {
          sum +=
              static_cast<double>(dy[n * desc_.out_features + o]) * static_cast<double>(w[o * desc_.in_features + i]);
        }
        dx[n * desc_.in_features + i] = static_cast<float>(sum);
      }
    });
  }

  void backward_weights(const float* x, const float* dy, float* dw, float* db) override {
    parallel_for(desc_.out_features, [&](std::int64_t o) {
      double bias = 0;
      for (std::int64_t n = 0; n < desc_.samples; ++n) bias += static_cast<double>(dy[n * desc_.out_features + o]);
      db[o] = static_cast<float>(bias);
      for (std::int64_t i = 0; i < desc_.in_features; ++i) {
        double sum = 0;
        for (std::int64_t n = 0; n < desc_.samples; ++n) {
          sum +=
              static_cast<double>(x[n * desc_.in_features + i]) * static_cast<double>(dy[n * desc_.out_features + o]);
        }
        dw[o * desc_.in_features + i] = static_cast<float>(sum);
      }
    });
  }

  [[nodiscard]] std::int64_t held_bytes() const override { return 0; }
  [[nodiscard]] std::vector<std::string> implementations() const override {
    return {"reference", "reference", "reference"};
  }

private:
  DenseDesc desc_;
};

}  // namespace

std::unique_ptr<Dense> make_dense(const DenseDesc& desc) {
  expect_f32(desc.precision);
  return std::make_unique<ReferenceDense>(desc);
}

}  // namespace halograd::reference
