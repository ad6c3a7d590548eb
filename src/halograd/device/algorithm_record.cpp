#include "halograd/device/algorithm_record.hpp"

#include "halograd/core/error.hpp"

#include <charconv>

namespace halograd {
namespace {

constexpr std::string_view format_line = "halograd algorithms 1";

/// Takes words off the front of a line; fails for good where one is not as it should be.
class Words {
public:
  explicit Words(std::string_view text) : rest_(text) {}

  void expect(std::string_view word) {
    if (rest_.starts_with(word)) {
      rest_.remove_prefix(word.size());
    } else {
      good_ = false;
    }
  }

  bool take(std::string_view word) {
    if (!good_ || !rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  std::int64_t number() {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc()) good_ = false;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }

  [[nodiscard]] bool all_read() const { return good_ && rest_.empty(); }

private:
  std::string_view rest_;
  bool good_ = true;
};

std::optional<Algorithm> parse(std::string_view text) {
  Algorithm algorithm;
  Words words(text);
  words.expect("engine ");
  algorithm.engine = words.number();
  if (words.take(" knobs ")) {
    do {
      const std::int64_t knob = words.number();
      words.expect("=");
      algorithm.knobs.emplace_back(knob, words.number());
    } while (words.take(","));
  }
  words.expect(" pieces ");
  algorithm.pieces = words.number();
  if (!words.all_read() || algorithm.engine < 0 || algorithm.pieces < 1) return std::nullopt;
  return algorithm;
}

/// The next line of the text, without its end, taken off.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

}  // namespace

std::string algorithm_text(const Algorithm& algorithm) {
  std::string text = fmt::format("engine {}", algorithm.engine);
  for (std::size_t i = 0; i < algorithm.knobs.size(); ++i) {
    text += fmt::format("{}{}={}", i == 0 ? " knobs " : ",", algorithm.knobs[i].first, algorithm.knobs[i].second);
  }
  return text + fmt::format(" pieces {}", algorithm.pieces);
}

std::optional<Algorithm> AlgorithmRecord::find(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto entry = entries_.find(key);
  return entry == entries_.end() ? std::nullopt : std::optional(entry->second);
}

void AlgorithmRecord::set(const std::string& key, const Algorithm& algorithm) {
  if (key.empty() || key.find_first_of("\t\n\r") != std::string::npos) {
    throw UsageError("an algorithm's key is text without tabs or line breaks, not \"{}\"", key);
  }
  const std::lock_guard lock(mutex_);
  entries_[key] = algorithm;
}

std::size_t AlgorithmRecord::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

std::string AlgorithmRecord::text() const {
  const std::lock_guard lock(mutex_);
  std::string text = fmt::format("{}\n", format_line);
  for (const auto& [key, algorithm] : entries_) text += fmt::format("{}\t{}\n", key, algorithm_text(algorithm));
  return text;
}

void AlgorithmRecord::add(std::string_view text, const std::string& name) {
  std::map<std::string, Algorithm> read;
  if (take_line(text) != format_line) {
    throw DataError("{} is no record of algorithms: its first line should be \"{}\"", name, format_line);
  }
  for (int number = 2; !text.empty(); ++number) {
    const std::string_view line = take_line(text);
    const std::size_t tab = line.find('\t');
    const auto algorithm = tab == std::string_view::npos || tab == 0 ? std::nullopt : parse(line.substr(tab + 1));
    if (!algorithm) {
      throw DataError("{}, line {}: expected a key, a tab and \"engine E knobs K=V,... pieces P\"", name, number);
    }
    read.emplace(line.substr(0, tab), *algorithm);
  }
  const std::lock_guard lock(mutex_);
  entries_.merge(read);
}

AlgorithmRecord& algorithm_record() {
  static AlgorithmRecord record;
  return record;
}

}  // namespace halograd
