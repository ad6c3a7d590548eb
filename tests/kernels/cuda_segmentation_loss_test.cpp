#include "halograd/kernels/cuda/scratch.hpp"
#include "halograd/kernels/cuda/segmentation_chunks.hpp"
#include "halograd/kernels/cuda/segmentation_lanes.hpp"
#include "kernels/segmentation_cases.hpp"
#include "kernels/software_grid.hpp"

#include <functional>

namespace halograd::test {
namespace {

// The kernels of segmentation_loss.cu, thread after thread.

/// Calls `body(sample, piece)` for the blocks of a launch.
void for_each_block(const SegmentationLossDesc& desc, std::int64_t pieces,
                    const std::function<void(std::int64_t, std::int64_t)>& body) {
  for (std::int64_t sample = 0; sample < desc.samples; ++sample) {
    for (std::int64_t piece = 0; piece < pieces; ++piece) body(sample, piece);
  }
}

/// chunk_sums.
template <typename Sums>
void run_chunk_sums(const Sums& sums, const SegmentationLossDesc& desc, std::int64_t pieces,
                    std::vector<double>& partial) {
  const std::int64_t items = sums.chunks.items();
  for_each_block(desc, pieces, [&](std::int64_t sample, std::int64_t piece) {
    std::vector<std::array<double, Sums::values>> of_threads;
    of_threads.reserve(cuda::sum_threads);
    for (int thread = 0; thread < cuda::sum_threads; ++thread) {
      typename Sums::State state;
      for (std::int64_t item = cuda::piece_begin(items, piece, pieces) + thread;
           item < cuda::piece_begin(items, piece + 1, pieces); item += cuda::sum_threads) {
        sums.add(state, sample, item);
      }
      double mine[Sums::values];
      sums.finish(state, mine);
      of_threads.push_back(std::to_array(mine));
    }
    for (std::size_t i = 0; i < Sums::values; ++i) {
      partial.push_back(block_sum([&](int thread) { return of_threads[static_cast<std::size_t>(thread)][i]; }));
    }
  });
}

/// chunk_gradient.
template <typename Gradient>
void run_chunk_gradient(const Gradient& gradient, const SegmentationLossDesc& desc, std::int64_t pieces) {
  const std::int64_t items = gradient.chunks.items();
  for_each_block(desc, pieces, [&](std::int64_t sample, std::int64_t piece) {
    const auto factors = gradient.factors(sample);
    for (std::int64_t item = cuda::piece_begin(items, piece, pieces);
         item < cuda::piece_begin(items, piece + 1, pieces); ++item) {
      gradient.write(factors, sample, item);
    }
  });
}

/// A voxel in all its lanes, after softmax_of_lanes.
struct Voxel {
  std::vector<cuda::LaneVoxel> lanes;
  float others = 0;
};
template <typename T, int lanes, int run>
Voxel voxel_of_lanes(const cuda::SegmentationLanes<T, lanes, run>& voxels, std::int64_t at, bool there) {
  Voxel voxel{std::vector<cuda::LaneVoxel>(lanes)};
  std::vector<cuda::Top> tops(lanes);
  std::vector<float> others(lanes);
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    voxel.lanes[lane] = voxels.load_voxel(at, there, static_cast<int>(lane));
    tops[lane] = voxels.top(voxel.lanes[lane], static_cast<int>(lane));
  }
  tops = combine_lanes(tops, lanes, 1, cuda::upper);
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    EXPECT_EQ(tops[lane].at, tops[0].at);
    others[lane] = voxels.exponentials(voxel.lanes[lane], tops[lane], static_cast<int>(lane));
  }
  others = combine_lanes(others, lanes, 1, [](float a, float b) { return a + b; });
  voxel.others = others[0];
  for (cuda::LaneVoxel& mine : voxel.lanes) voxels.probabilities(mine, voxel.others);
  return voxel;
}

