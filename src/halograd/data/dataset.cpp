#include "halograd/data/dataset.hpp"

#include "halograd/core/error.hpp"
#include "halograd/data/permutation.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

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

Dataset Dataset::open(const Communicator& communicator, const DatasetOptions& options) {
  std::vector<std::string> names;
  agree(communicator, [&] {
    if (options.format != "cosmoflow") throw UsageError("data.format = \"{}\": expected \"cosmoflow\"", options.format);
    check_fractions(options.split);
    names = list_samples(options.path);
  });
  check_same_list(communicator, options.path, names);

  Dataset dataset;
  dataset.path_ = options.path;
  dataset.shape_ = options.shape;
  dataset.names_ = std::make_shared<const std::vector<std::string>>(std::move(names));
  agree(communicator, [&] { static_cast<void>(dataset.source().check(dataset.file(0))); });

  const std::vector<std::int64_t> order =
      permutation(dataset.size(), random_stream(options.seed, RandomPurpose::split));
  const std::array<std::int64_t, 3> counts = split_counts(dataset.size(), options.split);
  auto next = order.begin();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    dataset.splits_[i].assign(next, next + counts[i]);
    std::sort(dataset.splits_[i].begin(), dataset.splits_[i].end());
    next += counts[i];
  }
  return dataset;
}

}  // namespace halograd
