#include "cli/known_network.hpp"
#include "cli/program.hpp"
#include "data/case_files.hpp"
#include "data/medical/nifti_files.hpp"
#include "halograd/data/medical/nifti_volume.hpp"
#include "halograd/data/medical/slice_picture.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace halograd::test {
namespace {

constexpr std::int64_t width = KnownNetwork::width;

/// 0 to 255 without a pattern: no two orientations of it are alike.
std::int16_t intensity(const Index& at) {
  const auto number = static_cast<std::uint32_t>((at.d * 61 + at.h) * 67 + at.w);
  return static_cast<std::int16_t>((number * 2654435761U) >> 24U);
}

/// What the network sees of it through the window [0, 256].
std::vector<float> windowed() {
  std::vector<float> image;
  for (Index at{}; at.d < width; ++at.d) {
    for (at.h = 0; at.h < width; ++at.h) {
      for (at.w = 0; at.w < width; ++at.w) image.push_back(static_cast<float>(intensity(at)) / 128 - 1);
    }
  }
  return image;
}

class PredictCli : public ::testing::Test {
protected:
  PredictCli() {
    KnownNetwork().write(checkpoint());
    write_file(config(),
               "[model]\nname = \"unet3d\"\nwidth = 16\nbase_channels = 2\nbatch_norm = false\n[data]\n"
               "format = \"lits\"\ntransform = \"window\"\nintensity_window = [0, 256]\n");
  }

  [[nodiscard]] std::filesystem::path config() const { return work_ / "config.toml"; }
  [[nodiscard]] std::filesystem::path checkpoint() const { return work_ / "known.h5"; }
  [[nodiscard]] std::filesystem::path out(const std::string& name) const {
    std::filesystem::create_directories(work_ / "out");
    return work_ / "out" / name;
  }

  [[nodiscard]] std::string command(const std::filesystem::path& input, const std::filesystem::path& output,
                                    const std::string& more = "") const {
    return fmt::format("predict {} --checkpoint {} --input {} --output {} {}", config().string(), checkpoint().string(),
                       input.string(), output.string(), more);
  }

  /// The labels of what was written, in the file's own order.
  static std::string written(const std::filesystem::path& file) {
    const NiftiHeader header = read_nifti_header(file);
    EXPECT_EQ(header.datatype, 2);
    const auto voxels = std::get<std::vector<std::uint8_t>>(read_nifti_voxels(file, header));
    return {voxels.begin(), voxels.end()};
  }

  /// A scan of the network's width, in this orientation, and the labels it should get, likewise.
  std::string scan(const Orientation& orientation, const std::filesystem::path& file) const {
    const Extent extent = Extent::cube(width);
    oriented<std::int16_t>(orientation, extent, 4, intensity).write(file);
    const std::vector<std::uint8_t> right = KnownNetwork::labels(windowed());
    return oriented<std::uint8_t>(
               orientation, extent, 2,
               [&](const Index& at) { return right[static_cast<std::size_t>((at.d * width + at.h) * width + at.w)]; })
        .voxels;
  }

  /// How many files the output directory holds.
  [[nodiscard]] std::ptrdiff_t outputs() const {
    const std::filesystem::directory_iterator entries(out("").parent_path());
    return std::distance(begin(entries), end(entries));
  }

