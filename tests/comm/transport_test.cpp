#include "halograd/comm/transport.hpp"

#include <gtest/gtest.h>

namespace halograd {
namespace {

RankFacts gpu(const char* id) {
  return {.device_id = id, .nccl_built = true};
}

TEST(Transport, ProcessorsTalkAsHosts) {
  const RankFacts processor{.nccl_built = true};
  EXPECT_EQ(choose_transport({processor, processor}).transport, Transport::host);
  EXPECT_EQ(choose_transport({processor}).transport, Transport::host);
}

TEST(Transport, NcclWhereEachRankHasAGpuOfItsOwn) {
  const auto choice = choose_transport({gpu("a"), gpu("b"), gpu("c"), gpu("d")});
  EXPECT_EQ(choice.transport, Transport::nccl);
  EXPECT_EQ(choice.description, "NCCL");
}

TEST(Transport, SaysWhichRanksShareAGpu) {
  const auto choice = choose_transport({gpu("a"), gpu("b"), gpu("c"), gpu("b"), gpu("a")});
  EXPECT_EQ(choice.transport, Transport::staged);
  EXPECT_EQ(choice.description, "pinned host memory and MPI: ranks 1 and 3 share a GPU");
}

TEST(Transport, OneRankNeedsNoNccl) {
  const auto choice = choose_transport({gpu("a")});
  EXPECT_EQ(choice.transport, Transport::staged);
  EXPECT_EQ(choice.description, "none: one rank");
}

TEST(Transport, SaysWhoLacksNcclOrDoesWithout) {
  RankFacts lacking = gpu("b");
  lacking.nccl_built = false;
  EXPECT_EQ(choose_transport({gpu("a"), lacking}).description,
            "pinned host memory and MPI: rank 1 was built without NCCL");
  RankFacts unwilling = gpu("c");
  unwilling.nccl_wanted = false;
  const auto choice = choose_transport({gpu("a"), gpu("b"), unwilling});
  EXPECT_EQ(choice.transport, Transport::staged);
  EXPECT_EQ(choice.description, "pinned host memory and MPI: HALOGRAD_NCCL=0 on rank 2");
}

TEST(Transport, AMixOfProcessorsAndGpusIsStaged) {
  const auto choice = choose_transport({gpu("a"), {.nccl_built = true}});
  EXPECT_EQ(choice.transport, Transport::staged);
  EXPECT_EQ(choice.description, "pinned host memory and MPI: rank 1 computes on the processor");
}

}  // namespace
}  // namespace halograd
