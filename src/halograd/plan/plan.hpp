#pragma once

#include "halograd/kernels/chain.hpp"
#include "halograd/kernels/conv3d.hpp"
#include "halograd/kernels/deconv3d.hpp"
#include "halograd/kernels/dense.hpp"
#include "halograd/kernels/segmentation_loss.hpp"
#include "halograd/kernels/upsample.hpp"
#include "halograd/nn/network.hpp"
#include "halograd/plan/exchange_plan.hpp"
#include "halograd/tensor/process_grid.hpp"

#include <array>
#include <string>
#include <variant>
#include <vector>

namespace halograd {

enum class Mode { train, evaluate, predict };

/// Over which ranks batch normalisation takes its statistics: the whole mini-batch, or one spatial group's samples.
enum class StatisticsScope { global, spatial };

/// A buffer's place in the arena and the steps between which it lives (first start to last wait that touches it).
struct BufferPlan {
  std::string name;
  std::int64_t bytes = 0;
  bool external = false;  ///< not in the arena: the network's input and labels, which lie where the step's slot is
  std::int64_t offset = 0;
  int first_step = -1;
  int last_step = -1;
};

constexpr BufferId no_buffer = -1;
constexpr int no_parameter = -1;

// Units: what this rank computes for one fused group of layers, with its local shapes and buffers. Steps refer to them.

/// A convolution or deconvolution.
struct ConvolutionUnit {
  std::string name;
  std::variant<Conv3dDesc, Deconv3dDesc> desc;
  double forward_flops = 0;  ///< those of either backward pass, too
  double bytes = 0;          ///< of x, y and the weights, which any of the three passes reads or writes
  int weight = no_parameter;
  Tile x;
  Tile y;
  Tile dx;  ///< no buffer where nothing below needs it
  Tile dy;  ///< may be y
};

struct ChainUnit {
  std::string name;
  ChainDesc desc;
  std::int64_t group_channels =
      0;                     ///< of group normalisation, whose statistics are of one sample; 0: batch normalisation
  int gamma = no_parameter;  ///< beta follows it, and of batch normalisation running_mean and running_var
  double epsilon = 0;
  double decay = 0;
  double statistics_count = 0;     ///< elements of each mean, over all ranks
  bool statistics_travel = false;  ///< whether other ranks have a part in them
  bool statistics_world = true;    ///< whether all ranks share them, or those of a spatial group
  bool contributes = true;         ///< whether this rank's voxels count (of replicas, one does)
  bool writes_gradient = true;     ///< of the ranks that know the summed gradients of gamma and beta, one writes them
  std::uint32_t dropout_index = 0;
  std::int64_t first_sample = 0;  ///< of this group, in the global mini-batch
  Tile y;
  Tile dst;
  Tile dout;
  Tile dy;  ///< may be y; no buffer where nothing below needs it
  BufferId argmax = no_buffer;
  BufferId statistics = no_buffer;  ///< see StatisticsBuffer
  FaceTiles faces;
  FaceTiles dfaces;
  FaceTiles received;
  std::vector<Box> forward_parts;  ///< shell first, the interior last
  std::vector<Box> sum_parts;      ///< the interior first, then what waits for neighbours' gradients

  /// How many means there are of each channel.
  [[nodiscard]] std::int64_t statistics_sets() const { return desc.per_sample ? desc.samples : 1; }
};

/// Where a chain's statistics lie in its buffer: [values] each, with a value for every channel (of every sample, where
/// those have statistics of their own).
struct StatisticsBuffer {
  std::int64_t values = 0;

