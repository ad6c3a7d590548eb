#include "halograd/cli/commands.hpp"
#include "halograd/cli/model_options.hpp"
#include "halograd/cli/output.hpp"
#include "halograd/cli/plan_figures.hpp"
#include "halograd/core/error.hpp"
#include "halograd/core/system.hpp"
#include "halograd/exec/choose_device.hpp"
#include "halograd/train/model.hpp"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>

namespace halograd {
namespace {

struct SummaryOptions {
  ModelOptions model;
  std::optional<std::int64_t> ranks;
  bool json = false;
};

struct LayerRow {
  std::string name;
  std::string kind;
  GlobalShape out;
  std::string partition;
  std::int64_t parameters = 0;
  double forward_flops = 0;
};

/// All that `summary` tells of a network and its plan.
struct Summary {
  Config config;
  Backend backend = Backend::cpu;
  Precision precision = Precision::f32;
  ProcessGrid grid;
  std::vector<LayerRow> layers;
  std::int64_t parameters = 0;
  PaperFigures paper;
  double memory_factor = 1;  ///< the paper's: twice with batch norm
  double kept_bytes = 0;     ///< every output and error signal of a sample, in the precision's bytes
  std::int64_t samples_of_a_group = 1;
  PlanFigures plan;
  std::vector<std::string> reshards;
  std::vector<std::string> copies;
};

std::vector<LayerRow> layer_rows(const Network& network) {
  std::vector<LayerRow> rows;
  for (const Node& node : network.nodes()) {
    std::int64_t parameters = 0;
    for (const ParameterSpec& spec : layer_parameters(node.layer, node.name, node.in)) {
      parameters += spec.trainable ? spec.elements() : 0;
    }
    rows.push_back(
        {node.name, layer_kind(node.layer), node.out, "", parameters, forward_flops(node.layer, node.in, node.out)});
  }
  return rows;
}

/// Fills in how the layers are partitioned, and lists the copies that the plan adds.
void add_placements(const Plan& plan, Summary& summary) {
  for (const LayerPlacement& place : plan.placements) {
    for (const NodeId id : place.layers) summary.layers[static_cast<std::size_t>(id.index)].partition = place.partition;
  }
  for (const LayerPlacement& place : plan.placements) {
    if (place.copied_from.empty()) continue;
    const auto from = std::ranges::find(plan.placements, place.copied_from, &LayerPlacement::name);
    const std::string before = from == plan.placements.end() ? plan.grid.spatial_name() : from->partition;
    if (place.resharded) {
      const std::string to = before == place.partition ? fmt::format("to other cuts into {} parts", before)
                                                       : fmt::format("from {} to {} parts", before, place.partition);
      summary.reshards.push_back(fmt::format("{}: {} moves {}", place.name, place.copied_from, to));
    } else {
      summary.copies.push_back(fmt::format("{}: {} is copied within each rank", place.name, place.copied_from));
    }
  }
}

/// Collective, for a device "auto".
Summary summarize(const Communicator& world, const SummaryOptions& options) {
  Summary summary;
  summary.config = config_of(options.model);
  Config& config = summary.config;
  summary.grid = grid_of(config.parallel.grid, options.ranks);
  if (config.train.batch_size == 0) config.train.batch_size = summary.grid.data;
  summary.samples_of_a_group = group_samples(config.train.batch_size, summary.grid.data, 0).count;
  const Network network = build_network(config.model);
  summary.layers = layer_rows(network);
  summary.parameters = network.trainable_parameters();
  summary.paper = paper_figures(network);
  summary.memory_factor = config.model.batch_norm ? 2 : 1;
  const ExecutorOptions run = executor_options(config, summary.grid.size());
  summary.backend = choose_backend(config.parallel.device, world);
  summary.precision = run.precision;
  require_precision(run.precision, summary.backend);
  summary.kept_bytes = summary.paper.memory_bytes_with_norms *
                       static_cast<double>(dtype_size(activation_type(run.precision))) / sizeof(float);
  CompileOptions compiled = compile_options(run, 0, Mode::train, config.train.batch_size);
  compiled.traits = kernel_traits(summary.backend);  // the device itself need not be here
  summary.plan = largest_figures(network, compiled, optimizer_slots(run.optimizer.kind));
  add_placements(compile(network, compiled), summary);
  return summary;
}

std::string shape_text(const GlobalShape& shape) {
  const Extent& e = shape.extent;
  return e.volume() == 1 ? fmt::to_string(shape.channels) : fmt::format("{} x {}x{}x{}", shape.channels, e.d, e.h, e.w);
}

std::string layer_table(const Summary& summary) {
  std::vector<std::vector<std::string>> rows{{"layer", "kind", "output", "partition", "parameters", "GFlop"}};
  for (const LayerRow& layer : summary.layers) {
    rows.push_back({layer.name, layer.kind, shape_text(layer.out), layer.partition,
                    layer.parameters > 0 ? with_commas(layer.parameters) : "",
                    layer.forward_flops > 0 ? fmt::format("{:.4f}", layer.forward_flops / 1e9) : ""});
  }
  return format_table(rows, {false, false, false, false, true, true});
}

std::string bytes_text(std::int64_t bytes) {
  return format_bytes(static_cast<double>(bytes));
}

std::string to_text(const Summary& summary) {
  constexpr double gib = 1 << 30;
  const double memory = summary.paper.memory_bytes / gib;
  std::vector<std::string> lines{model_title(summary.config.model), "", layer_table(summary)};
  lines.push_back("The paper's figures for one sample (Table I)");
  lines.push_back(fmt::format("  convolutions           {:.4g} GFlop forward and backward, {:.4g} GFlop forward",
                              summary.paper.convolution_flops / 1e9, summary.paper.convolution_forward_flops / 1e9));
  lines.push_back(
      fmt::format("  memory                 {:.3g} GiB{}", memory * summary.memory_factor,
                  summary.memory_factor > 1 ? fmt::format(" (twice the {:.3g} GiB without batch norm)", memory) : ""));
  lines.push_back(fmt::format("  parameters             {:.2f} million ({})",
                              static_cast<double>(summary.parameters) / 1e6, with_commas(summary.parameters)));
  lines.push_back("");
  const PlanFigures& plan = summary.plan;
  lines.push_back(
      fmt::format("The plan of a training step: {} rank{}, grid {}, {} data-parallel group{}, mini-batch {}, {} on {}",
                  summary.grid.size(), summary.grid.size() == 1 ? "" : "s", summary.grid.spatial_name(),
                  summary.grid.data, summary.grid.data == 1 ? "" : "s", summary.config.train.batch_size,
                  precision_name(summary.precision), backend_name(summary.backend)));
  lines.push_back("  on the rank with most of it");
  const double kept = summary.kept_bytes * static_cast<double>(summary.samples_of_a_group);
  lines.push_back(fmt::format("  activations (arena)    {} (every output and error signal of its group: {})",
                              bytes_text(plan.arena_bytes), format_bytes(kept)));
  lines.push_back(fmt::format("  the next step's input  {}", bytes_text(plan.input_bytes)));
  lines.push_back(fmt::format("  weights and state      {}", bytes_text(plan.parameter_bytes)));
  lines.push_back(fmt::format("  halo messages          {} sent, {} in all, {} of buffers", plan.halo_messages,
                              bytes_text(plan.halo_bytes), bytes_text(plan.message_buffer_bytes)));
  lines.push_back(fmt::format("  sums over ranks        {}", plan.sums));
  for (const std::string& reshard : summary.reshards) lines.push_back("  reshard  " + reshard);
  for (const std::string& copy : summary.copies) lines.push_back("  copy     " + copy);
  return fmt::format("{}", fmt::join(lines, "\n"));
}

nlohmann::ordered_json to_json(const Summary& summary) {
  nlohmann::ordered_json layers = nlohmann::ordered_json::array();
  for (const LayerRow& layer : summary.layers) {
    const Extent& e = layer.out.extent;
    layers.push_back({{"name", layer.name},
                      {"kind", layer.kind},
                      {"output", {layer.out.channels, e.d, e.h, e.w}},
                      {"partition", layer.partition},
                      {"parameters", layer.parameters},
                      {"forward_flops", layer.forward_flops}});
  }
  const ModelConfig& model = summary.config.model;
  return {{"model", model.name},
          {"width", model.width},
          {"batch_norm", model.batch_norm},
          {"pool", model.pool},
          {"parameters", summary.parameters},
          {"conv_flops", summary.paper.convolution_flops},
          {"conv_forward_flops", summary.paper.convolution_forward_flops},
          {"paper_memory_bytes", summary.paper.memory_bytes * summary.memory_factor},
          {"grid", summary.grid.spatial_name()},
          {"ranks", summary.grid.size()},
          {"data_groups", summary.grid.data},
          {"batch", summary.config.train.batch_size},
          {"precision", precision_name(summary.precision)},
          {"device", backend_name(summary.backend)},
          {"arena_bytes", summary.plan.arena_bytes},
          {"outputs_and_error_signals_bytes", summary.kept_bytes},
          {"next_input_bytes", summary.plan.input_bytes},
          {"parameter_bytes", summary.plan.parameter_bytes},
          {"message_buffer_bytes", summary.plan.message_buffer_bytes},
          {"halo_bytes_per_step", summary.plan.halo_bytes},
          {"halo_messages_per_step", summary.plan.halo_messages},
          {"sums_per_step", summary.plan.sums},
          {"reshards", summary.reshards},
          {"copies", summary.copies},
          {"layers", layers}};
}

}  // namespace

void add_summary_command(CLI::App& app, const Communicator& world) {
  CLI::App* const command =
      app.add_subcommand("summary", "Layers, parameters, flops and memory of a network, and each rank's share");
  const auto options = std::make_shared<SummaryOptions>();
  add_model_options(*command, options->model);
  command->add_option("--ranks", options->ranks, "ranks to plan for (default: as many as the grid has parts)");
  command->add_flag("--json", options->json, "one JSON object");
  command->callback([options, world] {
    const Summary summary = summarize(world, *options);
    print(world, options->json ? to_json(summary).dump(2) : to_text(summary));
  });
}

}  // namespace halograd
