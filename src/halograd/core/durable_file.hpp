#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace halograd {

/// Makes `file`, or replaces what it holds, with `bytes`. `name` is what messages call it. Throws ResourceError (a
/// missing directory, a full disk); then there may be a part of the file.
void write_file(const std::filesystem::path& file, std::string_view bytes, const std::string& name);

/// Waits until what was written to `path`, a file or a directory, is on the disk. Throws ResourceError.
void sync_path(const std::filesystem::path& path);

/// Moves `from` to `to` in the same directory, over what is there, and syncs the directory. Throws ResourceError.
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);

/// Replaces `file` by one holding `bytes`, so that a reader finds the old or the new one, whole, even after a crash.
/// Until it is whole it is `temporary`, in the same directory. Throws ResourceError, leaving no `temporary`.
void write_durably(const std::filesystem::path& file, std::string_view bytes, const std::filesystem::path& temporary);

/// Likewise, with "<file>.partial" for `temporary`.
void write_durably(const std::filesystem::path& file, std::string_view bytes);

/// ".<file>.<host>-<process>.partial" beside `file`: a name that no other process uses at the same time.
std::filesystem::path own_temporary(const std::filesystem::path& file);

/// Removes what processes of this host that are no more left in `directory` under names of `own_temporary`.
void remove_left_temporaries(const std::filesystem::path& directory);

}  // namespace halograd
