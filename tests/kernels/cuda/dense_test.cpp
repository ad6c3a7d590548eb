#include "halograd/kernels/cuda/dense.hpp"

#include "halograd/core/error.hpp"
#include "halograd/kernels/reference/dense.hpp"
#include "kernels/cuda/on_gpu.hpp"

namespace halograd::test {
namespace {

class CudaDense : public OnGpu {};

TEST_F(CudaDense, MatchesTheReferenceWhereverParametersBegin) {
  Dice dice(5);
  for (std::uint64_t i = 0; i < 20; ++i) {
    DenseDesc desc{.samples = dice.between(0, 4),
                   .in_features = dice.one_of<std::int64_t>({1, 3, 4, 20, 256, 300, 2048}),
                   .out_features = dice.one_of<std::int64_t>({1, 4, 17, 64, 256})};
    desc.precision = i % 2 == 0 ? Precision::f32 : Precision::tf32;
    const double bound = desc.precision == Precision::f32 ? 1e-5 : 1e-3;
    const auto x = random_values(desc.samples * desc.in_features, 10 * i);
    const auto dy = random_values(desc.samples * desc.out_features, 10 * i + 1);
    const auto w = random_values(desc.in_features * desc.out_features, 10 * i + 2);
    const auto b = random_values(desc.out_features, 10 * i + 3);
    std::vector<float> y(dy.size()), dx(x.size()), dw(w.size()), db(b.size());
    const auto reference = reference::make_dense(desc);
    reference->forward(x.data(), w.data(), b.data(), y.data());
    reference->backward_data(dy.data(), w.data(), dx.data());
    reference->backward_weights(x.data(), dy.data(), dw.data(), db.data());

    // Weights and bias lie one behind the other, and so do their gradients, from an odd float on in every other case.
    const std::size_t skip = i % 4 < 2 ? 0 : 1;
    std::vector<float> parameters(skip, 0.0F);
    parameters.insert(parameters.end(), w.begin(), w.end());
    parameters.insert(parameters.end(), b.begin(), b.end());
    const DeviceMemory on_x = upload(x), on_dy = upload(dy), on_parameters = upload(parameters);
    const DeviceMemory on_y = upload(std::vector<float>(dy.size(), 9)), on_dx = upload(std::vector<float>(x.size(), 9));
    const DeviceMemory on_gradients = upload(std::vector<float>(parameters.size(), 9));
    const float* const on_w = on_parameters.floats() + skip;
    float* const on_dw = on_gradients.floats() + skip;
    const auto dense = cuda::make_dense(queue, desc);
    dense->forward(on_x.floats(), on_w, on_w + w.size(), on_y.floats());
    dense->backward_data(on_dy.floats(), on_w, on_dx.floats());
    dense->backward_weights(on_x.floats(), on_dy.floats(), on_dw, on_dw + w.size());
    const auto gradients = download(on_gradients, parameters.size());
    const auto begin = gradients.begin() + static_cast<std::ptrdiff_t>(skip);
    const auto middle = begin + static_cast<std::ptrdiff_t>(w.size());
    EXPECT_LT(relative_l2(download(on_y, y.size()), y), bound);
    EXPECT_LT(relative_l2(download(on_dx, dx.size()), dx), bound);
    EXPECT_LT(relative_l2(std::vector<float>(begin, middle), dw), bound);
    EXPECT_LT(relative_l2(std::vector<float>(middle, gradients.end()), db), 1e-6);
    EXPECT_EQ(dense->implementations().size(), desc.samples == 0 ? 0U : 3U);
  }
}

TEST_F(CudaDense, RefusesBf16) {
  EXPECT_THROW(
      cuda::make_dense(queue, {.samples = 1, .in_features = 4, .out_features = 4, .precision = Precision::bf16}),
      UsageError);
}

}  // namespace
}  // namespace halograd::test
