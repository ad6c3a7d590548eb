#include "data/case_files.hpp"
#include "data/shared_directory.hpp"
#include "data/voxel_files.hpp"
#include "halograd/core/error.hpp"
#include "halograd/data/loader.hpp"
#include "halograd/tensor/layout.hpp"
#include "halograd/tensor/partition.hpp"

#include <gtest/gtest.h>

#include <set>

namespace halograd {
namespace {

using test::CaseFile;
using test::mentions;
using test::message_of;
using test::SharedDirectory;

constexpr std::int64_t sample_count = 5;
constexpr std::int64_t batch = 3;
constexpr Flips all_ways{true, true, true};

struct Setting {
  ProcessGrid grid;
  CaseFile file;
  StoreOptions store{.kind = StoreKind::memory, .memory_budget = 1 << 20};
  ReadOptions read;
  ValueTransform transform;
  AugmentOptions augment;
  bool thin = false;              ///< parts of one voxel, all else in the last
  bool different_scales = false;  ///< sample i's numbers stand for i + 1 times as much
};

/// Parts as uneven as can be.
Partition thin_parts(const Extent& extent, const Extent& parts) {
  std::array<std::vector<std::int64_t>, 3> cuts;
  for (int i = 0; i < 3; ++i) {
    auto& list = cuts[static_cast<std::size_t>(i)];
    for (std::int64_t part = 0; part < parts[i]; ++part) list.push_back(part);
    list.push_back(extent[i]);
  }
  return Partition(std::move(cuts));
}

/// A loader over labelled cases.
class Cases {
public:
  Cases(const Communicator& world, const Setting& setting,
        const std::function<void(const SharedDirectory&)>& spoil = nullptr)
      : world_(world), setting_(setting), directory_(world) {
    directory_.write([&] {
      for (std::int64_t i = 0; i < sample_count; ++i) test::write_case(path(i), file(i));
      if (spoil) spoil(directory_);
    });
    const Extent& extent = setting.file.shape.extent;
    dataset_.emplace(Dataset::open(
        world, {.path = directory_.path(), .format = "lits", .shape = setting.file.shape, .split = {1, 0, 0}}));
    const Extent parts = setting.grid.spatial();
    const Partition partition = setting.thin ? thin_parts(extent, parts) : Partition::even(extent, parts);
    slots_.own = partition.box(setting.grid.place(world.rank()).place);
    slots_.tile = slots_.own;
    for (int i = 0; i < 3; ++i) slots_.tile.hi[i] = std::min(extent[i], slots_.own.hi[i] + 1);
    for (std::size_t slot = 0; slot < 2; ++slot) {
      const std::int64_t elements = batch * slots_.tile.volume() * setting.file.shape.channels;
      values_[slot].assign(static_cast<std::size_t>(elements), -1.0F);
      labels_[slot].assign(static_cast<std::size_t>(batch * slots_.own.volume()), 99);
      slots_.data[slot] = reinterpret_cast<std::byte*>(values_[slot].data());
      slots_.labels[slot] = labels_[slot].data();
    }
    loader_.emplace(world, *dataset_, slots_,
                    LoaderOptions{.grid = setting.grid,
                                  .transform = setting.transform,
                                  .labels = {.classes = 3},
                                  .augment = setting.augment,
                                  .read = setting.read,
                                  .store = setting.store},
                    std::vector<std::vector<std::int64_t>>{{0, 1, 2}, {3, 4}});
  }

  /// Every voxel and label of `epochs` epochs; the bytes read from files in each, over all ranks.
  std::vector<double> run(std::int64_t epochs, bool augment = false) {
    std::vector<double> bytes;
    for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
      double read = 0;
      // Another order each epoch: samples move between groups.
      const auto sample = [epoch](std::int64_t i) { return (i + 2 * epoch) % sample_count; };
      const std::vector<std::vector<std::int64_t>> batches{{sample(0), sample(1), sample(2)}, {sample(3), sample(4)}};
      for (const auto& one : batches) loader_->request({.samples = one, .augment = augment, .epoch = epoch});
      for (const auto& one : batches) read += check(loader_->take(), one, epoch, augment);
      world_.all_reduce_sum(&read, 1);
      bytes.push_back(read);
    }
    return bytes;
  }

