#pragma once

#include "halograd/plan/compiler.hpp"
#include "halograd/plan/placement.hpp"

#include <string>
#include <vector>

namespace halograd {

/// A stage on its way to becoming steps. Internal to plan/.
struct StageState {
  Stage stage;
  StagePlacement place;
  Site in_site;
  Tile input;             ///< what it reads
  Tile input_gradient;    ///< where its backward pass leaves the gradient of that (may be the same buffer)
  Tile staging;           ///< where the stage before writes, if the tensor is moved before it gets here
  Neighbourhood margins;  ///< of `input`; trivial but for convolutions
  Neighbourhood faces;    ///< of a chain: what pooling reads around `input`
  int arrival = -1;       ///< start step of the exchange that completes `input`
  int unit = -1;
  bool contributes = true;  ///< whether this rank's weight gradient counts
};

class Compiler {
public:
  Compiler(const Network& network, const CompileOptions& options);
  Plan run();

private:
  // setting up (compiler.cpp)
  void lay_out_parameters();
  void lay_out_stages();
  Partition input_partition() const;
  Box needed_by(const StageState& state, const Index& part) const;
  void place_input(StageState& state, std::size_t index);
  BufferId buffer(const std::string& name, std::int64_t bytes);
  Tile tile(const std::string& name, std::int64_t channels, const Box& box);
  const Tile& output_of(std::size_t stage) const;  ///< where stage i writes
  Tile output_gradient_of(std::size_t stage) const;
  bool training() const { return options_.mode == Mode::train; }
  bool idle() const { return plan_.samples.count == 0; }
  int parameter(NodeId node) const;

  // emitting (compile_forward.cpp, compile_backward.cpp)
  void emit_forward();
  void emit_input();
  void emit_convolution(std::size_t stage);
  void emit_chain(std::size_t stage);
  FaceTiles face_tiles(const std::string& name, std::int64_t channels, const Neighbourhood& at, bool inside);
  int start_faces(std::size_t stage, ChainUnit& unit);
  void emit_statistics(std::size_t stage, ChainUnit& unit);
  void emit_chain_part(std::size_t stage, const ChainUnit& unit, std::size_t part);
  void emit_dense(std::size_t stage);
  void emit_flatten(std::size_t stage);
  void emit_loss(std::size_t stage);
  void send_to(std::size_t stage);  ///< starts the exchange that completes stage's input
  void await(std::size_t stage);    ///< waits for it
  void emit_backward();
  void backward_convolution(std::size_t stage);
  void backward_chain(std::size_t stage);
  int return_faces(std::size_t stage, ChainUnit& unit);
  void emit_sums(std::size_t stage, ChainUnit& unit, int faces_return);
  void backward_dense(std::size_t stage);
  void backward_flatten(std::size_t stage);
  void backward_reshard(std::size_t stage);
  void finish_parameters(std::size_t stage);
  void close_bucket();
  void emit_updates();

  int start_exchange(ExchangePlan exchange, Phase phase);
  void wait_exchange(int start, Phase phase);
  int emit(Step step);
  ChainUnit make_chain_unit(std::size_t stage);

  const Network& network_;
  CompileOptions options_;
  Plan plan_;
  Index place_;
  std::vector<StageState> stages_;
  Tile result_;  ///< the last stage's output where no loss follows
  std::vector<BufferId> pinned_;
  std::vector<int> bucket_starts_;
  BucketUnit open_bucket_;
  Extent open_bucket_parts_;
};

}  // namespace halograd
