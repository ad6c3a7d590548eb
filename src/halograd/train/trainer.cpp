#include "halograd/train/trainer.hpp"

#include "halograd/core/error.hpp"
#include "halograd/core/log.hpp"
#include "halograd/core/parallel.hpp"
#include "halograd/core/system.hpp"
#include "halograd/optim/schedule.hpp"
#include "halograd/train/algorithm_file.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace halograd {
namespace {

constexpr const char* samples_counter = "data/samples";

/// Whether a change of this key would make another run of it: another network, other data, another order, another
/// optimiser.
bool makes_another_run(const std::string& key) {
  return key.starts_with("model.") || key.starts_with("data.augment_") || key == "data.split" || key == "data.seed" ||
         key == "data.format" || key == "data.transform" || key == "data.intensity_window" || key == "data.subvolume" ||
         key == "train.batch_size" || key == "train.seed" || key == "train.optimizer" || key == "train.momentum" ||
         key == "parallel.batch_norm_statistics";
}

/// Refuses to go on from a checkpoint of another run.
void check_same_run(const std::filesystem::path& checkpoint, const Config& config, const Dataset& dataset) {
  const CheckpointState before = read_checkpoint_state(checkpoint);
  for (const ConfigDifference& difference :
       config_differences(parse_config(before.config, checkpoint.string()), config)) {
    if (!makes_another_run(difference.key)) continue;
    throw UsageError("{} is of another configuration: {}; to resume take the run's own, or begin a new --run-dir",
                     checkpoint.string(), difference.text());
  }
  const auto samples = before.counters.find(samples_counter);
  if (samples != before.counters.end() && samples->second != dataset.size()) {
    throw DataError("{}: holds {} samples, but the run that {} is of had {}; to resume take the same data",
                    config.data.path, dataset.size(), checkpoint.string(), samples->second);
  }
}

/// The steps that the learning rate falls for; more than can be counted are no fall.
std::int64_t decay_steps(const TrainConfig& train, std::int64_t batches_per_epoch) {
  const std::int64_t epochs =
      std::min(train.lr_decay_epochs, std::numeric_limits<std::int64_t>::max() / batches_per_epoch);
  return epochs * batches_per_epoch;
}

/// ", mean Dice 0.87", of a network that segments.
std::string dice_text(const nlohmann::ordered_json& metrics) {
  const auto dice = metrics.find("mean_dice");
  return dice == metrics.end() || dice->is_null() ? "" : fmt::format(", mean Dice {:.3f}", dice->get<double>());
}

ExecutorOptions trainer_options(const Config& config, const Communicator& world) {
  ExecutorOptions options = executor_options(config, world);
  options.input_slots = 2;
  return options;
}

bool all_finite(std::span<const NamedArray> arrays) {
  return std::ranges::all_of(arrays, [](const NamedArray& array) {
    const float* const end = array.data + element_count(array);
    return std::all_of(static_cast<const float*>(array.data), end, [](float value) { return std::isfinite(value); });
  });
}

}  // namespace

Trainer::Trainer(const Communicator& world, const Config& config, const TrainerOptions& options)
    : world_(world),
      config_(config),
      options_(options),
      directory_(options.run_directory),
      network_(build_network(config.model)),
      dataset_(Dataset::open(world, dataset_options(config.data, network_.input()))),
      executor_(network_, world, trainer_options(config, world)),
      batches_per_epoch_(
          Sampler(dataset_.samples(Split::train), {.batch = config.train.batch_size}).batches_per_epoch()),
      store_(directory_.checkpoints(), config.train.checkpoints_kept) {
  if (batches_per_epoch_ == 0)
    throw DataError("{}: no sample is left for training: data.split gives it none", config.data.path);
  if (options_.resume) load_algorithms(world_, directory_.algorithms());
  for (const auto& [mode, split] :
       {std::pair{Mode::evaluate, Split::validation}, {Mode::evaluate, Split::test}, {Mode::train, Split::train}}) {
    const std::int64_t batch = std::min(config.train.batch_size, samples_in(split));
    if (batch > 0) executor_.prepare(mode, batch);
  }
  open_run();
}

void Trainer::open_run() {
  std::string newest;
  agree(world_, [&] {
    if (!leads()) return;
    if (options_.resume) newest = store_.newest_good().value_or("").string();
    if (!newest.empty()) check_same_run(newest, config_, dataset_);
    directory_.check(start());
  });
  newest = world_.all_gather(newest).front();
  const std::string beginning = load_beginning(newest);
  open_feed();
  const std::int64_t arena_bytes = world_.all_reduce_max(executor_.arena_bytes());
  agree(world_, [&] {
    if (!leads()) return;
    directory_.open(start(), config_);
    if (!beginning.empty()) log::info(beginning);
    begin_metrics(arena_bytes);
  });
  save_algorithms(world_, directory_.algorithms());
  if (leads()) progress_ = Progress(ProgressOptions::standard());
}

