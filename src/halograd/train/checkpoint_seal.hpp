#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace halograd {

/// Room for the seal before the HDF5 contents: a user block, which HDF5 and its tools skip.
constexpr std::int64_t seal_bytes = 512;

/// Writes the seal of a file whose first `seal_bytes` are free: its size, a 64-bit hash of all that follows, and the
/// step, so that any cut or changed byte shows. Throws ResourceError.
void seal_file(const std::filesystem::path& file, std::int64_t step);

/// Whether the file begins as a sealed one does.
bool has_seal(const std::filesystem::path& file);

/// The step a seal names, read without verifying; nothing where there is no seal.
std::optional<std::int64_t> sealed_step(const std::filesystem::path& file);

/// Reads the whole file against its seal. Throws DataError saying what is wrong: no seal, cut short, changed.
void verify_seal(const std::filesystem::path& file);

}  // namespace halograd
