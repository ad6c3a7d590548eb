#pragma once

#include "halograd/plan/compiler.hpp"
#include "halograd/plan/placement.hpp"

#include <optional>
#include <string>
#include <vector>

namespace halograd {

/// A stage's output, or the network's input, on its way to becoming buffers. Internal to plan/.
struct Tensor {
  std::string name;
  GlobalShape shape;
  Partition partition;
  DType type = DType::f32;
  Tile home;                       ///< where it lies
  Tile gradient;                   ///< laid out as `home`; may be `home` itself; no buffer where nobody wants it
  std::vector<Reader> readers{};   ///< the stages that take it, in order
  bool joins = false;              ///< lies in the buffer of the last of them
  bool wants_gradient = false;     ///< something below it learns
  std::optional<StageId> taker{};  ///< the stage whose buffer, margins included, it lies in in the end
  int arrival = -1;                ///< start step of the exchange that completes it
  bool covered = false;            ///< what computes the tensor goes on with its interior meanwhile
  bool arrives_whole = false;      ///< that exchange brings own voxels too, not margins alone

  /// Whether a stage's gradient of it adds to what is there. The backward pass meets the last reader first.
  [[nodiscard]] bool adds(StageId stage, std::size_t slot = 0) const {
    return readers.back().stage != stage || readers.back().slot != slot;
  }
};

/// A stage on its way to becoming steps. Internal to plan/.
struct StageState {
  PlacedStage placed;
  Site in_site;
  Tile input;             ///< of convolutions, upsamplings and dense layers: the buffer they take
  Tile input_gradient;    ///< likewise
  Neighbourhood margins;  ///< of `input`
  Neighbourhood faces;    ///< of a chain: what pooling reads around its own voxels
  int unit = -1;
  bool contributes = true;  ///< whether this rank's weight gradient counts

  [[nodiscard]] const Stage& stage() const { return placed.stage; }
};

class Compiler {
public:
  Compiler(const Network& network, const CompileOptions& options);
  Plan run();

private:
  // setting up (compiler.cpp)
  void lay_out_parameters();
  Partition input_partition() const;
  BufferId buffer(const std::string& name, std::int64_t bytes);
  Tile tile(const std::string& name, DType type, std::int64_t channels, const Box& box);
  Box own_box(const Partition& partition) const;
  int parameter(NodeId node) const;
  bool training() const { return options_.mode == Mode::train; }
  bool idle() const { return plan_.samples.count == 0; }

  // where tensors lie (compile_layout.cpp)
  void lay_out_stages();
  StageState make_state(PlacedStage placed) const;
  void lay_out_tensor(StageId id);
  void take_buffer(StageState& state);
  void find_types();
  void find_wanted_gradients();
  bool is_taken_once(StageId id) const;
  bool works_in_place(StageId id) const;
  void lay_out_ends();
  void describe_placements();
  Tensor& output_of(std::size_t stage) { return tensor(static_cast<StageId>(stage)); }
  Tensor& tensor(StageId id) { return tensors_[static_cast<std::size_t>(id + 1)]; }
  const Tensor& tensor(StageId id) const { return tensors_[static_cast<std::size_t>(id + 1)]; }
  Tensor& input_of(std::size_t stage, std::size_t slot = 0) { return tensor(stages_[stage].stage().inputs[slot]); }
  StageState& state(StageId id) { return stages_[static_cast<std::size_t>(id)]; }
  const StageState& state(StageId id) const { return stages_[static_cast<std::size_t>(id)]; }

  // emitting (compile_forward.cpp, compile_chain.cpp, compile_backward.cpp)
  void emit_forward();
  void emit_input();
  void emit_convolution(std::size_t stage);
  void emit_upsample(std::size_t stage);
  void emit_sum(std::size_t stage);
  void emit_copy(std::size_t stage);
  void emit_chain(std::size_t stage);
  ChainUnit make_chain_unit(std::size_t stage);
  void add_norm(std::size_t stage, ChainUnit& unit);
  FaceTiles face_tiles(const std::string& name, const ChainDesc& desc, const Neighbourhood& at, bool inside);
  int start_faces(std::size_t stage, ChainUnit& unit);
  void emit_statistics(std::size_t stage, ChainUnit& unit);
  void emit_chain_part(std::size_t stage, const ChainUnit& unit, std::size_t part);
  void emit_dense(std::size_t stage);
  void emit_flatten(std::size_t stage);
  void emit_loss(std::size_t stage);
  void emit_segmentation(std::size_t stage, const SegmentationLoss& loss);
  void publish(StageId id);  ///< starts the exchange that brings a tensor's margins
  void await(std::size_t stage);
  std::vector<StageId> tensors_in(StageId id) const;
  bool takes_boxes(std::size_t convolution) const;
  bool awaits_margins_only(std::size_t convolution) const;
  void copy_region(const std::string& name, std::int64_t channels, const Tile& from, const Tile& to, const Box& region,
                   bool add, bool clear, Phase phase);

  void emit_backward();
  void backward_convolution(std::size_t stage);
  void backward_upsample(std::size_t stage);
  void backward_sum(std::size_t stage);
  void backward_copy(std::size_t stage);
  void backward_chain(std::size_t stage);
  int return_faces(std::size_t stage, ChainUnit& unit);
  void emit_sums(std::size_t stage, ChainUnit& unit, int faces_return);
  void backward_dense(std::size_t stage);
  void backward_flatten(std::size_t stage);
  int return_margins(std::size_t stage);
  void finish_parameters(std::size_t stage);
  void close_bucket();
  void emit_updates();

  int start_exchange(ExchangePlan exchange, Phase phase);
  void wait_exchange(int start, Phase phase);
  int emit(Step step);

  const Network& network_;
  CompileOptions options_;
  Plan plan_;
  Index place_;
  std::vector<StageState> stages_;
  std::vector<Tensor> tensors_;  ///< the network's input, then each stage's output
  std::vector<BufferId> pinned_;
  std::vector<int> bucket_starts_;
  BucketUnit open_bucket_;
  Extent open_bucket_parts_;
};

}  // namespace halograd