  /// The message that all ranks agree on when a mini-batch is loaded.
  std::string failure(const std::vector<std::int64_t>& samples, bool augment = false) {
    loader_->request({.samples = samples, .augment = augment});
    return message_of<DataError>([&] { agree(world_, [&] { loader_->take(); }); });
  }

  [[nodiscard]] std::string path(std::int64_t i) const { return directory_.file(fmt::format("case_{}.hdf5", i)); }
  [[nodiscard]] double set_bytes() const {
    const GlobalShape& shape = setting_.file.shape;
    const std::int64_t voxel = shape.channels * dtype_size(setting_.file.dtype) + 1;
    return static_cast<double>(sample_count * shape.extent.volume() * voxel);
  }
  [[nodiscard]] const std::set<int>& ways_flipped() const { return ways_; }

private:
  [[nodiscard]] CaseFile file(std::int64_t i) const {
    CaseFile file = setting_.file;
    file.offset += 100 * i;
    if (setting_.different_scales) file.attributes["scale"] = static_cast<double>(i + 1);
    return file;
  }

  /// What a sample's file has where the network is to have `at`.
  float expected_value(const CaseFile& file, const Index& at, std::int64_t channel, const Augmentation& change) const {
    const auto attribute = [&](const char* name, double absent) {
      return file.attributes.contains(name) ? file.attributes.at(name) : absent;
    };
    double value = static_cast<double>(file.number(at, channel)) * attribute("scale", 1) + attribute("offset", 0);
    if (setting_.transform.kind == InputTransform::window) {
      const auto [low, high] = setting_.transform.window;
      value = (std::clamp(value, low, high) - low) / (high - low) * 2 - 1;
    }
    return static_cast<float>(value * change.gain + change.shift);
  }

  double check(const LoadedBatch& loaded, const std::vector<std::int64_t>& mini_batch, std::int64_t epoch,
               bool augment) {
    const SampleRange share = group_samples(static_cast<std::int64_t>(mini_batch.size()), setting_.grid.data,
                                            setting_.grid.place(world_.rank()).group);
    EXPECT_EQ(loaded.samples, std::vector<std::int64_t>(mini_batch.begin() + share.first,
                                                        mini_batch.begin() + share.first + share.count));
    std::int64_t wrong_values = 0;
    std::int64_t wrong_labels = 0;
    for (std::size_t n = 0; n < loaded.samples.size(); ++n) {
      const std::int64_t sample = loaded.samples[n];
      const Augmentation change = augment ? draw_augmentation(setting_.augment, epoch, sample) : Augmentation{};
      ways_.insert((change.flip[0] ? 4 : 0) + (change.flip[1] ? 2 : 0) + (change.flip[2] ? 1 : 0));
      const CaseFile one = file(sample);
      const VoxelLayout values{slots_.tile, one.shape.channels};
      const VoxelLayout labels{slots_.own, 1};
      test::for_each_index(one.shape.extent, [&](const Index& at) {
        if (!slots_.tile.contains(at)) return;
        const auto slot = static_cast<std::size_t>(loaded.slot);
        const auto number = static_cast<std::int64_t>(n);
        const Index from = mirrored({at, {at.d + 1, at.h + 1, at.w + 1}}, one.shape.extent, change.flip).lo;
        const bool own = slots_.own.contains(at);
        for (std::int64_t c = 0; c < one.shape.channels; ++c) {
          const float found = values_[slot][static_cast<std::size_t>(values.offset(number, at) + c)];
          const float right = own ? expected_value(one, from, c, change) : -1.0F;
          if (!(std::abs(found - right) <= 2e-6F * std::max(1.0F, std::abs(right)))) ++wrong_values;
        }
        if (own && labels_[slot][static_cast<std::size_t>(labels.offset(number, at))] != one.label(from))
          ++wrong_labels;
      });
    }
    EXPECT_EQ(wrong_values, 0);
    EXPECT_EQ(wrong_labels, 0);
    return static_cast<double>(loaded.file_bytes);
  }

