#include "halograd/kernels/cuda/conv_plan.hpp"

#include "halograd/core/error.hpp"
#include "halograd/kernels/cuda/algorithm_search.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

// cuDNN makes plans for a GPU that is only described, so that what it takes can be tested where there is none.
namespace halograd::test {
namespace {

using cuda::ConvPass;
using cuda::CudnnTarget;
using cuda::PlannedPass;
using cuda::whole_part;

constexpr ConvPass all_passes[] = {ConvPass::forward, ConvPass::backward_data, ConvPass::backward_weights};
constexpr Precision all_precisions[] = {Precision::f32, Precision::tf32, Precision::bf16};
constexpr std::int64_t limit = cuda::workspace_limit;

const char* const h200 =
    R"({"deviceName":"NVIDIA H200","cudaDeviceId":0,"deviceVer":900,"driverVer":13000,"multiProcessorCount":132,)"
    R"("totalGlobalMem":150000000000,"maxSharedMemoryPerBlockOptin":232448,"maxSharedMemoryPerBlock":49152,)"
    R"("reservedSharedMemoryPerBlock":1024,"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],)"
    R"("regsPerBlock":65536,"warpSize":32,"maxRegistersPerSM":65536,"maxCtasPerSM":32,"maxThreadsPerBlock":1024,)"
    R"("maxThreadsPerSM":2048,"pciDeviceId":0,"isTccDriver":0,"supportCoopLaunch":1,"smClockRateKHz":1980000,)"
    R"("memClockRateKHz":3201000,"l2CacheSize":62914560})";

class CudaConvPlan : public testing::Test {
protected:
  void SetUp() override {
    try {
      target_ = CudnnTarget::described(h200);
    } catch (const ResourceError& error) {
      GTEST_SKIP() << "this cuDNN does not read the description: " << error.what();
    }
  }

  [[nodiscard]] const CudnnTarget& target() const { return *target_; }

private:
  std::optional<CudnnTarget> target_;
};

/// A layer on a volume of `width`, of which the rank has the lower half in depth with a plane of its neighbour's, or
/// all.
Conv3dDesc layer(std::int64_t in, std::int64_t out, std::int64_t width, std::int64_t kernel, std::int64_t stride,
                 bool half) {
  Conv3dDesc desc{.samples = 1, .in_channels = in, .out_channels = out, .pad_lo = {}};
  desc.kernel = Extent::cube(kernel);
  desc.stride = Extent::cube(stride);
  desc.pad_lo = Extent::cube((kernel - 1) / 2);
  desc.in = Extent::cube(width);
  desc.out = Extent::cube((width + stride - 1) / stride);
  if (half) {
    desc.in.d = width / 2 + (kernel - 1) / 2;
    desc.out.d = desc.out.d / 2;
  }
  return desc;
}

/// CosmoFlow's convolutions and some of the U-Net's, whole and halved; its deconvolution as the convolution it is.
std::vector<Conv3dDesc> layers() {
  std::vector<Conv3dDesc> result;
  for (const bool half : {false, true}) {
    result.push_back(layer(4, 16, 128, 3, 1, half));
    result.push_back(layer(16, 32, 64, 3, 1, half));
    result.push_back(layer(64, 128, 16, 3, 2, half));
    result.push_back(layer(256, 256, 4, 3, 1, half));
    result.push_back(layer(1, 32, 64, 3, 1, half));
    result.push_back(layer(64, 3, 64, 1, 1, half));
  }
  Conv3dDesc deconvolution = layer(128, 128, 64, 2, 2, false);
  deconvolution.backwards = true;
  result.push_back(deconvolution);
  return result;
}

cuda::EngineNotes notes_of(const CudnnTarget& target, ConvPass pass, const Conv3dDesc& desc,
                           const Algorithm& algorithm) {
  const auto parts = cuda::cut(whole_part(desc), algorithm.pieces, pass == ConvPass::backward_data);
  const auto graph = cuda::convolution_graph(target, pass, parts.front(), {});
  const auto config = cuda::config_of(target, graph, algorithm);
  EXPECT_TRUE(config) << algorithm_text(algorithm);
  return config ? config->notes : cuda::EngineNotes{};
}

TEST_F(CudaConvPlan, EveryLayerHasAdmittedEnginesInEveryPrecision) {
  for (Conv3dDesc desc : layers()) {
    for (const Precision precision : all_precisions) {
      desc.precision = precision;
      for (const ConvPass pass : all_passes) {
        const auto found = cuda::candidates(target(), pass, whole_part(desc), limit);
        ASSERT_FALSE(found.empty()) << describe(pass, whole_part(desc));
        bool tensor_cores = false;
        for (const PlannedPass& candidate : found) {
          EXPECT_LE(candidate.workspace_bytes(), limit);
          const auto notes = notes_of(target(), pass, desc, candidate.algorithm());
          EXPECT_TRUE(admits(notes, precision, false)) << describe(pass, whole_part(desc)) << ": " << candidate.name();
          tensor_cores = tensor_cores || notes.tensor_cores;
        }
        EXPECT_EQ(tensor_cores, precision != Precision::f32) << describe(pass, whole_part(desc));
      }
    }
  }
}

