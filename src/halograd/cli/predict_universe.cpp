#include "halograd/cli/predict.hpp"
#include "halograd/cli/predict_input.hpp"
#include "halograd/core/durable_file.hpp"
#include "halograd/core/log.hpp"
#include "halograd/train/model.hpp"

#include <nlohmann/json.hpp>

namespace halograd {

void predict_universe(const Communicator& world, const Config& config, const Network& network,
                      const PredictArguments& arguments) {
  Executor executor(network, world, executor_options(config, world));
  load_weights(executor, arguments.checkpoint);
  // A mini-batch of one: the first group has it, the others go along without a sample.
  const Plan& plan = executor.prepare(Mode::predict, 1);
  agree(world, [&] {
    if (plan.samples.count == 0) return;
    const InputUnit& input = plan.input;
    const SampleSource sample = inspect_input(arguments.input.string(), input.shape, config.data);
    convert_to_slot(executor, input, config.data, sample, read_input(sample, input.shape.channels, input.own));
  });
  MiniBatch batch{.size = 1};
  batch.samples.resize(static_cast<std::size_t>(plan.samples.count));
  executor.predict(batch);
  agree(world, [&] {
    if (world.rank() != 0) return;
    const std::span<const float> values = executor.output();
    const nlohmann::ordered_json result{{"input", arguments.input.string()},
                                        {"checkpoint", arguments.checkpoint.string()},
                                        {"prediction", std::vector<float>(values.begin(), values.end())},
                                        {"parameters", cosmology_parameters},
                                        {"units", "scaled to [-1, 1], as unitPar"}};
    write_durably(arguments.output, result.dump(2) + "\n");
    log::info("prediction in {}", arguments.output.string());
  });
}

}  // namespace halograd
