#pragma once

#include <filesystem>
#include <string_view>

namespace halograd {

/// Waits until what was written to `path`, a file or a directory, is on the disk. Throws ResourceError.
void sync_path(const std::filesystem::path& path);

/// Moves `from` to `to` in the same directory, over what is there, and syncs the directory. Throws ResourceError.
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);

/// Replaces `file` by one holding `text`, so that a reader finds the old or the new one, whole, even after a crash.
/// Throws ResourceError.
void write_durably(const std::filesystem::path& file, std::string_view text);

}  // namespace halograd