/// From a checkpoint, given weights, or nothing; says which.
std::string Trainer::load_beginning(const std::string& checkpoint) {
  const std::string& weights = config_.train.initial_checkpoint;
  state_.seed = config_.train.seed;
  if (!weights.empty()) executor_.continue_running_averages();
  if (!checkpoint.empty()) {
    load_state(checkpoint);
    return fmt::format("resuming from {} (epoch {}, step {})", checkpoint, state_.epoch, state_.step);
  }
  if (weights.empty()) return "";
  load_weights(executor_, weights);
  return fmt::format("starting from the weights in {}", weights);
}

void Trainer::load_state(const std::string& file) {
  load_arrays(world_, file, training_arrays(executor_.parameters(), executor_.optimizer()), &state_);
  executor_.parameters().changed();
  executor_.optimizer().to_device();
  executor_.optimizer().set_steps(state_.optimizer_steps);
  epoch_loss_sum_ = state_.values["epoch_loss_sum"];
  epoch_samples_ = state_.batch * config_.train.batch_size;
  epoch_seconds_ = state_.values["epoch_seconds"];
  last_written_ = state_.step;
}

void Trainer::open_feed() {
  RunScheduleOptions schedule{.batch = config_.train.batch_size,
                              .seed = static_cast<std::uint64_t>(config_.train.seed),
                              .epochs = config_.train.epochs,
                              .first_epoch = state_.epoch,
                              .first_batch = state_.batch};
  if (options_.max_steps) schedule.steps = *options_.max_steps - state_.step;
  const std::int64_t batch = std::min(config_.train.batch_size, samples_in(Split::train));
  feed_.emplace(executor_, executor_.prepare(Mode::train, batch), dataset_, feed_options(config_),
                RunSchedule(dataset_, schedule));
}

void Trainer::begin_metrics(std::int64_t arena_bytes) {
  if (options_.resume) {
    metrics_.emplace(MetricsLog::resume(directory_.metrics_file(), {.epoch = state_.epoch, .step = state_.step}));
  } else {
    metrics_.emplace(MetricsLog::create(directory_.metrics_file()));
  }
  const ProcessGrid& grid = executor_.options().grid;
  metrics_->write(RunMetrics{.version = options_.version,
                             .ranks = world_.size(),
                             .grid = grid.spatial_name(),
                             .data_groups = grid.data,
                             .threads = thread_count(),
                             .parameters = network_.trainable_parameters(),
                             .arena_bytes = arena_bytes});
  for (const std::string& note : feed_->notes()) log::info(note);
  const auto count = [](std::int64_t number, const char* what) {
    return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
  };
  const bool on_processor = executor_.queue().works_at_once();
  const std::string way = !on_processor ? executor_.transport() : world_.uses_shared_memory() ? "shared memory" : "MPI";
  log::info("{} {}: {} parameters, {}, grid {} with {}, {} a rank, {} on {}, {} of activations{}", config_.model.name,
            config_.model.width, network_.trainable_parameters(), count(samples_in(Split::train), "training sample"),
            grid.spatial_name(), count(grid.data, "data-parallel group"), count(thread_count(), "thread"),
            config_.train.precision, executor_.device().name(), format_bytes(static_cast<double>(arena_bytes)),
            world_.size() == 1 ? "" : ", messages by " + way);
}

bool Trainer::done() const {
  return state_.epoch >= config_.train.epochs || (options_.max_steps && state_.step >= *options_.max_steps);
}

void Trainer::run() {
  if (last_written_ < 0) write_checkpoint(false);
  progress_.begin(config_.train.epochs, batches_per_epoch_, now_seconds());
  while (!done()) run_epoch();
  if (last_written_ != state_.step) write_checkpoint(false);
  if (state_.epoch >= config_.train.epochs) finish_run();
}

void Trainer::run_epoch() {
  const double begin = now_seconds() - epoch_seconds_;
  while (state_.batch < batches_per_epoch_ && !done()) {
    run_step();
    const std::int64_t every = config_.train.checkpoint_every_steps;
    epoch_seconds_ = now_seconds() - begin;
    if (every > 0 && state_.step % every == 0 && state_.batch < batches_per_epoch_) write_checkpoint(false);
  }
  if (state_.batch == batches_per_epoch_) finish_epoch();
}

void Trainer::run_step() {
  const double begin = now_seconds();
  const MiniBatch& batch = feed_->next();
  const double fed = now_seconds();
  const LinearSchedule schedule{.initial = config_.train.learning_rate,
                                .final_fraction = config_.train.lr_final,
                                .decay_steps = decay_steps(config_.train, batches_per_epoch_)};
  const double rate = schedule.at(state_.step);
  const StepResult result = executor_.train(batch, state_.step, rate);
  if (!std::isfinite(result.loss)) {
    set_aside_untried();
    throw not_finite("the loss", result.loss);
  }
  const double end = now_seconds();
  epoch_loss_sum_ += result.loss * static_cast<double>(batch.size);
  epoch_samples_ += batch.size;
  if (leads()) {
    StepMetrics step{.epoch = state_.epoch,
                     .step = state_.step,
                     .loss = result.loss,
                     .learning_rate = rate,
                     .seconds = end - begin,
                     .io_seconds = fed - begin,
                     .comm_seconds = result.communication_seconds,
                     .samples = batch.size};
    if (config_.train.log_samples) {
      step.files.emplace();
      for (const std::int64_t sample : feed_->scheduled().samples) step.files->push_back(dataset_.name(sample));
    }
    metrics_->write(step);
  }
  ++state_.step;
  ++state_.batch;
  progress_.step(state_.epoch, state_.batch, batch.size, result.loss, end);
}

