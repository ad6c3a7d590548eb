#include "halograd/kernels/dense.hpp"

#include "kernels/support.hpp"

namespace halograd::test {
namespace {

class DenseTest : public BackendTest {};

TEST_P(DenseTest, MatchesTheDefinition) {
  Dice dice(5);
  for (std::uint64_t i = 0; i < 20; ++i) {
    const DenseDesc desc{.samples = dice.between(1, 4),
                         .in_features = dice.one_of<std::int64_t>({1, 3, 4, 20, 256, 300, 2048}),
                         .out_features = dice.one_of<std::int64_t>({1, 4, 17, 64, 256})};
    const auto x = random_values(desc.samples * desc.in_features, 10 * i);
    const auto dy = random_values(desc.samples * desc.out_features, 10 * i + 1);
    const auto w = random_values(desc.in_features * desc.out_features, 10 * i + 2);
    const auto b = random_values(desc.out_features, 10 * i + 3);
    std::vector<double> y(dy.size()), dx(x.size()), dw(w.size()), db(b.size());
    for (std::int64_t n = 0; n < desc.samples; ++n) {
      for (std::int64_t o = 0; o < desc.out_features; ++o) {
        const auto at = static_cast<std::size_t>(n * desc.out_features + o);
        y[at] += static_cast<double>(b[static_cast<std::size_t>(o)]);
        db[static_cast<std::size_t>(o)] += static_cast<double>(dy[at]);
        for (std::int64_t k = 0; k < desc.in_features; ++k) {
          const auto xi = static_cast<std::size_t>(n * desc.in_features + k);
          const auto wi = static_cast<std::size_t>(o * desc.in_features + k);
          y[at] += static_cast<double>(x[xi]) * static_cast<double>(w[wi]);
          dx[xi] += static_cast<double>(dy[at]) * static_cast<double>(w[wi]);
          dw[wi] += static_cast<double>(dy[at]) * static_cast<double>(x[xi]);
        }
      }
    }
    const auto dense = make_dense(GetParam(), desc);
    std::vector<float> got_y(y.size(), 9), got_dx(dx.size(), 9), got_dw(dw.size(), 9), got_db(db.size(), 9);
    dense->forward(x.data(), w.data(), b.data(), got_y.data());
    dense->backward_data(dy.data(), w.data(), got_dx.data());
    dense->backward_weights(x.data(), dy.data(), got_dw.data(), got_db.data());
    EXPECT_LT(relative_l2(got_y, y), 1e-5) << desc.in_features << " -> " << desc.out_features;
    EXPECT_LT(relative_l2(got_dx, dx), 1e-5) << desc.in_features << " -> " << desc.out_features;
    EXPECT_LT(relative_l2(got_dw, dw), 1e-5) << desc.in_features << " -> " << desc.out_features;
    EXPECT_LT(relative_l2(got_db, db), 1e-5) << desc.in_features << " -> " << desc.out_features;
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, DenseTest, both_backends(), backend_test_name);

}  // namespace
}  // namespace halograd::test
