#include "halograd/cli/predict.hpp"
#include "halograd/cli/predict_scan.hpp"
#include "halograd/core/error.hpp"
#include "halograd/core/log.hpp"
#include "halograd/data/medical/label_map.hpp"
#include "halograd/data/medical/slice_picture.hpp"
#include "halograd/train/class_map.hpp"
#include "halograd/train/model.hpp"

#include <algorithm>
#include <optional>

namespace halograd {
namespace {

void check_names(const PredictArguments& arguments) {
  if (!has_nifti_name(arguments.output)) {
    throw UsageError("--output {}: a label map can't have that name; expected .nii or .nii.gz",
                     arguments.output.string());
  }
  if (!arguments.preview.empty() && arguments.preview.extension() != ".png") {
    throw UsageError("--preview {}: a picture can't have that name; expected .png", arguments.preview.string());
  }
}

/// Collective. The ranks that a mini-batch of one sample is spread over, which rank 0 is the first of; none elsewhere.
std::optional<GroupReader> make_group(const Communicator& world, const Plan& plan) {
  const Communicator group = world.split(static_cast<int>(plan.samples.count), world.rank());
  if (plan.samples.count == 0) return std::nullopt;
  std::vector<Box> owned(static_cast<std::size_t>(group.size()));
  group.all_gather(&plan.input.own, sizeof plan.input.own, owned.data());
  return std::optional<GroupReader>(std::in_place, group, plan.input.shape, std::move(owned));
}

/// Collective. Runs the network on the scan; on rank 0 the label of each voxel, [W,W,W].
std::vector<std::uint8_t> predict_labels(Executor& executor, const Plan& plan, GroupReader* group, const Scan& scan,
                                         const DataConfig& data) {
  const Communicator& world = executor.world();
  agree(world, [&] {
    if (group != nullptr) convert_to_slot(executor, plan.input, data, scan.sample, scan.voxels);
  });
  MiniBatch batch{.size = 1};
  batch.samples.resize(static_cast<std::size_t>(plan.samples.count));
  executor.predict(batch);
  std::vector<std::uint8_t> part;
  agree(world, [&] {
    if (group != nullptr) part = predicted_classes(executor.output(), plan.output.shape.channels);
  });
  return group == nullptr ? part : gather_classes(*group, plan.output, part);
}

/// How many of each class but the background, and how much room they take.
void report_classes(std::span<const std::uint8_t> labels, std::int64_t classes, const Affine& affine) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(classes));
  for (const std::uint8_t label : labels) ++counts[label];
  for (std::size_t c = 1; c < counts.size(); ++c) {
    const double millilitres = static_cast<double>(counts[c]) * voxel_volume(affine) / 1000;
    log::info("class {}: {} voxels, {:.1f} ml", c, counts[c], millilitres);
  }
}

/// What is shown black and white: the window, or where there is none all but the darkest and brightest hundredth.
std::array<float, 2> display_range(const ValueTransform& transform, std::vector<float> values) {
  if (transform.kind == InputTransform::window) return {-1, 1};
  const auto at = [&](std::size_t percent) {
    const auto place = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) * percent / 100);
    std::ranges::nth_element(values, place);
    return *place;
  };
  return {at(1), at(99)};
}

void write_preview(const std::filesystem::path& file, const Scan& scan, std::span<const std::uint8_t> labels,
                   const DataConfig& data) {
  const Extent extent = scan.sample.layout.image.shape.extent;
  const Box whole = Box::whole(extent);
  std::vector<float> image(static_cast<std::size_t>(extent.volume()));
  const ValueTransform transform = value_transform(data);
  InputConversion({.transform = transform, .channels = 1, .own = whole, .tile = whole})
      .convert(scan.sample, scan.whole.data(), reinterpret_cast<std::byte*>(image.data()));
  const auto [low, high] = display_range(transform, image);
  write_slice_picture(
      file, {.image = image, .labels = labels, .extent = extent, .spacing = scan.spacing, .low = low, .high = high});
  log::info("preview in {}", file.string());
}

}  // namespace

void predict_segmentation(const Communicator& world, const Config& config, const Network& network,
                          const PredictArguments& arguments) {
  check_names(arguments);
  const GlobalShape shape = network.input();
  if (shape.channels != 1) {
    throw UsageError("model.channels: {}, but a scan to predict from has one; expected 1", shape.channels);
  }
  Executor executor(network, world, executor_options(config, world));
  load_weights(executor, arguments.checkpoint);
  // A mini-batch of one: the first group has it, the others go along without a sample.
  const Plan& plan = executor.prepare(Mode::predict, 1);
  std::optional<GroupReader> made = make_group(world, plan);
  GroupReader* const group = made ? &*made : nullptr;
  const bool pictured = !arguments.preview.empty();
  const Scan scan = load_scan(world, group, {arguments.input, shape.extent.w, pictured}, config.data);
  const std::vector<std::uint8_t> labels = predict_labels(executor, plan, group, scan, config.data);
  agree(world, [&] {
    if (world.rank() != 0) return;
    const std::vector<std::uint8_t> written = write_label_map(arguments.output, labels, shape.extent.w, scan.original);
    log::info("label map in {}", arguments.output.string());
    report_classes(written, network.output().channels, scan.original.affine);
    if (pictured) write_preview(arguments.preview, scan, labels, config.data);
  });
}

}  // namespace halograd
