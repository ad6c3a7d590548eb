// While a step computes with one input slot, another thread fills the other, over and over, first with what would spoil
// any result: the losses, outputs and weights are bit for bit those of steps that convert their own input. On a GPU the
// thread's work goes by a queue of its own, beside that of the steps, which are recorded and replayed by then.
#include "exec/support.hpp"
#include "halograd/core/parallel.hpp"
#include "halograd/kernels/input_converter.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <stop_token>
#include <thread>

namespace halograd {
namespace {

constexpr std::int64_t steps = 6;  // of each slot the second is recorded where steps can be, the third replayed
constexpr double rate = 1e-2;

/// Networks by what reads the input: a convolution (halo exchange on the slot), a chain (faces sent from it), a
/// convolution wider than shards are (moved to a coarser partition from it), a flattening.
enum class Entry { convolution, chain, moved, flatten };

Network network(Entry entry) {
  Network net({2, {8, 8, 8}});
  if (entry == Entry::chain) {
    net.add("bn0", BatchNorm{});
    net.add("pool0", Pool{PoolKind::average, Window{Extent::cube(3), Extent::cube(2), Extent::cube(1)}});
  }
  if (entry != Entry::flatten) {
    const std::int64_t kernel = entry == Entry::moved ? 11 : 3;
    net.add("conv1", Convolution{3, Window{Extent::cube(kernel), Extent::cube(1), Extent::cube(kernel / 2)}});
    net.add("bn1", BatchNorm{});
    net.add("relu1", LeakyRelu{});
  }
  net.add("flatten", Flatten{});
  net.add("fc1", FullyConnected{2});
  net.add("loss", MeanSquaredError{});
  return net;
}

std::vector<ProcessGrid> grids_for(std::int64_t ranks) {
  if (ranks == 1) return {{}};
  std::vector<ProcessGrid> grids{{1, ranks, 1, 1}, {1, 1, ranks, 1}, {1, 1, 1, ranks}};
  if (ranks % 2 == 0) grids.push_back({2, ranks / 2, 1, 1});
  if (ranks % 4 == 0) grids.push_back({1, 1, 2, ranks / 2});
  if (ranks % 8 == 0) grids.push_back({1, 2, 2, ranks / 4});
  return grids;
}

/// What a thread does that has this rank's voxels of a mini-batch: spoils all that the slot held, margins too, then
/// converts.
class Filler {
public:
  explicit Filler(const Executor& executor)
      : executor_(executor), queue_(executor.device().make_queue()), converter_(executor.device(), queue_) {}

