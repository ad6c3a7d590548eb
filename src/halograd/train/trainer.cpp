#include "halograd/train/trainer.hpp"

#include "halograd/core/error.hpp"
#include "halograd/core/log.hpp"
#include "halograd/core/parallel.hpp"
#include "halograd/core/system.hpp"
#include "halograd/optim/schedule.hpp"

#include <algorithm>
#include <cmath>

namespace halograd {
namespace {

DatasetOptions dataset_options(const Config& config, const Network& network) {
  return {.path = config.data.path,
          .format = config.data.format,
          .shape = network.input(),
          .split = config.data.split,
          .seed = static_cast<std::uint64_t>(config.data.seed)};
}

SamplerOptions sampler_options(const Config& config) {
  return {.batch = config.train.batch_size, .shuffle = true, .seed = static_cast<std::uint64_t>(config.train.seed)};
}

}  // namespace

Trainer::Trainer(const Communicator& world, const Config& config, const TrainerOptions& options)
    : world_(world),
      config_(config),
      options_(options),
      directory_(options.run_directory),
      network_(build_network(config.model)),
      dataset_(Dataset::open(world, dataset_options(config, network_))),
      executor_(network_, world, executor_options(config, world.size())),
      sampler_(dataset_.samples(Split::train), sampler_options(config)),
      store_(directory_.checkpoints(), config.train.checkpoints_kept) {
  if (sampler_.samples() == 0)
    throw DataError("{}: no sample is left for training: data.split gives it none", config.data.path);
  const std::int64_t batch = std::min(config.train.batch_size, sampler_.samples());
  feed_.emplace(executor_, executor_.prepare(Mode::train, batch), dataset_, input_transform(config.data));
  open_run();
}

void Trainer::open_run() {
  agree(world_, [&] {
    if (leads()) directory_.open(options_.resume ? RunStart::resume : RunStart::fresh, config_);
  });
  state_.seed = config_.train.seed;
  if (options_.resume) {
    std::string newest;
    agree(world_, [&] {
      if (!leads()) return;
      const auto file = store_.newest_good();
      if (file) newest = file->string();
    });
    newest = world_.all_gather(newest).front();
    if (!newest.empty()) {
      const auto arrays = training_arrays(executor_.parameters(), executor_.optimizer());
      load_arrays(world_, newest, arrays, &state_);
      executor_.parameters().changed();
      executor_.optimizer().set_steps(state_.optimizer_steps);
      epoch_loss_sum_ = state_.values["epoch_loss_sum"];
      epoch_samples_ = state_.batch * config_.train.batch_size;
      last_written_ = state_.step;
      log::info("resuming from {} (epoch {}, step {})", newest, state_.epoch, state_.step);
    }
  } else if (!config_.train.initial_checkpoint.empty()) {
    load_arrays(world_, config_.train.initial_checkpoint, model_arrays(executor_.parameters()), nullptr);
    executor_.parameters().changed();
    log::info("starting from the weights in {}", config_.train.initial_checkpoint);
  }
  agree(world_, [&] {
    if (leads()) begin_metrics();
  });
  if (leads()) progress_ = Progress(ProgressOptions::standard());
}

void Trainer::begin_metrics() {
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
                             .arena_bytes = executor_.arena_bytes()});
  log::info(
      "{} {}: {} parameters, {} training samples, grid {} with {} data-parallel group{}, {} thread{} a rank, {} of "
      "activations on rank 0, messages by {}",
      config_.model.name, config_.model.width, network_.trainable_parameters(), sampler_.samples(), grid.spatial_name(),
      grid.data, grid.data == 1 ? "" : "s", thread_count(), thread_count() == 1 ? "" : "s",
      format_bytes(static_cast<double>(executor_.arena_bytes())), world_.on_one_node() ? "shared memory" : "MPI");
}

bool Trainer::done() const {
  return state_.epoch >= config_.train.epochs || (options_.max_steps && state_.step >= *options_.max_steps);
}

void Trainer::run() {
  if (last_written_ < 0) write_checkpoint(false);
  progress_.begin(config_.train.epochs, sampler_.batches_per_epoch(), now_seconds());
  while (!done()) run_epoch();
  if (last_written_ != state_.step) write_checkpoint(false);
  if (state_.epoch >= config_.train.epochs) finish_run();
}

