// The order in which a step is listed on a device's queues, recorded by a device that is none: no step on one queue
// touches what a step on another may still be using; the messages of all ranks match; and what comes out is what the
// processor computes.
#include "exec/step_accesses.hpp"
#include "exec/support.hpp"
#include "halograd/models/cosmoflow.hpp"
#include "halograd/models/unet3d.hpp"
#include "support/call_order.hpp"
#include "support/recording_device.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace halograd {
namespace {

using test::Access;
using testing::CallKind;
using testing::CallOrder;
using testing::QueueCall;
using testing::RecordingDevice;

/// Which calls of a list are a step's work: from its label on a queue to the next label there.
struct Span {
  int queue = -1;
  std::size_t first = 0;
  std::size_t last = 0;
};

std::vector<Span> spans_of(const std::vector<QueueCall>& calls, std::size_t steps) {
  std::vector<Span> spans(steps);
  std::map<int, std::size_t> current;  // by queue
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const QueueCall& call = calls[i];
    if (call.kind == CallKind::record || call.kind == CallKind::wait) continue;
    if (call.kind == CallKind::label) {
      current[call.queue] = std::stoul(call.label);
      // A message's step has a label where it is posted, and then on the queue that does it.
      spans[current[call.queue]] = {call.queue, i, i};
    }
    const auto step = current.find(call.queue);
    if (step != current.end() && spans[step->second].queue == call.queue) spans[step->second].last = i;
  }
  return spans;
}

/// Pairs of steps on different queues that may touch the same place at once, one of them writing.
std::vector<std::string> races(const Plan& plan, const std::vector<QueueCall>& calls) {
  const CallOrder order(calls);
  const std::vector<Span> spans = spans_of(calls, plan.steps.size());
  std::vector<std::vector<Access>> touched;
  for (const Step& step : plan.steps) touched.push_back(test::accesses(plan, step));
  std::vector<std::string> found;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    for (std::size_t j = i + 1; j < plan.steps.size(); ++j) {
      if (spans[i].queue < 0 || spans[j].queue < 0 || spans[i].queue == spans[j].queue) continue;
      if (order.before(spans[i].last, spans[j].first) || order.before(spans[j].last, spans[i].first)) continue;
      const bool race = std::ranges::any_of(touched[i], [&](const Access& a) {
        return std::ranges::any_of(touched[j], [&](const Access& b) { return test::collide(plan, a, b); });
      });
      if (!race) continue;
      found.push_back(fmt::format("{} {} {} and {} {} {}", i, step_kind_name(plan.steps[i].kind),
                                  step_name(plan, plan.steps[i]), j, step_kind_name(plan.steps[j].kind),
                                  step_name(plan, plan.steps[j])));
    }
  }
  return found;
}

struct Case {
  std::string name;
  Network network;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  all.push_back({"cosmoflow", cosmoflow({.width = 32})});
  all.push_back({"unet3d", unet3d({.width = 16, .channels = 1, .classes = 3, .base_channels = 4})});
  return all;
}

std::vector<Extent> grids_for(int ranks) {
  if (ranks == 8) return {{2, 2, 2}};
  if (ranks == 6) return {{3, 2, 1}};
  if (ranks == 4) return {{2, 2, 1}, {1, 1, 2}};
  if (ranks == 3) return {{3, 1, 1}};
  if (ranks == 2) return {{2, 1, 1}, {1, 1, 1}};
  return {{1, 1, 1}};
}

ExecutorOptions options_on(const RecordingDevice& stand_in, const ProcessGrid& grid, Transport how) {
  ExecutorOptions options{.grid = grid, .device = stand_in.device(), .seed = 3};
  options.transport = FabricTransport{how, stand_in.nccl()};
  return options;
}

/// Runs two training steps and returns the calls of the second, with its loss.
struct Listed {
  Plan plan;
  std::vector<QueueCall> calls;
  std::vector<double> losses;
};