/// Which lane has a class, and as its how-many-th.
template <typename T, int lanes, int run>
std::pair<int, std::size_t> place_of(const cuda::SegmentationLanes<T, lanes, run>& voxels, int k) {
  std::vector<std::pair<int, std::size_t>> places;
  for (int lane = 0; lane < lanes; ++lane) {
    for (int j = 0; j < cuda::classes_a_lane; ++j) {
      if (voxels.class_of(lane, j) == k) places.emplace_back(lane, static_cast<std::size_t>(j));
    }
  }
  EXPECT_EQ(places.size(), 1U) << "class " << k;
  return places.at(0);
}

/// lane_sums: threads of a block are [warps, groups, lanes].
template <typename T, int lanes, int run>
void run_lane_sums(const cuda::SegmentationLaneSums<T, lanes, run>& sums, const SegmentationLossDesc& desc,
                   std::int64_t pieces, std::vector<double>& partial) {
  using State = typename cuda::SegmentationLaneSums<T, lanes, run>::State;
  constexpr int groups = cuda::sum_threads / lanes;
  for_each_block(desc, pieces, [&](std::int64_t sample, std::int64_t piece) {
    std::vector<State> states(cuda::sum_threads);
    const std::int64_t end = cuda::piece_begin(desc.voxels, piece + 1, pieces);
    for (std::int64_t first = cuda::piece_begin(desc.voxels, piece, pieces); first < end; first += groups) {
      for (int group = 0; group < groups; ++group) {
        const bool there = first + group < end;
        const Voxel voxel = voxel_of_lanes(sums.voxels, sample * desc.voxels + first + group, there);
        for (int lane = 0; lane < lanes; ++lane) {
          sums.add(states[static_cast<std::size_t>(group) * lanes + static_cast<std::size_t>(lane)],
                   voxel.lanes[static_cast<std::size_t>(lane)], voxel.others, lane);
        }
      }
    }
    const auto block = [&](int last, int lane, const auto& value) {
      double sum = 0;
      for (int warp = 0; warp < cuda::sum_warps; ++warp) {
        const auto of_lane = [&](int i) {
          return value(states[static_cast<std::size_t>(warp) * cuda::warp_size + static_cast<std::size_t>(i)],
                       i % lanes);
        };
        sum += warp_sum(of_lanes(of_lane), last, static_cast<std::size_t>(lane));
      }
      return sum;
    };
    partial.push_back(block(1, 0, [](const State& state, int) { return state.surprises; }));
    partial.push_back(block(1, 0, [&](const State& state, int lane) { return sums.weights(state, lane); }));
    const auto of_classes = [&](const auto& value) {
      for (int k = 0; k < desc.classes; ++k) {
        const auto [lane, j] = place_of(sums.voxels, k);
        partial.push_back(block(lanes, lane, [&, at = j](const State& state, int) { return value(state, at); }));
      }
    };
    of_classes([](const State& state, std::size_t j) { return state.both[j]; });
    of_classes([](const State& state, std::size_t j) { return state.predicted[j]; });
    of_classes([](const State& state, std::size_t j) { return static_cast<double>(state.labelled[j]); });
  });
}

/// lane_gradient.
template <typename T, int lanes, int run>
void run_lane_gradient(const cuda::SegmentationLaneGradient<T, lanes, run>& gradient,
                       const SegmentationLossDesc& desc) {
  for (std::int64_t voxel = 0; voxel < desc.samples * desc.voxels; ++voxel) {
    const std::int64_t sample = voxel / desc.voxels;
    const Voxel of_lanes = voxel_of_lanes(gradient.voxels, voxel, true);
    std::vector<float> means(lanes);
    for (int lane = 0; lane < lanes; ++lane) {
      means[static_cast<std::size_t>(lane)] =
          gradient.mean(of_lanes.lanes[static_cast<std::size_t>(lane)], sample, lane);
    }
    means = combine_lanes(means, lanes, 1, [](float a, float b) { return a + b; });
    for (int lane = 0; lane < lanes; ++lane) {
      gradient.write(of_lanes.lanes[static_cast<std::size_t>(lane)], means[static_cast<std::size_t>(lane)], sample,
                     voxel, lane);
    }
  }
}

