#include "halograd/core/durable_file.hpp"

#include "halograd/core/error.hpp"
#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <set>

namespace halograd {
namespace {

namespace fs = std::filesystem;

using test::message_of;
using test::read_file;
using test::TemporaryDirectory;

std::set<std::string> names(const TemporaryDirectory& directory) {
  std::set<std::string> found;
  for (const auto& entry : fs::directory_iterator(directory.path())) found.insert(entry.path().filename().string());
  return found;
}

/// While it lives no file can grow beyond `bytes`: it stands in for a full disk.
class FileSizeLimit {
public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit low{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &low);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST(DurableFile, ReplacesWhatIsThereByTheBytesAndNothingElse) {
  const TemporaryDirectory directory;
  const fs::path file = directory / "file";
  const std::string bytes("a\0b\n", 4);
  write_durably(file, "longer than what follows");
  write_durably(file, bytes);
  EXPECT_EQ(read_file(file), bytes);
  write_durably(file, "", directory / ".hidden");
  EXPECT_EQ(read_file(file), "");
  EXPECT_EQ(names(directory), std::set<std::string>{"file"});
}

TEST(DurableFile, AFullDiskLeavesTheOldFileAndNoOther) {
  const TemporaryDirectory directory;
  const fs::path file = directory / "file";
  write_durably(file, "old");
  std::string message;
  {
    const FileSizeLimit limit(4096);
    message =
        message_of<ResourceError>([&] { write_durably(file, std::string(100'000, 'x'), directory / ".file.partial"); });
  }
  EXPECT_EQ(message, "cannot write " + file.string() + ": File too large");
  EXPECT_EQ(read_file(file), "old");
  EXPECT_EQ(names(directory), std::set<std::string>{"file"});
}

TEST(DurableFile, FaultsAreNamed) {
  const TemporaryDirectory directory;
  EXPECT_EQ(message_of<ResourceError>([&] { write_durably(directory / "no/file", "text"); }),
            "cannot write " + (directory / "no/file").string() + ": No such file or directory");
  EXPECT_EQ(message_of<ResourceError>([&] { write_file("/dev/full", "text", "the device"); }),
            "cannot write the device: No space left on device");
  fs::create_directories(directory / "taken" / "inside");
  EXPECT_EQ(message_of<ResourceError>([&] { write_durably(directory / "taken", "text"); }),
            "cannot rename " + (directory / "taken.partial").string() + " to " + (directory / "taken").string() +
                ": Is a directory");
  EXPECT_EQ(names(directory), std::set<std::string>{"taken"});
  EXPECT_EQ(message_of<ResourceError>([&] { sync_path(directory / "none"); }),
            "cannot open " + (directory / "none").string() + " to sync it: No such file or directory");
}

TEST(DurableFile, what_dead_processes_left_is_removed) {
  const TemporaryDirectory directory;
  const fs::path own = own_temporary(directory / "a");
  const pid_t child = fork();
  if (child == 0) {
    write_file(own_temporary(directory / "a"), "", "a");
    _exit(0);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  write_file(own, "", "a");
  write_file(directory / ".a.elsewhere-1.partial", "", "a");
  EXPECT_EQ(names(directory).size(), 3U) << "each has its own name";
  remove_left_temporaries(directory.path());
  EXPECT_EQ(names(directory), (std::set<std::string>{own.filename().string(), ".a.elsewhere-1.partial"}));
}

}  // namespace
}  // namespace halograd