Listed list_steps(const Case& each, const Communicator& world, const ExecutorOptions& options,
                  const RecordingDevice* stand_in) {
  Executor executor(each.network, world, options);
  Listed listed{executor.prepare(Mode::train, 2), {}, {}};
  const test::RandomBatch batch(listed.plan, 5);
  for (int step = 0; step < 2; ++step) {
    if (stand_in != nullptr) stand_in->forget_calls();
    listed.losses.push_back(executor.train(batch.view(), step, 1e-3).loss);
  }
  if (stand_in != nullptr) listed.calls = stand_in->calls();
  return listed;
}

/// Calls between a step's first label and its end, without what loading and the loss do before and after.
std::vector<QueueCall> labelled(std::vector<QueueCall> calls) {
  const auto first = std::ranges::find(calls, CallKind::label, &QueueCall::kind);
  calls.erase(calls.begin(), first);
  return calls;
}

class QueueOrder : public ::testing::TestWithParam<Transport> {};

/// Convolutions in parts: of the interior before its margins are there, of the rest after.
int parts_ahead(const Plan& plan) {
  return static_cast<int>(std::ranges::count_if(
      plan.steps, [](const Step& step) { return step.kind == StepKind::convolution_forward && step.part > 0; }));
}

/// With the processor's kernels, and with those that compute convolutions in boxes, as a GPU's do.
TEST_P(QueueOrder, NoStepTouchesWhatAnotherQueueMayBeUsing) {
  const Communicator world = Communicator::world();
  for (const Case& each : cases()) {
    for (const Extent& parts : grids_for(world.size())) {
      for (const Backend backend : {Backend::cpu, Backend::reference}) {
        if (backend == Backend::reference && each.name == "cosmoflow") continue;  // of it conv1 alone, and slowly
        const ProcessGrid grid = test::grid_of(parts, world.size());
        const RecordingDevice stand_in({.backend = backend});
        const Listed listed = list_steps(each, world, options_on(stand_in, grid, GetParam()), &stand_in);
        const auto found = races(listed.plan, labelled(listed.calls));
        EXPECT_TRUE(found.empty()) << each.name << " " << grid.spatial_name() << " " << backend_name(backend) << ": "
                                   << fmt::format("{}", fmt::join(found, "\n"));
        const bool boxes = backend == Backend::reference && parts.volume() > 1 && listed.plan.samples.count > 0;
        EXPECT_EQ(parts_ahead(listed.plan) > 0, boxes) << each.name << " " << grid.spatial_name();
      }
    }
  }
}

TEST_P(QueueOrder, ComputesWhatTheProcessorComputes) {
  const Communicator world = Communicator::world();
  for (const Case& each : cases()) {
    for (const Extent& parts : grids_for(world.size())) {
      const ProcessGrid grid = test::grid_of(parts, world.size());
      const RecordingDevice stand_in;
      const Listed listed = list_steps(each, world, options_on(stand_in, grid, GetParam()), nullptr);
      const Listed expected = list_steps(each, world, {.grid = grid, .device = Backend::cpu, .seed = 3}, nullptr);
      for (std::size_t i = 0; i < expected.losses.size(); ++i) {
        EXPECT_NEAR(listed.losses[i] / expected.losses[i], 1, 1e-5)
            << each.name << " " << grid.spatial_name() << " " << i;
      }
    }
  }
}

std::vector<QueueCall> without(const std::vector<QueueCall>& calls, std::size_t call) {
  std::vector<QueueCall> rest = calls;
  rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(call));
  return rest;
}

/// Without one of the waits for a message the check above finds a race, or, of waits that others make superfluous,
/// none.
TEST_P(QueueOrder, AMissingWaitIsFound) {
  const Communicator world = Communicator::world();
  if (world.size() == 1) GTEST_SKIP() << "one rank has no messages";
  const Case each = cases().front();
  const ProcessGrid grid = test::grid_of(grids_for(world.size()).front(), world.size());
  const RecordingDevice stand_in;
  const Listed listed = list_steps(each, world, options_on(stand_in, grid, GetParam()), &stand_in);
  if (listed.plan.samples.count == 0) return;  // a rank without samples touches next to nothing
  const std::vector<QueueCall> calls = labelled(listed.calls);
  int waits = 0;
  int caught = 0;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (calls[i].kind != CallKind::wait) continue;
    ++waits;
    if (!races(listed.plan, without(calls, i)).empty()) ++caught;
  }
  EXPECT_GE(waits, 40);
  EXPECT_GE(caught, 0.6 * waits) << "of " << waits;
}