/// What is computed while margins fly, and what is left for when they are there: of a rank with neighbours on all
/// sides.
TEST_F(CudaConvPlan, BoxesOfOutputsRunOnTheFastEnginesToo) {
  for (const auto& [in, out, stride] : {std::array{4, 16, 1}, std::array{16, 32, 1}, std::array{64, 128, 2}}) {
    Conv3dDesc desc = layer(in, out, 32, 3, stride, false);
    desc.in = Extent::cube(34);
    desc.pad_lo = {};
    const std::int64_t last = desc.out.d - 1;
    for (const Box& box : {Box{{1, 1, 1}, {last, last, last}}, Box{{0, 0, 0}, {1, last + 1, last + 1}},
                           Box{{1, last, 0}, {last, last + 1, last + 1}}, Box{{1, 1, 0}, {last, last, 1}}}) {
      for (const Precision precision : all_precisions) {
        desc.precision = precision;
        const cuda::ConvPart part = outputs_of(whole_part(desc), box);
        const auto found = cuda::candidates(target(), ConvPass::forward, part, limit);
        ASSERT_FALSE(found.empty()) << describe(ConvPass::forward, part);
        const bool tensor_cores = std::ranges::any_of(found, [&](const PlannedPass& candidate) {
          const auto graph = cuda::convolution_graph(target(), ConvPass::forward, part, {});
          return cuda::config_of(target(), graph, candidate.algorithm())->notes.tensor_cores;
        });
        EXPECT_EQ(tensor_cores, precision != Precision::f32) << describe(ConvPass::forward, part);
        desc.direct = true;
        const Algorithm algorithm =
            cuda::direct_pass(target(), ConvPass::forward, outputs_of(whole_part(desc), box)).algorithm();
        EXPECT_EQ(algorithm.engine,
                  cuda::direct_pass(target(), ConvPass::forward, whole_part(desc)).algorithm().engine);
        desc.direct = false;
      }
    }
  }
}

TEST_F(CudaConvPlan, ARecordedAlgorithmIsTheSameEngineWithTheSameSettings) {
  for (const ConvPass pass : all_passes) {
    Conv3dDesc desc = layer(16, 32, 64, 3, 1, true);
    desc.precision = Precision::bf16;
    std::set<std::string> texts;
    for (const PlannedPass& candidate : cuda::candidates(target(), pass, whole_part(desc), limit)) {
      AlgorithmRecord first, second;
      first.set("key", candidate.algorithm());
      second.add(first.text(), "record");
      const Algorithm algorithm = second.find("key").value();
      texts.insert(algorithm_text(algorithm));
      const auto replayed = PlannedPass::make(target(), pass, whole_part(desc), algorithm);
      ASSERT_TRUE(replayed);
      EXPECT_EQ(replayed->workspace_bytes(), candidate.workspace_bytes());
      const auto graph = cuda::convolution_graph(target(), pass, whole_part(desc), {});
      const auto config = cuda::config_of(target(), graph, algorithm);
      ASSERT_TRUE(config);
      EXPECT_EQ(config->algorithm.engine, algorithm.engine);
      EXPECT_EQ(config->algorithm.knobs, algorithm.knobs);
    }
    EXPECT_GT(texts.size(), 1U) << pass_name(pass);
  }
}

TEST_F(CudaConvPlan, WhatTheLibraryHasNotIsNoPlan) {
  const Conv3dDesc desc = layer(16, 32, 16, 3, 1, false);
  EXPECT_FALSE(PlannedPass::make(target(), ConvPass::forward, whole_part(desc), {.engine = -1}));
  EXPECT_FALSE(PlannedPass::make(target(), ConvPass::forward, whole_part(desc), {.engine = 100000}));
  EXPECT_FALSE(PlannedPass::make(target(), ConvPass::forward, whole_part(desc), {.engine = 0, .knobs = {{100000, 1}}}));
  EXPECT_FALSE(PlannedPass::make(target(), ConvPass::forward, whole_part(desc), {.engine = 0, .knobs = {{2, 100000}}}));
  EXPECT_TRUE(PlannedPass::make(target(), ConvPass::forward, whole_part(desc), {.engine = 0}));
}

TEST_F(CudaConvPlan, VolumesThatCannotBeCountedInOnePieceRunOnFastEngines) {
  Conv3dDesc desc = layer(4, 16, 512, 3, 1, false);
  desc.precision = Precision::bf16;
  for (const ConvPass pass : all_passes) {
    for (const PlannedPass& candidate : cuda::candidates(target(), pass, whole_part(desc), limit)) {
      EXPECT_GE(candidate.pieces(), 2U);
      EXPECT_LE(candidate.workspace_bytes(), limit);
      EXPECT_TRUE(notes_of(target(), pass, desc, candidate.algorithm()).tensor_cores) << candidate.name();
    }
  }
}

