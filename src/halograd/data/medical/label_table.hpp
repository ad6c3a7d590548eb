#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace halograd {

/// Which class each label of a file becomes.
class LabelTable {
public:
  /// Labels 0 to classes − 1 stay what they are, all others are errors. Throws UsageError unless 1 <= classes <= 256.
  explicit LabelTable(std::int64_t classes);

  /// `groups` as "1:1-90,95,2:91-94": class 1 is made of the labels 1 to 90 and 95, class 2 of 91 to 94; what is in
  /// none becomes 0, up to label 65535. With "" as above. Throws UsageError where that can't be read, names a class
  /// that is not below `classes`, or a label twice.
  LabelTable(std::int64_t classes, const std::string& groups);

  /// The class of a label, nothing where it is not whole or out of range.
  [[nodiscard]] std::optional<std::uint8_t> find(double label) const {
    if (!(label >= 0 && label < static_cast<double>(classes_of_.size()))) return std::nullopt;
    const auto index = static_cast<std::size_t>(label);
    if (static_cast<double>(index) != label) return std::nullopt;
    return classes_of_[index];
  }

  /// For messages: "a whole number from 0 to 2".
  [[nodiscard]] std::string expected() const;

private:
  void add_group(std::int64_t target, std::int64_t first, std::int64_t last, const std::string& groups);

  std::vector<std::uint8_t> classes_of_;
};

}  // namespace halograd