/// The wait between a convolution's interior and the rest of it.
TEST_P(QueueOrder, AMissingWaitBeforeTheRestOfAConvolutionIsFound) {
  const Communicator world = Communicator::world();
  if (world.size() == 1) GTEST_SKIP() << "one rank has no messages";
  const Case each = cases().back();
  const ProcessGrid grid = test::grid_of(grids_for(world.size()).front(), world.size());
  const RecordingDevice stand_in({.backend = Backend::reference});
  const Listed listed = list_steps(each, world, options_on(stand_in, grid, GetParam()), &stand_in);
  const std::vector<QueueCall> calls = labelled(listed.calls);
  std::map<std::string, bool> caught;  // by convolution: of the waits right before the rest, one is not superfluous
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (calls[i].kind != CallKind::wait) continue;
    const Step* next = &listed.plan.steps[std::stoul(calls[i].label)];
    while (next->kind == StepKind::exchange_wait) ++next;
    if (next->kind != StepKind::convolution_forward || next->part != 1) continue;
    caught[step_name(listed.plan, *next)] |= !races(listed.plan, without(calls, i)).empty();
  }
  for (const auto& [convolution, found] : caught) EXPECT_TRUE(found) << convolution;
  EXPECT_EQ(caught.contains("conv1"), listed.plan.samples.count > 0);
  // The three joins too, which are thin on finer grids.
  if (grid.size() == 2 && grid.data == 1) {
    EXPECT_EQ(caught.size(), 4U);
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, QueueOrder, ::testing::Values(Transport::nccl, Transport::staged),
                         [](const auto& test) { return test.param == Transport::nccl ? "nccl" : "staged"; });

/// A communicator's calls that two ranks both take part in: a sum is all ranks', a message its two ranks'.
std::string calls_with(const std::vector<QueueCall>& calls, int peer) {
  std::string text;
  for (const QueueCall& call : calls) {
    if (call.kind != CallKind::sum && call.kind != CallKind::exchange) continue;
    const auto has_peer = [&](const auto& messages) {
      return std::ranges::find(messages, peer, &DeviceMessage::rank) != messages.end();
    };
    if (call.kind == CallKind::exchange && !has_peer(call.sends) && !has_peer(call.receives)) continue;
    text += fmt::format("{} {}{}\n", call.communicator, name_of(call.kind), call.label.substr(call.label.find(' ')));
  }
  return text;
}

/// Calls of two ranks to each other must come in the same order on both, or they never end.
TEST(NcclOrder, IsTheSameOnBothRanks) {
  const Communicator world = Communicator::world();
  for (const Case& each : cases()) {
    for (const Extent& parts : grids_for(world.size())) {
      const ProcessGrid grid = test::grid_of(parts, world.size());
      const RecordingDevice stand_in;
      const Listed listed = list_steps(each, world, options_on(stand_in, grid, Transport::nccl), &stand_in);
      const int group = static_cast<int>(grid.place(world.rank()).group);
      const Communicator ranks = world.split(group, world.rank());
      for (int peer = 0; peer < ranks.size(); ++peer) {
        // Everybody's calls with `peer`, of which it compares each with its own.
        const std::vector<std::string> theirs = ranks.all_gather(calls_with(listed.calls, peer));
        if (peer != ranks.rank()) continue;
        for (int other = 0; other < ranks.size(); ++other) {
          if (other == peer) continue;
          EXPECT_EQ(theirs[static_cast<std::size_t>(other)], calls_with(listed.calls, other)) << each.name;
        }
      }
      const bool exchanges =
          std::ranges::find(listed.calls, CallKind::exchange, &QueueCall::kind) != listed.calls.end();
      EXPECT_EQ(exchanges, parts.volume() > 1);
    }
  }
}