void Trainer::run_epoch() {
  const std::int64_t batches = sampler_.batches_per_epoch();
  const double begin = now_seconds();
  feed_->request(sampler_.mini_batch(state_.epoch, state_.batch));
  while (state_.batch < batches && !done()) {
    const std::int64_t batch = state_.batch;
    const bool last = batch + 1 == batches || (options_.max_steps && state_.step + 1 >= *options_.max_steps);
    if (!last) feed_->request(sampler_.mini_batch(state_.epoch, batch + 1));
    run_step(batch);
    const std::int64_t every = config_.train.checkpoint_every_steps;
    if (every > 0 && state_.step % every == 0 && state_.batch < batches) write_checkpoint(false);
  }
  epoch_seconds_ = now_seconds() - begin;
  if (state_.batch == batches) finish_epoch();
}

void Trainer::run_step(std::int64_t batch_index) {
  const double begin = now_seconds();
  const MiniBatch& batch = feed_->next();
  const double fed = now_seconds();
  const LinearSchedule schedule{.initial = config_.train.learning_rate,
                                .final_fraction = config_.train.lr_final,
                                .decay_steps = config_.train.lr_decay_epochs * sampler_.batches_per_epoch()};
  const double rate = schedule.at(state_.step);
  const StepResult result = executor_.train(batch, state_.step, rate);
  if (!std::isfinite(result.loss)) {
    throw NumericalError(
        "the loss of step {} (epoch {}) is {}: lower train.learning_rate; the last good checkpoint is "
        "that of step {}",
        state_.step, state_.epoch, result.loss, last_written_);
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
      for (const std::int64_t sample : sampler_.mini_batch(state_.epoch, batch_index)) {
        step.files->push_back(dataset_.name(sample));
      }
    }
    metrics_->write(step);
  }
  ++state_.step;
  ++state_.batch;
  progress_.step(state_.epoch, state_.batch, batch.size, result.loss, end);
}

void Trainer::finish_epoch() {
  progress_.pause();
  const Evaluation validation =
      evaluate(executor_, dataset_, Split::validation, config_.train.batch_size, input_transform(config_.data));
  const double train_loss = epoch_loss_sum_ / static_cast<double>(epoch_samples_);
  const double speed = static_cast<double>(epoch_samples_) / epoch_seconds_;
  if (leads()) {
    metrics_->write(EpochMetrics{.epoch = state_.epoch,
                                 .train_loss = train_loss,
                                 .validation_loss = validation.loss,
                                 .seconds = epoch_seconds_,
                                 .samples_per_second = speed});
    progress_.line(
        format_epoch(state_.epoch, config_.train.epochs, train_loss, validation.loss, epoch_seconds_, speed));
  }
  ++state_.epoch;
  state_.batch = 0;
  epoch_loss_sum_ = 0;
  epoch_samples_ = 0;
  const bool best = validation.loss < state_.best_validation_loss;
  if (best) state_.best_validation_loss = validation.loss;
  const std::int64_t every = config_.train.checkpoint_every_epochs;
  const bool due = every > 0 && state_.epoch % every == 0;
  if (best || due) write_checkpoint(best);
}

void Trainer::write_checkpoint(bool best) {
  progress_.pause();
  agree(world_, [&] {
    if (!leads()) return;
    state_.optimizer_steps = executor_.optimizer().steps();
    state_.values["epoch_loss_sum"] = epoch_loss_sum_;
    state_.config = to_toml(config_);
    state_.version = options_.version;
    metrics_->sync();
    store_.write(state_, training_arrays(executor_.parameters(), executor_.optimizer()), best);
  });
  last_written_ = state_.step;
}

void Trainer::finish_run() {
  const Evaluation test =
      evaluate(executor_, dataset_, Split::test, config_.train.batch_size, input_transform(config_.data));
  if (!leads()) return;
  const nlohmann::ordered_json metrics = cosmology_metrics(test);
  metrics_->write_test(metrics);
  progress_.line("test: " + metrics.dump());
  progress_.line("results in " + directory_.root().string());
}

}  // namespace halograd
