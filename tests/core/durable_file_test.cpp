#include "halograd/core/durable_file.hpp"

#include "halograd/core/error.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <set>

namespace halograd {
namespace {

namespace fs = std::filesystem;

class DurableFile : public testing::Test {
protected:
  DurableFile() {
    std::string name = (fs::temp_directory_path() / "halograd_durable_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
    directory = name;
  }
  ~DurableFile() override { fs::remove_all(directory); }

  [[nodiscard]] std::set<std::string> names() const {
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(directory)) found.insert(entry.path().filename().string());
    return found;
  }

  fs::path directory;
};

std::string contents(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

template <typename Action>
std::string resource_error(const Action& action) {
  try {
    action();
  } catch (const ResourceError& fault) {
    return fault.what();
  }
  return "";
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

TEST_F(DurableFile, ReplacesWhatIsThereByTheBytesAndNothingElse) {
  const fs::path file = directory / "file";
  const std::string bytes("a\0b\n", 4);
  write_durably(file, "longer than what follows");
  write_durably(file, bytes);
  EXPECT_EQ(contents(file), bytes);
  write_durably(file, "", directory / ".hidden");
  EXPECT_EQ(contents(file), "");
  EXPECT_EQ(names(), std::set<std::string>{"file"});
}

TEST_F(DurableFile, AFullDiskLeavesTheOldFileAndNoOther) {
  const fs::path file = directory / "file";
  write_durably(file, "old");
  std::string message;
  {
    const FileSizeLimit limit(4096);
    message = resource_error([&] { write_durably(file, std::string(100'000, 'x'), directory / ".file.partial"); });
  }
  EXPECT_EQ(message, "cannot write " + file.string() + ": File too large");
  EXPECT_EQ(contents(file), "old");
  EXPECT_EQ(names(), std::set<std::string>{"file"});
}

TEST_F(DurableFile, FaultsAreNamed) {
  EXPECT_EQ(resource_error([&] { write_durably(directory / "no/file", "text"); }),
            "cannot write " + (directory / "no/file").string() + ": No such file or directory");
  EXPECT_EQ(resource_error([&] { write_file("/dev/full", "text", "the device"); }),
            "cannot write the device: No space left on device");
  fs::create_directories(directory / "taken" / "inside");
  EXPECT_EQ(resource_error([&] { write_durably(directory / "taken", "text"); }),
            "cannot rename " + (directory / "taken.partial").string() + " to " + (directory / "taken").string() +
                ": Is a directory");
  EXPECT_EQ(names(), std::set<std::string>{"taken"});
  EXPECT_EQ(resource_error([&] { sync_path(directory / "none"); }),
            "cannot open " + (directory / "none").string() + " to sync it: No such file or directory");
}

}  // namespace
}  // namespace halograd
