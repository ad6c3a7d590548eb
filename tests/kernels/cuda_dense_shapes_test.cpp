#include "halograd/kernels/cuda/dense_shapes.hpp"

#include "kernels/support.hpp"

namespace halograd::test {
namespace {

using cuda::MatmulShape;

/// The product as BLAS defines it, in column order, of matrices of whole numbers.
std::vector<float> product(const MatmulShape& shape, const std::vector<float>& a, const std::vector<float>& b,
                           const std::vector<float>& bias) {
  EXPECT_EQ(static_cast<std::int64_t>(a.size()), shape.a_rows() * shape.a_columns());
  EXPECT_EQ(static_cast<std::int64_t>(b.size()), shape.b_rows() * shape.b_columns());
  std::vector<float> d(static_cast<std::size_t>(shape.rows * shape.columns));
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    for (std::int64_t column = 0; column < shape.columns; ++column) {
      float sum = shape.bias ? bias[static_cast<std::size_t>(row)] : 0;
      for (std::int64_t k = 0; k < shape.summed; ++k) {
        const std::int64_t in_a = shape.transpose_a ? k + row * shape.a_rows() : row + k * shape.a_rows();
        const std::int64_t in_b = shape.transpose_b ? column + k * shape.b_rows() : k + column * shape.b_rows();
        sum += a[static_cast<std::size_t>(in_a)] * b[static_cast<std::size_t>(in_b)];
      }
      d[static_cast<std::size_t>(row + column * shape.rows)] = sum;
    }
  }
  return d;
}

std::vector<float> whole_numbers(std::int64_t count, std::uint64_t seed) {
  std::vector<float> values = random_values(count, seed, -4.5, 4.5);
  for (float& value : values) value = std::round(value);
  return values;
}

TEST(CudaDenseShapes, ProductsAreTheLayersThreePasses) {
  Dice dice(7);
  for (std::uint64_t i = 0; i < 40; ++i) {
    const DenseDesc desc{
        .samples = dice.between(1, 5), .in_features = dice.between(1, 20), .out_features = dice.between(1, 20)};
    const auto x = whole_numbers(desc.samples * desc.in_features, 10 * i);
    const auto dy = whole_numbers(desc.samples * desc.out_features, 10 * i + 1);
    const auto w = whole_numbers(desc.in_features * desc.out_features, 10 * i + 2);
    const auto b = whole_numbers(desc.out_features, 10 * i + 3);
    const auto reference = make_dense(Backend::reference, desc);
    std::vector<float> y(dy.size()), dx(x.size()), dw(w.size()), db(b.size());
    reference->forward(x.data(), w.data(), b.data(), y.data());
    reference->backward_data(dy.data(), w.data(), dx.data());
    reference->backward_weights(x.data(), dy.data(), dw.data(), db.data());
    EXPECT_EQ(product(cuda::forward_shape(desc), w, x, b), y);
    EXPECT_EQ(product(cuda::backward_data_shape(desc), w, dy, {}), dx);
    EXPECT_EQ(product(cuda::backward_weights_shape(desc), x, dy, {}), dw);
  }
}

}  // namespace
}  // namespace halograd::test
