#include "kernels/cuda_chain_support.hpp"

#include <span>

namespace halograd::test {
namespace {

// Every thread of the CUDA kernels, run on the host, must compute what the reference does: on the same random inputs,
// faces and gradients, rounded to the type beforehand.

const std::uint32_t step_now = 9;
const DropoutKey dropout_key{random_stream(13, RandomPurpose::dropout, 4, 1), 5, &step_now};

/// A box in two, along the first dimension that is long enough.
std::vector<Box> halves(const Box& box) {
  for (int i = 0; i < 3; ++i) {
    if (box.extent()[i] < 2) continue;
    Box low = box;
    Box high = box;
    low.hi[i] = box.lo[i] + 1;
    high.lo[i] = low.hi[i];
    return {high, low};
  }
  return {box};
}

std::vector<double> random_doubles(std::size_t count, std::uint64_t seed) {
  const auto values = random_values(static_cast<std::int64_t>(count), seed, -0.1, 0.1);
  return {values.begin(), values.end()};
}

/// What all chains of one test compute with.
template <typename T>
struct Inputs {
  explicit Inputs(const ChainDesc& chain)
      : desc(chain),
        y(rounded<T>(random_values(elements(desc, desc.in), 1))),
        dout(rounded<T>(random_values(elements(desc, written()), 2))),
        held(rounded<T>(random_values(elements(desc, desc.in), 5))),
        faces(random_faces<T>(desc, false, 20)),
        received(random_faces<T>(desc, true, 30)),
        norm(norm_of(desc, y, 3)),
        offset(random_doubles(norm.mean.size(), 7)),
        pull(random_doubles(norm.mean.size(), 8)) {}

  [[nodiscard]] Box written() const { return desc.out.intersect(desc.dst.box); }
  [[nodiscard]] std::size_t outputs() const { return static_cast<std::size_t>(elements(desc, desc.out)); }
  [[nodiscard]] NormGradient statistics() const {
    return desc.normalise ? NormGradient{offset.data(), pull.data()} : NormGradient{};
  }

  ChainDesc desc;
  std::vector<float> y, dout, held;
  Faces<float> faces, received;
  NormNumbers norm;
  std::vector<double> offset, pull;
};

/// What a chain makes of the inputs.
struct Results {
  std::vector<float> out, dy;
  std::vector<std::uint8_t> argmax;
  Faces<float> dfaces;
  std::vector<double> sums, mean, m2;
};

/// Runs all of a chain on buffers of type U. `argmax`: of the reference, for the backward pass, so that ties that round
/// apart are told from faults.
template <typename U>
Results run(Chain& chain, Inputs<U>& in, Faces<float>& faces_in, Faces<float>& received_in,
            const std::vector<std::uint8_t>* argmax) {
  const ChainDesc& desc = in.desc;
  Results results;
  Faces<U> faces = typed_faces<U>(faces_in);
  Faces<U> received = typed_faces<U>(received_in);
  TypedTensor<U> y(desc, desc.src, desc.in, in.y, nan_value);
  TypedTensor<U> dst(desc, desc.dst, in.written(), std::vector<float>(in.dout.size(), 1e30F), untouched);
  TypedTensor<U> dout(desc, desc.dst, in.written(), in.dout, nan_value);
  results.argmax.assign(in.outputs(), 255);
  for (const Box& piece : halves(desc.out)) {
    chain.forward(y.data(), faces.template buffers<const void>(), in.norm.view(), dropout_key, piece, dst.data(),
                  results.argmax.data());
  }
  EXPECT_TRUE(dst.surroundings_kept());
  results.out = dst.values();
  results.mean.assign(in.norm.mean.size(), 5);
  results.m2.assign(in.norm.mean.size(), 5);
  chain.moments(y.data(), results.mean.data(), results.m2.data());

  const std::uint8_t* winners = argmax != nullptr ? argmax->data() : results.argmax.data();
  Faces<U> dfaces = typed_faces<U>(faces_in);
  chain.backward_faces(dout.data(), winners, dropout_key, dfaces.template buffers<void>());
  for (int i = 0; i < 3; ++i) {
    for (const bool high : {false, true}) results.dfaces.side(i, high) = as_floats(dfaces.side(i, high));
  }
  results.sums = random_doubles(2 * in.norm.mean.size(), 9);
  for (const Box& piece : desc.normalise ? halves(desc.in) : std::vector<Box>{}) {
    chain.backward_sums(y.data(), received.template buffers<const void>(), in.norm.view(), dout.data(), winners,
                        dropout_key, piece, results.sums.data());
  }
  TypedTensor<U> apart(desc, desc.src, desc.in, in.held, untouched);
  TypedTensor<U>& dy = desc.accumulate ? apart : y;
  const bool reads = desc.normalise || desc.negative_slope != 1;
  chain.backward_data(reads ? y.data() : nullptr, received.template buffers<const void>(), in.norm.view(), dout.data(),
                      winners, dropout_key, in.statistics(), dy.data());
  EXPECT_TRUE(dy.surroundings_kept());
  results.dy = dy.values();
  return results;
}

template <typename T>
class CudaChainTest : public testing::TestWithParam<PlacedChain> {
protected:
  CudaChainTest() : inputs_(GetParam().desc) {}