/// What by_classes of segmentation_loss.cu chooses.
template <int classes, typename T, typename Registers, typename Lanes>
void by_classes(const SegmentationLossDesc& desc, const T* logits, const Registers& registers, const Lanes& lanes) {
  if constexpr (classes <= cuda::most_register_classes) {
    if (desc.classes == classes) return registers(std::integral_constant<int, classes>{});
    by_classes<classes + 1>(desc, logits, registers, lanes);
  } else {
    cuda::with_lane_layout(desc.classes, logits, logits, lanes);
  }
}

template <typename T>
std::vector<double> sums_of(const SegmentationLossDesc& desc, const T* logits, const std::uint8_t* labels) {
  const std::int64_t pieces = cuda::segmentation_pieces(desc, cuda::scratch_doubles);
  std::vector<double> partial;
  by_classes<1>(
      desc, logits,
      [&]<int classes>(std::integral_constant<int, classes>) {
        run_chunk_sums(cuda::SegmentationChunkSums<T, classes>{{desc, logits, labels}}, desc, pieces, partial);
      },
      [&]<int lanes, int run>(cuda::LaneLayout<lanes, run>) {
        run_lane_sums(cuda::SegmentationLaneSums<T, lanes, run>{{desc, logits, labels}}, desc, pieces, partial);
      });
  const std::int64_t values = 2 + 3 * desc.classes;
  EXPECT_EQ(static_cast<std::int64_t>(partial.size()), desc.samples * pieces * values);
  std::vector<double> sums(static_cast<std::size_t>(segmentation_sum_count(desc, desc.samples)), 1e30);
  run_merge({partial.data(), desc.samples, pieces, values, 2}, sums.data());
  return sums;
}

/// finish of segmentation_loss.cu.
SegmentationOutcome finish(const SegmentationLossDesc& desc, std::int64_t samples, const double* sums, double* dice) {
  const cuda::FinishSegmentation body(desc, samples, sums, dice);
  return body.outcome(
      block_sum([&](int thread) { return cuda::strided_sum(body, 0, body.items(), thread, cuda::sum_threads); }));
}

template <typename T>
void gradient_in_place(const SegmentationLossDesc& desc, const SegmentationOutcome& outcome, const double* dice,
                       const std::uint8_t* labels, T* logits) {
  const std::int64_t pieces = cuda::segmentation_pieces(desc, cuda::scratch_doubles);
  by_classes<1>(
      desc, logits,
      [&]<int classes>(std::integral_constant<int, classes>) {
        run_chunk_gradient(
            cuda::SegmentationChunkGradient<T, classes>{{desc, logits, labels, logits}, &outcome, dice, logits}, desc,
            pieces);
      },
      [&]<int lanes, int run>(cuda::LaneLayout<lanes, run>) {
        run_lane_gradient(cuda::SegmentationLaneGradient<T, lanes, run>{{desc, logits, labels}, &outcome, dice, logits},
                          desc);
      });
}

/// All of it on one rank.
template <typename T>
struct Run {
  Run(const SegmentationLossDesc& desc, std::vector<T> logits, const std::vector<std::uint8_t>& labels,
      std::int64_t shift = 0)
      : gradient(std::move(logits)), dice(static_cast<std::size_t>(2 * desc.samples * desc.classes), 1e30) {
    sums = sums_of<T>(desc, gradient.data() + shift, labels.data());
    outcome = finish(desc, desc.samples, sums.data(), dice.data());
    gradient_in_place(desc, outcome, dice.data(), labels.data(), gradient.data() + shift);
  }
  std::vector<double> sums;
  SegmentationOutcome outcome;
  std::vector<T> gradient;
  std::vector<double> dice;
};

template <typename T>
class CudaSegmentationLossTest : public ActivationTest<T> {};
TYPED_TEST_SUITE(CudaSegmentationLossTest, ActivationTypes);

