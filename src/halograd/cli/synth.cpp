#include "halograd/cli/commands.hpp"
#include "halograd/core/error.hpp"
#include "halograd/core/log.hpp"
#include "halograd/core/system.hpp"
#include "halograd/data/synthetic/cosmoflow_synthesis.hpp"
#include "halograd/train/progress.hpp"

#include <unistd.h>

#include <cstdio>
#include <memory>

namespace halograd {
namespace {

/// Shows how far this rank's share is: a line drawn over on a terminal, else a plain one every few seconds.
class SynthesisReport {
public:
  void operator()(const SynthesisProgress& progress) {
    const double now = now_seconds();
    const bool last = progress.done == progress.total;
    const bool terminal = isatty(STDERR_FILENO) != 0;
    if (!last && now - shown_ < (terminal ? 0.1 : 10.0)) return;
    shown_ = now;
    const double left =
        (now - start_) / static_cast<double>(progress.done) * static_cast<double>(progress.total - progress.done);
    const std::string line =
        fmt::format("{}/{} universes, {} left", progress.done, progress.total, format_duration(left));
    if (!terminal) {
      log::info(line);
    } else {
      std::fputs(("\r" + line + "\x1b[K" + (last ? "\n" : "")).c_str(), stderr);
    }
  }

private:
  double start_ = now_seconds();
  double shown_ = now_seconds();
};

void synthesize(const Communicator& world, const std::string& kind, CosmoflowSynthesis synthesis) {
  if (kind == "lits") throw UsageError("synth lits is not built yet; there is synth cosmoflow");
  if (kind != "cosmoflow") throw UsageError("synth: unknown kind of data {}; there is cosmoflow", kind);
  synthesis.rank = world.rank();
  synthesis.ranks = world.size();
  const double start = now_seconds();
  agree(world, [&] {
    SynthesisReport report;
    synthesize_cosmoflow(synthesis, [&](const SynthesisProgress& progress) {
      if (world.rank() == 0) report(progress);
    });
  });
  log::info("{} universes of {}^3 voxels in {}, {:.1f} s", synthesis.count, synthesis.universe.width,
            synthesis.directory.string(), now_seconds() - start);
}

}  // namespace

void add_synth_command(CLI::App& app, const Communicator& world) {
  CLI::App* const command = app.add_subcommand("synth", "Makes synthetic data in the layout of the real sets");
  const auto kind = std::make_shared<std::string>();
  const auto synthesis = std::make_shared<CosmoflowSynthesis>();
  command->add_option("kind", *kind, "cosmoflow: universes, one HDF5 file each")->required();
  command->add_option("--out", synthesis->directory, "the directory to write to, made where it doesn't exist")
      ->required();
  command->add_option("--count", synthesis->count, "universes to make, shared among the ranks")->required();
  command->add_option("--width", synthesis->universe.width, "voxels along each side")->required();
  command->add_option("--box", synthesis->universe.box, "Mpc/h along each side (default: one a voxel)");
  command->add_option("--seed", synthesis->universe.seed, "what the universes are drawn with (default: 1)");
  command->add_option("--first", synthesis->first, "index of the first (default: 0), to add to a set");
  command->callback([=] { synthesize(world, *kind, *synthesis); });
}

}  // namespace halograd