struct LayerKind {
  std::int64_t in, out, kernel, stride;
};

TEST_F(CudaConvPlan, DirectTakesOneAlgorithmForAllExtentsAndPaddings) {
  constexpr LayerKind kinds[] = {{4, 16, 3, 1}, {32, 64, 3, 1}, {64, 128, 3, 2}, {256, 256, 3, 1},
                                 {1, 32, 3, 1}, {64, 3, 1, 1},  {128, 128, 2, 2}};
  for (const Precision precision : all_precisions) {
    for (const ConvPass pass : {ConvPass::forward, ConvPass::backward_data}) {
      for (const auto& [in, out, kernel, stride] : kinds) {
        std::optional<Algorithm> first;
        for (const std::int64_t width : {4, 8, 32, 64}) {
          for (const bool half : {false, true}) {
            Conv3dDesc desc = layer(in, out, width, kernel, stride, half);
            desc.precision = precision;
            desc.direct = true;
            const Algorithm algorithm = cuda::direct_pass(target(), pass, whole_part(desc)).algorithm();
            if (!first) first = algorithm;
            EXPECT_EQ(algorithm.engine, first->engine) << describe(pass, whole_part(desc));
            EXPECT_EQ(algorithm.knobs, first->knobs) << describe(pass, whole_part(desc));
            EXPECT_TRUE(admits(notes_of(target(), pass, desc, algorithm), precision, true));
          }
        }
      }
    }
  }
}

TEST_F(CudaConvPlan, InputsThatWindowsDoNotTouchAreNoObstacle) {
  // Every second voxel of an odd part: its first belongs to no window.
  Conv3dDesc desc{.samples = 2,
                  .in_channels = 16,
                  .out_channels = 32,
                  .in = {9, 9, 9},
                  .out = {4, 4, 4},
                  .stride = Extent::cube(2),
                  .pad_lo = {-1, -1, -1}};
  for (const Precision precision : all_precisions) {
    desc.precision = precision;
    for (const ConvPass pass : all_passes) {
      const auto found = cuda::candidates(target(), pass, whole_part(desc), limit);
      EXPECT_FALSE(found.empty()) << describe(pass, whole_part(desc));
      EXPECT_FALSE(found.front().covers_input());
    }
  }
}

TEST_F(CudaConvPlan, KeysTellApartWhatChoicesDependOn) {
  const Conv3dDesc desc = layer(16, 32, 64, 3, 1, false);
  std::set<std::string> keys{cuda::algorithm_key(ConvPass::forward, whole_part(desc), "NVIDIA H200")};
  const auto expect_new = [&](const std::string& key) { EXPECT_TRUE(keys.insert(key).second) << key; };
  expect_new(cuda::algorithm_key(ConvPass::backward_data, whole_part(desc), "NVIDIA H200"));
  expect_new(cuda::algorithm_key(ConvPass::backward_weights, whole_part(desc), "NVIDIA H200"));
  expect_new(cuda::algorithm_key(ConvPass::forward, whole_part(desc), "NVIDIA A100"));
  const auto changed = [&](auto&& change) {
    Conv3dDesc other = desc;
    change(other);
    expect_new(cuda::algorithm_key(ConvPass::forward, whole_part(other), "NVIDIA H200"));
  };
  changed([](Conv3dDesc& d) { d.samples = 2; });
  changed([](Conv3dDesc& d) { d.in_channels = 32; });
  changed([](Conv3dDesc& d) { d.out_channels = 16; });
  changed([](Conv3dDesc& d) { d.in.h = 65; });
  changed([](Conv3dDesc& d) { d.out.w = 63; });
  changed([](Conv3dDesc& d) {
    d.kernel.d = 1;
    d.pad_lo.d = 0;
  });
  changed([](Conv3dDesc& d) {
    d.stride.h = 2;
    d.out.h = 32;
  });
  changed([](Conv3dDesc& d) { d.pad_lo.w = 0; });
  changed([](Conv3dDesc& d) { d.precision = Precision::tf32; });
  changed([](Conv3dDesc& d) { d.precision = Precision::bf16; });
  const cuda::ConvPart box = outputs_of(whole_part(desc), {{0, 0, 1}, {64, 64, 63}});
  expect_new(cuda::algorithm_key(ConvPass::forward, box, "NVIDIA H200"));
  const cuda::ConvPart aside = outputs_of(whole_part(desc), {{0, 1, 1}, {63, 64, 63}});
  expect_new(cuda::algorithm_key(ConvPass::forward, aside, "NVIDIA H200"));
  cuda::ConvPart elsewhere = aside;  // of other alignment, it may take another engine
  ++elsewhere.x_offset;
  expect_new(cuda::algorithm_key(ConvPass::forward, elsewhere, "NVIDIA H200"));
  cuda::ConvPart dense = box;  // the same voxels in buffers of their own
  dense.in = box.desc.in;
  dense.out = box.desc.out;
  expect_new(cuda::algorithm_key(ConvPass::forward, dense, "NVIDIA H200"));
}

}  // namespace
}  // namespace halograd::test
