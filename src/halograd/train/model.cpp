#include "halograd/train/model.hpp"

#include "halograd/core/error.hpp"
#include "halograd/core/system.hpp"
#include "halograd/exec/choose_device.hpp"
#include "halograd/models/cosmoflow.hpp"
#include "halograd/models/unet3d.hpp"

#include <algorithm>

namespace halograd {
namespace {

void broadcast(const Communicator& world, std::string& text) {
  text = world.all_gather(text).front();
}

void broadcast_state(const Communicator& world, CheckpointState& state) {
  for (std::int64_t* number : {&state.epoch, &state.step, &state.batch, &state.optimizer_steps, &state.seed}) {
    world.broadcast(number, sizeof *number, 0);
  }
  world.broadcast(&state.best_validation_loss, sizeof state.best_validation_loss, 0);
  broadcast(world, state.config);
  broadcast(world, state.version);
  for (const char* name : {"epoch_loss_sum", "epoch_seconds"}) {
    double& value = state.values[name];
    world.broadcast(&value, sizeof value, 0);
  }
}

}  // namespace

std::int64_t element_count(const NamedArray& array) {
  std::int64_t count = 1;
  for (const std::int64_t dim : array.dims) count *= dim;
  return count;
}

Config load_same_config(const Communicator& world, const std::filesystem::path& file,
                        std::span<const std::string> overrides) {
  Config config;
  agree(world, [&] { config = load_config(file, overrides); });
  const std::vector<std::string> all = world.all_gather(to_toml(config));
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    const Config first = parse_config(all[0], "the configuration of rank 0");
    const Config other = parse_config(all[rank], fmt::format("the configuration of rank {}", rank));
    for (const ConfigDifference& difference : config_differences(first, other)) {
      if (difference.key == "data.path" || difference.key == "data.store_dir" ||
          difference.key == "train.initial_checkpoint")
        continue;
      throw UsageError("{} is {} on rank 0 and {} on rank {}; start all ranks with the same configuration",
                       difference.key, difference.before, difference.after, rank);
    }
  }
  return config;
}

namespace {

SegmentationLoss segmentation_loss(const ModelConfig& model) {
  return {.cross_entropy = model.loss == "dice" ? 0.0 : 1.0,
          .dice = model.loss == "cross_entropy" ? 0.0 : 1.0,
          .class_weights = model.class_weights,
          .ignore_label = static_cast<int>(model.ignore_label)};
}

UnetNorm unet_norm(const ModelConfig& model) {
  if (!model.batch_norm) return UnetNorm::none;
  if (model.norm == "instance") return UnetNorm::instance;
  return model.norm == "group" ? UnetNorm::group : UnetNorm::batch;
}

}  // namespace

Network build_network(const ModelConfig& model) {
  if (model.name == "unet3d") {
    return unet3d({.width = model.width,
                   .channels = model.channels,
                   .classes = model.classes,
                   .base_channels = model.base_channels,
                   .norm = unet_norm(model),
                   .batch_norm_decay = model.batch_norm_decay,
                   .loss = segmentation_loss(model)});
  }
  return cosmoflow({.width = model.width,
                    .batch_norm = model.batch_norm,
                    .dropout_keep = static_cast<float>(model.dropout_keep),
                    .pool = model.pool == "max" ? PoolKind::max : PoolKind::average,
                    .pool_window = model.pool_window,
                    .batch_norm_decay = model.batch_norm_decay});
}

ExecutorOptions executor_options(const Config& config, std::int64_t ranks) {
  const bool adam = config.train.optimizer == "adam";
  return {.grid = ProcessGrid::parse(config.parallel.grid, ranks),
          .precision = config.train.precision == "bf16"   ? Precision::bf16
                       : config.train.precision == "tf32" ? Precision::tf32
                                                          : Precision::f32,
          .statistics =
              config.parallel.batch_norm_statistics == "spatial" ? StatisticsScope::spatial : StatisticsScope::global,
          .optimizer = {.kind = adam ? OptimizerKind::adam : OptimizerKind::sgd, .momentum = config.train.momentum},
          .seed = static_cast<std::uint64_t>(config.train.seed),
          .direct_convolutions = config.parallel.convolutions == "direct"};
}

