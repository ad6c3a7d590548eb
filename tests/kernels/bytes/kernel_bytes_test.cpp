#include "kernels/bytes/traced_kernels.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace halograd::test {
namespace {

/// Prints the table of docs/gpu.md.
class KernelBytesTest : public testing::Test {
public:
  static void SetUpTestSuite() {
    fmt::print("| kernel | case | read | written | least | moved / least |\n| --- | --- | --- | --- | --- | --- |\n");
  }

protected:
  static void expect_within(const std::vector<TracedKernel>& kernels) {
    for (const auto& [kernel, shape, bytes, at_most] : kernels) {
      const auto megabytes = [](std::int64_t count) { return static_cast<double>(count) * 1e-6; };
      fmt::print("| {} | {} | {:.3f} | {:.3f} | {:.3f} | {:.3f} |\n", kernel, shape, megabytes(bytes.read),
                 megabytes(bytes.written), megabytes(bytes.least), bytes.overhead());
      // Less would mean that the trace has missed some.
      EXPECT_GE(bytes.moved(), bytes.least) << kernel << ", " << shape;
      EXPECT_LE(bytes.overhead(), at_most) << kernel << ", " << shape;
    }
  }
};

TEST_F(KernelBytesTest, OfChains) {
  expect_within(traced_chains());
}
TEST_F(KernelBytesTest, OfLosses) {
  expect_within(traced_losses());
}
TEST_F(KernelBytesTest, OfVolumes) {
  expect_within(traced_volumes());
}
TEST_F(KernelBytesTest, OfWeights) {
  expect_within(traced_weights());
}

}  // namespace
}  // namespace halograd::test