/// The first step on a slot is listed, the second recorded and launched, the third only launched.
TEST(RecordedSteps, AreLaunchedWhole) {
  const Communicator world = Communicator::world();
  const Case each = cases().front();
  const ProcessGrid grid = test::grid_of(grids_for(world.size()).front(), world.size());
  const RecordingDevice stand_in({.can_record = true});
  Executor executor(each.network, world, options_on(stand_in, grid, Transport::nccl));
  const test::RandomBatch batch(executor.prepare(Mode::train, 2), 5);
  const auto count = [&](CallKind kind) {
    const auto calls = stand_in.calls();
    return std::ranges::count(calls, kind, &QueueCall::kind);
  };
  for (int step = 0; step < 3; ++step) {
    stand_in.forget_calls();
    const StepResult result = executor.train(batch.view(), step, 1e-3);
    EXPECT_EQ(count(CallKind::begin_recording), step == 1 ? 1 : 0);
    EXPECT_EQ(count(CallKind::end_recording), step == 1 ? 1 : 0);
    EXPECT_EQ(count(CallKind::launch), step == 0 ? 0 : 1);
    EXPECT_EQ(count(CallKind::sum) > 0, step < 2 && world.size() > 1);
    EXPECT_EQ(result.recorded_seconds > 0, step > 0);
  }
}

/// What a rank's device refuses in a recording. The stand-in does at once what it records, so that with a refusal at
/// the very end a step is done twice.
struct Refusal {
  CallKind kind = CallKind::end_recording;
  bool by_last_rank_alone = false;
};

std::vector<double> losses_of(Executor& executor, std::int64_t steps) {
  const test::RandomBatch batch(executor.prepare(Mode::train, 2), 5);
  std::vector<double> losses;
  for (std::int64_t step = 0; step < steps; ++step) losses.push_back(executor.train(batch.view(), step, 0.02).loss);
  return losses;
}

/// Training goes on without, on all ranks alike, and nobody tries again.
TEST(RecordedSteps, AreListedFromWhereRecordingFails) {
  const Communicator world = Communicator::world();
  const Network network = cases().back().network;
  const ProcessGrid grid = test::grid_of(grids_for(world.size()).front(), world.size());
  // Neither the optimiser nor the network knows how many steps there were: a step done twice is like two.
  const OptimizerOptions optimizer{.kind = OptimizerKind::sgd};
  Executor processor(network, world, {.grid = grid, .optimizer = optimizer, .seed = 3});
  const std::vector<double> expected = losses_of(processor, 4);
  for (std::size_t step = 0; step < 3; ++step) EXPECT_GT(std::abs(expected[step + 1] / expected[step] - 1), 1e-3);

  std::vector<Refusal> refusals{{}, {.by_last_rank_alone = true}};
  if (world.size() > 1) refusals.push_back({.kind = CallKind::sum});  // in a job of a lane, before any update
  if (grid.spatial_size() > 1) refusals.push_back({.kind = CallKind::exchange});
  for (const Refusal& refusal : refusals) {
    SCOPED_TRACE(fmt::format("{}, last rank alone: {}", name_of(refusal.kind), refusal.by_last_rank_alone));
    testing::RecordingOptions device{.can_record = true};
    if (!refusal.by_last_rank_alone || world.rank() + 1 == world.size()) device.refused_in_recordings = refusal.kind;
    const RecordingDevice stand_in(device);
    ExecutorOptions options = options_on(stand_in, grid, Transport::nccl);
    options.optimizer = optimizer;
    Executor executor(network, world, options);
    ::testing::internal::CaptureStderr();
    const std::vector<double> losses = losses_of(executor, 3);
    const std::string said = ::testing::internal::GetCapturedStderr();
    for (std::size_t step = 0; step < 3; ++step) {
      const std::size_t done_before = step > 0 && refusal.kind == CallKind::end_recording ? step + 1 : step;
      EXPECT_NEAR(losses[step] / expected[done_before], 1, 1e-5) << step;
    }
    const auto calls = stand_in.calls();
    EXPECT_EQ(std::ranges::count(calls, CallKind::begin_recording, &QueueCall::kind), 1);
    EXPECT_EQ(std::ranges::count(calls, CallKind::end_recording, &QueueCall::kind), 1);
    EXPECT_EQ(std::ranges::count(calls, CallKind::launch, &QueueCall::kind), 0);
    EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
    EXPECT_NE(said.find(fmt::format("a stand-in records no {}", name_of(refusal.kind))), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace halograd
