#include "halograd/comm/communicator.hpp"
#include "halograd/comm/session.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace {

// What ranks other than 0 say: only what fails, and on which rank.
class FailurePrinter : public testing::EmptyTestEventListener {
public:
  explicit FailurePrinter(int rank) : rank_(rank) {}

  void OnTestStart(const testing::TestInfo& test) override {
    // Kept, as asking GoogleTest for it while it holds its lock over a failure would never return.
    test_ = std::string(test.test_suite_name()) + "." + test.name();
  }

  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "[rank %d] %s failed\n[rank %d] %s:%d: %s\n", rank_, test_.c_str(), rank_,
                 result.file_name() != nullptr ? result.file_name() : "?", result.line_number(), result.message());
    std::fflush(stderr);
  }

private:
  int rank_;
  std::string test_ = "outside a test";
};

void keep_quiet(int rank) {
  GTEST_FLAG_SET(output, "");
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new FailurePrinter(rank));
}

}  // namespace

/// The main of every test program, alone or under mpirun: rank 0 reports, a failure on any rank fails the run.
int main(int argc, char** argv) {
  const halograd::MpiSession session(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  const auto world = halograd::Communicator::world();
  if (world.rank() != 0) keep_quiet(world.rank());
  const int own = RUN_ALL_TESTS();
  const auto worst = static_cast<int>(world.all_reduce_max(std::int64_t{own}));
  if (world.rank() == 0 && own == 0 && worst != 0) std::fprintf(stderr, "Failed on another rank; see above.\n");
  return worst;
}
