#include "halograd/kernels/cpu/chain_rows.hpp"

#include "kernels/bf16_support.hpp"

namespace halograd::cpu {
namespace {

using test::bf16_values;
using test::to_bf16;
using test::to_floats;

/// Rows of so many channels go through whole registers, then fours, then ones.
constexpr std::int64_t most_channels = 41;

TEST(CpuChainRows, RoundAsBf16Does) {
  std::vector<float> values;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    for (const std::uint32_t low : {0U, 1U, 0x7FFFU, 0x8000U, 0x8001U, 0xFFFFU}) {
      values.push_back(std::bit_cast<float>(bits << 16 | low));
    }
  }
  const auto count = static_cast<std::int64_t>(values.size());
  for (const std::int64_t most : {std::int64_t{1}, std::int64_t{7}, std::int64_t{21}, count}) {
    std::vector<Bf16> rounded(values.size());
    for (std::int64_t first = 0; first < count; first += most) {
      const std::int64_t channels = std::min(most, count - first);
      row_kernels<MoveKernels<float, Bf16>>().copy_row({1, channels}, {values.data() + first, channels},
                                                       {rounded.data() + first, channels});
    }
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(rounded[i].bits, Bf16(values[i]).bits) << values[i];
  }
}

TEST(CpuChainRows, CopyAndAddRowsOfAnyLength) {
  for (std::int64_t channels = 1; channels <= most_channels; ++channels) {
    const RowShape shape{3, channels};
    const std::int64_t pitch = channels + 2;
    const std::vector<float> given = bf16_values(3 * pitch, 1);
    const std::vector<float> there = bf16_values(3 * pitch, 2);
    const std::vector<Bf16> narrow = to_bf16(given);
    std::vector<float> sum = there;
    row_kernels<MoveKernels<Bf16, float>>().add_row(shape, {narrow.data(), pitch}, {sum.data(), pitch});
    std::vector<Bf16> narrow_sum = to_bf16(there);
    row_kernels<MoveKernels<float, Bf16>>().add_row(shape, {given.data(), pitch}, {narrow_sum.data(), pitch});
    std::vector<Bf16> both_narrow = to_bf16(there);
    row_kernels<MoveKernels<Bf16, Bf16>>().add_row(shape, {narrow.data(), pitch}, {both_narrow.data(), pitch});
    std::vector<float> copy = there;
    row_kernels<MoveKernels<Bf16, float>>().copy_row(shape, {narrow.data(), pitch}, {copy.data(), pitch});
    for (std::int64_t i = 0; i < 3 * pitch; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const bool mine = i % pitch < channels;
      const float expected = mine ? there[at] + given[at] : there[at];
      ASSERT_EQ(sum[at], expected) << channels;
      ASSERT_EQ(narrow_sum[at].bits, Bf16(expected).bits) << channels;
      ASSERT_EQ(both_narrow[at].bits, Bf16(expected).bits) << channels;
      ASSERT_EQ(copy[at], mine ? given[at] : there[at]) << channels;
    }
  }
}

TEST(CpuChainRows, SumAnyNumberOfRowsAndRoundOnce) {
  for (std::int64_t count = 0; count <= 7; ++count) {
    const std::int64_t elements = most_channels;
    std::vector<std::vector<float>> wide;
    std::vector<std::vector<Bf16>> narrow;
    std::vector<const float*> wide_rows(static_cast<std::size_t>(count));
    std::vector<const Bf16*> narrow_rows(wide_rows.size());
    for (std::int64_t row = 0; row < count; ++row) {
      wide.push_back(bf16_values(elements, static_cast<std::uint64_t>(row)));
      narrow.push_back(to_bf16(wide.back()));
    }
    for (std::size_t row = 0; row < wide.size(); ++row) {
      wide_rows[row] = wide[row].data();
      narrow_rows[row] = narrow[row].data();
    }
    const float scale = 0.3F;
    std::vector<float> from_narrow(static_cast<std::size_t>(elements), 9);
    std::vector<Bf16> to_narrow = to_bf16(from_narrow);
    row_kernels<MoveKernels<Bf16, float>>().sum_rows(narrow_rows.data(), count, elements, scale, from_narrow.data());
    row_kernels<MoveKernels<float, Bf16>>().sum_rows(wide_rows.data(), count, elements, scale, to_narrow.data());
    for (std::size_t i = 0; i < from_narrow.size(); ++i) {
      double sum = 0;
      for (const auto& row : wide) sum += static_cast<double>(row[i]);
      ASSERT_NEAR(static_cast<double>(from_narrow[i]), sum * static_cast<double>(scale), 1e-6) << count;
    }
    test::expect_rounded(to_floats(to_narrow), from_narrow, 1e-6);
  }
}

}  // namespace
}  // namespace halograd::cpu