TYPED_TEST(CudaSegmentationLossTest, MatchesTheReferenceForAnyNumberOfClasses) {
  Dice dice(3);
  for (std::uint64_t round = 0; round < 160; ++round) {
    const SegmentationLossDesc desc = random_loss(dice, round);
    SCOPED_TRACE("round " + std::to_string(round) + ", " + std::to_string(desc.classes) + " classes");
    const std::int64_t shift = dice.between(0, 1) * dice.between(0, 7);
    const auto logits =
        rounded<TypeParam>(random_values(shift + desc.samples * desc.voxels * desc.classes, round, -6, 6));
    const auto labels = random_labels(dice, desc);

    const std::vector<float> wide = widened(logits);
    std::vector<double> sums(static_cast<std::size_t>(segmentation_sum_count(desc, desc.samples)));
    std::vector<double> factors(static_cast<std::size_t>(2 * desc.samples * desc.classes));
    std::vector<float> gradient = wide;
    SegmentationOutcome outcome;
    segmentation_sums(Backend::reference, desc, wide.data() + shift, labels.data(), sums.data());
    finish_segmentation(Backend::reference, desc, desc.samples, sums.data(), &outcome, factors.data());
    segmentation_gradient(Backend::reference, desc, wide.data() + shift, labels.data(), &outcome, factors.data(),
                          gradient.data() + shift);

    const Run<TypeParam> got(desc, logits, labels, shift);
    ASSERT_LT(relative_l2(got.sums, sums), 3e-7);
    // Counts are whole numbers, and weights sums of a few bits each.
    ASSERT_EQ(got.sums[1], sums[1]);
    ASSERT_NEAR(got.outcome.loss, outcome.loss, 1e-6);
    ASSERT_NEAR(got.outcome.cross_entropy_scale, outcome.cross_entropy_scale,
                1e-15 + outcome.cross_entropy_scale * 1e-14);
    ASSERT_LT(relative_l2(got.dice, factors), 1e-6);
    double largest = 1e-6;
    for (std::size_t i = static_cast<std::size_t>(shift); i < gradient.size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(gradient[i])));
    }
    ASSERT_LT(beyond_rounding(got.gradient, gradient) / largest, 5e-6);
  }
}

/// Lanes and classes at once of a layout.
template <typename T>
std::pair<int, int> layout_of(std::int64_t classes, std::int64_t shift = 0) {
  alignas(16) const std::array<T, 8> memory{};
  std::pair<int, int> layout;
  cuda::with_lane_layout<T>(classes, memory.data() + shift, memory.data(),
                            [&]<int lanes, int run>(cuda::LaneLayout<lanes, run>) {
                              EXPECT_GE(lanes * cuda::classes_a_lane, classes);
                              layout = {lanes, run};
                            });
  return layout;
}

TYPED_TEST(CudaSegmentationLossTest, LoadsWholeAccessesWhereTheClassesFillThem) {
  constexpr int run = 16 / static_cast<int>(sizeof(TypeParam));
  EXPECT_EQ(layout_of<TypeParam>(16), std::pair(2, run));
  EXPECT_EQ(layout_of<TypeParam>(24), std::pair(4, run));
  EXPECT_EQ(layout_of<TypeParam>(40), std::pair(8, run));
  EXPECT_EQ(layout_of<TypeParam>(104), std::pair(16, run));
  EXPECT_EQ(layout_of<TypeParam>(256), std::pair(32, run));
  EXPECT_EQ(layout_of<TypeParam>(12), run == 4 ? std::pair(2, 4) : std::pair(8, 1));
  EXPECT_EQ(layout_of<TypeParam>(14), std::pair(8, 1));
  EXPECT_EQ(layout_of<TypeParam>(16, 1), std::pair(8, 1));
  EXPECT_EQ(layout_of<TypeParam>(130), std::pair(32, 1));
}

TYPED_TEST(CudaSegmentationLossTest, SharesManyVoxelsAmongPieces) {
  const SegmentationLossDesc desc{.samples = 2, .voxels = 20011, .classes = 3, .dice = 0.5};
  EXPECT_GT(cuda::segmentation_pieces(desc, cuda::scratch_doubles), 30);
  const auto logits = rounded<TypeParam>(random_values(desc.samples * desc.voxels * 3, 1, -4, 4));
  std::vector<std::uint8_t> labels(static_cast<std::size_t>(desc.samples * desc.voxels));
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::uint8_t>(i % 7 % 3);
  std::vector<double> sums(static_cast<std::size_t>(segmentation_sum_count(desc, 2)));
  segmentation_sums(Backend::reference, desc, widened(logits).data(), labels.data(), sums.data());
  const std::vector<double> got = sums_of<TypeParam>(desc, logits.data(), labels.data());
  for (std::size_t i = 0; i < sums.size(); ++i) EXPECT_NEAR(got[i] / sums[i], 1, 1e-7) << i;
}

