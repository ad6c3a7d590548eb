#include "halograd/exec/executor.hpp"

#include "exec/support.hpp"
#include "halograd/core/error.hpp"

#include <gtest/gtest.h>

namespace halograd {
namespace {

Network normalised() {
  Network net({2, Extent::cube(6)});
  net.add("conv1", Convolution{3});
  net.add("bn1", BatchNorm{.decay = 0.9});
  net.add("flatten", Flatten{});
  net.add("fc1", FullyConnected{1});
  net.add("loss", MeanSquaredError{});
  return net;
}

float running_mean(Executor& executor) {
  return executor.parameters().value(3)[0];
}

TEST(RunningAverages, BeginAsTheMeanOfTheFirstSteps) {
  Executor executor(normalised(), Communicator::self(), {});
  const Plan& plan = executor.prepare(Mode::train, 2);
  executor.train(test::RandomBatch(plan, 1).view(), 0, 0);
  const float first = running_mean(executor);
  executor.train(test::RandomBatch(plan, 5).view(), 1, 0);
  const float both = running_mean(executor);

  Executor other(normalised(), Communicator::self(), {});
  other.train(test::RandomBatch(other.prepare(Mode::train, 2), 5).view(), 0, 0);
  EXPECT_NE(first, running_mean(other));
  EXPECT_NEAR(both, (first + running_mean(other)) / 2, 1e-7);
}

TEST(RunningAverages, GoOnFromGivenWeights) {
  Executor executor(normalised(), Communicator::self(), {});
  const test::RandomBatch batch(executor.prepare(Mode::train, 2), 1);
  executor.train(batch.view(), 0, 0);
  const float fresh = running_mean(executor);

  Executor given(normalised(), Communicator::self(), {});
  given.parameters().value(3)[0] = 2;
  given.continue_running_averages();
  given.train(batch.view(), 0, 0);
  EXPECT_NEAR(running_mean(given), 0.9F * 2 + 0.1F * fresh, 1e-6);
}

TEST(Load, PutsInputAndTargetsInPlaceForEveryLaterStep) {
  for (const bool convolutional : {true, false}) {
    Network net({2, Extent::cube(4)});
    if (convolutional) net.add("conv1", Convolution{3});
    net.add("flatten", Flatten{});
    net.add("fc1", FullyConnected{2});
    net.add("loss", MeanSquaredError{});
    Executor executor(net, Communicator::self(), {});
    const test::RandomBatch batch(executor.prepare(Mode::train, 2), 1);
    executor.load(Mode::train, batch.view());
    MiniBatch loaded = batch.view();
    for (SampleView& sample : loaded.samples) sample.data = nullptr;
    const double first = executor.train(loaded, 0, 0).loss;
    EXPECT_EQ(executor.train(loaded, 1, 0).loss, first);
    EXPECT_EQ(executor.train(batch.view(), 2, 0).loss, first);
  }
}

TEST(InputSlots, HoldAMiniBatchEachForWhicheverStepNamesThem) {
  Executor executor(normalised(), Communicator::self(), {.input_slots = 2});
  const Plan& plan = executor.prepare(Mode::train, 2);
  const test::RandomBatch first(plan, 1);
  const test::RandomBatch second(plan, 11);
  const double first_loss = executor.train(first.view(), 0, 0).loss;
  const double second_loss = executor.train(second.view(), 0, 0).loss;
  ASSERT_NE(first_loss, second_loss);

  MiniBatch in_one = second.view();
  in_one.slot = 1;
  executor.load(Mode::train, in_one);
  for (SampleView& sample : in_one.samples) sample.data = nullptr;
  EXPECT_EQ(executor.train(first.view(), 0, 0).loss, first_loss);  // converts into slot 0
  EXPECT_EQ(executor.train(in_one, 0, 0).loss, second_loss);
  MiniBatch in_zero = first.view();
  for (SampleView& sample : in_zero.samples) sample.data = nullptr;
  EXPECT_EQ(executor.train(in_zero, 0, 0).loss, first_loss);
  EXPECT_EQ(executor.arena_bytes(), plan.arena_bytes + 2 * plan.input_bytes());

  const auto of_no_slot = [&](int slot) {
    MiniBatch batch = first.view();
    batch.slot = slot;
    return batch;
  };
  EXPECT_THROW(executor.train(of_no_slot(2), 0, 0), UsageError);
  EXPECT_THROW(executor.load(Mode::train, of_no_slot(-1)), UsageError);
  EXPECT_THROW(Executor(normalised(), Communicator::self(), {.input_slots = 0}), UsageError);
}

TEST(Executor, SaysWhatIsWrong) {
  Executor executor(normalised(), Communicator::self(), {});
  const test::RandomBatch batch(executor.prepare(Mode::train, 2), 1);
  MiniBatch short_one = batch.view();
  short_one.samples.pop_back();
  EXPECT_THROW(executor.train(short_one, 0, 0), UsageError);
  EXPECT_THROW(Executor(normalised(), Communicator::self(), {.grid = {2, 1, 1, 1}}), UsageError);
  Network no_loss({1, Extent::cube(4)});
  no_loss.add("conv1", Convolution{1});
  Executor untrained(no_loss, Communicator::self(), {});
  EXPECT_THROW(untrained.prepare(Mode::train, 1), UsageError);
  untrained.prepare(Mode::predict, 1);
}

}  // namespace
}  // namespace halograd
