// Layer by layer: a random small network on a random uneven partition against the reference kernels on one rank. Behind
// a batch norm some gradients are small differences of large numbers, in which any rounding shows. How much, a second
// run of the reference tells, its input changed in the last bit: nothing may differ by more than 1e-5 and what that
// moves.
#include "exec/support.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace halograd {
namespace {

struct Draw {
  std::uint64_t seed;
  std::uint64_t used = 0;
  std::int64_t operator()(std::int64_t low, std::int64_t high) {
    const RandomStream stream{seed, 99, 0};
    return low + static_cast<std::int64_t>(stream.bits(used++) % static_cast<std::uint64_t>(high - low + 1));
  }
};

Partition random_partition(Draw& draw, const Extent& extent, const Extent& parts) {
  std::array<std::vector<std::int64_t>, 3> cuts;
  for (int i = 0; i < 3; ++i) {
    auto& list = cuts[static_cast<std::size_t>(i)];
    list = {0, extent[i]};
    while (static_cast<std::int64_t>(list.size()) <= parts[i]) {
      const std::int64_t cut = draw(1, extent[i] - 1);
      if (std::ranges::find(list, cut) == list.end()) list.push_back(cut);
      std::ranges::sort(list);
    }
  }
  return Partition(cuts);
}

/// A chain on the input, one or two convolutions with a random chain behind each, then a loss over all voxels. A batch
/// norm right behind a convolution makes gradients in which nearly everything cancels, so that a convolution's own
/// float32 rounding stands out: those are for the reference kernels (and, in float32, for the test of CosmoFlow).
Network random_network(Draw& draw, const GlobalShape& input, bool norm_behind_convolution) {
  Network net(input);
  const std::int64_t blocks = draw(1, 2);
  if (draw(0, 2) == 0) net.add("bn0", BatchNorm{});
  if (draw(0, 4) == 0) net.add("relu0", LeakyRelu{0.1F});
  for (std::int64_t block = 1; block <= blocks; ++block) {
    const std::string number = std::to_string(block);
    const std::int64_t kernel = 2 * draw(0, 2) + 1;
    const std::int64_t padding = draw(0, 3) == 0 ? 0 : (kernel - 1) / 2;
    const Extent extent = net.output().extent;
    const std::int64_t smallest = std::min({extent.d, extent.h, extent.w});
    if (smallest + 2 * padding < kernel + 2) break;
    net.add("conv" + number,
            Convolution{draw(1, 5), Window{Extent::cube(kernel), Extent::cube(draw(1, 2)), Extent::cube(padding)}});
    if (norm_behind_convolution && draw(0, 2) != 0) net.add("bn" + number, BatchNorm{});
    if (draw(0, 2) != 0) net.add("relu" + number, LeakyRelu{draw(0, 1) == 0 ? 0.0F : 0.01F});
    const std::int64_t window = draw(2, 3);
    const Extent after = net.output().extent;
    if (draw(0, 3) != 0 && std::min({after.d, after.h, after.w}) >= 3) {
      net.add("pool" + number, Pool{draw(0, 1) == 0 ? PoolKind::average : PoolKind::max,
                                    Window{Extent::cube(window), Extent::cube(2), Extent::cube((window - 1) / 2)}});
    }
    if (draw(0, 3) == 0) net.add("dropout" + number, Dropout{0.7F});
  }
  if (draw(0, 2) == 0) {
    net.add("flatten", Flatten{});
    net.add("fc1", FullyConnected{5});
    net.add("fc_relu1", LeakyRelu{});
    net.add("fc_dropout", Dropout{0.6F});
    net.add("fc2", FullyConnected{3});
  }
  net.add("loss", MeanSquaredError{});
  return net;
}

Window transposed_window(std::int64_t kernel, std::int64_t padding, std::int64_t output_padding) {
  return {Extent::cube(kernel), Extent::cube(2), Extent::cube(padding), Extent::cube(output_padding), true};
}

void add_norm(Draw& draw, Network& net, const std::string& name) {
  const std::int64_t channels = net.output().channels;
  switch (draw(0, 3)) {
    case 0: net.add(name, BatchNorm{}); break;
    case 1: net.add(name, GroupNorm{}); break;
    case 2: net.add(name, GroupNorm{.groups = channels % 2 == 0 ? 2 : 1}); break;
    default: break;
  }
}

/// Down, up again in one of five ways, and a join with what was there before, which others may take too; then a loss on
/// labels or values. Extents are even.
Network random_graph(Draw& draw, const GlobalShape& input, bool norm_behind_convolution) {
  Network net(input);
  const std::int64_t channels = 2 * draw(1, 3);
  net.add("conv1", Convolution{channels});
  if (norm_behind_convolution) add_norm(draw, net, "norm1");
  NodeId skip{static_cast<std::int64_t>(net.nodes().size()) - 1};
  if (draw(0, 3) != 0) skip = net.add("relu1", LeakyRelu{0.1F});
  const std::int64_t window = draw(2, 3);
  if (draw(0, 3) == 0) {
    net.add("down", Convolution{channels, Window{Extent::cube(3), Extent::cube(2), Extent::cube(1)}}, {skip});
    net.add("down_relu", LeakyRelu{});
  } else {
    net.add("down",
            Pool{draw(0, 1) == 0 ? PoolKind::average : PoolKind::max,
                 Window{Extent::cube(window), Extent::cube(2), Extent::cube((window - 1) / 2)}},
            {skip});
  }
  net.add("conv2", Convolution{channels});
  net.add("relu2", LeakyRelu{0});
  switch (draw(0, 4)) {
    case 0: net.add("up", Deconvolution{channels}); break;
    case 1: net.add("up", Deconvolution{channels, transposed_window(3, 1, 1)}); break;
    case 2: net.add("up", Deconvolution{channels, transposed_window(4, 1, 0)}); break;
    case 3: net.add("up", Upsample{UpsampleKind::nearest}); break;
    default: net.add("up", Upsample{UpsampleKind::trilinear}); break;
  }
  NodeId up{static_cast<std::int64_t>(net.nodes().size()) - 1};
  if (draw(0, 2) == 0) up = net.add("up_relu", LeakyRelu{0.2F});
  if (draw(0, 2) == 0) skip = net.add("again", LeakyRelu{0.4F}, {skip});
  switch (draw(0, 4)) {
    case 4: {  // what the join holds is read again, by a layer that needs it backward
      const NodeId inner = net.add("inner", Concatenation{}, {up, skip});
      const NodeId relu = net.add("inner_relu", LeakyRelu{0.3F}, {inner});
      net.add("join", Concatenation{}, {inner, relu});
      break;
    }
    case 0: net.add("join", Concatenation{}, {up, skip}); break;
    case 1: net.add("join", Sum{}, {up, skip}); break;
    case 2: net.add("join", Concatenation{}, {NodeId{-1}, skip, up}); break;
    default: {
      const NodeId inner = net.add("inner", Sum{}, {skip, up, up});
      net.add("join", Concatenation{}, {inner, skip});
    }
  }
  if (draw(0, 2) == 0) add_norm(draw, net, "norm3");
  if (draw(0, 2) == 0) net.add("join_relu", LeakyRelu{0.2F});
  net.add("conv3", Convolution{3});
  const NodeId third{static_cast<std::int64_t>(net.nodes().size()) - 1};
  if (draw(0, 1) == 0) {
    const NodeId relu = net.add("relu3", LeakyRelu{0.3F});
    net.add("conv4", Convolution{3, Window{}}, {relu});
    net.add("residual", Sum{}, {NodeId{static_cast<std::int64_t>(net.nodes().size()) - 1}, third});
  }
  switch (draw(0, 3)) {
    case 0: net.add("loss", MeanSquaredError{}); break;
    case 1: net.add("loss", SegmentationLoss{}); break;
    case 2: net.add("loss", SegmentationLoss{.dice = 1}); break;
    default:
      net.add("loss",
              SegmentationLoss{.cross_entropy = 0.5, .dice = 0.7, .class_weights = {1, 3, 0.5}, .ignore_label = 1});
  }
  return net;
}

std::vector<Extent> grids_of(std::int64_t ranks) {
  std::vector<Extent> grids;
  for (std::int64_t d = 1; d <= ranks; ++d) {
    for (std::int64_t h = 1; h <= ranks; ++h) {
      for (std::int64_t w = 1; w <= ranks; ++w) {
        if (ranks % (d * h * w) == 0 && std::max({d, h, w}) <= 4) grids.push_back({d, h, w});
      }
    }
  }
  return grids;
}

/// The part of a [N, whole, C] tensor that lies in `box`.
std::vector<float> cut(const float* whole, const Extent& extent, std::int64_t channels, const SampleRange& samples,
                       const Box& box) {
  std::vector<float> part(static_cast<std::size_t>(samples.count * box.volume() * channels));
  const std::int64_t sample = extent.volume() * channels;
  copy_region(Backend::reference, {samples.count, channels, {Box::whole(extent), channels}, {box, channels}, box},
              whole + samples.first * sample, part.data());
  return part;
}

/// Rounding happens at every tensor on the way, not at the input alone.
constexpr double roundings = 16;

void compare(const std::string& what, const float* actual, const float* expected, const float* nudged,
             std::int64_t count, const std::string& where) {
  const double bound = 1e-5 + roundings * test::relative_l2(nudged, expected, count);
  EXPECT_LE(test::relative_l2(actual, expected, count), bound) << what << " of " << where;
}

/// Changes every input value by about one unit in the last place, up or down.
void nudge(test::RandomBatch& batch) {
  std::uint64_t index = 0;
  for (float& value : batch.inputs()) {
    value *= (RandomStream{5, 5, 5}.bits(index++) & 1) != 0 ? 1 + 0x1p-23F : 1 - 0x1p-23F;
  }
}

enum class Shape { chain, graph };

void check_one(Shape shape, Backend backend, std::uint64_t seed, const Communicator& world) {
  Draw draw{seed};
  const std::vector<Extent> grids = grids_of(world.size());
  const Extent parts = grids[static_cast<std::size_t>(draw(0, static_cast<std::int64_t>(grids.size()) - 1))];
  GlobalShape input{draw(1, 4), {draw(7, 14), draw(7, 14), draw(7, 14)}};
  if (shape == Shape::graph) input.extent = {2 * draw(3, 6), 2 * draw(3, 6), 2 * draw(3, 6)};
  const bool norm_behind_convolution = backend == Backend::reference;
  const Network net = shape == Shape::graph ? random_graph(draw, input, norm_behind_convolution)
                                            : random_network(draw, input, norm_behind_convolution);
  const std::int64_t batch = draw(1, 3);
  const ProcessGrid grid{world.size() / parts.volume(), parts.d, parts.h, parts.w};

  Executor single(net, Communicator::self(), {.device = Backend::reference, .seed = seed, .input_gradient = true});
  const test::RandomBatch whole(single.prepare(Mode::train, batch), seed);
  const OptimizerOptions sgd{.kind = OptimizerKind::sgd};
  Executor sharded(net, world,
                   {.grid = grid,
                    .device = test::device_under_test(backend, world),
                    .optimizer = sgd,
                    .seed = seed,
                    .bucket_bytes = 256,
                    .input_gradient = true,
                    .input_partition = random_partition(draw, input.extent, parts)});
  const Plan& plan = sharded.prepare(Mode::train, batch);
  const test::RandomBatch part(plan, seed);
  std::string where = fmt::format("seed {} grid {} rank {}:", seed, grid.spatial_name(), world.rank());
  for (const Node& node : net.nodes()) where += " " + node.name;

  const Plan& single_plan = single.prepare(Mode::train, batch);
  Executor nudged(net, Communicator::self(), {.device = Backend::reference, .seed = seed, .input_gradient = true});
  test::RandomBatch changed(nudged.prepare(Mode::train, batch), seed);
  nudge(changed);

  single.evaluate(whole.view());
  nudged.evaluate(changed.view());
  EXPECT_TRUE(std::isfinite(sharded.evaluate(part.view()).loss));
  const OutputUnit output = sharded.prepare(Mode::evaluate, batch).output;
  const auto cut_output = [&](const Executor& executor) {
    return cut(executor.output().data(), output.shape.extent, output.shape.channels, plan.samples, output.own);
  };
  const std::vector<float> expected = cut_output(single);
  compare("output", sharded.output().data(), expected.data(), cut_output(nudged).data(),
          static_cast<std::int64_t>(expected.size()), where);

  const double loss = single.train(whole.view(), 0, 0).loss;
  nudged.train(changed.view(), 0, 0);
  EXPECT_NEAR(sharded.train(part.view(), 0, 0).loss, loss, 1e-5 * loss) << where;
  sharded.parameters().to_host();
  const std::vector<ParameterPlan>& parameters = single.parameters().parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const int id = static_cast<int>(i);
    const ParameterSpec& spec = parameters[i].spec;
    const auto array = [&](Executor& executor) {
      return spec.trainable ? executor.parameters().gradient(id) : executor.parameters().value(id);
    };
    compare(spec.layer + "." + spec.name, array(sharded), array(single), array(nudged), spec.elements(), where);
  }

