#include "kernels/chain_run.hpp"
#include "kernels/cuda_chain_support.hpp"
#include "kernels/software_launcher.hpp"

namespace halograd::test {
namespace {

// Every thread of the CUDA kernels, run on the host, must compute what the reference does: on the same random inputs,
// faces and gradients, rounded to the type beforehand.

template <typename T>
class CudaChainTest : public testing::TestWithParam<PlacedChain> {
protected:
  CudaChainTest() : inputs_(chain_inputs<T>(GetParam().desc)) {}

  /// The chain as a GPU of so many processors computes it.
  [[nodiscard]] ChainResults on_grid(int processors, bool backwards,
                                     const std::vector<std::uint8_t>* winners = nullptr) {
    cuda::chain::KernelChain<T, SoftwareLauncher> chain(inputs_.desc, SoftwareLauncher(processors, backwards));
    const ChainRun<T> run(Device(), Queue(), inputs_, winners);
    run.list(chain);
    return run.results();
  }

  void matches_the_reference();
  void does_not_depend_on_the_order();

  ChainInputs inputs_;
};

template <typename T>
void CudaChainTest<T>::matches_the_reference() {
  ChainResults expected = by_reference(inputs_);
  ChainResults got = on_grid(2, false, &expected.argmax);
  expect_results<T>(inputs_.desc, got, expected);
}

/// No thread may depend on what another does in the same stage, nor a result on how many blocks share the work (save
/// sums, which are added in another order then).
template <typename T>
void CudaChainTest<T>::does_not_depend_on_the_order() {
  ChainResults forwards = on_grid(2, false);
  ChainResults backwards = on_grid(2, true);
  ChainResults many = on_grid(132, false);
  for (ChainResults* other : {&backwards, &many}) {
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
