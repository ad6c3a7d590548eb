#include "halograd/cli/bench_accuracy.hpp"
#include "halograd/cli/bench_io.hpp"
#include "halograd/cli/bench_scaling.hpp"
#include "halograd/cli/bench_step.hpp"
#include "halograd/cli/commands.hpp"
#include "halograd/cli/output.hpp"
#include "halograd/core/system.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

namespace halograd {
namespace {

std::string to_text(const nlohmann::ordered_json& report) {
  const auto number = [&](const char* key) { return report.at(key).get<double>(); };
  const double step = number("step_seconds");
  std::vector<std::string> lines{
      fmt::format("{}, width {}, {} batch norm, mini-batch {}, grid {} on {} rank(s) of {} thread(s), {}",
                  report.at("model").get<std::string>(), report.at("width").get<std::int64_t>(),
                  report.at("batch_norm").get<bool>() ? "with" : "without", report.at("batch").get<std::int64_t>(),
                  report.at("grid").get<std::string>(), report.at("ranks").get<std::int64_t>(),
                  report.at("threads").get<std::int64_t>(), report.at("precision").get<std::string>()),
      fmt::format("step          {:.4f} s (median of {}; fastest {:.4f} s), {:.1f} GFlop/s", step,
                  report.at("steps").get<std::int64_t>(), number("fastest_step_seconds"), number("gflops")),
      fmt::format("  forward     {:.4f} s", number("forward_seconds")),
      fmt::format("  backward    {:.4f} s", number("backward_seconds")),
      fmt::format("  update      {:.4f} s", number("update_seconds")),
      fmt::format("  messages    {:.4f} s waited for", number("comm_seconds"))};
  if (!report.at("conv_floor_seconds").is_null()) {
    const double floor = number("conv_floor_seconds");
    lines.push_back(
        fmt::format("convolutions  {:.4f} s run alone; the step takes {:.2f} times that", floor, step / floor));
  }
  lines.push_back(fmt::format("memory        {} at most on a rank, of it {} of activations",
                              format_bytes(number("peak_rss_bytes")), format_bytes(number("arena_bytes"))));
  lines.push_back(fmt::format("halos         {} sent a step in {} messages",
                              format_bytes(number("halo_bytes_per_step")),
                              report.at("halo_messages_per_step").get<std::int64_t>()));
  if (report.contains("predicted")) {
    const nlohmann::ordered_json& predicted = report.at("predicted");
    const auto seconds = predicted.at("step_seconds").get<double>();
    const auto bytes = predicted.at("memory_bytes").get<double>();
    lines.push_back(fmt::format("predicted     {:.4f} s ({:+.1f} %), {} ({:+.1f} %)", seconds,
                                100 * (seconds / step - 1), format_bytes(bytes),
                                100 * (bytes / number("peak_rss_bytes") - 1)));
  }
  return fmt::format("{}", fmt::join(lines, "\n"));
}

void add_step(CLI::App& bench, const Communicator& world) {
  CLI::App* const command = bench.add_subcommand("step", "A training step on random input, and what it is made of");
  const auto options = std::make_shared<BenchStepOptions>();
  add_model_options(*command, options->model);
  command->add_option("--steps", options->steps, "steps to measure (default: 5, or 3 from a width of 256 up)");
  command->add_option("--warm-up", options->warm_up, "steps before those (default: 2)");
  command->add_option("--machine", options->machine, "a machine file of `calibrate`: predicts the step too");
  command->add_flag("!--no-floor", options->floor, "don't time the convolutions alone");
  command->add_flag("--json", options->json, "one JSON object");
  command->callback([=] {
    const auto report = bench_step(world, *options);
    print(world, options->json ? report.dump(2) : to_text(report));
  });
}

void add_io(CLI::App& bench, const Communicator& world) {
  CLI::App* const command =
      bench.add_subcommand("io", "Reading samples, keeping and exchanging them, without training");
  const auto options = std::make_shared<BenchIoOptions>();
  command->add_option("--data", options->data, "a directory of samples (default: some are made, and removed)");
  command->add_option("--dir", options->directory, "where they are made (default: the temporary directory)");
  command->add_option("--width", options->width, "voxels along each side of a sample (default: 128)");
  command->add_option("--samples", options->samples, "samples made of each layout (default: 8)");
  command->add_option("--batch", options->batch, "the global mini-batch (default: one sample a data-parallel group)");
  command->add_option("--epochs", options->epochs, "the first reads, the others exchange (default: 3)");
  command->add_option("--compute", options->compute, "seconds that each step computes meanwhile (default: 0)");
  command->add_option("--grid", options->grids, "one or more, as 2x1x1,1x1x2 (default: a cut in depth, one in width)")
      ->delimiter(',');
  command->add_option("--layout", options->layouts, "of made files: contiguous, chunked, gzip (default: all)")
      ->delimiter(',');
  command->add_option("--driver", options->ways, "auto, posix, mpi-independent, mpi-collective, sample (default: all)")
      ->delimiter(',');
  command->add_option("--store", options->store, "memory (default), disk or off");
  command->add_flag("--cold", options->cold, "has the system forget the files first");
  command->add_flag("--json", options->json, "an array of objects");
  command->callback([=] {
    const auto cases = bench_io(world, *options);
    print(world, options->json ? cases.dump(2) : bench_io_table(cases));
  });
}

void add_accuracy(CLI::App& bench, const Communicator& world) {
  CLI::App* const command =
      bench.add_subcommand("accuracy", "How right the cost model is: a table of what `bench step --machine` printed");
  const auto options = std::make_shared<BenchAccuracyOptions>();
  command->add_option("reports", options->reports, "files, each one object of `bench step --machine FILE --json`")
      ->required();
  command->add_option("--chart", options->chart, "draws the errors into this SVG file");
  command->callback([=] { print(world, bench_accuracy(world, *options)); });
}

void add_scaling(CLI::App& bench, const Communicator& world) {
  CLI::App* const command =
      bench.add_subcommand("scaling", "Steps on 1, 2, 4 … of the ranks there are: strong and weak scaling");
  const auto options = std::make_shared<BenchScalingOptions>();
  add_network_options(*command, options->model);
  add_device_option(*command, options->model);
  command->add_option("--grid", options->grids, "of each number of ranks, as 1x1x1,2x1x1 (default: the planner's best)")
      ->delimiter(',');
  command->add_option("--machine", options->machine, "a machine file of `calibrate`: predicts the steps too");
  command->add_option("--steps", options->steps, "steps to measure of each (default: 5, or 3 from a width of 256 up)");
  command->add_option("--chart", options->chart, "draws both into this SVG file");
  command->add_flag("--json", options->json, "one JSON object");
  command->callback([=] {
    const auto report = bench_scaling(world, *options);
    if (world.rank() == 0)
      print(world, options->json ? report.dump(2) : bench_scaling_table(report));  // it has all points
  });
}

}  // namespace

void add_bench_command(CLI::App& app, const Communicator& world) {
  CLI::App* const command = app.add_subcommand("bench", "Measures this machine at HaloGrad's work");
  command->require_subcommand(1);
  add_step(*command, world);
  add_io(*command, world);
  add_scaling(*command, world);
  add_accuracy(*command, world);
}

}  // namespace halograd
