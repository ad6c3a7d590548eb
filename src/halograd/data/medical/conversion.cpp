#include "halograd/data/medical/conversion.hpp"

#include "halograd/core/durable_file.hpp"
#include "halograd/core/error.hpp"
#include "halograd/core/log.hpp"
#include "halograd/core/system.hpp"
#include "halograd/data/medical/nifti_volume.hpp"
#include "halograd/data/medical/resample.hpp"

#include <fmt/chrono.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <optional>
#include <system_error>

namespace halograd {
namespace {

constexpr std::int64_t largest_width = 1024;

/// An image of 16 bits and labels of 8, and both once more as the file to write.
constexpr std::int64_t case_bytes_per_voxel = 6;

/// Labels lie where the image's voxels lie. Returns a warning where that has to be believed.
std::string check_geometry(const CasePair& pair, const NiftiHeader& volume, const NiftiHeader& labels) {
  if (volume.shape != labels.shape) {
    throw DataError("{}: is {} voxels, {} is {}; expected the same", pair.segmentation.string(),
                    fmt::join(labels.shape, "x"), pair.volume.filename().string(), fmt::join(volume.shape, "x"));
  }
  if (same_place(volume.affine, labels.affine, volume.shape)) return "";
  const bool placeless = labels.affine_source == AffineSource::spacing;
  if (!placeless && !is_identity(labels.affine)) {
    throw DataError("{}: its affine differs from that of {}; expected labels on the image's grid",
                    pair.segmentation.string(), pair.volume.filename().string());
  }
  return fmt::format("{}: {}, taken to lie as the image does", pair.segmentation.string(),
                     placeless ? "says nothing of where it lies" : "has an affine that says nothing");
}

void check_conversion(const Conversion& conversion) {
  const std::int64_t width = conversion.settings.width;
  if (width < 1 || width > largest_width) throw UsageError("--width is {}; expected 1 to {}", width, largest_width);
  const std::int64_t classes = conversion.settings.classes;
  if (classes < 2 || classes > 256) throw UsageError("--classes is {}; expected 2 to 256", classes);
  LabelTable(classes, conversion.settings.groups);
}

void make_directory(const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error || !std::filesystem::is_directory(directory)) {
    throw DataError("can't make the directory {}: {}", directory.string(),
                    error ? error.message() : "something else has its name");
  }
}

CaseSources sources_of(const CasePair& pair) {
  return {source_file(pair.volume), source_file(pair.segmentation)};
}

void check_source(const std::filesystem::path& file, const SourceFile& there, const SourceFile& now) {
  if (there == now) return;
  const auto text = [](const SourceFile& s) {
    return fmt::format("{} ({} bytes, of {:%F %T} UTC)", s.name, s.size,
                       std::chrono::sys_seconds(std::chrono::seconds(s.modified)));
  };
  throw DataError("{}: was made of {}; expected {}: remove it, or take another --out", file.string(), text(there),
                  text(now));
}

/// Whether a case was converted before. A file of other settings or sources is not ours to replace.
bool is_done(const std::filesystem::path& file, const CasePair& pair, const CaseSettings& settings) {
  if (!std::filesystem::exists(file)) return false;
  const CaseSettings there = read_case_settings(file);
  if (there == settings) {
    const CaseSources sources = read_case_sources(file);
    check_source(file, sources.volume, source_file(pair.volume));
    check_source(file, sources.segmentation, source_file(pair.segmentation));
    return true;
  }
  const auto text = [](const CaseSettings& s) {
    return fmt::format("width {}, {} classes{}", s.width, s.classes, s.groups.empty() ? "" : " of " + s.groups);
  };
  throw DataError("{}: was converted with {}; expected {}: remove it or write elsewhere", file.string(), text(there),
                  text(settings));
}

std::uintmax_t size_of(const CasePair& pair) {
  std::error_code ignored;
  const std::uintmax_t size = std::filesystem::file_size(pair.volume, ignored);
  return ignored ? 0 : size;
}

/// How one case ended on the rank that had it.
struct CaseOutcome {
  bool failed = false;
  std::string message;  ///< the failure or a warning, or ""
};

/// Data at fault is an outcome, all else an exception.
CaseOutcome convert_case(const CasePair& pair, const Conversion& conversion) {
  try {
    if (!pair.fault.empty()) throw DataError("{}", pair.fault);
    CaseOutcome outcome;
    const MedicalCase loaded = load_case(pair, conversion.settings, outcome.message);
    write_case_file(loaded, conversion.out / case_file_name(pair.name));
    return outcome;
  } catch (const DataError& error) {
    return {true, error.what()};
  } catch (const std::bad_alloc&) {
    const std::int64_t width = conversion.settings.width;
    const auto bytes = static_cast<double>(case_bytes_per_voxel * width * width * width);
    throw ResourceError("{}: needs {} for a case of {}^3 voxels; expected that much memory for each process",
                        pair.volume.string(), format_bytes(bytes), width);
  }
}

/// The cases still to do. Large ones come first, and ranks work on neighbours in this order, so that they take alike.
std::vector<CasePair> pending_cases(const Conversion& conversion, std::vector<CasePair> pairs) {
  std::erase_if(pairs, [&](const CasePair& pair) {
    return pair.fault.empty() && is_done(conversion.out / case_file_name(pair.name), pair, conversion.settings);
  });
  std::ranges::stable_sort(pairs, [](const CasePair& a, const CasePair& b) { return size_of(a) > size_of(b); });
  return pairs;
}

/// What rank 0 found is what all work on: other ranks' files may already be changing the directory.
struct Plan {
  std::vector<CasePair> all;
  std::vector<std::string> pending;
};

Plan plan_cases(const Communicator& world, const Conversion& conversion) {
  Plan plan;
  std::string names;
  agree(world, [&] {
    check_conversion(conversion);
    plan.all = find_case_pairs(conversion.volumes);
    for (const CasePair& pair : plan.all) {
      if (!conversion.keep_going && !pair.fault.empty()) throw DataError("{}", pair.fault);
    }
    if (world.rank() != 0) return;
    make_directory(conversion.out);
    remove_left_temporaries(conversion.out);
    for (const CasePair& pair : pending_cases(conversion, plan.all)) names += pair.name + '\n';
  });
  names = world.all_gather(names).front();
  for (std::size_t at = 0; at < names.size();) {
    const std::size_t end = names.find('\n', at);
    plan.pending.push_back(names.substr(at, end - at));
    at = end + 1;
  }
  return plan;
}

/// Collective. One case a rank, from `first` on; the outcomes of all.
std::vector<CaseOutcome> convert_round(const Communicator& world, const Conversion& conversion, const Plan& plan,
                                       std::size_t first) {
  const std::size_t mine = first + static_cast<std::size_t>(world.rank());
  CaseOutcome own;
  agree(world, [&] {
    if (mine >= plan.pending.size()) return;
    const auto pair = std::ranges::find(plan.all, plan.pending[mine], &CasePair::name);
    if (pair == plan.all.end()) {
      throw DataError("{}: case {} is gone; expected the files that were there at the start",
                      conversion.volumes.string(), plan.pending[mine]);
    }
    own = convert_case(*pair, conversion);
    if (own.failed && !conversion.keep_going) throw DataError("{}", own.message);
  });
  std::vector<CaseOutcome> outcomes;
  for (const std::string& text : world.all_gather((own.failed ? "!" : ".") + own.message)) {
    outcomes.push_back({text.front() == '!', text.substr(1)});
  }
  outcomes.resize(std::min(outcomes.size(), plan.pending.size() - first));
  return outcomes;
}

}  // namespace

