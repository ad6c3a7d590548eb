#include "kernels/bytes/memory_trace.hpp"

#include <gtest/gtest.h>

#include <array>

namespace halograd::test {
namespace {

TEST(MemoryTrace, CountsTheSectorsOfEachLaunchOnce) {
  MemoryTrace trace;
  const float* const from = trace.buffer<float>(1024, 2.0F);
  float* const to = trace.buffer<float>(1024);
  // A number of every other sector, twice; they lie in 64 sectors.
  const auto sum = [&](std::int64_t repeats) {
    for (std::int64_t repeat = 0; repeat < repeats; ++repeat) {
      for (std::int64_t i = 0; i < 1024; i += 16) to[i / 16] += from[i];
    }
  };
  trace.launch([&] { sum(2); });
  const KernelBytes once = trace.moved(512);
  EXPECT_EQ(to[63], 5.0F);
  EXPECT_EQ(once.read, 64 * 32 + 8 * 32);
  EXPECT_EQ(once.written, 8 * 32);
  EXPECT_EQ(once.moved(), 2560);
  EXPECT_EQ(once.overhead(), 5);
  // A second launch reads them again, and nothing is kept from before.
  trace.launch([&] { sum(1); });
  trace.launch([&] { sum(1); });
  EXPECT_EQ(trace.moved(512).read, 2 * once.read);
  EXPECT_EQ(trace.moved(512).moved(), 0);
}

TEST(MemoryTrace, SeesAccessesOfAnyWidthInsideLaunchesAlone) {
  MemoryTrace trace;
  struct Packet {
    std::array<std::uint64_t, 2> words;
  };
  const auto* const packets = trace.buffer<Packet>(8, {});
  auto* const bytes = trace.buffer<std::uint8_t>(100, 3);
  std::array<Packet, 8> elsewhere{};
  elsewhere[0] = packets[0];
  trace.launch([&] { elsewhere[1] = packets[5]; });
  const KernelBytes packet = trace.moved(16);
  EXPECT_EQ(packet.read, 32);
  EXPECT_EQ(packet.looked_at, 16);
  EXPECT_EQ(packet.written, 0);
  EXPECT_EQ(elsewhere[1].words, packets[5].words);
  // The last sector is not full.
  trace.launch([&] { bytes[99] = 1; });
  EXPECT_EQ(trace.moved(1).written, 32);
}

}  // namespace
}  // namespace halograd::test
