#include "halograd/cli/commands.hpp"
#include "halograd/cli/outcome.hpp"
#include "halograd/cli/output.hpp"
#include "halograd/cli/usage_text.hpp"
#include "halograd/comm/session.hpp"
#include "halograd/core/error.hpp"
#include "halograd/core/log.hpp"
#include "halograd/core/version.hpp"

#include <cstdio>
#include <sstream>

namespace halograd {
namespace {

void add_commands(CLI::App& app, const Communicator& world) {
  add_train_command(app, world);
  add_evaluate_command(app, world);
  add_predict_command(app, world);
  add_summary_command(app, world);
  add_synth_command(app, world);
  add_convert_command(app, world);
  add_inspect_command(app, world);
  add_bench_command(app, world);
  add_calibrate_command(app, world);
  add_plan_command(app, world);
  add_info_command(app, world);
}

void parse_and_run(int argc, char** argv, const Communicator& world) {
  CLI::App app("Hybrid-parallel training of 3D convolutional networks", "halograd");
  app.set_version_flag("--version", "halograd " + version());
  app.require_subcommand(1);
  add_commands(app, world);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // help or version was asked for
    std::ostringstream text;
    app.exit(success, text, text);
    std::string trimmed = text.str();
    trimmed.erase(trimmed.find_last_not_of('\n') + 1);
    print(world, trimmed);
  } catch (const CLI::ParseError& error) {
    throw UsageError("{}", usage_text(app, error));
  }
}

int run(int argc, char** argv) {
  const Communicator world = Communicator::world();
  const Communicator endings = world.duplicate();
  log::set_terminal(world.rank() == 0);
  return settle(endings, outcome_of([&] { parse_and_run(argc, argv, world); }));
}

}  // namespace
}  // namespace halograd

int main(int argc, char** argv) {
  try {
    const halograd::MpiSession session(argc, argv);
    return halograd::run(argc, argv);
  } catch (const std::exception& error) {  // of MPI itself: a command's errors never come here
    std::fprintf(stderr, "halograd: error: %s\n", error.what());
    halograd::abort_job(static_cast<int>(halograd::ErrorKind::resource));
  }
}