  // f64, in numbers from the buffer's start
  [[nodiscard]] std::int64_t moments() const { return 0; }  ///< [2, values]; backward: Σ dz and Σ dz·ẑ
  [[nodiscard]] std::int64_t sums() const {
    return 2 * values;
  }  ///< [2, values]: means and variances while they
     ///< are summed; backward: NormGradient's
  // f32, in numbers from the buffer's start
  [[nodiscard]] std::int64_t mean() const { return 8 * values; }
  [[nodiscard]] std::int64_t inverse_deviation() const { return 9 * values; }
  [[nodiscard]] std::int64_t bytes() const { return 40 * values; }
};

struct UpsampleUnit {
  std::string name;
  UpsampleDesc desc;
  BufferId x = no_buffer;
  Tile y;
  BufferId dx = no_buffer;  ///< none where nothing below needs it
  Tile dy;
};

struct DenseUnit {
  std::string name;
  DenseDesc desc;
  int weight = no_parameter;  ///< the bias follows it
  BufferId x = no_buffer;
  BufferId y = no_buffer;
  BufferId dx = no_buffer;
  BufferId dy = no_buffer;  ///< may be y
};

struct FlattenUnit {
  std::string name;
  LocalShape shape;
  DType type = DType::f32;  ///< of x; y is f32
  BufferId x = no_buffer;   ///< backward: dx is written over it
  BufferId y = no_buffer;
  BufferId dy = no_buffer;
};

struct LossUnit {
  std::string name;
  DType type = DType::f32;          ///< of the prediction and its gradient
  BufferId prediction = no_buffer;  ///< training: its gradient is written over it
  BufferId target = no_buffer;
  std::int64_t elements = 0;   ///< local
  double global_elements = 0;  ///< of the whole mini-batch
  bool contributes = true;     ///< to the sum over ranks
};

/// A loss on labels: this rank's voxels of its samples.
struct SegmentationUnit {
  std::string name;
  SegmentationLossDesc desc;
  BufferId prediction = no_buffer;  ///< training: its gradient is written over it
  bool contributes = true;          ///< to the sum over ranks
};

/// What the network takes: own voxels go into `tile` ([N, tile.box, C] of its type), which may hold margins too. Its
/// box depends on network, grid and input partition alone, so that plans of every mode and batch can take it from the
/// same place.
struct InputUnit {
  GlobalShape shape;
  Box own;
  Tile tile;
  Tile gradient;                ///< with CompileOptions::input_gradient: where the input's gradient is left
  BufferId labels = no_buffer;  ///< [N, own] bytes, beside the input, where the loss is on labels
};

/// What it gives: the prediction (before the loss) on this rank, [N, own, C].
struct OutputUnit {
  GlobalShape shape;
  Box own;
  DType type = DType::f32;
  bool leads = true;  ///< of the ranks that hold this box of these samples, the one to report it
  BufferId buffer = no_buffer;
};

/// A copy of `region` from one tensor to another on this rank.
struct CopyUnit {
  std::string name;
  std::int64_t samples = 0;
  std::int64_t channels = 0;
  Tile from;
  Tile to;
  Box region;
  bool add = false;    ///< a further summand
  bool clear = false;  ///< zero the target's buffer first: a gradient that is not all there
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
  upsample_forward,
  upsample_backward,
  flatten_forward,
  flatten_backward,
  dense_forward,
  dense_backward_data,
  dense_backward_weights,
  loss,
  loss_sum_start,
  loss_sum_wait,
  segmentation_sums,
  segmentation_start,  ///< sums over ranks, then the loss and what its gradient needs
  segmentation_wait,
  segmentation_gradient,
  bucket_start,
  bucket_wait,
  update,
};
const char* step_kind_name(StepKind kind);
/// Whether a step computes on this rank, rather than starts or awaits a message or a sum.
bool computes(StepKind kind);
/// Whether it is one of a convolution's or deconvolution's three passes.
bool is_convolution(StepKind kind);

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

/// Where a stage's tensors lie, for summaries.
struct LayerPlacement {
  std::string name;
  std::vector<NodeId> layers;  ///< in the stage; none in a copy
  std::string partition;       ///< of the output, "2x1x1"
  std::string copied_from;     ///< of a copy: what its input is called,
  bool resharded = false;      ///< and whether it was partitioned otherwise
};

/// The network compiled for one rank: what it does, in order, and where everything lies.
struct Plan {
  ProcessGrid grid;
  std::int64_t rank = 0;
  std::int64_t batch = 0;  ///< global
  SampleRange samples;     ///< this rank's group's share of it
  Mode mode = Mode::train;
  StatisticsScope scope = StatisticsScope::global;
  Precision precision = Precision::f32;

  std::vector<Step> steps;
  std::vector<BufferPlan> buffers;
  std::int64_t arena_bytes = 0;

  InputUnit input;
  OutputUnit output;
  std::vector<ConvolutionUnit> convolutions;
  std::vector<ChainUnit> chains;
  std::vector<UpsampleUnit> upsamples;
  std::vector<DenseUnit> denses;
  std::vector<FlattenUnit> flattens;
  std::vector<LossUnit> losses;
  std::vector<SegmentationUnit> segmentations;
  std::vector<ExchangePlan> exchanges;
  std::vector<CopyUnit> copies;
  std::vector<BucketUnit> buckets;
  std::vector<ParameterPlan> parameters;  ///< in network order
  std::int64_t trainable_elements = 0;
  std::int64_t parameter_elements = 0;  ///< the untrained ones too
  std::vector<LayerPlacement> placements;

  [[nodiscard]] std::int64_t input_bytes() const;           ///< of the input's buffer, which is not in the arena
  [[nodiscard]] std::int64_t label_bytes() const;           ///< likewise; 0 without labels
  [[nodiscard]] std::int64_t halo_bytes_sent() const;       ///< a step's exchanges
  [[nodiscard]] std::int64_t message_buffer_bytes() const;  ///< held for them
  /// Weights, gradients and `optimizer_slots` state arrays, in bytes.
  [[nodiscard]] std::int64_t parameter_bytes(int optimizer_slots) const;
};

/// The fused layers, exchange or bucket that a step works on.
std::string step_name(const Plan& plan, const Step& step);

}  // namespace halograd
