#include "halograd/cli/bench_io.hpp"

#include "halograd/cli/output.hpp"
#include "halograd/core/error.hpp"
#include "halograd/core/memory.hpp"
#include "halograd/core/system.hpp"
#include "halograd/data/loader.hpp"
#include "halograd/data/sampler.hpp"
#include "halograd/data/synthetic/plain_sample.hpp"
#include "halograd/tensor/partition.hpp"
#include "halograd/train/model.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace halograd {
namespace {

constexpr std::int64_t channels = 4;

const std::vector<std::string> all_ways{"auto", "posix", "mpi-independent", "mpi-collective", "sample"};
const std::vector<std::string> ways_without_mpi{"auto", "posix", "sample"};

/// A set of samples of one layout in a directory of its own, which all ranks see and which goes away with its owner.
class MadeSet {
public:
  /// Collective.
  MadeSet(const Communicator& world, const BenchIoOptions& options, const std::string& layout) : world_(world) {
    std::string name;
    agree(world, [&] {
      if (world.rank() == 0) name = make_directory(options);
    });
    path_ = world.all_gather(name).front();
    agree(world, [&] { write(options, layout); });
  }
  ~MadeSet() {
    std::error_code ignored;
    if (world_.rank() == 0) std::filesystem::remove_all(path_, ignored);
  }
  MadeSet(const MadeSet&) = delete;
  MadeSet& operator=(const MadeSet&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

private:
  static std::string make_directory(const BenchIoOptions& options) {
    const std::filesystem::path parent =
        options.directory.empty() ? std::filesystem::temp_directory_path() : options.directory;
    std::string name = (parent / "halograd-bench-io-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
      throw ResourceError("{}: no directory can be made there; name another with --dir", parent.string());
    }
    return name;
  }

  void write(const BenchIoOptions& options, const std::string& layout) const {
    PlainSample sample{.shape = {channels, Extent::cube(options.width)}};
    if (layout != "contiguous") sample.chunk = Extent::cube(std::min<std::int64_t>(64, options.width));
    if (layout == "gzip") sample.gzip = 1;
    for (std::int64_t i = world_.rank(); i < options.samples; i += world_.size()) {
      sample.seed = static_cast<std::uint64_t>(i + 1);
      write_plain_sample(sample, path_ / fmt::format("sample_{:05}.hdf5", i));
    }
  }

  Communicator world_;
  std::filesystem::path path_;
};

struct Case {
  std::string layout;
  std::string grid;
  std::string way;
};

/// Sums over the mini-batches of one epoch or several, on this rank.
struct Sums {
  double wall = 0;
  double waited = 0;
  double read = 0;
  double exchange = 0;
  double convert = 0;
  double file_bytes = 0;
  double exchanged_bytes = 0;
  double steps = 0;

  /// Collective. Bytes of all ranks, times of the slowest.
  void join(const Communicator& world) {
    for (double* seconds : {&wall, &waited, &read, &exchange, &convert}) *seconds = world.all_reduce_max(*seconds);
    for (double* bytes : {&file_bytes, &exchanged_bytes}) world.all_reduce_sum(bytes, 1);
  }
};

/// Every case begins alike: with the files in the page cache, or none of them.
void prepare_files(const Communicator& world, const Dataset& dataset, bool cold) {
  std::vector<char> buffer(std::size_t{1} << 20);
  for (std::int64_t i = world.rank(); i < dataset.size(); i += world.size()) {
    const int file = open(dataset.file(i).c_str(), O_RDONLY);
    if (file < 0) continue;
    if (cold) {
      fsync(file);
      posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    } else {
      while (read(file, buffer.data(), buffer.size()) > 0) continue;
    }
    close(file);
  }
  world.barrier();
}

/// Loads like a trainer: the next mini-batch is requested before the last one is taken.
class Epochs {
public:
  Epochs(const Communicator& world, const Dataset& dataset, Loader& loader, std::int64_t batch, double compute)
      : world_(world), sampler_(dataset.samples(Split::train), {.batch = batch}), loader_(loader), compute_(compute) {}

