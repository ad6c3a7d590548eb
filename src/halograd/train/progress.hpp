#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace halograd {

/// What one look at a running training shows.
struct ProgressView {
  std::int64_t epoch = 0;  ///< from 0
  std::int64_t epochs = 1;
  std::int64_t steps_done = 0;  ///< of this epoch
  std::int64_t steps = 1;       ///< in an epoch
  double loss = 0;              ///< of the last step
  double samples_per_second = 0;
  double seconds_left = 0;  ///< until the run's end; below 0: not known yet
};

/// "0:07", "12:05", "3:02:05", "2d 03:02"; "-" below 0.
std::string format_duration(double seconds);

/// "epoch 3/100 [=====>    ] 12/40 loss 0.01234 56.2 samples/s 1:02:03 left", at most `columns` wide.
std::string format_bar(const ProgressView& view, std::int64_t columns);

/// The same without a bar, for a file: "epoch 3/100, step 12/40: loss 0.01234, 56.2 samples/s, 1:02:03 left".
std::string format_line(const ProgressView& view);

/// Where progress goes and how often.
struct ProgressOptions {
  bool terminal = false;  ///< a bar that is drawn over; otherwise plain lines
  std::int64_t columns = 80;
  double line_seconds = 10;                   ///< between plain lines
  double bar_seconds = 0.1;                   ///< between drawings of the bar
  std::function<void(std::string_view)> raw;  ///< characters to the terminal
  std::function<void(const std::string&)> line;

  /// The bar on stderr where that is a terminal, lines through the log (and so to log.txt).
  static ProgressOptions standard();
};

/// Shows rank 0's progress; a default-made one (the other ranks) shows nothing.
class Progress {
public:
  Progress() = default;
  explicit Progress(ProgressOptions options) : options_(std::move(options)), enabled_(true) {}

  /// A run of `epochs` epochs of `steps` steps begins.
  void begin(std::int64_t epochs, std::int64_t steps, double now);

  /// Step `steps_done` (from 1) of `epoch` has ended at `now` seconds, on `samples` samples.
  void step(std::int64_t epoch, std::int64_t steps_done, std::int64_t samples, double loss, double now);

  /// Takes the bar away and writes a whole line: the end of an epoch, say.
  void line(const std::string& text);

  /// Leaves out the time from here to the next step (validation, a checkpoint) of the speed.
  void pause() { paused_ = true; }

private:
  void clear_bar();

  ProgressOptions options_;
  bool enabled_ = false;
  bool paused_ = false;
  bool bar_shown_ = false;
  std::int64_t epochs_ = 1;
  std::int64_t steps_ = 1;
  double last_step_ = 0;
  double last_shown_ = 0;
  double seconds_per_step_ = 0;    ///< smoothed; 0 before the first step
  double seconds_per_sample_ = 0;  ///< likewise
};

/// The line for the end of an epoch: "epoch 3/100: train loss 0.0123, validation loss 0.0150, 41.2 s, 56.2 samples/s".
std::string format_epoch(std::int64_t epoch, std::int64_t epochs, double train_loss, double validation_loss,
                         double seconds, double samples_per_second);

}  // namespace halograd
