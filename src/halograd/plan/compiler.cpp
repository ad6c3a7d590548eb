#include "halograd/plan/compiler.hpp"

#include "halograd/core/error.hpp"
#include "halograd/plan/compiler_state.hpp"
#include "halograd/plan/lifetimes.hpp"

namespace halograd {

Compiler::Compiler(const Network& network, const CompileOptions& options) : network_(network), options_(options) {
  plan_.grid = options.grid;
  plan_.rank = options.rank;
  plan_.batch = options.batch;
  plan_.mode = options.mode;
  plan_.scope = options.scope;
  plan_.precision = options.precision;
  const GridPlace at = options.grid.place(options.rank);
  place_ = at.place;
  plan_.samples = group_samples(options.batch, options.grid.data, at.group);
}

Plan Compiler::run() {
  if (network_.nodes().empty()) throw UsageError("a network needs at least one layer");
  lay_out_parameters();
  lay_out_stages();
  emit_forward();
  if (training()) {
    emit_backward();
    emit_updates();
  }
  plan_.arena_bytes = place_buffers(plan_.steps, pinned_, options_.traits.alignment, plan_.buffers);
  return std::move(plan_);
}

void Compiler::lay_out_parameters() {
  for (ParameterSpec& spec : network_.parameters()) plan_.parameters.push_back({std::move(spec), 0});
  // The backward pass finishes the last layer first. A layer's own arrays keep their order.
  std::int64_t offset = 0;
  for (const bool trainable : {true, false}) {
    std::size_t end = plan_.parameters.size();
    while (end > 0) {
      std::size_t begin = end - 1;
      while (begin > 0 && plan_.parameters[begin - 1].spec.layer == plan_.parameters[begin].spec.layer) --begin;
      for (std::size_t i = begin; i < end; ++i) {
        if (plan_.parameters[i].spec.trainable != trainable) continue;
        plan_.parameters[i].offset = offset;
        offset += plan_.parameters[i].spec.elements();
      }
      end = begin;
    }
    if (trainable) plan_.trainable_elements = offset;
  }
  plan_.parameter_elements = offset;
}

Partition Compiler::input_partition() const {
  const Extent extent = network_.input().extent;
  if (options_.input_partition) {
    if (options_.input_partition->extent() != extent || options_.input_partition->parts() != options_.grid.spatial()) {
      throw UsageError("the input partition does not match the network's input and the grid");
    }
    return *options_.input_partition;
  }
  return Partition::even(extent, options_.grid.spatial(), network_.total_stride());
}

BufferId Compiler::buffer(const std::string& name, std::int64_t bytes) {
  plan_.buffers.push_back({.name = name, .bytes = bytes});
  return static_cast<BufferId>(plan_.buffers.size()) - 1;
}

Tile Compiler::tile(const std::string& name, DType type, std::int64_t channels, const Box& box) {
  return {buffer(name, dtype_size(type) * plan_.samples.count * channels * box.volume()), box, channels, 0, type};
}

Box Compiler::own_box(const Partition& partition) const {
  return partition.box(Site(partition, options_.grid.spatial(), place_).part());
}

int Compiler::parameter(NodeId node) const {
  const std::string& layer = network_.node(node).name;
  for (std::size_t i = 0; i < plan_.parameters.size(); ++i) {
    if (plan_.parameters[i].spec.layer == layer) return static_cast<int>(i);
  }
  return no_parameter;
}

int Compiler::emit(Step step) {
  plan_.steps.push_back(std::move(step));
  return static_cast<int>(plan_.steps.size()) - 1;
}

int Compiler::start_exchange(ExchangePlan exchange, Phase phase) {
  Step step{.kind = StepKind::exchange_start, .unit = static_cast<int>(plan_.exchanges.size()), .phase = phase};
  step.message_bytes = exchange.bytes_sent();
  for (const auto& transfers : exchange.phases) {
    for (const Transfer& transfer : transfers) {
      for (const Piece& piece : transfer.send) step.touches.push_back(piece.tile.buffer);
      for (const Piece& piece : transfer.receive) step.touches.push_back(piece.tile.buffer);
    }
  }
  plan_.exchanges.push_back(std::move(exchange));
  return emit(std::move(step));
}

void Compiler::wait_exchange(int start, Phase phase) {
  if (start < 0) return;
  emit({.kind = StepKind::exchange_wait,
        .unit = plan_.steps[static_cast<std::size_t>(start)].unit,
        .phase = phase,
        .start = start});
}

Plan compile(const Network& network, const CompileOptions& options) {
  if (options.batch < 1) throw UsageError("the mini-batch holds at least one sample, not {}", options.batch);
  return Compiler(network, options).run();
}

}  // namespace halograd
