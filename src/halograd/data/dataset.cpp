#include "halograd/data/dataset.hpp"

#include "halograd/core/error.hpp"
#include "halograd/data/catalogue.hpp"
#include "halograd/data/hyperslab.hpp"
#include "halograd/data/permutation.hpp"

#include <algorithm>
#include <cmath>

namespace halograd {
namespace {

constexpr double rounding = 1e-6;
constexpr const char* expected_directory = "expected a directory of HDF5 files (*.hdf5, *.h5)";

std::vector<std::string> list_samples(const std::filesystem::path& path) {
  std::error_code code;
  if (!std::filesystem::exists(path, code))
    throw DataError("{}: no such directory; {}", path.string(), expected_directory);
  if (!std::filesystem::is_directory(path, code))
    throw DataError("{}: not a directory; {}", path.string(), expected_directory);
  std::filesystem::directory_iterator entry(path, code);
  std::vector<std::string> names;
  for (; !code && entry != std::filesystem::directory_iterator(); entry.increment(code)) {
    const auto extension = entry->path().extension();
    if (extension == ".hdf5" || extension == ".h5") names.push_back(entry->path().filename().string());
  }
  if (code) throw DataError("{}: cannot be listed ({}); {}", path.string(), code.message(), expected_directory);
  if (names.empty()) throw DataError("{}: holds no samples; {}", path.string(), expected_directory);
  std::sort(names.begin(), names.end());
  return names;
}

/// FNV-1a over the names and the ends between them.
std::uint64_t hash_of(const std::vector<std::string>& names) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&hash](unsigned char byte) { hash = (hash ^ byte) * 0x100000001b3; };
  for (const std::string& name : names) {
    for (const char letter : name) add(static_cast<unsigned char>(letter));
    add(0);
  }
  return hash;
}

/// Collective; throws the same on all ranks.
void check_same_list(const Communicator& communicator, const std::filesystem::path& path,
                     const std::vector<std::string>& names) {
  const std::string digest = fmt::format("{} files (list {:016x})", names.size(), hash_of(names));
  const std::vector<std::string> digests = communicator.all_gather(digest);
  agree(communicator, [&] {
    for (std::size_t rank = 1; rank < digests.size(); ++rank) {
      if (digests[rank] == digests[0]) continue;
      throw DataError("{}: rank {} sees {} but rank 0 sees {}; expected the same directory on every rank",
                      path.string(), rank, digests[rank], digests[0]);
    }
  });
}

void check_fractions(const std::array<double, 3>& fractions) {
  const double sum = fractions[0] + fractions[1] + fractions[2];
  const bool bad = std::any_of(fractions.begin(), fractions.end(), [](double f) { return !(f >= 0.0); });
  if (bad || !(sum > 0.0) || sum > 1.0 + rounding) {
    throw UsageError(
        "data.split = [{}, {}, {}]: expected three fractions of 0 or more that sum to at most 1 (and above 0)",
        fractions[0], fractions[1], fractions[2]);
  }
}

/// The file that number `wanted` belongs to, where file i's numbers begin at first[i].
std::int64_t file_of(const std::vector<std::int64_t>& first, std::int64_t wanted) {
  return std::upper_bound(first.begin(), first.end(), wanted) - first.begin() - 1;
}

}  // namespace

std::array<std::int64_t, 3> split_counts(std::int64_t samples, const std::array<double, 3>& fractions) {
  check_fractions(fractions);
  const auto part = [samples](double fraction) {
    return static_cast<std::int64_t>(std::floor(static_cast<double>(samples) * fraction + rounding));
  };
  const double sum = fractions[0] + fractions[1] + fractions[2];
  const std::int64_t wanted = std::count_if(fractions.begin(), fractions.end(), [](double f) { return f > 0.0; });
  const std::int64_t used = sum > 1.0 - rounding ? samples : std::min(samples, std::max(wanted, part(sum)));
  std::array<std::int64_t, 3> counts{};
  std::int64_t left = used;
  for (std::size_t i = 0; i < 3; ++i) {
    if (fractions[i] <= 0.0) continue;
    counts[i] = std::min(left, std::int64_t{1});
    left -= counts[i];
  }
  for (std::size_t i = 0; i < 3; ++i) {
    const std::int64_t more = std::clamp(part(fractions[i]) - counts[i], std::int64_t{0}, left);
    counts[i] += more;
    left -= more;
  }
  const auto first = static_cast<std::size_t>(
      std::find_if(fractions.begin(), fractions.end(), [](double f) { return f > 0.0; }) - fractions.begin());
  counts[first] += left;
  return counts;
}

/// Per file and universe; all else about a sample follows from its number.
struct Dataset::Contents {
  std::filesystem::path path;
  GlobalShape shape;  ///< of a sample
  Catalogue catalogue;
  std::vector<std::int64_t> first_sample;  ///< [files + 1]
  std::array<std::vector<std::int64_t>, 3> splits;

  [[nodiscard]] std::string file(std::int64_t number) const {
    return (path / catalogue.names[static_cast<std::size_t>(number)]).string();
  }
  /// How many samples a universe of `file` is cut into, each way.
  [[nodiscard]] Extent cuts(std::int64_t file) const {
    const Extent& whole = catalogue.layout(file).image.shape.extent;
    return {whole.d / shape.extent.d, whole.h / shape.extent.h, whole.w / shape.extent.w};
  }
  /// The samples of a universe begin at the first, and end before the second.
  [[nodiscard]] std::array<std::int64_t, 2> samples_of(std::int64_t universe) const {
    const auto& first = catalogue.first_universe;
    const std::int64_t file = file_of(first, universe);
    const std::int64_t count = cuts(file).volume();
    const std::int64_t entry = universe - first[static_cast<std::size_t>(file)];
    const std::int64_t begin = first_sample[static_cast<std::size_t>(file)] + entry * count;
    return {begin, begin + count};
  }
  void number_samples();
  void split(const DatasetOptions& options);
};

