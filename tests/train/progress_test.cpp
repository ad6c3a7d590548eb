#include "halograd/train/progress.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace halograd {
namespace {

TEST(Progress, durations) {
  EXPECT_EQ(format_duration(7.4), "0:07");
  EXPECT_EQ(format_duration(725), "12:05");
  EXPECT_EQ(format_duration(59.7), "1:00");
  EXPECT_EQ(format_duration(3 * 3600 + 125), "3:02:05");
  EXPECT_EQ(format_duration(2 * 86400 + 3 * 3600 + 125), "2d 03:02");
  EXPECT_EQ(format_duration(-1), "-");
  EXPECT_EQ(format_duration(NAN), "-");
  EXPECT_EQ(format_duration(INFINITY), "-");
}

const ProgressView view{.epoch = 2,
                        .epochs = 100,
                        .steps_done = 10,
                        .steps = 40,
                        .loss = 0.012345,
                        .samples_per_second = 56.21,
                        .seconds_left = 3723};

TEST(Progress, bar_fits_the_terminal) {
  EXPECT_EQ(format_bar(view, 120),
            "epoch 3/100 [=======>                      ] 10/40 loss 0.01235 56.2 samples/s 1:02:03 left");
  EXPECT_EQ(format_bar(view, 80), "epoch 3/100 [====>              ] 10/40 loss 0.01235 56.2 samples/s 1:02:03 left");
  EXPECT_EQ(format_bar(view, 80).size(), 80U);
  EXPECT_EQ(format_bar(view, 62), "epoch 3/100  10/40 loss 0.01235 56.2 samples/s 1:02:03 left");
  EXPECT_EQ(format_bar(view, 11), "epoch 3/100");
  EXPECT_EQ(format_bar(view, 0), "");
  ProgressView done = view;
  done.steps_done = 40;
  EXPECT_NE(format_bar(done, 120).find("[==============================]"), std::string::npos);
  done.steps = 0;
  EXPECT_TRUE(format_bar(done, 120).starts_with("epoch 3/100 [==============================] 40/0"));
}

TEST(Progress, lines) {
  EXPECT_EQ(format_line(view), "epoch 3/100, step 10/40: loss 0.01235, 56.2 samples/s, 1:02:03 left");
  ProgressView first = view;  // its step took in a checkpoint: nothing is known of the speed
  first.seconds_left = -1;
  EXPECT_EQ(format_line(first), "epoch 3/100, step 10/40: loss 0.01235");
  EXPECT_EQ(format_bar(first, 80), "epoch 3/100 [=======>                      ] 10/40 loss 0.01235");
  EXPECT_EQ(format_epoch(2, 100, 0.5, 0.25, 41.23, 56.21),
            "epoch 3/100: train loss 0.5, validation loss 0.25, 41.2 s, 56.2 samples/s");
  EXPECT_EQ(format_epoch(2, 100, 0.5, NAN, 41.23, 56.21), "epoch 3/100: train loss 0.5, 41.2 s, 56.2 samples/s");
}

struct Recorded {
  std::vector<std::string> lines;
  std::string raw;

  ProgressOptions options(bool terminal) {
    ProgressOptions made;
    made.terminal = terminal;
    made.line = [this](const std::string& text) { lines.push_back(text); };
    made.raw = [this](std::string_view text) { raw += text; };
    return made;
  }
};

TEST(Progress, plain_lines_come_every_ten_seconds) {
  Recorded recorded;
  Progress progress(recorded.options(false));
  progress.begin(2, 20, 100);
  for (int step = 1; step <= 20; ++step) progress.step(0, step, 4, 0.5, 100 + 2.0 * step);
  EXPECT_EQ(recorded.lines, (std::vector<std::string>{"epoch 1/2, step 5/20: loss 0.5, 2 samples/s, 1:10 left",
                                                      "epoch 1/2, step 10/20: loss 0.5, 2 samples/s, 1:00 left",
                                                      "epoch 1/2, step 15/20: loss 0.5, 2 samples/s, 0:50 left",
                                                      "epoch 1/2, step 20/20: loss 0.5, 2 samples/s, 0:40 left"}));
  EXPECT_EQ(recorded.raw, "");
}

TEST(Progress, a_pause_does_not_count_as_speed) {
  Recorded recorded;
  Progress progress(recorded.options(false));
  progress.begin(1, 10, 0);
  progress.step(0, 1, 4, 0.5, 2);
  progress.pause();
  progress.step(0, 2, 4, 0.5, 1000);
  EXPECT_EQ(recorded.lines, (std::vector<std::string>{"epoch 1/1, step 2/10: loss 0.5, 2 samples/s, 0:16 left"}));
}

TEST(Progress, the_bar_is_drawn_over_and_gives_way_to_lines) {
  Recorded recorded;
  Progress progress(recorded.options(true));
  progress.begin(1, 2, 0);
  progress.step(0, 1, 1, 0.5, 1);
  progress.line("epoch over");
  progress.line("another");
  EXPECT_EQ(recorded.raw,
            "\repoch 1/1 [===============>              ] 1/2 loss 0.5 1 samples/s 0:01 left\x1b[K\r\x1b[K");
  EXPECT_EQ(recorded.lines, (std::vector<std::string>{"epoch over", "another"}));
}

TEST(Progress, other_ranks_show_nothing) {
  Progress progress;
  progress.begin(1, 2, 0);
  progress.step(0, 1, 1, 0.5, 100);
  progress.line("nothing");
}

}  // namespace
}  // namespace halograd
