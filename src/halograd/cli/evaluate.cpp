#include "halograd/cli/commands.hpp"
#include "halograd/cli/config_options.hpp"
#include "halograd/cli/output.hpp"
#include "halograd/core/error.hpp"
#include "halograd/core/log.hpp"
#include "halograd/train/evaluation.hpp"
#include "halograd/train/model.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

namespace halograd {
namespace {

struct EvaluateArguments {
  ConfigOptions config;
  std::filesystem::path checkpoint;
  std::string split = "test";
  bool json = false;
};

Split split_named(const std::string& name) {
  if (name == "train") return Split::train;
  if (name == "validation") return Split::validation;
  if (name == "test") return Split::test;
  throw UsageError("--split {}: there are train, validation and test", name);
}

std::string as_text(const nlohmann::ordered_json& metrics) {
  std::string text;
  for (const auto& [key, value] : metrics.items()) {
    text += fmt::format("{}{:<28}{}", text.empty() ? "" : "\n", key, format_metric(value));
  }
  return text;
}

void run_evaluate(const Communicator& world, const EvaluateArguments& arguments) {
  const Config config = load_config(world, arguments.config);
  const Split split = split_named(arguments.split);
  const Network network = build_network(config.model);
  const Dataset dataset = Dataset::open(world, dataset_options(config.data, network.input()));
  if (dataset.samples(split).empty()) {
    throw DataError("{}: data.split leaves no sample for {}", config.data.path, arguments.split);
  }
  ExecutorOptions options = executor_options(config, world);
  options.input_slots = 2;
  Executor executor(network, world, options);
  load_weights(executor, arguments.checkpoint);
  const std::int64_t batch = config.train.batch_size;
  const auto samples = static_cast<std::int64_t>(dataset.samples(split).size());
  FeedOptions feeding = feed_options(config);
  feeding.store.kind = StoreKind::off;  // every sample comes once
  BatchFeed feed(executor, executor.prepare(Mode::evaluate, std::min(batch, samples)), dataset, feeding,
                 RunSchedule::once(dataset, split, batch));
  for (const std::string& note : feed.notes()) log::info(note);
  const Evaluation found = evaluate(executor, feed, dataset, split);
  if (!std::isfinite(found.loss)) {
    throw NumericalError("{}: the {} loss is {}; expected weights that give a finite one",
                         arguments.checkpoint.string(), arguments.split, found.loss);
  }
  nlohmann::ordered_json event{{"event", arguments.split}};
  event.update(found.metrics);
  print(world, arguments.json ? event.dump() : as_text(found.metrics));
}

}  // namespace

void add_evaluate_command(CLI::App& app, const Communicator& world) {
  CLI::App* const command = app.add_subcommand("evaluate", "Measures a checkpoint on a split of the data");
  const auto arguments = std::make_shared<EvaluateArguments>();
  add_config_options(*command, arguments->config);
  command->add_option("--checkpoint", arguments->checkpoint, "the weights, HDF5")->required();
  command->add_option("--split", arguments->split, "train, validation or test (default)");
  command->add_flag("--json", arguments->json, "prints the object that a run's metrics end with");
  command->callback([=] { run_evaluate(world, *arguments); });
}

}  // namespace halograd
