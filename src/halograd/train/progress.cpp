#include "halograd/train/progress.hpp"

#include "halograd/core/log.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace halograd {
namespace {

/// A step's weight in the smoothed speed: about the last ten count.
constexpr double smoothing = 0.1;

std::int64_t terminal_columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

double smooth(double before, double now) {
  return before > 0 ? before + smoothing * (now - before) : now;
}

/// "56.2 samples/s<between>1:02:03 left", as far as it is known.
std::string speed_text(const ProgressView& view, const char* before, const char* between) {
  if (view.seconds_left < 0) return "";
  return fmt::format("{}{:.3g} samples/s{}{} left", before, view.samples_per_second, between,
                     format_duration(view.seconds_left));
}

}  // namespace

std::string format_duration(double seconds) {
  if (!(seconds >= 0) || !std::isfinite(seconds)) return "-";
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  const std::int64_t days = whole / 86400;
  const std::int64_t hours = whole / 3600 % 24;
  const std::int64_t minutes = whole / 60 % 60;
  if (days > 0) return fmt::format("{}d {:02}:{:02}", days, hours, minutes);
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
  return fmt::format("{}:{:02}", minutes, whole % 60);
}

std::string format_bar(const ProgressView& view, std::int64_t columns) {
  const std::string head = fmt::format("epoch {}/{} ", view.epoch + 1, view.epochs);
  const std::string tail =
      fmt::format(" {}/{} loss {:.4g}{}", view.steps_done, view.steps, view.loss, speed_text(view, " ", " "));
  const std::int64_t room = columns - static_cast<std::int64_t>(head.size() + tail.size()) - 2;
  const std::int64_t cells = std::min<std::int64_t>(room, 30);
  std::string bar;
  if (cells >= 4) {
    const std::int64_t full =
        std::clamp<std::int64_t>(cells * view.steps_done / std::max<std::int64_t>(view.steps, 1), 0, cells);
    bar.assign(static_cast<std::size_t>(full), '=');
    if (full < cells) bar += '>';
    bar.resize(static_cast<std::size_t>(cells), ' ');
    bar = "[" + bar + "]";
  }
  return (head + bar + tail).substr(0, static_cast<std::size_t>(std::max<std::int64_t>(columns, 0)));
}

std::string format_line(const ProgressView& view) {
  return fmt::format("epoch {}/{}, step {}/{}: loss {:.4g}{}", view.epoch + 1, view.epochs, view.steps_done, view.steps,
                     view.loss, speed_text(view, ", ", ", "));
}

std::string format_epoch(std::int64_t epoch, std::int64_t epochs, double train_loss, double validation_loss,
                         double seconds, double samples_per_second) {
  const std::string validation =
      std::isfinite(validation_loss) ? fmt::format(", validation loss {:.4g}", validation_loss) : "";
  return fmt::format("epoch {}/{}: train loss {:.4g}{}, {:.3g} s, {:.3g} samples/s", epoch + 1, epochs, train_loss,
                     validation, seconds, samples_per_second);
}

ProgressOptions ProgressOptions::standard() {
  ProgressOptions options;
  options.terminal = isatty(STDERR_FILENO) == 1;
  options.columns = terminal_columns() - 1;  // a full line would wrap
  options.raw = [](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
  };
  options.line = [](const std::string& text) { log::info(text); };
  return options;
}

void Progress::begin(std::int64_t epochs, std::int64_t steps, double now) {
  epochs_ = epochs;
  steps_ = steps;
  last_step_ = now;
  last_shown_ = now;
}

void Progress::step(std::int64_t epoch, std::int64_t steps_done, std::int64_t samples, double loss, double now) {
  if (!enabled_) return;
  if (!paused_) {
    seconds_per_step_ = smooth(seconds_per_step_, now - last_step_);
    if (samples > 0)
      seconds_per_sample_ = smooth(seconds_per_sample_, (now - last_step_) / static_cast<double>(samples));
  }
  paused_ = false;
  last_step_ = now;
  if (now - last_shown_ < (options_.terminal ? options_.bar_seconds : options_.line_seconds)) return;
  last_shown_ = now;
  const std::int64_t steps_left = (epochs_ - epoch) * steps_ - steps_done;
  const ProgressView view{
      .epoch = epoch,
      .epochs = epochs_,
      .steps_done = steps_done,
      .steps = steps_,
      .loss = loss,
      .samples_per_second = seconds_per_sample_ > 0 ? 1 / seconds_per_sample_ : 0,
      .seconds_left = seconds_per_step_ > 0 ? static_cast<double>(steps_left) * seconds_per_step_ : -1};
  if (!options_.terminal) {
    options_.line(format_line(view));
    return;
  }
  options_.raw(fmt::format("\r{}\x1b[K", format_bar(view, options_.columns)));
  bar_shown_ = true;
}

void Progress::line(const std::string& text) {
  if (!enabled_) return;
  clear_bar();
  options_.line(text);
}

void Progress::clear_bar() {
  if (bar_shown_) options_.raw("\r\x1b[K");
  bar_shown_ = false;
}

}  // namespace halograd
