#include "halograd/cli/grid_choice.hpp"

#include "halograd/cli/planned_model.hpp"
#include "halograd/core/error.hpp"
#include "halograd/core/log.hpp"
#include "halograd/core/parallel.hpp"
#include "halograd/core/system.hpp"
#include "halograd/train/model.hpp"

namespace halograd {
namespace {

constexpr std::size_t others_named = 3;

std::string price_text(const GridPrice& price) {
  return fmt::format("{} ({:.4g} s, {})", grid_name(price.grid), price.cost.step.seconds(),
                     format_bytes(static_cast<double>(price.cost.memory_bytes)));
}

/// The best grid that fits. Says what it costs and what the next ones would.
std::string choose_grid(const Config& config, const Machine& machine, std::int64_t ranks, std::int64_t ranks_on_node) {
  PlanRequest request = plan_request(config);
  request.price.setting = {.ranks_on_node = ranks_on_node, .threads = thread_count()};
  const std::vector<GridPrice> prices = price_grids(build_network(config.model), machine, all_grids(ranks), request);
  if (prices.empty() || !prices.front().refused.empty()) {
    throw UsageError("--grid auto: no grid of {} rank(s) can train a mini-batch of {}{}", ranks,
                     config.train.batch_size, prices.empty() ? "" : ": " + prices.front().refused);
  }
  if (!prices.front().fits) {
    throw UsageError(
        "--grid auto: no grid of {} rank(s) fits; {} needs the least time; take more ranks or a smaller "
        "mini-batch",
        ranks, price_text(prices.front()));
  }
  log::info("grid {}: the fastest step predicted", price_text(prices.front()));
  for (std::size_t i = 1; i < prices.size() && i <= others_named && prices[i].fits; ++i) {
    log::info("  next {}", price_text(prices[i]));
  }
  return prices.front().grid.spatial_name();
}

}  // namespace

Config load_planned_config(const Communicator& world, const ConfigOptions& options, const std::string& machine) {
  if (options.grid != "auto") {
    if (!machine.empty())
      throw UsageError("--machine is for --grid auto, but --grid is {}",
                       options.grid.empty() ? "not given" : options.grid);
    return load_config(world, options);
  }
  if (machine.empty())
    throw UsageError("--grid auto needs --machine FILE, which `halograd calibrate --out FILE` writes");
  ConfigOptions whole = options;
  whole.grid = "1x1x1";
  Config config = load_config(world, whole);
  const Machine prices = load_same_machine(world, machine);
  agree(world, [&] { config.parallel.grid = choose_grid(config, prices, world.size(), world.ranks_on_node()); });
  return config;
}

}  // namespace halograd