void Trainer::finish_epoch() {
  progress_.pause();
  const Evaluation validation = evaluate(executor_, *feed_, dataset_, Split::validation);
  if (validation.samples > 0 && !std::isfinite(validation.loss)) {
    throw not_finite("the validation loss", validation.loss);
  }
  const double train_loss = epoch_loss_sum_ / static_cast<double>(epoch_samples_);
  const double speed = static_cast<double>(epoch_samples_) / epoch_seconds_;
  double file_bytes = static_cast<double>(feed_->file_bytes() - file_bytes_told_);
  file_bytes_told_ = feed_->file_bytes();
  world_.all_reduce_sum(&file_bytes, 1);
  if (leads()) {
    metrics_->write(EpochMetrics{.epoch = state_.epoch,
                                 .train_loss = train_loss,
                                 .validation_loss = validation.loss,
                                 .seconds = epoch_seconds_,
                                 .samples_per_second = speed,
                                 .file_bytes = static_cast<std::int64_t>(file_bytes),
                                 .dice = validation.metrics.value("dice", nlohmann::ordered_json())});
    progress_.line(
        format_epoch(state_.epoch, config_.train.epochs, train_loss, validation.loss, epoch_seconds_, speed) +
        dice_text(validation.metrics));
  }
  ++state_.epoch;
  state_.batch = 0;
  epoch_loss_sum_ = 0;
  epoch_samples_ = 0;
  epoch_seconds_ = 0;
  const bool best = validation.loss < state_.best_validation_loss;
  if (best) state_.best_validation_loss = validation.loss;
  const auto due = [](std::int64_t every, std::int64_t count) { return every > 0 && count % every == 0; };
  if (best || due(config_.train.checkpoint_every_epochs, state_.epoch) ||
      due(config_.train.checkpoint_every_steps, state_.step)) {
    write_checkpoint(best);
  }
}

NumericalError Trainer::not_finite(const std::string& what, double value) const {
  return not_finite(what, std::isnan(value) ? "not a number" : "infinite");
}

NumericalError Trainer::not_finite(const std::string& what, const char* value) const {
  const std::string good = last_written_ < 0
                               ? "there is no good checkpoint"
                               : fmt::format("the last good checkpoint is that of step {}", last_written_);
  return NumericalError("{} is {} at step {} (epoch {}): lower train.learning_rate; {}", what, value, state_.step,
                        state_.epoch, good);
}

/// A checkpoint is good once a step from it has given a finite loss. One that has not is left to look at, but not to be
/// resumed from.
void Trainer::set_aside_untried() {
  if (last_written_ != state_.step) return;
  std::int64_t good = -1;
  agree(world_, [&] {
    if (!leads()) return;
    if (state_.step > 0) store_.set_aside_later_than(state_.step - 1);
    const std::vector<std::int64_t> left = store_.steps();
    if (!left.empty() && left.back() < state_.step) good = left.back();
  });
  last_written_ = world_.all_reduce_max(good);
}

void Trainer::write_checkpoint(bool best) {
  progress_.pause();
  agree(world_, [&] {
    executor_.parameters().to_host();
    executor_.optimizer().to_host();
    const std::vector<NamedArray> arrays = training_arrays(executor_.parameters(), executor_.optimizer());
    if (!all_finite(arrays)) throw not_finite("a weight", "not finite");
    if (!leads()) return;
    state_.counters[samples_counter] = dataset_.size();
    state_.optimizer_steps = executor_.optimizer().steps();
    state_.values["epoch_loss_sum"] = epoch_loss_sum_;
    state_.values["epoch_seconds"] = epoch_seconds_;
    state_.config = to_toml(config_);
    state_.version = options_.version;
    metrics_->sync();
    store_.write(state_, arrays, best);
  });
  last_written_ = state_.step;
}

void Trainer::finish_run() {
  const Evaluation test = evaluate(executor_, *feed_, dataset_, Split::test);
  if (test.samples > 0 && !std::isfinite(test.loss)) {
    throw not_finite("the test loss", test.loss);
  }
  if (!leads()) return;
  metrics_->write_test(test.metrics);
  if (test.samples > 0) progress_.line("test: " + format_metrics(test.metrics));
  progress_.line("results in " + directory_.root().string());
}

}  // namespace halograd
