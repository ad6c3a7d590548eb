#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace halograd {

/// A dense float array of the whole (unpartitioned) model: "/model/conv1/weight", "/optimizer/adam_m/conv1/weight", in
/// row-major order; no dims: one number. Writing only reads `data`.
struct NamedArray {
  std::string path;
  std::vector<std::int64_t> dims;
  float* data = nullptr;
};

/// An array as a file holds it.
struct ArrayInfo {
  std::string path;
  std::vector<std::int64_t> dims;
  friend bool operator==(const ArrayInfo&, const ArrayInfo&) = default;
};

/// Everything but the arrays that a run needs to go on as if it had never stopped. The sampler's and the random state
/// are epoch, batch, step and seed, since every random number is a function of those.
struct CheckpointState {
  std::int64_t epoch = 0;            ///< the one that the next step belongs to
  std::int64_t step = 0;             ///< steps taken in the whole run
  std::int64_t batch = 0;            ///< of those, in this epoch
  std::int64_t optimizer_steps = 0;  ///< Adam's t
  std::int64_t seed = 0;
  double best_validation_loss = std::numeric_limits<double>::infinity();
  std::map<std::string, std::int64_t> counters{};  ///< more of them by name: "bn1/updates", …
  std::map<std::string, double> values{};          ///< likewise: sums over the part of the epoch done, …
  std::string config{};                            ///< TOML
  std::string version{};                           ///< of the program that wrote it
  friend bool operator==(const CheckpointState&, const CheckpointState&) = default;
};

/// Writes a checkpoint to `file`, sealed with a checksum (checkpoint_seal.hpp) and synced to the disk; equal contents
/// give equal bytes. To have it whole or not at all, see CheckpointStore. Throws ResourceError, leaving no file.
void write_checkpoint(const std::filesystem::path& file, const CheckpointState& state,
                      std::span<const NamedArray> arrays);

/// Verifies `file` and reads it into `arrays`, which must be just the file's in every top group (/model, /optimizer)
/// they name. Throws DataError where the file is damaged or, naming parameter and shapes, of another model; then
/// `arrays` are as before.
CheckpointState read_checkpoint(const std::filesystem::path& file, std::span<const NamedArray> arrays);

/// Reads those of `arrays` that are below /model, for evaluating or starting from given weights. Takes files of other
/// programs too (/model alone, any float type, no seal). Throws as read_checkpoint does.
void read_weights(const std::filesystem::path& file, std::span<const NamedArray> arrays);

/// Verifies `file` and reads all but its arrays. Throws DataError.
CheckpointState read_checkpoint_state(const std::filesystem::path& file);

/// The arrays that a checkpoint or a file of weights holds, by path. Throws DataError.
std::vector<ArrayInfo> list_arrays(const std::filesystem::path& file);

/// Whether `file` begins as a checkpoint does (`inspect` asks).
bool is_checkpoint(const std::filesystem::path& file);

}  // namespace halograd
