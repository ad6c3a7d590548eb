#include "halograd/cli/commands.hpp"
#include "halograd/cli/share_report.hpp"
#include "halograd/core/error.hpp"
#include "halograd/core/log.hpp"
#include "halograd/core/system.hpp"
#include "halograd/data/medical/conversion.hpp"

#include <fmt/ranges.h>

#include <memory>

namespace halograd {
namespace {

void convert(const Communicator& world, const std::string& kind, const Conversion& conversion) {
  if (kind != "lits") throw UsageError("convert: unknown kind of data {}; there is lits", kind);
  const double start = now_seconds();
  ShareReport report("cases");
  const ConversionResult result =
      convert_cases(world, conversion, [&](const ConversionProgress& now) { report.show(now.done, now.total); });
  const CaseSettings& settings = conversion.settings;
  log::info("{} cases of {}^3 voxels and {} classes in {}, {:.1f} s; {} were there before", result.converted,
            settings.width, settings.classes, conversion.out.string(), now_seconds() - start, result.skipped);
  if (!result.failed.empty()) {
    throw DataError("{}: {} of {} cases could not be converted: {}; all others are in {}", conversion.volumes.string(),
                    result.failed.size(),
                    result.converted + result.skipped + static_cast<std::int64_t>(result.failed.size()),
                    fmt::join(result.failed, ", "), conversion.out.string());
  }
}

}  // namespace

void add_convert_command(CLI::App& app, const Communicator& world) {
  CLI::App* const command = app.add_subcommand("convert", "Makes training samples of medical volumes");
  const auto kind = std::make_shared<std::string>();
  const auto conversion = std::make_shared<Conversion>();
  command->add_option("kind", *kind, "lits: pairs of NIfTI files, volume-N.nii[.gz] and segmentation-N.nii[.gz]")
      ->required();
  command->add_option("--volumes", conversion->volumes, "the directory of the pairs")->required();
  command->add_option("--out", conversion->out, "the directory to write to, made where it doesn't exist")->required();
  command->add_option("--width", conversion->settings.width, "voxels along each side (default: 256)");
  command->add_option("--classes", conversion->settings.classes,
                      "2 to 256: labels are 0 to this less one (default: 3)");
  command->add_option("--group", conversion->settings.groups,
                      "classes made of several labels, as 1:1-90,95,2:91-94; labels in none become 0");
  command->add_flag("--keep-going", conversion->keep_going, "go on past cases that can't be converted");
  command->callback([=] { convert(world, *kind, *conversion); });
}

}  // namespace halograd