void Dataset::Contents::number_samples() {
  first_sample.push_back(0);
  for (std::int64_t file = 0; file < catalogue.files(); ++file) {
    first_sample.push_back(first_sample.back() + catalogue.layout(file).image.entries * cuts(file).volume());
  }
}

void Dataset::Contents::split(const DatasetOptions& options) {
  std::vector<std::int64_t> order =
      permutation(catalogue.universes(), random_stream(options.seed, RandomPurpose::split));
  const std::array<std::int64_t, 3> counts = split_counts(catalogue.universes(), options.split);
  auto next = order.begin();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const auto end = next + counts[i];
    std::sort(next, end);
    for (; next != end; ++next) {
      const auto [first, last] = samples_of(*next);
      for (std::int64_t sample = first; sample < last; ++sample) splits[i].push_back(sample);
    }
  }
}

/// Where a sample lies, in numbers.
struct Dataset::Position {
  std::int64_t file = 0;
  std::int64_t entry = 0;
  std::int64_t universe = 0;
  Index origin;
};

Dataset Dataset::open(const Communicator& communicator, const DatasetOptions& options) {
  FileFormat format = FileFormat::cosmoflow;
  std::vector<std::string> names;
  agree(communicator, [&] {
    format = file_format(options.format);
    check_fractions(options.split);
    names = list_samples(options.path);
  });
  check_same_list(communicator, options.path, names);

  const auto contents = std::make_shared<Contents>();
  contents->path = options.path;
  contents->shape = options.shape;
  contents->catalogue = inspect_files(communicator, options.path, std::move(names),
                                      {.shape = options.shape, .subvolumes = options.subvolumes, .format = format});
  contents->number_samples();
  contents->split(options);
  return Dataset(contents);
}

std::int64_t Dataset::size() const {
  return contents_->first_sample.back();
}

std::int64_t Dataset::universes() const {
  return contents_->catalogue.universes();
}

bool Dataset::labelled() const {
  return contents_->catalogue.layouts.front().labels.has_value();  // one format for all
}

const GlobalShape& Dataset::shape() const {
  return contents_->shape;
}

const std::vector<std::int64_t>& Dataset::samples(Split split) const {
  return contents_->splits[static_cast<std::size_t>(split)];
}

Dataset::Position Dataset::position(std::int64_t sample) const {
  if (sample < 0 || sample >= size())
    throw UsageError("sample {}: expected 0 to {}, the dataset's", sample, size() - 1);
  const auto& first = contents_->first_sample;
  const std::int64_t file = file_of(first, sample);
  const Extent cuts = contents_->cuts(file);
  const std::int64_t within = sample - first[static_cast<std::size_t>(file)];
  const std::int64_t entry = within / cuts.volume();
  const std::int64_t box = within % cuts.volume();
  const Extent& extent = contents_->shape.extent;
  return {file,
          entry,
          contents_->catalogue.first_universe[static_cast<std::size_t>(file)] + entry,
          {box / (cuts.h * cuts.w) * extent.d, box / cuts.w % cuts.h * extent.h, box % cuts.w * extent.w}};
}

std::string Dataset::name(std::int64_t sample) const {
  const Position at = position(sample);
  const VolumeLayout& layout = contents_->catalogue.layout(at.file).image;
  const Extent& extent = contents_->shape.extent;
  std::string part;
  if (layout.stacked) part = fmt::format("{}", at.entry);
  if (layout.shape.extent != extent) {
    part += fmt::format("{}{}:{},{}:{},{}:{}", part.empty() ? "" : ",", at.origin.d, at.origin.d + extent.d,
                        at.origin.h, at.origin.h + extent.h, at.origin.w, at.origin.w + extent.w);
  }
  const std::string& file = contents_->catalogue.names[static_cast<std::size_t>(at.file)];
  return part.empty() ? file : fmt::format("{}[{}]", file, part);
}

std::string Dataset::file(std::int64_t sample) const {
  return contents_->file(position(sample).file);
}

const FileLayout& Dataset::layout(std::int64_t sample) const {
  return contents_->catalogue.layout(position(sample).file);
}

SamplePlace Dataset::place(std::int64_t sample) const {
  const Position at = position(sample);
  return {contents_->file(at.file), contents_->catalogue.layout(at.file), at.entry, at.origin};
}

const ValueScale& Dataset::scale(std::int64_t sample) const {
  return contents_->catalogue.scales[static_cast<std::size_t>(position(sample).file)];
}

const Cosmology& Dataset::targets(std::int64_t sample) const {
  return contents_->catalogue.targets[static_cast<std::size_t>(position(sample).universe)];
}

const std::optional<Cosmology>& Dataset::physical(std::int64_t sample) const {
  return contents_->catalogue.physical[static_cast<std::size_t>(position(sample).universe)];
}

std::int64_t Dataset::bytes(std::int64_t sample, const Box& box) const {
  return hyperslab_bytes(layout(sample).sample(), shape().channels, box);
}

}  // namespace halograd
