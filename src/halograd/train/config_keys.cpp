#include "halograd/train/config_keys.hpp"

#include "halograd/core/error.hpp"
#include "halograd/core/system.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>

namespace halograd {
namespace {

template <typename Table, typename T>
ConfigKey key(std::string table, Table Config::*place, std::string name, T Table::*member, std::string doc,
              std::type_identity_t<ConfigCheck<T>> check = nullptr) {
  const auto at = [place, member](Config& config) -> T& { return config.*place.*member; };
  return {std::move(table), std::move(name), ConfigField<T>{at, std::move(check)}, std::move(doc)};
}

ConfigCheck<std::int64_t> at_least(std::int64_t low) {
  return [low](std::int64_t value) { return value >= low ? "" : fmt::format("an integer of at least {}", low); };
}

std::string check_base_channels(std::int64_t channels) {
  return channels >= 1 && channels <= 65536 ? "" : "1 to 65536";
}

ConfigCheck<double> check_number(std::string right, std::function<bool(double)> accepts) {
  return [right = std::move(right), accepts = std::move(accepts)](double value) {
    return std::isfinite(value) && accepts(value) ? "" : right;
  };
}

ConfigCheck<std::string> one_of(std::vector<std::string> names) {
  return [names = std::move(names)](const std::string& value) -> std::string {
    if (std::ranges::find(names, value) != names.end()) return "";
    return fmt::format("\"{}\"", fmt::join(names, "\" or \""));
  };
}

std::string check_width(std::int64_t width) {
  // Sixty-four thousand cubed is more than any machine holds, and still countable in every product made of it.
  return width >= 8 && width <= 65536 && width % 8 == 0 ? "" : "a multiple of 8 (to 65536)";
}

std::string check_classes(std::int64_t classes) {
  return classes >= 2 && classes <= 255 ? "" : "2 to 255";
}

std::string check_ignore_label(std::int64_t label) {
  return label >= -1 && label <= 255 ? "" : "a label from 0 to 255, or -1 for none";
}

std::string check_weights(const std::vector<double>& weights) {
  // Single precision holds these, their sum over all voxels and what that is divided by.
  const bool numbers =
      std::ranges::all_of(weights, [](double weight) { return weight == 0 || (weight >= 1e-6 && weight <= 1e6); });
  const bool some = weights.empty() || std::ranges::any_of(weights, [](double weight) { return weight > 0; });
  return numbers && some ? "" : "numbers from 1e-6 to 1e6, or 0, not all of them 0";
}

std::string check_pool_window(std::int64_t window) {
  return window == 2 || window == 3 ? "" : "2 or 3";
}

std::string check_split(const std::array<double, 3>& split) {
  const double sum = split[0] + split[1] + split[2];
  const bool fractions = std::ranges::all_of(split, [](double part) { return part >= 0 && part <= 1; });
  if (fractions && split[0] > 0 && std::abs(sum - 1) < 1e-6) return "";
  return "the fractions of train (above 0), validation and test, adding up to 1";
}

std::string check_window(const std::array<double, 2>& window) {
  const bool rises = std::isfinite(window[0]) && std::isfinite(window[1]) && window[0] < window[1];
  return rises ? "" : "two numbers, the lower one first, as [-200, 300]";
}

std::string check_flip(const std::string& letters) {
  const auto known = [&](char letter) {
    return std::string_view("dhw").find(letter) != std::string_view::npos && std::ranges::count(letters, letter) == 1;
  };
  return std::ranges::all_of(letters, known) ? "" : "letters of \"dhw\", each once at most; empty: no flips";
}

std::string check_grid(const std::string& grid) {
  const char* at = grid.data();
  const char* const end = at + grid.size();
  for (int i = 0; i < 3; ++i) {
    int parts = 0;
    const auto [next, failure] = std::from_chars(at, end, parts);
    const bool separated = i < 2 ? (next != end && *next == 'x') : next == end;
    if (failure != std::errc{} || parts < 1 || !separated) return "DEPTHxHEIGHTxWIDTH, as \"2x1x1\"";
    at = next + (i < 2 ? 1 : 0);
  }
  return "";
}

std::string check_bytes(const std::string& text) {
  if (text.empty()) return "";
  try {
    if (parse_bytes(text) > 0) return "";
  } catch (const UsageError&) {
  }
  return "a size, as \"8GiB\" or \"500MB\"; empty: what the node has free";
}

std::string check_not_empty(const std::string& text) {
  return text.empty() ? "a path" : "";
}

std::vector<ConfigKey> make_keys() {
  const auto model = [](auto... rest) { return key("model", &Config::model, rest...); };
  const auto data = [](auto... rest) { return key("data", &Config::data, rest...); };
  const auto train = [](auto... rest) { return key("train", &Config::train, rest...); };
  const auto parallel = [](auto... rest) { return key("parallel", &Config::parallel, rest...); };
  using M = ModelConfig;
  using D = DataConfig;
  using T = TrainConfig;
  using P = ParallelConfig;
  const auto positive = check_number("a number above 0", [](double x) { return x > 0; });
  const auto above_0_to_1 = check_number("a number above 0 and at most 1", [](double x) { return x > 0 && x <= 1; });
  const auto from_0_to_1 = check_number("a number from 0 to 1", [](double x) { return x >= 0 && x <= 1; });
  const auto not_negative = check_number("a number of 0 or more", [](double x) { return x >= 0; });
  const auto below_1 = check_number("a number from 0 to below 1", [](double x) { return x >= 0 && x < 1; });
  return {
      model("name", &M::name, "the network", one_of({"cosmoflow", "unet3d"})),
      model("width", &M::width, "voxels along each side of a sample: a multiple of 16 (unet3d: of 8)", check_width),
      model("batch_norm", &M::batch_norm, "batch normalisation behind every convolution"),
      model("dropout_keep", &M::dropout_keep, "share of features kept; 1 switches dropout off", above_0_to_1),
      model("pool", &M::pool, "\"average\" or \"max\"", one_of({"average", "max"})),
      model("pool_window", &M::pool_window, "voxels along each side of a pool's window: 3 (padding 1) or 2 (none)",
            check_pool_window),
      model("batch_norm_decay", &M::batch_norm_decay, "of the running averages, per step", below_1),
      model("norm", &M::norm, "of unet3d, with batch_norm: \"batch\", \"instance\" or \"group\"",
            one_of({"batch", "instance", "group"})),
      model("channels", &M::channels, "of unet3d's input", at_least(1)),
      model("classes", &M::classes, "that unet3d tells apart", check_classes),
      model("base_channels", &M::base_channels, "of unet3d's first convolution", check_base_channels),
      model("loss", &M::loss, "of unet3d: \"cross_entropy\", \"dice\" or \"cross_entropy+dice\"",
            one_of({"cross_entropy", "dice", "cross_entropy+dice"})),
      model("class_weights", &M::class_weights, "of the cross entropy, by class; []: all 1", check_weights),
      model("ignore_label", &M::ignore_label, "voxels with it count nowhere; -1: none", check_ignore_label),
      data("path", &D::path, "a directory of HDF5 files", check_not_empty),
      data("format", &D::format, "layout of the files: \"cosmoflow\" or \"lits\"", one_of({"cosmoflow", "lits"})),
      data("transform", &D::transform, "of the input: \"log1p\", \"window\" or \"none\"",
           one_of({"log1p", "window", "none"})),
      data("intensity_window", &D::intensity_window, "what \"window\" clips to, and maps to [-1, 1]", check_window),
      data("augment_flip", &D::augment_flip, "of training samples, at random, along letters of \"dhw\"; empty: none",
           check_flip),
      data("augment_scale", &D::augment_scale, "training values times 1 ± up to this, once transformed", below_1),
      data("augment_shift", &D::augment_shift, "training values ± up to this, once transformed", not_negative),
      data("split", &D::split, "fractions of train, validation and test", check_split),
      data("seed", &D::seed, "of the split", at_least(0)),
      data("subvolume", &D::subvolume, "cuts each file into cubes of this width (the model's); 0: no cutting",
           at_least(0)),
      data("io", &D::io, "each rank reads its own \"hyperslab\", or one of a group the whole \"sample\" (slow)",
           one_of({"hyperslab", "sample"})),
      data("driver", &D::driver, "how HDF5 reads: \"auto\" finds out",
           one_of({"auto", "posix", "mpi-independent", "mpi-collective"})),
      data("store", &D::store, "where samples stay after the first epoch", one_of({"memory", "disk", "off"})),
      data("store_budget", &D::store_budget, "memory of a rank, as \"8GiB\"; empty: what is free, shared out",
           check_bytes),
      data("store_dir", &D::store_dir, "node-local, for what memory does not hold; empty: the temporary directory"),
      train("epochs", &T::epochs, "passes over the training samples", at_least(1)),
      train("batch_size", &T::batch_size, "the global mini-batch", at_least(1)),
      train("learning_rate", &T::learning_rate, "the initial one", positive),
      train("lr_decay_epochs", &T::lr_decay_epochs, "epochs of its linear decay", at_least(1)),
      train("lr_final", &T::lr_final, "share of the initial rate at the decay's end", from_0_to_1),
      train("optimizer", &T::optimizer, "\"adam\" or \"sgd\"", one_of({"adam", "sgd"})),
      train("momentum", &T::momentum, "of sgd", below_1),
      train("seed", &T::seed, "of initial weights, dropout and the samples' order", at_least(0)),
      train("precision", &T::precision, "\"f32\", \"bf16\", or \"tf32\" (GPUs only)", one_of({"f32", "tf32", "bf16"})),
      train("checkpoint_every_epochs", &T::checkpoint_every_epochs, "0: not by epochs", at_least(0)),
      train("checkpoint_every_steps", &T::checkpoint_every_steps, "0: not by steps", at_least(0)),
      train("checkpoints_kept", &T::checkpoints_kept, "besides the first and the best on validation", at_least(1)),
      train("initial_checkpoint", &T::initial_checkpoint, "weights to start from; empty: random ones"),
      train("log_samples", &T::log_samples, "each step's files in metrics.jsonl"),
      parallel("grid", &P::grid, "parts of a sample in depth, height and width", check_grid),
      parallel("batch_norm_statistics", &P::batch_norm_statistics, "over the \"global\" mini-batch, or \"spatial\"",
               one_of({"global", "spatial"})),
      parallel("convolutions", &P::convolutions,
               "\"fast\", or \"direct\": none that round more to be faster (Winograd)", one_of({"fast", "direct"})),
      parallel("device", &P::device,
               "\"cuda\", \"cpu\", \"auto\": GPUs where there are any, or \"reference\": plain loops",
               one_of({"auto", "cpu", "cuda", "reference"})),
  };
}

}  // namespace

const std::vector<ConfigKey>& config_keys() {
  static const std::vector<ConfigKey> keys = make_keys();
  return keys;
}

}  // namespace halograd
