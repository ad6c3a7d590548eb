#pragma once

#include "halograd/data/dataset.hpp"
#include "halograd/exec/executor.hpp"
#include "halograd/train/batch_feed.hpp"
#include "halograd/train/checkpoint.hpp"
#include "halograd/train/config.hpp"

#include <vector>

namespace halograd {

/// Collective. load_config on every rank; throws on all alike where one fails or is configured otherwise than the
/// rest, who would wait for each other for ever. Where the data lie may differ: each node may have its own disk.
Config load_same_config(const Communicator& world, const std::filesystem::path& file,
                        std::span<const std::string> overrides);

/// The network that [model] describes. Throws UsageError naming the key that does not fit.
Network build_network(const ModelConfig& model);

/// How [parallel] and [train] want it run on `ranks` ranks. Throws UsageError where the grid does not divide them.
/// On processors: for plans that nobody runs.
ExecutorOptions executor_options(const Config& config, std::int64_t ranks);
/// Collective. Likewise, on the device that each rank of `world` computes with. Throws ResourceError where it can't be
/// used.
ExecutorOptions executor_options(const Config& config, const Communicator& world);

/// The samples that [data] describes, for a network that takes `shape`.
DatasetOptions dataset_options(const DataConfig& data, const GlobalShape& shape);

/// What [data] wants done to each number of the input.
ValueTransform value_transform(const DataConfig& data);

/// How [data] wants samples read, changed and kept, and [model] their labels.
FeedOptions feed_options(const Config& config);

/// How many numbers `array` has.
std::int64_t element_count(const NamedArray& array);

/// The parameters as checkpoints name them: /model/<layer>/<name>.
std::vector<NamedArray> model_arrays(ParameterStore& parameters);

/// Those and the optimiser's state: /optimizer/<slot>/<layer>/<name>.
std::vector<NamedArray> training_arrays(ParameterStore& parameters, Optimizer& optimizer);

/// Collective. Reads `arrays` from `file` on rank 0 and hands them to all; `state` too where it is wanted (a full
/// checkpoint, not weights alone). Throws DataError on all ranks alike.
void load_arrays(const Communicator& world, const std::filesystem::path& file, std::span<const NamedArray> arrays,
                 CheckpointState* state);

/// Collective. Takes the weights of a checkpoint, or of a file of weights alone, into `executor`. Throws as
/// load_arrays.
void load_weights(Executor& executor, const std::filesystem::path& file);

}  // namespace halograd
