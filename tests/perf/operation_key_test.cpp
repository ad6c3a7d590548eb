#include "halograd/perf/operation.hpp"

#include "perf/support.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

namespace halograd {
namespace {

Plan compile_small(const ProcessGrid& grid, std::int64_t rank, std::int64_t depth = 16) {
  return compile(test::small_regression(depth), {.grid = grid, .rank = rank});
}

std::string key_of(const Plan& plan, StepKind kind, const std::string& name) {
  for (const Step& step : plan.steps) {
    if (step.kind == kind && step_name(plan, step) == name) return operation_key(plan, step).whole;
  }
  return {};
}

TEST(OperationKey, SaysWhatTheHeaderSays) {
  Plan plan;
  plan.convolutions.push_back({.name = "conv",
                               .desc = Conv3dDesc{.samples = 1,
                                                  .in_channels = 4,
                                                  .out_channels = 16,
                                                  .in = {66, 128, 128},
                                                  .out = {64, 128, 128},
                                                  .kernel = Extent::cube(3),
                                                  .pad_lo = {0, 1, 1}}});
  EXPECT_EQ(operation_key(plan, {.kind = StepKind::convolution_forward}).whole,
            "convolution_forward c4-16 k3x3x3 s1x1x1 | n1 66x128x128-64x128x128 p0x1x1");
}

TEST(OperationKey, TheSameOnAllInnerRanks) {
  const std::vector<std::string> inner = test::keys_of(compile_small({1, 4, 1, 1}, 1));
  EXPECT_GT(inner.size(), 15U);
  EXPECT_EQ(inner, test::keys_of(compile_small({1, 4, 1, 1}, 2)));
  // The first rank has no neighbour below it, and trains the dense layer.
  EXPECT_NE(inner, test::keys_of(compile_small({1, 4, 1, 1}, 0)));
  // Both groups do the same.
  EXPECT_EQ(inner, test::keys_of(compile(test::small_regression(), {.grid = {2, 4, 1, 1}, .rank = 5, .batch = 2})));
}

TEST(OperationKey, TheSameForTheSameLocalShapesOfALargerVolume) {
  const Plan small = compile_small({1, 4, 1, 1}, 1, 16);
  const Plan large = compile_small({1, 8, 1, 1}, 4, 32);
  for (const StepKind kind : {StepKind::convolution_forward, StepKind::convolution_backward_weights}) {
    for (const char* const name : {"c1", "c2"}) {
      EXPECT_EQ(key_of(small, kind, name), key_of(large, kind, name));
      EXPECT_NE(key_of(small, kind, name), "");
    }
  }
  for (const StepKind kind : {StepKind::chain_moments, StepKind::chain_forward, StepKind::chain_backward_data,
                              StepKind::chain_backward_sums, StepKind::chain_backward_faces}) {
    EXPECT_EQ(key_of(small, kind, "bn1+relu1+pool1"), key_of(large, kind, "bn1+relu1+pool1"));
    EXPECT_NE(key_of(small, kind, "bn1+relu1+pool1"), "");
  }
}

/// One unit of each kind, by hand.
Plan one_of_each() {
  const VoxelLayout layout{Box::whole({6, 8, 8}), 4};
  const Tile tile{.buffer = 0, .box = layout.box, .pitch = 4};
  Plan plan;
  plan.convolutions.push_back({.name = "conv",
                               .desc = Conv3dDesc{.samples = 2,
                                                  .in_channels = 4,
                                                  .out_channels = 8,
                                                  .in = {6, 8, 8},
                                                  .out = {4, 8, 8},
                                                  .kernel = Extent::cube(3),
                                                  .pad_lo = {0, 1, 1}}});
  plan.chains.push_back({.name = "chain",
                         .desc = {.samples = 2,
                                  .channels = 4,
                                  .in_extent = Extent::cube(32),
                                  .in = {{1, 0, 0}, {5, 8, 8}},
                                  .src = layout,
                                  .faces = {{1, 0, 0}, {}},
                                  .returned = {{}, {1, 0, 0}},
                                  .normalise = true,
                                  .negative_slope = 0.01F,
                                  .pool = PoolKind::average,
                                  .window = {Extent::cube(3), Extent::cube(2), Extent::cube(1)},
                                  .keep = 0.8F,
                                  .out_extent = Extent::cube(16),
                                  .out = {{0, 0, 0}, {2, 4, 4}},
                                  .dst = {Box::whole({3, 4, 4}), 4}},
                         .forward_parts = {{{0, 0, 0}, {1, 4, 4}}},
                         .sum_parts = {{{1, 0, 0}, {4, 8, 8}}}});
  plan.upsamples.push_back({.name = "up",
                            .desc = {.samples = 2,
                                     .channels = 4,
                                     .kind = UpsampleKind::nearest,
                                     .factor = Extent::cube(2),
                                     .in_extent = Extent::cube(8),
                                     .src = layout,
                                     .out = Box::whole({10, 16, 16}),
                                     .dst = {Box::whole({12, 16, 16}), 4}}});
  plan.copies.push_back({.name = "copy", .samples = 2, .channels = 4, .from = tile, .to = tile, .region = layout.box});
  plan.denses.push_back({.name = "dense", .desc = {.samples = 2, .in_features = 64, .out_features = 16}});
  plan.flattens.push_back({.name = "flatten", .shape = {2, 4, Extent::cube(2)}});
  plan.losses.push_back({.name = "loss", .elements = 8});
  plan.segmentations.push_back({.name = "seg", .desc = {.samples = 2, .voxels = 64, .classes = 3}});
  plan.buckets.push_back({.offset = 0, .count = 100});
  return plan;
}

struct Change {
  const char* what;
  StepKind kind;
  std::function<void(Plan&)> apply;
};

Conv3dDesc& conv(Plan& plan) {
  return std::get<Conv3dDesc>(plan.convolutions[0].desc);
}

std::vector<Change> changes_of_convolutions() {
  const StepKind kind = StepKind::convolution_forward;
  return {{"samples", kind, [](Plan& p) { ++conv(p).samples; }},
          {"in channels", kind, [](Plan& p) { ++conv(p).in_channels; }},
          {"out channels", kind, [](Plan& p) { ++conv(p).out_channels; }},
          {"in d", kind, [](Plan& p) { ++conv(p).in.d; }},
          {"in w", kind, [](Plan& p) { ++conv(p).in.w; }},
          {"out h", kind, [](Plan& p) { ++conv(p).out.h; }},
          {"kernel", kind, [](Plan& p) { conv(p).kernel.h = 1; }},
          {"stride", kind, [](Plan& p) { conv(p).stride.w = 2; }},
          {"padding", kind,
           [](Plan& p) {
             conv(p).pad_lo = {1, 1, 0};
           }},
          {"direct", kind, [](Plan& p) { conv(p).direct = true; }},
          {"parts", kind,
           [](Plan& p) {
             conv(p).forward_parts = {{{0, 0, 0}, {3, 8, 8}}};
           }},
          {"transposed", kind, [](Plan& p) {
             const Conv3dDesc desc = conv(p);
             p.convolutions[0].desc = Deconv3dDesc{.samples = desc.samples,
                                                   .in_channels = desc.in_channels,
                                                   .out_channels = desc.out_channels,
                                                   .in = desc.in,
                                                   .out = desc.out,
                                                   .kernel = desc.kernel,
                                                   .stride = desc.stride,
                                                   .pad_lo = desc.pad_lo};
           }}};
}

std::vector<Change> changes_of_chains() {
  const StepKind data = StepKind::chain_backward_data;
  return {{"samples", data, [](Plan& p) { ++p.chains[0].desc.samples; }},
          {"channels", data, [](Plan& p) { --p.chains[0].desc.channels; }},
          {"in", data, [](Plan& p) { ++p.chains[0].desc.in.hi.d; }},
          {"out", data, [](Plan& p) { --p.chains[0].desc.out.hi.w; }},
          {"pitch of y", data, [](Plan& p) { p.chains[0].desc.src.pitch = 12; }},
          {"pitch of dst", data, [](Plan& p) { p.chains[0].desc.dst.pitch = 12; }},
          {"margins of y", data, [](Plan& p) { ++p.chains[0].desc.src.box.hi.h; }},
          {"margins of dst", data, [](Plan& p) { ++p.chains[0].desc.dst.box.hi.d; }},
          {"normalise", data, [](Plan& p) { p.chains[0].desc.normalise = false; }},
          {"statistics of each sample", data, [](Plan& p) { p.chains[0].desc.per_sample = true; }},
          {"activation", data, [](Plan& p) { p.chains[0].desc.negative_slope = 1; }},
          {"max", data, [](Plan& p) { p.chains[0].desc.pool = PoolKind::max; }},
          {"no pool", data, [](Plan& p) { p.chains[0].desc.pool = PoolKind::none; }},
          {"window", data, [](Plan& p) { p.chains[0].desc.window.kernel = Extent::cube(2); }},
          {"dropout", data, [](Plan& p) { p.chains[0].desc.keep = 1; }},
          {"accumulate", data, [](Plan& p) { p.chains[0].desc.accumulate = true; }},
          {"returned faces", data, [](Plan& p) { p.chains[0].desc.returned.hi.w = 1; }},
          {"faces", StepKind::chain_backward_faces, [](Plan& p) { p.chains[0].desc.faces.lo.h = 1; }},
          {"forward part", StepKind::chain_forward, [](Plan& p) { ++p.chains[0].forward_parts[0].hi.d; }},
          {"part of the sums", StepKind::chain_backward_sums, [](Plan& p) { ++p.chains[0].sum_parts[0].hi.d; }}};
}

std::vector<Change> other_changes() {
  const StepKind load = StepKind::load_input;
  const StepKind copy = StepKind::copy;
  const StepKind up = StepKind::upsample_backward;
  return {{"loaded samples", load, [](Plan& p) { ++p.samples.count; }},
          {"loaded channels", load, [](Plan& p) { ++p.input.shape.channels; }},
          {"loaded voxels", load, [](Plan& p) { ++p.input.own.hi.h; }},
          {"margins of the input", load, [](Plan& p) { ++p.input.tile.box.hi.w; }},
          {"copied samples", copy, [](Plan& p) { ++p.copies[0].samples; }},
          {"copied channels", copy, [](Plan& p) { --p.copies[0].channels; }},
          {"region", copy, [](Plan& p) { --p.copies[0].region.hi.h; }},
          {"pitch from", copy, [](Plan& p) { ++p.copies[0].from.pitch; }},
          {"box to", copy, [](Plan& p) { ++p.copies[0].to.box.hi.d; }},
          {"add", copy, [](Plan& p) { p.copies[0].add = true; }},
          {"clear", copy, [](Plan& p) { p.copies[0].clear = true; }},
          {"upsampled samples", up, [](Plan& p) { ++p.upsamples[0].desc.samples; }},
          {"upsampled channels", up, [](Plan& p) { --p.upsamples[0].desc.channels; }},
          {"trilinear", up, [](Plan& p) { p.upsamples[0].desc.kind = UpsampleKind::trilinear; }},
          {"factor", up, [](Plan& p) { p.upsamples[0].desc.factor.d = 1; }},
          {"upsampled part", up, [](Plan& p) { ++p.upsamples[0].desc.out.hi.d; }},
          {"upsampled from", up, [](Plan& p) { ++p.upsamples[0].desc.src.box.hi.d; }},
          {"upsampled to", up, [](Plan& p) { ++p.upsamples[0].desc.dst.pitch; }},
          {"dense samples", StepKind::dense_backward_weights, [](Plan& p) { ++p.denses[0].desc.samples; }},
          {"features in", StepKind::dense_forward, [](Plan& p) { ++p.denses[0].desc.in_features; }},
          {"features out", StepKind::dense_backward_data, [](Plan& p) { ++p.denses[0].desc.out_features; }},
          {"flattened", StepKind::flatten_forward, [](Plan& p) { ++p.flattens[0].shape.extent.w; }},
          {"targets", StepKind::loss, [](Plan& p) { ++p.losses[0].elements; }},
          {"voxels", StepKind::segmentation_sums, [](Plan& p) { ++p.segmentations[0].desc.voxels; }},
          {"classes", StepKind::segmentation_gradient, [](Plan& p) { ++p.segmentations[0].desc.classes; }},
          {"labelled samples", StepKind::segmentation_sums, [](Plan& p) { ++p.segmentations[0].desc.samples; }},
          {"parameters", StepKind::update, [](Plan& p) { ++p.buckets[0].count; }}};
}

TEST(OperationKey, DiffersWhereAnythingThatMattersDiffers) {
  std::map<StepKind, std::set<std::string>> seen;
  for (const auto& list : {changes_of_convolutions(), changes_of_chains(), other_changes()}) {
    for (const Change& change : list) {
      Plan plan = one_of_each();
      auto& keys = seen[change.kind];
      keys.insert(operation_key(plan, {.kind = change.kind}).whole);
      change.apply(plan);
      const std::string key = operation_key(plan, {.kind = change.kind}).whole;
      EXPECT_TRUE(keys.insert(key).second) << change.what << ": " << key;
    }
  }
}

TEST(OperationKey, DiffersBetweenPassesAndParts) {
  const Plan plan = one_of_each();
  std::set<std::string> keys;
  const std::vector<StepKind> kinds{StepKind::convolution_forward,
                                    StepKind::convolution_backward_data,
                                    StepKind::convolution_backward_weights,
                                    StepKind::chain_moments,
                                    StepKind::running_statistics,
                                    StepKind::chain_forward,
                                    StepKind::chain_backward_faces,
                                    StepKind::chain_backward_sums,
                                    StepKind::chain_backward_data,
                                    StepKind::upsample_forward,
                                    StepKind::upsample_backward,
                                    StepKind::flatten_forward,
                                    StepKind::flatten_backward,
                                    StepKind::dense_forward,
                                    StepKind::dense_backward_data,
                                    StepKind::dense_backward_weights,
                                    StepKind::segmentation_sums,
                                    StepKind::segmentation_gradient};
  for (const StepKind kind : kinds) keys.insert(operation_key(plan, {.kind = kind}).whole);
  EXPECT_EQ(keys.size(), kinds.size());
}

TEST(OperationKey, TheSameWhereverTheUnitLies) {
  Plan plan = one_of_each();
  Plan moved = plan;
  const auto shift = [](Box& box) {
    for (int i = 0; i < 3; ++i) {
      box.lo[i] += 8 * (i + 1);
      box.hi[i] += 8 * (i + 1);
    }
  };
  ChainUnit& chain = moved.chains[0];
  for (Box* const box : {&chain.desc.in, &chain.desc.out, &chain.desc.src.box, &chain.desc.dst.box,
                         &chain.forward_parts[0], &chain.sum_parts[0], &moved.upsamples[0].desc.out,
                         &moved.upsamples[0].desc.src.box, &moved.upsamples[0].desc.dst.box, &moved.copies[0].region,
                         &moved.copies[0].from.box, &moved.copies[0].to.box}) {
    shift(*box);
  }
  chain.name = "other";
  chain.desc.in_extent = Extent::cube(512);
  chain.desc.out_extent = Extent::cube(256);
  chain.first_sample = 7;
  chain.y.buffer = 5;
  moved.convolutions[0].name = "other";
  conv(moved).input_gradient = false;
  moved.copies[0].from.offset = 3;
  moved.buckets[0].offset = 1000;
  for (const StepKind kind :
       {StepKind::convolution_forward, StepKind::chain_moments, StepKind::chain_forward, StepKind::chain_backward_faces,
        StepKind::chain_backward_sums, StepKind::chain_backward_data, StepKind::upsample_forward, StepKind::copy,
        StepKind::update}) {
    EXPECT_EQ(operation_key(plan, {.kind = kind}).whole, operation_key(moved, {.kind = kind}).whole)
        << step_kind_name(kind);
  }
}

}  // namespace
}  // namespace halograd
