#pragma once

#include "halograd/comm/communicator.hpp"

#include <functional>
#include <string>

namespace halograd {

/// How a command ended on one rank.
struct Outcome {
  int exit_code = 0;
  std::string message;  ///< of a failure; one line
};

/// Runs `work` and tells how it ended: HaloGrad's errors by their kind, all others as resource errors.
Outcome outcome_of(const std::function<void()>& work);

/// Every rank calls this once its command has ended, well or not, with a communicator of its own. Prints one line
/// `halograd: error: …` on stderr for the job, and returns its exit code. A failure that not all ranks share names its
/// rank. Where other ranks don't come within seconds of a failure, because they wait for this one inside a step, it
/// prints its own and ends the job.
int settle(const Communicator& endings, const Outcome& own);

}  // namespace halograd