  Communicator world_;
  Setting setting_;
  SharedDirectory directory_;
  std::optional<Dataset> dataset_;
  InputSlots slots_;
  std::array<std::vector<float>, 2> values_;
  std::array<std::vector<std::uint8_t>, 2> labels_;
  std::set<int> ways_;
  std::optional<Loader> loader_;
};

/// Every way to lay out the ranks; of eight a few.
std::vector<ProcessGrid> grids(std::int64_t ranks) {
  if (ranks == 8) return {{1, 2, 2, 2}, {2, 1, 2, 2}, {1, 8, 1, 1}, {8, 1, 1, 1}};
  std::vector<ProcessGrid> all;
  for (std::int64_t n = 1; n <= ranks; ++n) {
    for (std::int64_t d = 1; n * d <= ranks; ++d) {
      for (std::int64_t h = 1; n * d * h <= ranks; ++h) {
        if (ranks % (n * d * h) == 0) all.push_back({n, d, h, ranks / (n * d * h)});
      }
    }
  }
  return all;
}

const CaseFile uneven{.shape = {1, {9, 8, 11}}};

TEST(LabelledLoaderMpi, every_voxel_and_label_lands_in_the_right_place_epoch_after_epoch) {
  const Communicator world = Communicator::world();
  const SharedDirectory disk(world);
  for (const ProcessGrid& grid : grids(world.size())) {
    for (const std::int64_t budget : {0, 1000, 1 << 20}) {
      Setting setting{.grid = grid, .file = uneven};
      setting.store = {
          .kind = budget == 0 ? StoreKind::disk : StoreKind::memory, .memory_budget = budget, .directory = disk.path()};
      setting.thin = budget == 1000;
      Cases cases(world, setting);
      EXPECT_EQ(cases.run(3), (std::vector<double>{cases.set_bytes(), 0, 0})) << grid.data << grid.spatial_name();
    }
  }
}

TEST(LabelledLoaderMpi, every_driver_and_shape_reads_both) {
  const Communicator world = Communicator::world();
  std::vector<ReadDriver> drivers{ReadDriver::posix};
  if (mpi_drivers_available()) drivers = {ReadDriver::posix, ReadDriver::mpi_independent, ReadDriver::mpi_collective};
  CaseFile packed{.shape = {2, {9, 8, 11}}, .channel_axis = true, .channels_first = true, .chunk = {2, 4, 4, 4}};
  packed.label_chunk = {5, 8, 3};
  packed.gzip = 1;
  CaseFile wide{.shape = {1, {9, 8, 11}}, .dtype = DType::f32};
  for (const ReadDriver driver : drivers) {
    for (const bool whole_samples : {false, true}) {
      for (const CaseFile& file : {uneven, packed, wide}) {
        Setting setting{.grid = grids(world.size()).front(), .file = file};
        setting.store.kind = StoreKind::off;
        setting.read = {.whole_samples = whole_samples, .driver = driver};
        Cases cases(world, setting);
        const std::vector<double> bytes = cases.run(1);
        if (file.chunk.empty()) {
          EXPECT_EQ(bytes[0], cases.set_bytes()) << driver_name(driver);
        }
      }
    }
  }
}

/// A box in memory: voxels of i16, then labels.
std::vector<std::byte> bytes_of(const CaseFile& file, const Box& box) {
  std::vector<std::int16_t> voxels;
  std::vector<std::uint8_t> labels;
  test::for_each_index(file.shape.extent, [&](const Index& at) {
    if (!box.contains(at)) return;
    voxels.push_back(static_cast<std::int16_t>(file.number(at)));
    labels.push_back(file.label(at));
  });
  std::vector<std::byte> bytes(voxels.size() * 2 + labels.size());
  if (bytes.empty()) return bytes;
  std::memcpy(bytes.data(), voxels.data(), voxels.size() * 2);
  std::memcpy(bytes.data() + voxels.size() * 2, labels.data(), labels.size());
  return bytes;
}

// Ranks with many requests and ranks with few or none, other numbers of them for voxels than for labels.
TEST(LabelledLoaderMpi, small_requests_read_both_through_every_driver) {
  const Communicator world = Communicator::world();
  const SharedDirectory directory(world);
  const CaseFile file{.shape = {1, {13, 10, 8}}, .label_chunk = {4, 5, 3}};
  const std::string path = directory.file("a.hdf5");
  directory.write([&] { test::write_case(path, file); });
  const FileLayout layout = inspect_file(path, {.shape = file.shape, .format = FileFormat::lits}).layout;
  const Box box{{std::min(3 * world.rank(), 13), 0, 1}, {13, 10, 8}};
  const std::vector<std::byte> expected = bytes_of(file, box);
  std::vector<ReadDriver> drivers{ReadDriver::posix};
  if (mpi_drivers_available()) drivers = {ReadDriver::posix, ReadDriver::mpi_independent, ReadDriver::mpi_collective};
  for (const ReadDriver driver : drivers) {
    HyperslabReader reader(world, driver, 300);
    std::vector<std::byte> found(expected.size(), std::byte{0xAB});
    reader.read({path, layout, 0, {}}, box, found.data());
    EXPECT_TRUE(test::same_bytes(found, expected)) << driver_name(driver);
  }
}

TEST(LabelledLoaderMpi, chunks_of_both_are_unpacked_once) {
  const Communicator world = Communicator::world();
  for (const ProcessGrid& grid : grids(world.size())) {
    Setting setting{.grid = grid, .file = {.shape = {1, {8, 12, 8}}, .chunk = {4, 6, 8}, .label_chunk = {4, 6, 8}}};
    setting.file.gzip = 1;
    Cases cases(world, setting);
    EXPECT_EQ(cases.run(2), (std::vector<double>{cases.set_bytes(), 0})) << grid.data << grid.spatial_name();
  }
}

TEST(LabelledLoaderMpi, numbers_become_what_they_stand_for_in_a_window) {
  const Communicator world = Communicator::world();
  Setting setting{.grid = grids(world.size()).front(), .file = uneven};
  setting.file.attributes = {{"offset", -1000}};
  setting.transform = {.kind = InputTransform::window, .window = {-900, 400}};
  setting.different_scales = true;
  Cases cases(world, setting);
  cases.run(2);
}

// The whole volume, flipped, on every grid and with cuts where only one rank has the mirrored box, several or all.
TEST(LabelledLoaderMpi, flips_are_the_same_on_every_grid) {
  const Communicator world = Communicator::world();
  for (const ProcessGrid& grid : grids(world.size())) {
    for (const bool thin : {false, true}) {
      Setting setting{.grid = grid, .file = uneven};
      setting.augment = {.flip = all_ways, .scale = 0.1, .shift = 0.5, .seed = 3};
      setting.thin = thin;
      Cases cases(world, setting);
      EXPECT_EQ(cases.run(4, true), (std::vector<double>{cases.set_bytes(), 0, 0, 0}));
      if (grid.data == 1) {
        EXPECT_GE(cases.ways_flipped().size(), 7U) << "of the eight ways to flip";
      }
    }
  }
}

TEST(LabelledLoaderMpi, flips_of_several_channels_and_without_a_store) {
  const Communicator world = Communicator::world();
  for (const bool channels_first : {false, true}) {
    Setting setting{.grid = grids(world.size()).front(), .file = uneven};
    setting.file.shape.channels = 3;
    setting.file.channel_axis = true;
    setting.file.channels_first = channels_first;
    setting.augment.flip = all_ways;
    setting.store.kind = channels_first ? StoreKind::off : StoreKind::memory;
    Cases cases(world, setting);
    cases.run(3, true);
  }
}

// Samples that are not to be varied are left alone, whatever the options.
TEST(LabelledLoaderMpi, only_what_is_asked_for_is_varied) {
  const Communicator world = Communicator::world();
  Setting setting{.grid = grids(world.size()).front(), .file = uneven};
  setting.augment = {.flip = all_ways, .scale = 0.5, .shift = 9};
  Cases cases(world, setting);
  cases.run(1, false);
  EXPECT_EQ(cases.ways_flipped(), std::set<int>{0});
  cases.run(1, true);
}

TEST(LabelledLoaderMpi, a_label_beyond_the_classes_stops_all_with_its_file) {
  const Communicator world = Communicator::world();
  for (const ProcessGrid& grid : grids(world.size())) {
    Setting setting{.grid = grid, .file = uneven};
    setting.augment.flip = all_ways;
    Cases cases(world, setting, [](const SharedDirectory& directory) {
      CaseFile bad = uneven;
      bad.last_label = 7;
      test::write_case(directory.file("case_1.hdf5"), bad);
    });
    const std::string message = cases.failure({0, 1, 2}, true);
    EXPECT_TRUE(mentions(message, cases.path(1) + ": `segmentation` holds label 7; expected 0 to 2")) << message;
    EXPECT_EQ(cases.failure({3, 4}, true), "");
  }
}

TEST(LabelledLoaderMpi, a_voxel_that_is_no_number_stops_all_with_its_file) {
  const Communicator world = Communicator::world();
  for (const InputTransform kind : {InputTransform::none, InputTransform::window}) {
    Setting setting{.grid = grids(world.size()).front(), .file = uneven, .transform = {.kind = kind}};
    setting.file.dtype = DType::f32;
    Cases cases(world, setting, [&](const SharedDirectory& directory) {
      CaseFile bad = setting.file;
      bad.not_a_number = true;
      test::write_case(directory.file("case_2.hdf5"), bad);
    });
    const std::string message = cases.failure({0, 1, 2});
    EXPECT_TRUE(mentions(message, cases.path(2) + ": `volume` holds a value that is not finite")) << message;
  }
}

TEST(LabelledLoaderMpi, a_file_without_labels_is_refused_on_all_ranks) {
  const Communicator world = Communicator::world();
  const std::string message = message_of<DataError>([&] {
    Cases(world, {.grid = grids(world.size()).front(), .file = uneven}, [](const SharedDirectory& directory) {
      CaseFile bad = uneven;
      bad.labels = false;
      test::write_case(directory.file("case_3.hdf5"), bad);
    });
  });
  EXPECT_TRUE(mentions(message, "case_3.hdf5: has no dataset `segmentation`")) << message;
}

// One rank fails to read; the group's others want its part of a flipped sample nevertheless.
TEST(LabelledLoaderMpi, a_rank_that_fails_plays_its_part_in_flips) {
  const Communicator world = Communicator::world();
  const SharedDirectory disk(world);
  for (const ProcessGrid& grid : grids(world.size())) {
    Setting setting{.grid = grid, .file = {.shape = {1, {8, 8, 8}}, .chunk = {4, 8, 8}, .label_chunk = {4, 8, 8}}};
    setting.file.gzip = 1;
    setting.augment = {.flip = all_ways};
    setting.store = {.kind = StoreKind::disk, .directory = disk.path()};
    Cases cases(world, setting);
    world.barrier();
    if (world.rank() == 0) test::damage_last_chunk(cases.path(0), "segmentation");
    world.barrier();
    const std::string message = cases.failure({0, 1, 2}, true);
    EXPECT_TRUE(mentions(message, cases.path(0) + ": `segmentation` cannot be read")) << message;
    EXPECT_EQ(cases.failure({3, 4}, true), "");
  }
}

}  // namespace
}  // namespace halograd
