#include "halograd/cli/grid_choice.hpp"

#include "halograd/cli/planned_model.hpp"
#include "halograd/core/error.hpp"
#include "halograd/core/parallel.hpp"
#include "halograd/core/system.hpp"
#include "halograd/exec/choose_device.hpp"
#include "halograd/train/model.hpp"

namespace halograd {
namespace {

constexpr std::size_t others_named = 3;

std::string price_text(const GridPrice& price) {
  return fmt::format("{} ({:.4g} s, {})", grid_name(price.grid), price.cost.step.seconds(),
                     format_bytes(static_cast<double>(price.cost.memory_bytes)));
}

/// The grids of so many ranks, best first: it fits.
std::vector<GridPrice> fitting_grids(const Config& config, const Machine& machine, const Communicator& world) {
  const std::int64_t ranks = world.size();
  PlanRequest request = plan_request(config);
  request.price.setting = {.ranks_on_node = world.ranks_on_node(), .threads = thread_count()};
  std::vector<GridPrice> prices = price_grids(build_network(config.model), machine, all_grids(ranks), request);
  if (prices.empty() || !prices.front().refused.empty()) {
    throw UsageError("--grid auto: no grid of {} rank(s) can train a mini-batch of {}{}", ranks,
                     config.train.batch_size, prices.empty() ? "" : ": " + prices.front().refused);
  }
  if (prices.front().fits) return prices;
  std::erase_if(prices, [](const GridPrice& price) { return !price.refused.empty(); });
  refuse_all_grids(config, machine, prices, request);
}

std::vector<std::string> reasons_of(const std::vector<GridPrice>& prices) {
  std::vector<std::string> lines{fmt::format("grid {}: the fastest step predicted", price_text(prices.front()))};
  for (std::size_t i = 1; i < prices.size() && i <= others_named && prices[i].fits; ++i) {
    lines.push_back("  next " + price_text(prices[i]));
  }
  return lines;
}

}  // namespace

PlannedConfig load_planned_config(const Communicator& world, const ConfigOptions& options, const std::string& machine) {
  if (options.grid != "auto") {
    if (!machine.empty())
      throw UsageError("--machine is for --grid auto, but --grid is {}",
                       options.grid.empty() ? "not given" : options.grid);
    return {load_config(world, options), {}};
  }
  if (machine.empty())
    throw UsageError("--grid auto needs --machine FILE, which `halograd calibrate --out FILE` writes");
  ConfigOptions whole = options;
  whole.grid = "1x1x1";
  PlannedConfig planned{load_config(world, whole), {}};
  const Backend device = choose_backend(planned.config.parallel.device, world);
  const Machine prices = load_machine_for_run(world, machine, device, "--set parallel.device=");
  agree(world, [&] {
    const auto grids = fitting_grids(planned.config, prices, world);
    planned.config.parallel.grid = grids.front().grid.spatial_name();
    planned.reasons = reasons_of(grids);
  });
  return planned;
}

}  // namespace halograd