ExecutorOptions executor_options(const Config& config, const Communicator& world) {
  ExecutorOptions options = executor_options(config, world.size());
  options.device = choose_device(config.parallel.device, world);
  return options;
}

DatasetOptions dataset_options(const DataConfig& data, const GlobalShape& shape) {
  return {.path = data.path,
          .format = data.format,
          .shape = shape,
          .subvolumes = data.subvolume > 0,
          .split = data.split,
          .seed = static_cast<std::uint64_t>(data.seed)};
}

ValueTransform value_transform(const DataConfig& data) {
  const InputTransform kind = data.transform == "log1p"    ? InputTransform::log1p
                              : data.transform == "window" ? InputTransform::window
                                                           : InputTransform::none;
  return {.kind = kind, .window = data.intensity_window};
}

FeedOptions feed_options(const Config& config) {
  const DataConfig& data = config.data;
  FeedOptions options{.transform = value_transform(data)};
  options.labels = {config.model.classes, static_cast<int>(config.model.ignore_label)};
  for (std::size_t i = 0; i < 3; ++i) options.augment.flip[i] = data.augment_flip.find("dhw"[i]) != std::string::npos;
  options.augment.scale = data.augment_scale;
  options.augment.shift = data.augment_shift;
  options.read.whole_samples = data.io == "sample";
  for (const ReadDriver driver : {ReadDriver::posix, ReadDriver::mpi_independent, ReadDriver::mpi_collective}) {
    if (data.driver == driver_name(driver)) options.read.driver = driver;
  }
  options.store.kind = data.store == "off"    ? StoreKind::off
                       : data.store == "disk" ? StoreKind::disk
                                              : StoreKind::memory;
  if (!data.store_budget.empty()) options.store.memory_budget = parse_bytes(data.store_budget);
  options.store.directory = data.store_dir;
  return options;
}

std::vector<NamedArray> model_arrays(ParameterStore& parameters) {
  std::vector<NamedArray> arrays;
  for (std::size_t i = 0; i < parameters.parameters().size(); ++i) {
    const ParameterSpec& spec = parameters.parameters()[i].spec;
    arrays.push_back({"/model/" + spec.layer + "/" + spec.name, spec.dims, parameters.value(static_cast<int>(i))});
  }
  return arrays;
}

std::vector<NamedArray> training_arrays(ParameterStore& parameters, Optimizer& optimizer) {
  std::vector<NamedArray> arrays = model_arrays(parameters);
  for (const Optimizer::State& slot : optimizer.states()) {
    for (const ParameterPlan& entry : parameters.parameters()) {
      if (!entry.spec.trainable) continue;
      arrays.push_back({"/optimizer/" + slot.name + "/" + entry.spec.layer + "/" + entry.spec.name, entry.spec.dims,
                        slot.values.data() + entry.offset});
    }
  }
  return arrays;
}

void load_arrays(const Communicator& world, const std::filesystem::path& file, std::span<const NamedArray> arrays,
                 CheckpointState* state) {
  agree(world, [&] {
    if (world.rank() != 0) return;
    if (state != nullptr) {
      *state = read_checkpoint(file, arrays);
    } else {
      read_weights(file, arrays);
    }
  });
  if (world.size() == 1) return;
  for (const NamedArray& array : arrays) {
    world.broadcast(array.data, element_count(array) * static_cast<std::int64_t>(sizeof(float)), 0);
  }
  if (state != nullptr) broadcast_state(world, *state);
}

void load_weights(Executor& executor, const std::filesystem::path& file) {
  load_arrays(executor.world(), file, model_arrays(executor.parameters()), nullptr);
  executor.parameters().changed();
}

}  // namespace halograd
