#include "halograd/data/medical/synthetic_scan.hpp"

#include "data/medical/nifti_files.hpp"
#include "halograd/core/error.hpp"
#include "halograd/data/medical/conversion.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace halograd::test {
namespace {

struct Statistics {
  double count = 0;
  double mean = 0;
  double deviation = 0;
};

template <typename Member>
Statistics statistics(const SyntheticScan& scan, const Member& is_member) {
  Statistics s;
  double square = 0;
  for (std::size_t i = 0; i < scan.voxels.size(); ++i) {
    if (!is_member(i)) continue;
    ++s.count;
    s.mean += scan.voxels[i];
    square += static_cast<double>(scan.voxels[i]) * scan.voxels[i];
  }
  s.mean /= s.count;
  s.deviation = std::sqrt(square / s.count - s.mean * s.mean);
  return s;
}

TEST(SyntheticScan, organs_and_lesions_can_be_told_from_what_is_around_them) {
  for (std::int64_t index = 0; index < 8; ++index) {
    const SyntheticScan scan = make_scan(48, 3, index);
    const auto all = static_cast<double>(scan.voxels.size());
    const Statistics organ = statistics(scan, [&](std::size_t i) { return scan.labels[i] == 1; });
    const Statistics lesion = statistics(scan, [&](std::size_t i) { return scan.labels[i] == 2; });
    EXPECT_GT(organ.count, 0.025 * all) << index;
    EXPECT_LT(organ.count, 0.2 * all) << index;
    EXPECT_GT(lesion.count, 0.0008 * all) << index;
    EXPECT_LT(lesion.count, 0.35 * organ.count) << index;
    EXPECT_GT(organ.mean - lesion.mean, 18) << index << ": 30 to 50, less what is blurred at the edges";
    EXPECT_LT(organ.mean - lesion.mean, 50) << index;
    EXPECT_GT(organ.mean, 75) << index;
    EXPECT_LT(organ.mean, 130) << index;
    EXPECT_GT(organ.deviation, 14) << index;
    EXPECT_LT(organ.deviation, 45) << index;
  }
}

TEST(SyntheticScan, noise_is_of_15_to_20_units) {
  const SyntheticScan scan = make_scan(32, 5, 1);
  // Air: the corner of every slice lies outside the body, and -1000 is far from the clamp.
  const FileShape& shape = scan.geometry.shape;
  const auto corner = [&](std::size_t i) {
    const auto index = static_cast<std::int64_t>(i);
    return index % shape[0] < 4 && index / shape[0] % shape[1] < 4;
  };
  const Statistics air = statistics(scan, corner);
  EXPECT_NEAR(air.mean, -1000, 6);
  EXPECT_GT(air.deviation, 11);  // cut off at -1024
  EXPECT_LT(air.deviation, 20);
}

TEST(SyntheticScan, scans_differ_in_slices_spacing_and_orientation) {
  std::set<std::string> orientations;
  std::set<std::int64_t> slices;
  for (std::int64_t index = 0; index < 8; ++index) {
    const NiftiHeader geometry = make_scan(20, 1, index).geometry;
    const Orientation orientation = orientation_of(geometry.affine);
    orientations.insert(orientation_name(orientation));
    const Extent extent = canonical_view(geometry.shape, orientation).extent;
    EXPECT_EQ(extent.h, 20);
    EXPECT_EQ(extent.w, 20);
    EXPECT_GE(extent.d, 12);
    EXPECT_LE(extent.d, 28);
    slices.insert(extent.d);
  }
  EXPECT_EQ(orientations, (std::set<std::string>{"LAS", "LPS", "PIR", "RAS"}));
  EXPECT_GE(slices.size(), 4U);
}

TEST(SyntheticScan, the_organ_lies_at_the_right_whatever_the_order_of_axes) {
  const TemporaryDirectory directory;
  synthesize_lits({.directory = directory.path(), .count = 4, .width = 24});
  for (const CasePair& pair : find_case_pairs(directory.path())) {
    std::string warning;
    const MedicalCase loaded = load_case(pair, {.width = 16}, warning);
    EXPECT_EQ(warning, "");
    double right = 0;
    double count = 0;
    for (std::size_t i = 0; i < loaded.segmentation.size(); ++i) {
      if (loaded.segmentation[i] == 0) continue;
      right += static_cast<double>(i % 16);
      ++count;
    }
    EXPECT_GT(right / count, 8.5) << pair.name;
    EXPECT_LT(right / count, 12.5) << pair.name;
  }
}

TEST(SyntheticScan, files_depend_on_the_seed_and_not_on_ranks) {
  const TemporaryDirectory directory;
  const auto bytes = [&](const std::string& name, std::uint64_t seed, std::int64_t rank) {
    synthesize_lits({.directory = directory / name, .count = 3, .width = 16, .seed = seed, .rank = rank, .ranks = 2});
    return read_file(directory / name / fmt::format("volume-{}.nii.gz", rank));
  };
  const std::string first = bytes("a", 1, 1);
  EXPECT_FALSE(first.empty());
  EXPECT_EQ(bytes("b", 1, 1), first);
  EXPECT_NE(bytes("c", 2, 1), first);
  EXPECT_NE(bytes("a", 1, 0), first);
  EXPECT_EQ(find_case_pairs(directory / "a").size(), 3U);
}

TEST(SyntheticScan, options_that_make_no_sense_are_refused) {
  const TemporaryDirectory directory;
  const std::filesystem::path out = directory / "out";
  EXPECT_THROW(synthesize_lits({.directory = out, .count = 0, .width = 32}), UsageError);
  EXPECT_THROW(synthesize_lits({.directory = out, .count = 1, .width = 15}), UsageError);
  EXPECT_THROW(synthesize_lits({.directory = out, .count = 1, .first = -1, .width = 32}), UsageError);
  EXPECT_FALSE(std::filesystem::exists(out));
}

}  // namespace
}  // namespace halograd::test
