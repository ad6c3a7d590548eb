#include "halograd/data/medical/case_pair.hpp"

#include "halograd/core/error.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>

namespace halograd {
namespace {

/// "12" of "volume-12.nii.gz" for the kind "volume".
std::optional<std::string> name_of(std::string_view file, std::string_view kind) {
  if (!file.starts_with(kind)) return std::nullopt;
  file.remove_prefix(kind.size());
  for (const std::string_view ending : {".nii", ".nii.gz"}) {
    if (!file.ends_with(ending) || file.size() <= ending.size() + 1 || file.front() != '-') continue;
    return std::string(file.substr(1, file.size() - 1 - ending.size()));
  }
  return std::nullopt;
}

/// Keeps a file in its place; notes where that is taken.
void place(const std::filesystem::path& file, std::filesystem::path& at, std::string& fault) {
  if (!at.empty()) {
    fault = fmt::format("{}: {} is there too; expected one of them", std::max(at, file).string(),
                        std::min(at, file).filename().string());
  }
  at = file;
}

void note_missing(CasePair& pair) {
  const bool no_volume = pair.volume.empty();
  if (!pair.fault.empty() || (!no_volume && !pair.segmentation.empty())) return;
  pair.fault = fmt::format("{}: has no partner; expected {}-{}.nii or .nii.gz beside it",
                           (no_volume ? pair.segmentation : pair.volume).string(),
                           no_volume ? "volume" : "segmentation", pair.name);
}

/// 2 before 10.
bool earlier(const CasePair& a, const CasePair& b) {
  const auto is_number = [](const std::string& text) {
    return std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  };
  if (is_number(a.name) && is_number(b.name) && a.name.size() != b.name.size()) return a.name.size() < b.name.size();
  return a.name < b.name;
}

}  // namespace

std::vector<CasePair> find_case_pairs(const std::filesystem::path& directory) {
  std::error_code code;
  if (!std::filesystem::is_directory(directory, code)) {
    throw DataError("{}: no such directory; expected one with volume-N.nii and segmentation-N.nii files",
                    directory.string());
  }
  std::map<std::string, CasePair> found;
  std::filesystem::directory_iterator entries(directory, code);
  for (; !code && entries != std::filesystem::directory_iterator(); entries.increment(code)) {
    const std::filesystem::path& file = entries->path();
    const std::string file_name = file.filename().string();
    if (const auto name = name_of(file_name, "volume")) {
      CasePair& pair = found[*name];
      place(file, pair.volume, pair.fault);
    } else if (const auto other = name_of(file_name, "segmentation")) {
      CasePair& pair = found[*other];
      place(file, pair.segmentation, pair.fault);
    }
  }
  if (code)
    throw DataError("{}: can't be read ({}); expected a readable directory", directory.string(), code.message());
  if (found.empty()) {
    throw DataError("{}: has no cases; expected volume-N.nii and segmentation-N.nii files (or .nii.gz)",
                    directory.string());
  }
  std::vector<CasePair> pairs;
  for (auto& [name, pair] : found) {
    pair.name = name;
    note_missing(pair);
    pairs.push_back(std::move(pair));
  }
  std::ranges::stable_sort(pairs, earlier);
  return pairs;
}

}  // namespace halograd
