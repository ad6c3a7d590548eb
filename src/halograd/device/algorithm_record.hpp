#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace halograd {

/// What a vendor library is asked to run an operation with.
struct Algorithm {
  std::int64_t engine = -1;                                    ///< the library's number for it
  std::vector<std::pair<std::int64_t, std::int64_t>> knobs{};  ///< its settings: which one, and to what
  std::int64_t pieces = 1;                                     ///< how many parts the operation is cut into
  friend bool operator==(const Algorithm&, const Algorithm&) = default;
};

/// "engine 28 knobs 2=15,13=1 pieces 1".
std::string algorithm_text(const Algorithm& algorithm);

/// Which algorithm was found the fastest for what, so that a later run takes the same one, and gives the same bits,
/// without measuring again. A key says all that the choice depends on: the operation with its shapes, the device and
/// the library's version. Any thread may call any member.
class AlgorithmRecord {
public:
  [[nodiscard]] std::optional<Algorithm> find(const std::string& key) const;
  /// Replaces what the key had. Throws UsageError where the key would not be a line's part (a tab, a line break).
  void set(const std::string& key, const Algorithm& algorithm);
  [[nodiscard]] std::size_t size() const;

  /// One line each, in the order of the keys, behind a line that names the format.
  [[nodiscard]] std::string text() const;
  /// Adds the entries of such a text; keys that are here already keep what they have. `name` is what messages call the
  /// text. Throws DataError naming the line, and then adds nothing.
  void add(std::string_view text, const std::string& name);

private:
  mutable std::mutex mutex_;
  std::map<std::string, Algorithm> entries_;
};

/// The one that this process's kernels look into and add to.
AlgorithmRecord& algorithm_record();

}  // namespace halograd
