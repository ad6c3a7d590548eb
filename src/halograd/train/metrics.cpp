#include "halograd/train/metrics.hpp"

#include "halograd/core/durable_file.hpp"
#include "halograd/core/error.hpp"
#include "halograd/core/log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include <cerrno>
#include <fstream>
#include <system_error>
#include <utility>

namespace halograd {
namespace {

using Json = nlohmann::ordered_json;

/// Whether a line of an interrupted run's metrics happened before the checkpoint.
bool happened_before(const Json& event, const MetricsCut& cut) {
  const auto kind = event.find("event");
  if (kind == event.end()) return false;
  const auto below = [&](const char* name, std::int64_t limit) {
    const auto number = event.find(name);
    return number != event.end() && number->is_number_integer() && number->get<std::int64_t>() < limit;
  };
  if (*kind == "step") return below("step", cut.step);
  if (*kind == "epoch") return below("epoch", cut.epoch);
  return *kind != "test";
}

struct KeptLines {
  std::string text;
  bool has_run = false;
};

KeptLines kept_lines(const std::filesystem::path& file, const MetricsCut& cut) {
  std::ifstream stream(file, std::ios::binary);
  KeptLines kept;
  std::int64_t number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    Json event = Json::parse(line, nullptr, false);
    if (!event.is_object()) {
      if (stream.peek() != std::ifstream::traits_type::eof()) {
        log::warn("{}:{} is no JSON object: left out", file.string(), number);
      }
      continue;
    }
    if (!happened_before(event, cut)) continue;
    kept.has_run = kept.has_run || event["event"] == "run";
    kept.text += line + '\n';
  }
  return kept;
}

}  // namespace

MetricsLog::MetricsLog(const std::filesystem::path& file, bool truncate) : file_(file) {
  descriptor_ = open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (truncate ? O_TRUNC : 0), 0666);
  if (descriptor_ < 0) {
    throw ResourceError("cannot write the metrics {}: {}", file.string(), std::generic_category().message(errno));
  }
}

MetricsLog::MetricsLog(MetricsLog&& other) noexcept
    : file_(std::move(other.file_)), descriptor_(std::exchange(other.descriptor_, -1)), has_run_(other.has_run_) {}

MetricsLog::~MetricsLog() {
  if (descriptor_ >= 0) close(descriptor_);
}

MetricsLog MetricsLog::create(const std::filesystem::path& file) {
  return {file, true};
}

MetricsLog MetricsLog::resume(const std::filesystem::path& file, const MetricsCut& cut) {
  if (!std::filesystem::exists(file)) {
    log::warn("{} is missing: the metrics begin anew", file.string());
    return create(file);
  }
  const KeptLines kept = kept_lines(file, cut);
  write_durably(file, kept.text);
  MetricsLog metrics(file, false);
  metrics.has_run_ = kept.has_run;
  return metrics;
}

void MetricsLog::write(const RunMetrics& run) {
  if (has_run_) return;
  write_line({{"event", "run"},
              {"version", run.version},
              {"ranks", run.ranks},
              {"grid", run.grid},
              {"data_groups", run.data_groups},
              {"threads", run.threads},
              {"parameters", run.parameters},
              {"arena_bytes", run.arena_bytes}});
  has_run_ = true;
}

void MetricsLog::write(const StepMetrics& step) {
  Json event{{"event", "step"},
             {"epoch", step.epoch},
             {"step", step.step},
             {"loss", step.loss},
             {"learning_rate", step.learning_rate},
             {"seconds", step.seconds},
             {"io_seconds", step.io_seconds},
             {"comm_seconds", step.comm_seconds},
             {"samples", step.samples}};
  if (step.files) event["files"] = *step.files;
  write_line(event);
}

void MetricsLog::write(const EpochMetrics& epoch) {
  Json event{{"event", "epoch"},
             {"epoch", epoch.epoch},
             {"train_loss", epoch.train_loss},
             {"validation_loss", epoch.validation_loss},
             {"seconds", epoch.seconds},
             {"samples_per_second", epoch.samples_per_second},
             {"file_bytes", epoch.file_bytes}};
  if (!epoch.dice.is_null()) event["validation_dice"] = epoch.dice;
  write_line(event);
}

void MetricsLog::write_test(const nlohmann::ordered_json& metrics) {
  Json event{{"event", "test"}};
  event.update(metrics);
  write_line(event);
}

void MetricsLog::write_line(const nlohmann::ordered_json& event) {
  // A file name may be no UTF-8: its wrong bytes are replaced rather than the line refused.
  const std::string line = event.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
  std::size_t done = 0;
  while (done < line.size()) {
    const ssize_t written = ::write(descriptor_, line.data() + done, line.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      throw ResourceError("cannot write the metrics {}: {}", file_.string(), std::generic_category().message(errno));
    }
    done += static_cast<std::size_t>(written);
  }
}

void MetricsLog::sync() {
  sync_path(file_);
}

}  // namespace halograd
