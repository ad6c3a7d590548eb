#pragma once

#include "halograd/core/types.hpp"
#include "halograd/device/queue.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace halograd {

struct DenseDesc {
  std::int64_t samples = 0;
  std::int64_t in_features = 0;
  std::int64_t out_features = 0;
  bool training = true;
  Precision precision = Precision::f32;  ///< f32 or tf32
};

/// y = x wᵀ + b. x, dx: [N,I]; y, dy: [N,O]; w, dw: [O,I]; b, db: [O]. All f32. Every result is assigned. Works on the
/// queue it was made for.
class Dense {
public:
  virtual ~Dense() = default;
  virtual void forward(const float* x, const float* w, const float* b, float* y) = 0;
  virtual void backward_data(const float* dy, const float* w, float* dx) = 0;
  virtual void backward_weights(const float* x, const float* dy, float* dw, float* db) = 0;
  [[nodiscard]] virtual std::int64_t held_bytes() const = 0;
  [[nodiscard]] virtual std::vector<std::string> implementations() const = 0;
};

std::unique_ptr<Dense> make_dense(const Queue& queue, const DenseDesc& desc);

}  // namespace halograd