  /// Collective. Of `count` epochs from the next one on.
  Sums run(std::int64_t count, bool more_follow) {
    Sums sums;
    if (epoch_ == 0) loader_.request({.samples = sampler_.mini_batch(0, 0)});
    world_.barrier();
    const double begin = now_seconds();
    for (std::int64_t last = epoch_ + count; epoch_ < last; ++epoch_) {
      for (std::int64_t i = 0; i < sampler_.batches_per_epoch(); ++i) {
        const bool ends = i + 1 == sampler_.batches_per_epoch();
        if (!ends || epoch_ + 1 < last || more_follow) {
          loader_.request({.samples = ends ? sampler_.mini_batch(epoch_ + 1, 0) : sampler_.mini_batch(epoch_, i + 1)});
        }
        step(sums);
      }
    }
    world_.barrier();
    sums.wall = now_seconds() - begin;
    sums.join(world_);
    return sums;
  }

private:
  void step(Sums& sums) {
    LoadedBatch loaded;
    const double begin = now_seconds();
    agree(world_, [&] { loaded = loader_.take(); });
    sums.waited += now_seconds() - begin;
    sums.read += loaded.read_seconds;
    sums.exchange += loaded.exchange_seconds;
    sums.convert += loaded.convert_seconds;
    sums.file_bytes += static_cast<double>(loaded.file_bytes);
    sums.exchanged_bytes += static_cast<double>(loaded.exchanged_bytes);
    sums.steps += 1;
    if (compute_ > 0) std::this_thread::sleep_for(std::chrono::duration<double>(compute_));
  }

