#pragma once

#include "halograd/comm/communicator.hpp"

#include <CLI/CLI.hpp>

namespace halograd {

// One function a subcommand, each in the file of its name: adds the subcommand with its options and, as its callback,
// the work. A callback runs on every rank of `world` and throws halograd errors; `main` prints them and turns them into
// exit codes. Results go to stdout from rank 0 (see output.hpp), everything else through the log.

void add_bench_command(CLI::App& app, const Communicator& world);
void add_calibrate_command(CLI::App& app, const Communicator& world);
void add_convert_command(CLI::App& app, const Communicator& world);
void add_evaluate_command(CLI::App& app, const Communicator& world);
void add_info_command(CLI::App& app, const Communicator& world);
void add_inspect_command(CLI::App& app, const Communicator& world);
void add_plan_command(CLI::App& app, const Communicator& world);
void add_predict_command(CLI::App& app, const Communicator& world);
void add_summary_command(CLI::App& app, const Communicator& world);
void add_synth_command(CLI::App& app, const Communicator& world);
void add_train_command(CLI::App& app, const Communicator& world);

}  // namespace halograd