  TemporaryDirectory work_;
};

TEST_F(PredictCli, every_voxel_gets_its_own_label_on_any_grid) {
  const std::filesystem::path input = work_ / "scan.nii";
  const std::string right = scan({{1, 0, 2}, {true, false, true}}, input);
  for (const char label : {0, 1, 2}) EXPECT_GT(std::ranges::count(right, label), 200) << static_cast<int>(label);
  struct Layout {
    int ranks;
    const char* grid;
    const char* file;
  };
  for (const Layout& layout :
       {Layout{1, "1x1x1", "a.nii"}, {2, "2x1x1", "b.nii.gz"}, {4, "1x2x2", "c.nii"}, {4, "1x1x2", "two-groups.nii"}}) {
    const std::string arguments = command(input, out(layout.file), fmt::format("--grid {}", layout.grid));
    const ProgramRun run = layout.ranks == 1 ? run_halograd(arguments) : run_on(layout.ranks, arguments);
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(run.out, "");
    EXPECT_TRUE(written(out(layout.file)) == right) << layout.grid;
    EXPECT_EQ(read_nifti_header(out(layout.file)).affine, read_nifti_header(input).affine);
    for (const char label : {1, 2}) {
      const auto voxels = std::ranges::count(right, label);
      const std::string line = fmt::format("class {}: {} voxels, {:.1f} ml", static_cast<int>(label), voxels,
                                           static_cast<double>(voxels) * 0.003);
      EXPECT_NE(run.err.find(line), std::string::npos) << line << " is not in: " << run.err;
    }
  }
  EXPECT_EQ(outputs(), 4);
}

TEST_F(PredictCli, a_converted_case_gets_the_labels_of_its_image) {
  const std::string right = scan({{0, 2, 1}, {false, true, true}}, work_ / "volume-7.nii");
  std::filesystem::copy(work_ / "volume-7.nii", work_ / "segmentation-7.nii");
  const ProgramRun made = run_halograd(fmt::format("convert lits --volumes {} --out {} --width 16 --classes 256",
                                                   work_.path().string(), work_.file("cases")));
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const std::filesystem::path input = work_ / "cases/case-7.hdf5";
  const std::string preview = fmt::format("--preview {}", out("a.png").string());
  const ProgramRun run = run_on(2, command(input, out("a.nii"), "--grid 1x2x1 " + preview));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(written(out("a.nii")) == right);

  // The picture is that of the image seen through the window.
  const std::vector<float> image = windowed();
  const std::vector<std::uint8_t> labels = KnownNetwork::labels(image);
  write_slice_picture(
      out("right.png"),
      {.image = image, .labels = labels, .extent = Extent::cube(width), .spacing = {2, 1.5, 1}, .low = -1, .high = 1});
  EXPECT_TRUE(read_file(out("a.png")) == read_file(out("right.png")));
}

TEST_F(PredictCli, oblique_scans_of_another_shape_keep_their_geometry) {
  RawNifti raw = oriented<std::int16_t>(ras, {9, 21, 14}, 4, intensity);
  for (std::size_t row = 0; row < 3; ++row) raw.sform[row][0] += 0.3;
  raw.sform_code = 2;
  raw.qform_code = 3;
  raw.qform = {0.1F, 0.2F, 0.3F, 4, 5, 6};
  raw.pixdim = {1, 1.5F, 2};
  raw.write(work_ / "scan.nii");
  ASSERT_EQ(run_command(fmt::format("gzip -k {}", work_.file("scan.nii"))).exit_code, 0);
  const std::string preview = fmt::format("--preview {} --set data.transform=none", out("a.png").string());
  for (const auto& [input, output] : {std::pair{"scan.nii", "a.nii"}, {"scan.nii.gz", "b.nii.gz"}}) {
    const ProgramRun run = run_halograd(command(work_ / input, out(output), preview));
    ASSERT_EQ(run.exit_code, 0) << run.err;
  }
  EXPECT_EQ(written(out("a.nii")).size(), 9U * 21 * 14);
  EXPECT_EQ(written(out("a.nii")), written(out("b.nii.gz")));
  const std::string there = read_file(out("a.nii"));
  EXPECT_EQ(there.substr(40, 16), raw.bytes().substr(40, 16)) << "shape";
  EXPECT_EQ(there.substr(76, 16), raw.bytes().substr(76, 16)) << "spacing";
  EXPECT_EQ(there.substr(252, 76), raw.bytes().substr(252, 76)) << "qform and sform with their codes";
  const std::string picture = read_file(out("a.png"));
  EXPECT_EQ(picture.substr(0, 8), "\x89PNG\r\n\x1a\n");
  EXPECT_EQ(picture.substr(picture.size() - 8, 4), "IEND");
}

TEST_F(PredictCli, bad_scans_are_named_and_nothing_is_left) {
  const std::filesystem::path good = work_ / "good.nii";
  scan(ras, good);
  const auto refused = [&](const std::filesystem::path& input, const std::vector<std::string>& words) {
    SCOPED_TRACE(input);
    const std::string preview = "--preview " + out("a.png").string();
    expect_failure(run_on(2, command(input, out("a.nii"), "--grid 2x1x1 " + preview)), 3, words);
  };
  refused(work_ / "none.nii.gz", {"none.nii.gz: no such file"});
  refused(config(), {"config.toml: neither a NIfTI image nor a converted case", "expected .nii, .nii.gz or .hdf5"});
  ASSERT_EQ(run_command(fmt::format("gzip -k {}", good.string())).exit_code, 0);
  std::filesystem::rename(work_ / "good.nii.gz", work_ / "cut.nii.gz");
  std::filesystem::resize_file(work_ / "cut.nii.gz", std::filesystem::file_size(work_ / "cut.nii.gz") / 2);
  refused(work_ / "cut.nii.gz", {"cut.nii.gz: cut short or damaged"});
  RawNifti series;
  series.dims = {4, 4, 4, 2};
  series.set_voxels(std::vector<std::int16_t>(128));
  series.write(work_ / "series.nii");
  refused(work_ / "series.nii", {"series.nii: has 2 entries along dimension 4"});
  refused(checkpoint(), {"known.h5: has no dataset `volume`"});
  EXPECT_EQ(outputs(), 0);
}

TEST_F(PredictCli, what_cannot_be_written_is_refused_before_the_work) {
  const std::filesystem::path good = work_ / "good.nii";
  scan(ras, good);
  const std::string before = read_file(good);
  expect_failure(run_on(2, command(good, out("a.img"))), 2, {"--output", "a.img", "expected .nii or .nii.gz"});
  expect_failure(run_halograd(command(good, out("a.nii"), "--preview a.jpg")), 2, {"--preview a.jpg", "expected .png"});
  expect_failure(run_on(2, command(good, good)), 2, {"good.nii: is the input"});
  expect_failure(run_on(2, command(good, work_ / "nowhere/a.nii")), 5, {"cannot write", "nowhere is no directory"});
  expect_failure(run_halograd(command(good, "/proc/a.nii.gz")), 5, {"/proc/a.nii.gz"});
  expect_failure(run_halograd(command(good, out("a.nii"), "--set model.channels=2")), 2, {"model.channels: 2"});
  expect_failure(run_halograd(command(good, out("a.json"),
                                      "--preview a.png --set model.name=cosmoflow --set model.width=32 "
                                      "--set data.format=cosmoflow --set data.transform=log1p")),
                 2, {"--preview: cosmoflow predicts no labels"});
  EXPECT_EQ(read_file(good), before);
  EXPECT_EQ(outputs(), 0);
}

TEST_F(PredictCli, a_case_that_does_not_know_its_image_is_refused) {
  const std::filesystem::path file = work_ / "case.hdf5";
  write_case(file, {.shape = {1, Extent::cube(width)}});
  expect_failure(run_on(2, command(file, out("a.nii"))), 3, {"case.hdf5: has no attribute `original_header`"});
  write_case(file, {.shape = {1, Extent::cube(8)}});
  expect_failure(run_halograd(command(file, out("a.nii"))), 3, {"case.hdf5", "[8,8,8]"});
  EXPECT_EQ(outputs(), 0);
}

}  // namespace
}  // namespace halograd::test