std::string case_file_name(const std::string& name) {
  return fmt::format("case-{}.hdf5", name);
}

MedicalCase load_case(const CasePair& pair, const CaseSettings& settings, std::string& warning) {
  const NiftiHeader volume = read_nifti_header(pair.volume);
  const NiftiHeader segmentation = read_nifti_header(pair.segmentation);
  warning = check_geometry(pair, volume, segmentation);
  MedicalCase loaded{.name = pair.name, .sources = sources_of(pair), .settings = settings};
  loaded.segmentation.resize(static_cast<std::size_t>(settings.width * settings.width * settings.width));
  {
    const std::vector<std::uint8_t> labels =
        read_nifti_labels(pair.segmentation, segmentation, LabelTable(settings.classes, settings.groups));
    resample_nearest(labels, canonical_view(volume.shape, orientation_of(volume.affine)), settings.width,
                     loaded.segmentation);
  }
  loaded.image = load_canonical_image(pair.volume, volume, settings.width);
  return loaded;
}

ConversionResult convert_cases(const Communicator& world, const Conversion& conversion,
                               const std::function<void(const ConversionProgress&)>& progress) {
  const Plan plan = plan_cases(world, conversion);
  const auto ranks = static_cast<std::size_t>(world.size());
  ConversionProgress now{.total = static_cast<std::int64_t>(plan.pending.size())};
  ConversionResult result{.skipped = static_cast<std::int64_t>(plan.all.size()) - now.total};
  for (std::size_t first = 0; first < plan.pending.size(); first += ranks) {
    const std::vector<CaseOutcome> outcomes = convert_round(world, conversion, plan, first);
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      if (!outcomes[i].message.empty()) log::warn(outcomes[i].message);
      if (outcomes[i].failed) {
        result.failed.push_back(plan.pending[first + i]);
      } else {
        ++result.converted;
      }
      ++now.done;
    }
    if (progress && world.rank() == 0) progress(now);
  }
  return result;
}

}  // namespace halograd
