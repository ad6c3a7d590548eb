#pragma once

#include <cstdint>
#include <string>

namespace halograd {

/// Shows how far work on many files is: a line drawn over on a terminal, else a plain one every few seconds.
class ShareReport {
public:
  /// `what`: "universes", say.
  explicit ShareReport(std::string what);

  void show(std::int64_t done, std::int64_t total);

private:
  std::string what_;
  double start_;
  double shown_;
};

}  // namespace halograd
