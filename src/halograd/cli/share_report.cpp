#include "halograd/cli/share_report.hpp"

#include "halograd/core/log.hpp"
#include "halograd/core/system.hpp"
#include "halograd/train/progress.hpp"

#include <unistd.h>

#include <cstdio>
#include <utility>

namespace halograd {

ShareReport::ShareReport(std::string what) : what_(std::move(what)), start_(now_seconds()), shown_(start_) {}

void ShareReport::show(std::int64_t done, std::int64_t total) {
  const double now = now_seconds();
  const bool last = done == total;
  const bool terminal = isatty(STDERR_FILENO) != 0;
  if (!last && now - shown_ < (terminal ? 0.1 : 10.0)) return;
  shown_ = now;
  const double left = (now - start_) / static_cast<double>(done) * static_cast<double>(total - done);
  const std::string line = fmt::format("{}/{} {}, {} left", done, total, what_, format_duration(left));
  if (!terminal) {
    log::info(line);
  } else {
    std::fputs(("\r" + line + "\x1b[K" + (last ? "\n" : "")).c_str(), stderr);
  }
}

}  // namespace halograd