  const Box own = plan.input.own.intersect(plan.input.gradient.box);
  std::vector<float> dx(static_cast<std::size_t>(plan.samples.count * own.volume() * input.channels));
  copy_region(Backend::reference,
              {plan.samples.count, input.channels, plan.input.gradient.layout(), {own, input.channels}, own},
              sharded.input_gradient().data(), dx.data());
  const auto cut_gradient = [&](const Executor& executor) {
    const Box held = single_plan.input.gradient.box;
    std::vector<float> all(static_cast<std::size_t>(batch * input.elements()));
    copy_region(Backend::reference,
                {batch, input.channels, {held, input.channels}, {Box::whole(input.extent), input.channels}, held},
                executor.input_gradient().data(), all.data());
    return cut(all.data(), input.extent, input.channels, plan.samples, own);
  };
  compare("input gradient", dx.data(), cut_gradient(single).data(), cut_gradient(nudged).data(),
          static_cast<std::int64_t>(dx.size()), where);
}

class Layers : public testing::TestWithParam<std::tuple<Shape, Backend>> {};

TEST_P(Layers, EqualTheReferenceOnOneRank) {
  const Communicator world = Communicator::world();
  const auto& [shape, backend] = GetParam();
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    agree(world, [&] { check_one(shape, backend, seed + 1000 * static_cast<std::uint64_t>(world.size()), world); });
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, Layers,
                         testing::Combine(testing::Values(Shape::chain, Shape::graph),
                                          testing::Values(Backend::reference, Backend::cpu)),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param) == Shape::chain ? "chains_" : "graphs_") +
                                  backend_name(std::get<1>(test.param));
                         });

}  // namespace
}  // namespace halograd
