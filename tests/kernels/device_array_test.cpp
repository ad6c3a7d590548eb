#include "kernels/device_array.hpp"

#include "support/recording_device.hpp"

#include <gtest/gtest-spi.h>

#include <algorithm>

namespace halograd::test {
namespace {

// What tests on a GPU trust must itself be able to fail.

DeviceArray three_floats(std::int64_t shift) {
  return {Device(), Queue(), std::vector<float>{1, 2, 3}, shift};
}

TEST(DeviceArrays, HoldTheirNumbersAndForgetWhatWasWritten) {
  for (const std::int64_t shift : {0, 3}) {
    DeviceArray array = three_floats(shift);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(array.data()) % 256, 4 * static_cast<std::uintptr_t>(shift));
    array.data<float>()[2] = 7;
    EXPECT_EQ(array.values<float>(), (std::vector<float>{1, 2, 7}));
    array.reset();
    EXPECT_EQ(array.values<float>(), (std::vector<float>{1, 2, 3}));
    array.assign(std::vector<float>{4, 5, 6});
    EXPECT_EQ(array.values<float>(), (std::vector<float>{4, 5, 6}));
  }
}

TEST(DeviceArrays, SeeWhatIsWrittenAround) {
  const DeviceArray array = three_floats(1);
  EXPECT_NE(array.data<float>()[3], array.data<float>()[3]) << "what lies around is not a number";
  array.data<float>()[-1] = 0;
  EXPECT_NONFATAL_FAILURE(static_cast<void>(array.values<float>()), "written before");
  array.reset();
  array.data<float>()[3] = 0;
  EXPECT_NONFATAL_FAILURE(static_cast<void>(array.values<float>()), "written behind");
}

TEST(RunRepeatedly, BeginsWithWhatWasThereAtFirst) {
  const DeviceArray array = three_floats(0);
  int runs = 0;
  run_repeatedly(Queue(),
                 [&] {
                   array.data<float>()[0] += 1;
                   ++runs;
                 },
                 {&array});
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(array.values<float>()[0], 2);
}

TEST(RunRepeatedly, SeesOtherBits) {
  const DeviceArray array = three_floats(0);
  float value = 0;
  const auto count = [&] { array.data<float>()[1] = value++; };
  EXPECT_NONFATAL_FAILURE(run_repeatedly(Queue(), count, {&array}), "other bits the second time");
}

/// Between the beginning of a recording and its end nothing but the work is asked for: a GPU would refuse.
TEST(RunRepeatedly, RecordsTheWorkAlone) {
  using halograd::testing::CallKind;
  const halograd::testing::RecordingDevice stand_in({.can_record = true});
  const Queue queue = stand_in.device().make_queue();
  const DeviceArray array(stand_in.device(), queue, std::vector<float>{1});
  // The stand-in's graphs do nothing, which is seen.
  const auto work = [&] { array.data<float>()[0] = 2; };
  EXPECT_NONFATAL_FAILURE(run_repeatedly(queue, work, {&array}), "other bits from a recording");
  const auto calls = stand_in.calls();
  const auto of_kind = [](CallKind kind) { return [kind](const auto& call) { return call.kind == kind; }; };
  const auto begin = std::find_if(calls.begin(), calls.end(), of_kind(CallKind::begin_recording));
  ASSERT_NE(begin, calls.end());
  EXPECT_EQ((begin + 1)->kind, CallKind::end_recording);
  EXPECT_EQ(std::count_if(begin, calls.end(), of_kind(CallKind::launch)), 1);
}

}  // namespace
}  // namespace halograd::test
