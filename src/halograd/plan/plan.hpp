#pragma once

#include "halograd/kernels/chain.hpp"
#include "halograd/kernels/conv3d.hpp"
#include "halograd/kernels/dense.hpp"
#include "halograd/nn/network.hpp"
#include "halograd/plan/exchange_plan.hpp"
#include "halograd/tensor/process_grid.hpp"

#include <array>
#include <string>
#include <vector>

namespace halograd {

enum class Mode { train, evaluate, predict };

/// Over which ranks batch normalisation takes its statistics: the whole mini-batch, or one spatial group's samples.
enum class StatisticsScope { global, spatial };

/// A buffer's place in the arena and the steps between which it lives (first start to last wait that touches it).
struct BufferPlan {
  std::string name;
  std::int64_t bytes = 0;
  bool external = false;  ///< not in the arena: the network's input, which lies where the step's input slot is
  std::int64_t offset = 0;
  int first_step = -1;
  int last_step = -1;
};

constexpr BufferId no_buffer = -1;
constexpr int no_parameter = -1;

// Units: what this rank computes for one fused group of layers, with its local shapes and buffers. Steps refer to them.

struct ConvolutionUnit {
  std::string name;
  Conv3dDesc desc;
  int weight = no_parameter;
  BufferId x = no_buffer;
  BufferId y = no_buffer;   ///< backward: dy stands here too
  BufferId dx = no_buffer;  ///< none where nothing below needs it
};

struct ChainUnit {
  std::string name;
  ChainDesc desc;
  int gamma = no_parameter;  ///< beta, running_mean and running_var follow it
  double epsilon = 0;
  double decay = 0;
  double statistics_count = 0;     ///< elements a channel that share the statistics, over all ranks
  bool statistics_travel = false;  ///< whether other ranks have a part in them
  bool contributes = true;         ///< whether this rank's voxels count (of replicas, one does)
  bool writes_gradient = true;     ///< of the ranks that know the summed gradients of gamma and beta, one writes them
  std::uint32_t dropout_index = 0;
  std::int64_t first_sample = 0;  ///< of this group, in the global mini-batch
  BufferId y = no_buffer;         ///< backward: dy is written over it
  BufferId dst = no_buffer;
  BufferId dout = no_buffer;
  BufferId argmax = no_buffer;
  BufferId statistics = no_buffer;  ///< f64 [2C] moments or sums, then f32 [2C] mean and inverse deviation
  FaceTiles faces;
  FaceTiles dfaces;
  FaceTiles received;
  std::vector<Box> forward_parts;  ///< shell first, the interior last
  std::vector<Box> sum_parts;      ///< the interior first, then what waits for neighbours' gradients
};

struct DenseUnit {
  std::string name;
  DenseDesc desc;
  int weight = no_parameter;  ///< the bias follows it
  BufferId x = no_buffer;
  BufferId y = no_buffer;
  BufferId dx = no_buffer;
};

struct FlattenUnit {
  std::string name;
  LocalShape shape;
  BufferId x = no_buffer;  ///< backward: dx is written over it
  BufferId y = no_buffer;
  BufferId dy = no_buffer;
};

struct LossUnit {
  std::string name;
  BufferId prediction = no_buffer;  ///< training: its gradient is written over it
  BufferId target = no_buffer;
  std::int64_t elements = 0;   ///< local
  double global_elements = 0;  ///< of the whole mini-batch
  bool contributes = true;     ///< to the sum over ranks
};

/// What the network takes: own voxels go into `tile` ([N, tile.box, C] f32), which may hold margins too. Its box
/// depends on network, grid and input partition alone, so that plans of every mode and batch can take it from the same
/// place.
struct InputUnit {
  GlobalShape shape;
  Box own;
  Tile tile;
  Tile gradient;  ///< with CompileOptions::input_gradient: where the input's gradient is left
};

/// What it gives: the prediction (before the loss) on this rank, [N, own, C] f32.
struct OutputUnit {
  GlobalShape shape;
  Box own;
  bool leads = true;  ///< of the ranks that hold this box of these samples, the one to report it
  BufferId buffer = no_buffer;
};

/// A copy of `region` from one buffer's box to another's on this rank.
struct CopyUnit {
  std::string name;
  std::int64_t samples = 0;
  std::int64_t channels = 0;
  Tile from;
  Tile to;
  Box region;
  bool clear = false;  ///< zero the target first: a gradient that is not all there
};

/// A run of parameters, neighbours in the flat gradient array, that is summed over all ranks in one go. Replicas of a
/// layer hold the same gradient: one of them contributes.
struct BucketUnit {
  std::int64_t offset = 0;  ///< elements
  std::int64_t count = 0;
  bool contributes = true;
};

enum class StepKind {
  load_input,
  convolution_forward,
  convolution_backward_data,
  convolution_backward_weights,
  chain_moments,
  statistics_start,  ///< sums over ranks, then mean and deviation, and the running averages
  statistics_wait,
  running_statistics,  ///< evaluation: mean and deviation from the running averages
  chain_forward,       ///< part: which of forward_parts
  chain_backward_faces,
  chain_backward_sums,  ///< part: which of sum_parts
  sums_start,
  sums_wait,
  chain_backward_data,
  exchange_start,
  exchange_wait,
  copy,
  flatten_forward,
  flatten_backward,
  dense_forward,
  dense_backward_data,
  dense_backward_weights,
  loss,
  loss_sum_start,
  loss_sum_wait,
  bucket_start,
  bucket_wait,
  update,
};
const char* step_kind_name(StepKind kind);

enum class Phase { forward, backward, update };

/// One thing a rank does. `unit` indexes the list its kind works on.
struct Step {
  StepKind kind{};
  int unit = 0;
  int part = 0;
  Phase phase = Phase::forward;
  int start = -1;  ///< of a wait: the step it waits for
  std::vector<BufferId> touches;
  double flops = 0;
  double bytes = 0;                ///< read and written in memory
  std::int64_t message_bytes = 0;  ///< sent by this rank
};

/// A parameter's place in the flat arrays of weights, gradients and optimiser state: in the order in which the backward
/// pass finishes them, so that buckets are contiguous. The untrained ones stand behind the trained.
struct ParameterPlan {
  ParameterSpec spec;
  std::int64_t offset = 0;
};

/// Where a layer's tensors lie, for summaries.
struct LayerPlacement {
  std::string layer;
  GlobalShape out;
  std::string partition;   ///< of the output, "2x1x1"
  bool resharded = false;  ///< its input was moved to a coarser partition first
};

/// The network compiled for one rank: what it does, in order, and where everything lies.
struct Plan {
  ProcessGrid grid;
  std::int64_t rank = 0;
  std::int64_t batch = 0;  ///< global
  SampleRange samples;     ///< this rank's group's share of it
  Mode mode = Mode::train;
  StatisticsScope scope = StatisticsScope::global;

  std::vector<Step> steps;
  std::vector<BufferPlan> buffers;
  std::int64_t arena_bytes = 0;

  InputUnit input;
  OutputUnit output;
  std::vector<ConvolutionUnit> convolutions;
  std::vector<ChainUnit> chains;
  std::vector<DenseUnit> denses;
  std::vector<FlattenUnit> flattens;
  std::vector<LossUnit> losses;
  std::vector<ExchangePlan> exchanges;
  std::vector<CopyUnit> copies;
  std::vector<BucketUnit> buckets;
  std::vector<ParameterPlan> parameters;  ///< in network order
  std::int64_t trainable_elements = 0;
  std::int64_t parameter_elements = 0;  ///< the untrained ones too
  std::vector<LayerPlacement> placements;

  [[nodiscard]] std::int64_t input_bytes() const;           ///< of the input's buffer, which is not in the arena
  [[nodiscard]] std::int64_t halo_bytes_sent() const;       ///< a step's exchanges
  [[nodiscard]] std::int64_t message_buffer_bytes() const;  ///< held for them
  /// Weights, gradients and `optimizer_slots` state arrays, in bytes.
  [[nodiscard]] std::int64_t parameter_bytes(int optimizer_slots) const;
};

}  // namespace halograd