  /// The chain as a GPU of so many processors computes it.
  [[nodiscard]] Results on_grid(int processors, bool backwards, const std::vector<std::uint8_t>* argmax = nullptr) {
    cuda::chain::KernelChain<T, SoftwareLauncher> chain(inputs_.desc, SoftwareLauncher(processors, backwards));
    return run<T>(chain, inputs_, inputs_.faces, inputs_.received, argmax);
  }

  [[nodiscard]] Results by_reference() {
    const auto chain = make_chain(Backend::reference, inputs_.desc);
    Inputs<float> inputs(inputs_.desc);
    inputs.y = inputs_.y;
    inputs.dout = inputs_.dout;
    inputs.held = inputs_.held;
    inputs.norm = inputs_.norm;
    return run<float>(*chain, inputs, inputs_.faces, inputs_.received, nullptr);
  }

  void matches_the_reference();
  void does_not_depend_on_the_order();

  Inputs<T> inputs_;
};

template <typename T>
void CudaChainTest<T>::matches_the_reference() {
  Results expected = by_reference();
  Results got = on_grid(2, false, &expected.argmax);
  // One rounding to the type, half a unit in the last of 8 or 24 bits, and what floats lose on the way.
  const double rounding = sizeof(T) == 2 ? 0x1p-8 : 0;
  const double bound = rounding + 1e-6;
  EXPECT_LT(relative_l2(got.out, expected.out), bound);
  if (inputs_.desc.pool == PoolKind::max) {
    EXPECT_EQ(got.argmax, expected.argmax);
  }
  EXPECT_LT(relative_l2(got.mean, expected.mean), 1e-12);
  EXPECT_LT(relative_l2(got.m2, expected.m2), 1e-12);
  for (int i = 0; i < 3; ++i) {
    for (const bool high : {false, true}) {
      EXPECT_LT(relative_l2(got.dfaces.side(i, high), expected.dfaces.side(i, high)), bound);
    }
  }
  EXPECT_LT(relative_l2(got.sums, expected.sums), 1e-6);
  EXPECT_LT(relative_l2(got.dy, expected.dy), bound);
}

/// No thread may depend on what another does in the same stage, nor a result on how many blocks share the work (save
/// sums, which are added in another order then).
template <typename T>
void CudaChainTest<T>::does_not_depend_on_the_order() {
  Results forwards = on_grid(2, false);
  Results backwards = on_grid(2, true);
  Results many = on_grid(132, false);
  for (Results* other : {&backwards, &many}) {
    EXPECT_EQ(other->out, forwards.out);
    EXPECT_EQ(other->argmax, forwards.argmax);
    EXPECT_EQ(other->dy, forwards.dy);
    for (int i = 0; i < 3; ++i) {
      for (const bool high : {false, true}) EXPECT_EQ(other->dfaces.side(i, high), forwards.dfaces.side(i, high));
    }
  }
  EXPECT_EQ(backwards.sums, forwards.sums);
  EXPECT_EQ(backwards.mean, forwards.mean);
  EXPECT_EQ(backwards.m2, forwards.m2);
  EXPECT_LT(relative_l2(many.sums, forwards.sums), 1e-6);
}

using CudaChainF32 = CudaChainTest<float>;
using CudaChainBf16 = CudaChainTest<Bf16>;

TEST_P(CudaChainF32, MatchesTheReference) {
  matches_the_reference();
}
TEST_P(CudaChainBf16, MatchesTheReference) {
  matches_the_reference();
}
TEST_P(CudaChainF32, DoesNotDependOnTheOrder) {
  does_not_depend_on_the_order();
}
TEST_P(CudaChainBf16, DoesNotDependOnTheOrder) {
  does_not_depend_on_the_order();
}

INSTANTIATE_TEST_SUITE_P(Cases, CudaChainF32, testing::ValuesIn(placed_chains()), placed_name);
INSTANTIATE_TEST_SUITE_P(Cases, CudaChainBf16, testing::ValuesIn(placed_chains()), placed_name);

}  // namespace
}  // namespace halograd::test
