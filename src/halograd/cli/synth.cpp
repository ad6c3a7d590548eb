#include "halograd/cli/commands.hpp"
#include "halograd/cli/share_report.hpp"
#include "halograd/core/error.hpp"
#include "halograd/core/log.hpp"
#include "halograd/core/system.hpp"
#include "halograd/data/medical/synthetic_scan.hpp"
#include "halograd/data/synthetic/cosmoflow_synthesis.hpp"

#include <memory>

namespace halograd {
namespace {

void synthesize_universes(const Communicator& world, CosmoflowSynthesis synthesis) {
  synthesis.rank = world.rank();
  synthesis.ranks = world.size();
  const double start = now_seconds();
  agree(world, [&] {
    ShareReport report("universes");
    synthesize_cosmoflow(synthesis, [&](const SynthesisProgress& progress) {
      if (world.rank() == 0) report.show(progress.done, progress.total);
    });
  });
  log::info("{} universes of {}^3 voxels in {}, {:.1f} s", synthesis.count, synthesis.universe.width,
            synthesis.directory.string(), now_seconds() - start);
}

void synthesize_scans(const Communicator& world, const CosmoflowSynthesis& options, bool box_given) {
  if (box_given) throw UsageError("--box is in Mpc/h, which scans have no use for; expected it with synth cosmoflow");
  const LitsSynthesis synthesis{.directory = options.directory,
                                .count = options.count,
                                .first = options.first,
                                .width = options.universe.width,
                                .seed = options.universe.seed,
                                .rank = world.rank(),
                                .ranks = world.size()};
  const double start = now_seconds();
  agree(world, [&] {
    ShareReport report("scans");
    synthesize_lits(synthesis, [&](std::int64_t done, std::int64_t total) {
      if (world.rank() == 0) report.show(done, total);
    });
  });
  log::info("{} scans of {} voxels across in {}, {:.1f} s", synthesis.count, synthesis.width,
            synthesis.directory.string(), now_seconds() - start);
}

}  // namespace

void add_synth_command(CLI::App& app, const Communicator& world) {
  CLI::App* const command = app.add_subcommand("synth", "Makes synthetic data in the layout of the real sets");
  const auto kind = std::make_shared<std::string>();
  const auto synthesis = std::make_shared<CosmoflowSynthesis>();
  command
      ->add_option("kind", *kind,
                   "cosmoflow: universes, one HDF5 file each; lits: CT scans with organ and lesions, a "
                   "pair of NIfTI files each")
      ->required();
  command->add_option("--out", synthesis->directory, "the directory to write to, made where it doesn't exist")
      ->required();
  command->add_option("--count", synthesis->count, "universes or scans to make, shared among the ranks")->required();
  command->add_option("--width", synthesis->universe.width, "voxels along each side (of scans: of a slice)")
      ->required();
  CLI::Option* const box =
      command->add_option("--box", synthesis->universe.box, "Mpc/h along each side (default: one a voxel)");
  command->add_option("--seed", synthesis->universe.seed, "what they are drawn with (default: 1)");
  command->add_option("--first", synthesis->first, "index of the first (default: 0), to add to a set");
  command->callback([=] {
    if (*kind == "cosmoflow") return synthesize_universes(world, *synthesis);
    if (*kind == "lits") return synthesize_scans(world, *synthesis, box->count() > 0);
    throw UsageError("synth: unknown kind of data {}; there are cosmoflow and lits", *kind);
  });
}

}  // namespace halograd