  Communicator world_;
  Sampler sampler_;
  Loader& loader_;
  double compute_;
  std::int64_t epoch_ = 0;
};

LoaderOptions loader_options(const Communicator& world, const BenchIoOptions& options, const Case& one,
                             const ProcessGrid& grid) {
  Config config;
  config.data.store = options.store;
  config.data.io = one.way == "sample" ? "sample" : "hyperslab";
  config.data.driver = one.way == "sample" ? "auto" : one.way;
  const FeedOptions feed = feed_options(config);
  LoaderOptions loader{.grid = grid, .transform = {InputTransform::log1p}, .read = feed.read, .store = feed.store};
  loader.store.memory_budget = memory_share(available_memory_bytes(), 0, world.ranks_on_node());
  return loader;
}

double rate(double bytes, double seconds) {
  return seconds > 0 ? bytes / seconds / 1e9 : 0;
}

nlohmann::ordered_json run_case(const Communicator& world, const BenchIoOptions& options, const Case& one,
                                const std::filesystem::path& path) {
  const ProcessGrid grid = ProcessGrid::parse(one.grid, world.size());
  const std::int64_t batch = options.batch > 0 ? options.batch : grid.data;
  const GlobalShape shape{channels, Extent::cube(options.width)};
  const Dataset dataset = Dataset::open(world, {.path = path, .shape = shape, .split = {1, 0, 0}});
  prepare_files(world, dataset, options.cold);

  const Box own = Partition::even(shape.extent, grid.spatial()).box(grid.place(world.rank()).place);
  const std::int64_t most = (batch + grid.data - 1) / grid.data;
  const std::int64_t slot_bytes = 4 * most * own.volume() * channels;
  ReservedMemory slots(2 * slot_bytes);
  Sampler sampler(dataset.samples(Split::train), {.batch = batch});
  std::vector<std::vector<std::int64_t>> kept;
  for (std::int64_t i = 0; i < sampler.batches_per_epoch(); ++i) kept.push_back(sampler.mini_batch(0, i));
  Loader loader(world, dataset, {own, own, {slots.data(), slots.data() + slot_bytes}},
                loader_options(world, options, one, grid), kept);
  Epochs epochs(world, dataset, loader, batch, options.compute);
  const Sums first = epochs.run(1, options.epochs > 1);
  const Sums later = options.epochs > 1 ? epochs.run(options.epochs - 1, false) : Sums{};

  // Without a store the first epoch, in which buffers are made, only warms up.
  const bool reads_on = options.store == "off" && options.epochs > 1;
  const double read_epochs = reads_on ? static_cast<double>(options.epochs - 1) : 1.0;
  double probe = static_cast<double>(loader.probe_bytes());
  world.all_reduce_sum(&probe, 1);
  const ReadPlan plan = loader.plan_for(0);
  const double set_bytes = static_cast<double>(dataset.size() * dataset.bytes(0, Box::whole(shape.extent)));
  return {
      {"layout", one.layout},
      {"grid", one.grid},
      {"ranks", world.size()},
      {"way", one.way},
      {"driver", driver_name(plan.driver)},
      {"shape", shape_name(plan.shape)},
      {"width", options.width},
      {"samples", dataset.size()},
      {"batch", batch},
      {"store", options.store},
      {"set_bytes", set_bytes},
      {"probe_bytes", probe},
      {"first_epoch_file_bytes", first.file_bytes},
      {"first_epoch_seconds", first.wall},
      {"read_gb_per_second", rate(set_bytes * read_epochs, reads_on ? later.read : first.read)},
      {"first_epoch_wait_seconds", first.waited / first.steps},
      {"later_file_bytes", later.file_bytes},
      {"exchanged_bytes", later.exchanged_bytes},
      {"exchange_gb_per_second", rate(later.exchanged_bytes, later.exchange)},
      {"convert_gb_per_second", rate(set_bytes * static_cast<double>(options.epochs), first.convert + later.convert)},
      {"wait_seconds", later.steps > 0 ? later.waited / later.steps : 0.0}};
}

void check(const BenchIoOptions& options) {
  const auto one_of = [](const std::string& value, const std::vector<std::string>& known, const char* option) {
    if (std::ranges::find(known, value) != known.end()) return;
    throw UsageError("{} {}: expected one of {}", option, value, fmt::join(known, ", "));
  };
  for (const std::string& layout : options.layouts) one_of(layout, BenchIoOptions().layouts, "--layout");
  for (const std::string& way : options.ways) one_of(way, all_ways, "--driver");
  one_of(options.store, {"memory", "disk", "off"}, "--store");
  if (options.width < 1 || options.samples < 1 || options.epochs < 1 || options.batch < 0 || options.compute < 0) {
    throw UsageError("--width, --samples and --epochs must be 1 or more, --batch and --compute not negative");
  }
}

}  // namespace

nlohmann::ordered_json bench_io(const Communicator& world, const BenchIoOptions& given) {
  BenchIoOptions options = given;
  check(options);
  const std::int64_t ranks = world.size();
  if (options.grids.empty()) {
    options.grids = {fmt::format("{}x1x1", ranks)};
    if (ranks > 1) options.grids.push_back(fmt::format("1x1x{}", ranks));
  }
  if (options.ways.empty()) options.ways = mpi_drivers_available() ? all_ways : ways_without_mpi;
  if (!options.data.empty()) options.layouts = {"as found"};
  nlohmann::ordered_json cases = nlohmann::ordered_json::array();
  for (const std::string& layout : options.layouts) {
    std::optional<MadeSet> made;
    if (options.data.empty()) made.emplace(world, options, layout);
    for (const std::string& grid : options.grids) {
      for (const std::string& way : options.ways) {
        cases.push_back(run_case(world, options, {layout, grid, way}, made ? made->path() : options.data));
      }
    }
    world.barrier();
  }
  return cases;
}

std::string bench_io_table(const nlohmann::ordered_json& cases) {
  std::vector<std::vector<std::string>> rows{{"layout", "grid", "way", "by", "reading", "read, GB/s", "from files",
                                              "exchange, GB/s", "from files later", "wait, ms"}};
  for (const auto& one : cases) {
    const auto text = [&](const char* key) { return one.at(key).get<std::string>(); };
    const auto number = [&](const char* key) { return one.at(key).get<double>(); };
    const double exchange = number("exchange_gb_per_second");
    rows.push_back({text("layout"), text("grid"), text("way"), text("driver"), text("shape"),
                    fmt::format("{:.2f}", number("read_gb_per_second")), format_bytes(number("first_epoch_file_bytes")),
                    exchange > 0 ? fmt::format("{:.2f}", exchange) : "-", format_bytes(number("later_file_bytes")),
                    fmt::format("{:.2f}", 1e3 * number("wait_seconds"))});
  }
  return format_table(rows, {false, false, false, false, false, true, true, true, true, true});
}

}  // namespace halograd
