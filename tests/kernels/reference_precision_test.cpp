#include "halograd/core/bf16.hpp"
#include "halograd/core/error.hpp"
#include "halograd/kernels/chain.hpp"
#include "halograd/kernels/conv3d.hpp"
#include "halograd/kernels/convert.hpp"
#include "halograd/kernels/deconv3d.hpp"
#include "halograd/kernels/dense.hpp"
#include "halograd/kernels/loss.hpp"
#include "halograd/kernels/region_copy.hpp"
#include "halograd/kernels/segmentation_loss.hpp"
#include "halograd/kernels/upsample.hpp"

#include <gtest/gtest.h>

namespace halograd::test {
namespace {

constexpr Backend reference = Backend::reference;

template <typename Call>
void expect_refused(const Call& call) {
  try {
    call();
    ADD_FAILURE() << "not refused";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "the reference backend computes in f32 only");
  }
}

TEST(ReferencePrecision, WhatIsMadeComputesInF32) {
  const ChainDesc chain{.type = DType::bf16};
  expect_refused([&] { make_chain(reference, chain); });
  for (const Precision precision : {Precision::bf16, Precision::tf32}) {
    const Conv3dDesc conv{.precision = precision};
    const Deconv3dDesc deconv{.precision = precision};
    const DenseDesc dense{.precision = precision};
    expect_refused([&] { make_conv3d(reference, conv); });
    expect_refused([&] { make_deconv3d(reference, deconv); });
    expect_refused([&] { make_dense(reference, dense); });
  }
}

TEST(ReferencePrecision, WhatIsCalledComputesInF32) {
  const RegionCopy copy{.type = DType::bf16};
  const UpsampleDesc up{.type = DType::bf16};
  const SegmentationLossDesc loss{.type = DType::bf16};
  const ConvertDesc convert{.dst_type = DType::bf16};
  const SegmentationOutcome outcome;
  Bf16 value;
  double sum = 0;
  std::uint32_t refused = 0;
  expect_refused([&] { copy_region(reference, copy, &value, &value); });
  expect_refused([&] { add_region(reference, copy, &value, &value); });
  expect_refused([&] { upsample(reference, up, &value, &value); });
  expect_refused([&] { upsample_backward(reference, up, &value, &value); });
  expect_refused([&] { squared_error(reference, DType::bf16, &value, nullptr, 0, &sum); });
  expect_refused([&] { squared_error_gradient(reference, DType::bf16, &value, nullptr, 1, 0, &value); });
  expect_refused([&] { segmentation_sums(reference, loss, &value, nullptr, &sum); });
  expect_refused([&] { segmentation_gradient(reference, loss, &value, nullptr, &outcome, nullptr, &value); });
  expect_refused([&] { convert_input(reference, convert, &value, &value, &refused); });
}

}  // namespace
}  // namespace halograd::test
