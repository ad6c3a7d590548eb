#include "halograd/train/metrics.hpp"

#include "halograd/core/error.hpp"
#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <limits>
#include <sstream>

namespace halograd {
namespace {

using Json = nlohmann::ordered_json;
using test::message_of;
using test::read_file;

std::vector<Json> events(const std::filesystem::path& file) {
  std::istringstream stream(read_file(file));
  std::vector<Json> parsed;
  for (std::string line; std::getline(stream, line);) parsed.push_back(Json::parse(line));
  return parsed;
}

StepMetrics step(std::int64_t epoch, std::int64_t number) {
  return {.epoch = epoch, .step = number, .loss = 0.5, .samples = 4};
}

/// Two epochs of three steps and a test event, as an uninterrupted run leaves them.
void write_two_epochs(MetricsLog& metrics) {
  metrics.write(RunMetrics{.version = "0.1.0"});
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    for (std::int64_t i = 0; i < 3; ++i) metrics.write(step(epoch, 3 * epoch + i));
    metrics.write(
        EpochMetrics{.epoch = epoch, .train_loss = 1, .validation_loss = 2, .seconds = 3, .samples_per_second = 4});
  }
  metrics.write_test({{"loss", 0.25}, {"mae", {0.5, 0.75}}});
}

TEST(Metrics, lines_have_the_documented_members_in_order) {
  const test::TemporaryDirectory directory;
  const auto file = directory / "metrics.jsonl";
  MetricsLog metrics = MetricsLog::create(file);
  metrics.write(RunMetrics{.version = "0.1.0",
                           .ranks = 4,
                           .grid = "2x1x1",
                           .data_groups = 2,
                           .threads = 3,
                           .parameters = 5,
                           .arena_bytes = 6});
  metrics.write(StepMetrics{.epoch = 1,
                            .step = 7,
                            .loss = 0.1,
                            .learning_rate = 1e-3,
                            .seconds = 2,
                            .io_seconds = 0.5,
                            .comm_seconds = 0.25,
                            .samples = 4,
                            .files = std::vector<std::string>{"a.h5", "b.h5"}});
  metrics.write(EpochMetrics{
      .epoch = 1, .train_loss = 1, .validation_loss = 2, .seconds = 3, .samples_per_second = 4, .file_bytes = 5});
  metrics.write_test({{"loss", 0.25}, {"mae", 0.5}});
  EXPECT_EQ(
      read_file(file),  // while the writer is still open: flushed as written
      R"({"event":"run","version":"0.1.0","ranks":4,"grid":"2x1x1","data_groups":2,"threads":3,"parameters":5,"arena_bytes":6}
{"event":"step","epoch":1,"step":7,"loss":0.1,"learning_rate":0.001,"seconds":2.0,"io_seconds":0.5,"comm_seconds":0.25,"samples":4,"files":["a.h5","b.h5"]}
{"event":"epoch","epoch":1,"train_loss":1.0,"validation_loss":2.0,"seconds":3.0,"samples_per_second":4.0,"file_bytes":5}
{"event":"test","loss":0.25,"mae":0.5}
)");
}

TEST(Metrics, doubles_read_back_as_the_same_bits) {
  const test::TemporaryDirectory directory;
  const auto file = directory / "metrics.jsonl";
  const std::vector<double> values{0.1 + 0.2,          1.0 / 3, 5e-324, std::numeric_limits<double>::max(), -0.0, 1e22,
                                   123456789.123456789};
  MetricsLog metrics = MetricsLog::create(file);
  for (const double value : values) metrics.write(StepMetrics{.loss = value});
  const auto written = events(file);
  ASSERT_EQ(written.size(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(written[i]["loss"].get<double>(), values[i]);
    EXPECT_EQ(std::signbit(written[i]["loss"].get<double>()), std::signbit(values[i]));
  }
}

TEST(Metrics, what_is_not_finite_or_no_utf8_stays_valid_json) {
  const test::TemporaryDirectory directory;
  const auto file = directory / "metrics.jsonl";
  MetricsLog metrics = MetricsLog::create(file);
  metrics.write(StepMetrics{.loss = NAN, .learning_rate = INFINITY, .files = std::vector<std::string>{"a\xff.h5"}});
  const auto written = events(file);
  ASSERT_EQ(written.size(), 1U);
  EXPECT_TRUE(written[0]["loss"].is_null());
  EXPECT_TRUE(written[0]["learning_rate"].is_null());
}

TEST(Metrics, resume_cuts_off_what_lies_past_the_checkpoint) {
  const test::TemporaryDirectory directory;
  const auto whole_file = directory / "whole.jsonl";
  {
    MetricsLog metrics = MetricsLog::create(whole_file);
    write_two_epochs(metrics);
  }
  const std::string whole = read_file(whole_file);
  for (const std::int64_t done : {0, 2, 3, 4, 6}) {
    const auto file = directory / "metrics.jsonl";
    test::write_file(file, whole + "{\"event\":\"step\",\"epo");  // killed while writing
    MetricsLog metrics = MetricsLog::resume(file, {.epoch = done / 3, .step = done});
    EXPECT_EQ(events(file).size(), static_cast<std::size_t>(1 + done + done / 3)) << done;
    EXPECT_TRUE(whole.starts_with(read_file(file))) << done;
    metrics.write(RunMetrics{.version = "other"});  // kept from before: not written again
    for (std::int64_t i = done; i < 6; ++i) {
      metrics.write(step(i / 3, i));
      if (i % 3 == 2) {
        metrics.write(
            EpochMetrics{.epoch = i / 3, .train_loss = 1, .validation_loss = 2, .seconds = 3, .samples_per_second = 4});
      }
    }
    metrics.write_test({{"loss", 0.25}, {"mae", {0.5, 0.75}}});
    EXPECT_EQ(read_file(file), whole) << done;
  }
}

TEST(Metrics, resume_keeps_a_last_line_that_only_lacks_its_end) {
  const test::TemporaryDirectory directory;
  const auto file = directory / "metrics.jsonl";
  test::write_file(file, "{\"event\":\"step\",\"step\":0}\nno json\n{\"event\":\"step\",\"step\":1}");
  MetricsLog::resume(file, {.epoch = 0, .step = 2});
  EXPECT_EQ(read_file(file), "{\"event\":\"step\",\"step\":0}\n{\"event\":\"step\",\"step\":1}\n");
}

TEST(Metrics, resume_starts_a_missing_file_anew) {
  const test::TemporaryDirectory directory;
  const auto file = directory / "metrics.jsonl";
  MetricsLog metrics = MetricsLog::resume(file, {.epoch = 1, .step = 5});
  metrics.write(RunMetrics{});
  EXPECT_EQ(events(file).size(), 1U);
}

TEST(Metrics, a_full_disk_or_missing_directory_is_a_resource_error) {
  const test::TemporaryDirectory directory;
  std::filesystem::create_symlink("/dev/full", directory / "full");
  MetricsLog metrics = MetricsLog::create(directory / "full");
  EXPECT_EQ(message_of<ResourceError>([&] { metrics.write(StepMetrics{}); }),
            "cannot write the metrics " + (directory / "full").string() + ": No space left on device");
  EXPECT_EQ(message_of<ResourceError>([&] { MetricsLog::create(directory / "no/file"); }),
            "cannot write the metrics " + (directory / "no/file").string() + ": No such file or directory");
}

}  // namespace
}  // namespace halograd
