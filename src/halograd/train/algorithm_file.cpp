#include "halograd/train/algorithm_file.hpp"

#include "halograd/core/durable_file.hpp"
#include "halograd/core/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace halograd {
namespace {

constexpr std::string_view divider = "--- rank ";

/// The ranks' texts, in order. What stands before the first divider is none's.
std::vector<std::string> texts_of(const std::string& contents) {
  std::vector<std::string> texts;
  std::size_t at = contents.find(divider);
  while (at != std::string::npos) {
    const std::size_t begin = std::min(contents.find('\n', at), contents.size() - 1) + 1;
    const std::size_t end = contents.find(divider, begin);
    texts.push_back(contents.substr(begin, end == std::string::npos ? end : end - begin));
    at = end;
  }
  return texts;
}

}  // namespace

void load_algorithms(const Communicator& world, const std::filesystem::path& file, AlgorithmRecord& record) {
  std::string contents;
  agree(world, [&] {
    if (world.rank() != 0 || !std::filesystem::exists(file)) return;
    std::ifstream stream(file, std::ios::binary);
    contents.assign(std::istreambuf_iterator<char>(stream), {});
  });
  contents = world.all_gather(contents).front();
  agree(world, [&] {
    const std::vector<std::string> texts = texts_of(contents);
    if (texts.empty() && !contents.empty()) {
      throw DataError("{}: expected \"{}0 ---\" before the algorithms of each rank; remove the file to choose anew",
                      file.string(), divider);
    }
    const auto own = static_cast<std::size_t>(world.rank());
    if (own < texts.size()) record.add(texts[own], file.string());
    for (const std::string& text : texts) record.add(text, file.string());
  });
}

void save_algorithms(const Communicator& world, const std::filesystem::path& file, const AlgorithmRecord& record) {
  const bool anything = world.all_reduce_max(static_cast<std::int64_t>(record.size())) > 0;
  if (!anything) return;
  const std::vector<std::string> texts = world.all_gather(record.text());
  agree(world, [&] {
    if (world.rank() != 0) return;
    std::string contents;
    for (std::size_t rank = 0; rank < texts.size(); ++rank) {
      contents += fmt::format("{}{} ---\n{}", divider, rank, texts[rank]);
    }
    write_durably(file, contents);
  });
}

}  // namespace halograd