  void fill(const Plan& plan, const std::vector<float>& voxels, int slot) {
    auto* const to = reinterpret_cast<float*>(executor_.input_slot(slot));
    const InputUnit& input = plan.input;
    spoiled_.assign(static_cast<std::size_t>(plan.input_bytes() / 4), std::numeric_limits<float>::quiet_NaN());
    queue_.copy(spoiled_.data(), to, plan.input_bytes());
    const std::int64_t channels = input.shape.channels;
    converter_.begin(plan.samples.count);
    for (std::int64_t n = 0; n < plan.samples.count; ++n) {
      const ConvertDesc desc{.dtype = DType::f32, .channels = channels, .source = input.own, .dst = input.tile.box};
      converter_.convert(desc, voxels.data() + n * channels * input.own.volume(),
                         to + n * channels * input.tile.box.volume());
    }
    converter_.finish();
  }

private:
  const Executor& executor_;
  Queue queue_;
  InputConverter converter_;
  std::vector<float> spoiled_;
};

MiniBatch converted(const MiniBatch& batch, int slot) {
  MiniBatch view = batch;
  for (SampleView& sample : view.samples) sample.data = nullptr;
  view.slot = slot;
  return view;
}

/// Some steps of training on a mini-batch each, then an evaluation of a smaller one.
struct Trace {
  std::vector<double> losses;
  std::vector<float> output;
  std::vector<float> weights;
};

void finish(Trace& trace, Executor& executor) {
  trace.output.assign(executor.output().begin(), executor.output().end());
  executor.parameters().to_host();
  const float* const values = executor.parameters().values();
  trace.weights.assign(values, values + executor.parameters().trainable_elements());
}

constexpr std::int64_t batch_size = 3;
constexpr std::int64_t evaluated_size = 1;  // leaves the second of two groups without a sample

Trace convert_in_steps(const Network& net, const Communicator& world, const ProcessGrid& grid) {
  Executor executor(net, world, {.grid = grid, .device = test::device_under_test(Backend::cpu, world)});
  const Plan& plan = executor.prepare(Mode::train, batch_size);
  Trace trace;
  for (std::int64_t step = 0; step < steps; ++step) {
    const test::RandomBatch batch(plan, static_cast<std::uint64_t>(10 * step));
    trace.losses.push_back(executor.train(batch.view(), step, rate).loss);
  }
  const test::RandomBatch batch(executor.prepare(Mode::evaluate, evaluated_size), 10 * steps);
  trace.losses.push_back(executor.evaluate(batch.view()).loss);
  finish(trace, executor);
  return trace;
}

Trace fill_beside_steps(const Network& net, const Communicator& world, const ProcessGrid& grid) {
  Executor executor(net, world,
                    {.grid = grid, .device = test::device_under_test(Backend::cpu, world), .input_slots = 2});
  const Plan& train = executor.prepare(Mode::train, batch_size);
  const Plan& evaluate = executor.prepare(Mode::evaluate, evaluated_size);
  std::vector<std::unique_ptr<test::RandomBatch>> batches;
  for (std::int64_t step = 0; step <= steps; ++step) {
    batches.push_back(
        std::make_unique<test::RandomBatch>(step < steps ? train : evaluate, static_cast<std::uint64_t>(10 * step)));
  }
  Trace trace;
  Filler filler(executor);
  filler.fill(train, batches[0]->inputs(), 0);
  for (std::int64_t step = 0; step < steps; ++step) {
    const int slot = static_cast<int>(step % 2);
    const auto next = static_cast<std::size_t>(step + 1);
    const Plan& reader = step + 1 < steps ? train : evaluate;
    std::jthread beside([&](const std::stop_token& stop) {
      work_alone();
      do filler.fill(reader, batches[next]->inputs(), 1 - slot);
      while (!stop.stop_requested());
    });
    trace.losses.push_back(executor.train(converted(batches[next - 1]->view(), slot), step, rate).loss);
  }
  trace.losses.push_back(executor.evaluate(converted(batches.back()->view(), steps % 2)).loss);
  finish(trace, executor);
  return trace;
}

class InputSlots : public testing::TestWithParam<Entry> {};

TEST_P(InputSlots, FilledByAnotherThreadGiveTheSameBits) {
  const Communicator world = Communicator::world();
  const Network net = network(GetParam());
  for (const ProcessGrid& grid : grids_for(world.size())) {
    const Trace plain = convert_in_steps(net, world, grid);
    const Trace slots = fill_beside_steps(net, world, grid);
    const std::string where = fmt::format("grid {}, {} groups", grid.spatial_name(), grid.data);
    EXPECT_TRUE(std::ranges::all_of(plain.losses, [](double loss) { return std::isfinite(loss) && loss > 0; }))
        << where;
    EXPECT_EQ(slots.losses, plain.losses) << where;
    EXPECT_EQ(slots.output, plain.output) << where;
    EXPECT_EQ(slots.weights, plain.weights) << where;
  }
}

/// The networks above, cut in four, are what they are taken for: an exchange begins at the input.
TEST_P(InputSlots, ExchangesReadThem) {
  bool exchanged = false;
  bool moved = false;
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    const Plan plan = compile(network(GetParam()), {.grid = {1, 4, 1, 1}, .rank = rank, .batch = batch_size});
    for (const Step& step : plan.steps) {
      exchanged |=
          step.kind == StepKind::exchange_start && std::ranges::count(step.touches, plan.input.tile.buffer) > 0;
    }
    moved |= plan.placements.front().resharded;
  }
  EXPECT_TRUE(exchanged);
  EXPECT_EQ(moved, GetParam() == Entry::moved || GetParam() == Entry::flatten);
}

INSTANTIATE_TEST_SUITE_P(Entries, InputSlots,
                         testing::Values(Entry::convolution, Entry::chain, Entry::moved, Entry::flatten));

}  // namespace
}  // namespace halograd