TYPED_TEST(CudaSegmentationLossTest, KeepsTheDigitsOfSmallLosses) {
  for (const std::int64_t classes : {2, 9}) {
    const SegmentationLossDesc desc{.samples = 1, .voxels = 1, .classes = classes};
    for (const float margin : {1.0F, 8.0F, 20.0F}) {
      std::vector<float> logits(static_cast<std::size_t>(classes));
      logits[1] = margin;
      const double others = static_cast<double>(classes - 1) * std::exp(-static_cast<double>(margin));
      EXPECT_NEAR(Run<TypeParam>(desc, rounded<TypeParam>(logits), {1}).outcome.loss / std::log1p(others), 1, 1e-6);
    }
  }
}

TYPED_TEST(CudaSegmentationLossTest, SurvivesLargeLogits) {
  const SegmentationLossDesc desc{.samples = 1, .voxels = 2, .classes = 3, .dice = 1};
  // A label that the network calls impossible: the surprise is the distance of the logits.
  const auto logits = rounded<TypeParam>({8192, -8192, 0, 256, 256, -256});
  const Run<TypeParam> got(desc, logits, {1, 0});
  EXPECT_NEAR(got.sums[0], 16384 + std::log(2.0), 1e-3);
  for (const TypeParam value : got.gradient) EXPECT_TRUE(std::isfinite(static_cast<float>(value)));
}

TYPED_TEST(CudaSegmentationLossTest, ShowsNumbersThatAreNotFinite) {
  for (const std::int64_t classes : {3, 10}) {
    for (const SegmentationLossDesc& desc : losses_by_share(2, classes)) {
      for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        for (std::int64_t i = 0; i < classes; ++i) {
          auto logits = random_values(2 * classes, 1);
          logits[static_cast<std::size_t>(i)] = bad;
          EXPECT_FALSE(std::isfinite(Run<TypeParam>(desc, rounded<TypeParam>(logits), {1, 1}).outcome.loss))
              << bad << " at " << i << ", Dice " << desc.dice << ", weights " << desc.class_weights[0];
        }
      }
    }
  }
}

TYPED_TEST(CudaSegmentationLossTest, IgnoresVoxelsWhateverTheyHold) {
  for (const std::int64_t classes : {2, 12}) {
    const SegmentationLossDesc desc{.samples = 1, .voxels = 3, .classes = classes, .ignore_label = 255, .dice = 1};
    auto logits = random_values(3 * classes, 1);
    const auto of_second = logits.begin() + classes;
    std::fill(of_second, of_second + classes, std::numeric_limits<float>::quiet_NaN());
    const Run<TypeParam> three(desc, rounded<TypeParam>(logits), {0, 255, 1});
    SegmentationLossDesc without = desc;
    without.voxels = 2;
    std::vector<float> two(logits.begin(), of_second);
    two.insert(two.end(), of_second + classes, logits.end());
    EXPECT_NEAR(three.outcome.loss, Run<TypeParam>(without, rounded<TypeParam>(two), {0, 1}).outcome.loss, 1e-12);
    for (std::int64_t k = classes; k < 2 * classes; ++k) {
      EXPECT_EQ(static_cast<float>(three.gradient[static_cast<std::size_t>(k)]), 0.0F);
    }
    // Where nothing counts there is nothing to learn.
    const Run<TypeParam> none(desc, rounded<TypeParam>(logits), {255, 255, 255});
    EXPECT_EQ(widened(none.gradient), std::vector<float>(static_cast<std::size_t>(3 * classes)));
    EXPECT_EQ(none.outcome.loss, 0);
  }
}

}  // namespace
}  // namespace halograd::test
