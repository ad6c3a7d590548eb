#include "halograd/data/sample_store.hpp"

#include "data/sample_files.hpp"
#include "halograd/core/error.hpp"
#include "halograd/core/system.hpp"

#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>

namespace halograd {
namespace {

namespace fs = std::filesystem;

using test::mentions;
using test::message_of;

constexpr std::int64_t kib = 1024;

std::byte content(std::int64_t sample, std::int64_t i) {
  return static_cast<std::byte>(37 * sample + i + (i >> 8) + 5 * (i >> 16));
}

void put(SampleStore& store, std::int64_t sample, std::int64_t bytes) {
  std::byte* place = store.place_for(sample, bytes);
  for (std::int64_t i = 0; i < bytes; ++i) place[i] = content(sample, i);
  store.store(sample);
}

struct Fetched {
  std::int64_t wrong = 0;
  bool from_disk = false;
};

Fetched fetch(const SampleStore& store, std::int64_t sample, std::int64_t bytes) {
  std::vector<std::byte> scratch;
  const std::byte* data = store.fetch(sample, scratch);
  Fetched result{.from_disk = !scratch.empty()};
  for (std::int64_t i = 0; i < bytes; ++i) result.wrong += data[i] != content(sample, i);
  return result;
}

std::int64_t entries(const fs::path& directory) {
  return std::distance(fs::directory_iterator(directory), fs::directory_iterator());
}

/// While it lives no file can grow beyond `bytes`, and a process that tries is killed: the system's own manners.
class FileSizeLimit {
public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_DFL)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit low{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &low);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

private:
  rlimit before_{};
  void (*handler_)(int);
};

/// TMPDIR for the life of the object.
class TemporaryDirectoryVariable {
public:
  explicit TemporaryDirectoryVariable(const fs::path& value) {
    if (const char* before = std::getenv("TMPDIR")) before_ = before;
    setenv("TMPDIR", value.c_str(), 1);
  }
  ~TemporaryDirectoryVariable() {
    if (before_)
      setenv("TMPDIR", before_->c_str(), 1);
    else
      unsetenv("TMPDIR");
  }
  TemporaryDirectoryVariable(const TemporaryDirectoryVariable&) = delete;
  TemporaryDirectoryVariable& operator=(const TemporaryDirectoryVariable&) = delete;

private:
  std::optional<std::string> before_;
};

class SampleStoreIn : public testing::Test {
protected:
  [[nodiscard]] StoreOptions memory(std::int64_t budget) const {
    return {.kind = StoreKind::memory, .memory_budget = budget, .directory = directory.path()};
  }
  [[nodiscard]] StoreOptions disk() const {
    return {.kind = StoreKind::disk, .memory_budget = 1 << 30, .directory = directory.path()};
  }

  test::TemporaryDirectory directory;
};

TEST_F(SampleStoreIn, WhatFitsStaysInMemory) {
  const std::vector<std::int64_t> sizes{100 * kib + 1, 1, 64 * kib, 0};
  StoreOptions options = memory(1 << 30);
  options.directory = "/no/such/directory";  // not asked for
  SampleStore store(options, sizes, 1);
  EXPECT_EQ(store.memory_bytes(), 100 * kib + 64 + 64 + 64 * kib) << "what was announced";
  EXPECT_FALSE(store.holds(10));
  for (std::int64_t i = 0; i < 4; ++i) put(store, 10 + i, sizes[static_cast<std::size_t>(i)]);
  for (std::int64_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(store.holds(10 + i));
    const Fetched fetched = fetch(store, 10 + i, sizes[static_cast<std::size_t>(i)]);
    EXPECT_EQ(fetched.wrong, 0);
    EXPECT_FALSE(fetched.from_disk);
  }
  // On multiples of 64.
  EXPECT_EQ(store.memory_bytes(), (100 * kib + 64) + 64 + 64 * kib);
  EXPECT_EQ(store.disk_bytes(), 0);
  std::vector<std::byte> scratch;
  EXPECT_EQ(store.fetch(11, scratch) - store.fetch(10, scratch), 100 * kib + 64);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(store.fetch(10, scratch)) % 64, 0U);
}

TEST_F(SampleStoreIn, HalfSpillsToDiskAndComesBack) {
  constexpr std::int64_t bytes = 300 * kib + 7;
  SampleStore store(memory(5 * 301 * kib), std::vector<std::int64_t>(10, bytes), 2);
  EXPECT_EQ(entries(directory.path()), 0) << "the file has no name while it lives";
  for (std::int64_t sample = 0; sample < 10; ++sample) {
    put(store, sample, bytes);
    EXPECT_EQ(entries(directory.path()), 0);
  }
  constexpr std::int64_t rounded = 300 * kib + 64;
  EXPECT_EQ(store.memory_bytes(), 5 * rounded);
  EXPECT_EQ(store.disk_bytes(), 5 * rounded);
  for (std::int64_t sample = 9; sample >= 0; --sample) {
    const Fetched fetched = fetch(store, sample, bytes);
    EXPECT_EQ(fetched.wrong, 0) << sample;
    EXPECT_EQ(fetched.from_disk, sample >= 5) << sample;
  }
}

TEST_F(SampleStoreIn, AScratchBufferServesSamplesOfAnySize) {
  SampleStore store(disk(), {1000, 10, 500}, 1);
  put(store, 0, 1000);
  put(store, 1, 10);
  put(store, 2, 500);
  std::vector<std::byte> scratch;
  for (const auto& [sample, bytes] : std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 10}, {0, 1000}, {2, 500}}) {
    const std::byte* data = store.fetch(sample, scratch);
    EXPECT_EQ(data, scratch.data());
    for (std::int64_t i = 0; i < bytes; ++i) EXPECT_EQ(data[i], content(sample, i));
  }
}

TEST_F(SampleStoreIn, ASmallerSampleMayFitBehindOneThatDidNot) {
  const std::vector<std::int64_t> sizes{64, 128, 64, 64};
  SampleStore store(memory(128), sizes, 1);
  for (std::int64_t i = 0; i < 4; ++i) put(store, i, sizes[static_cast<std::size_t>(i)]);
  const bool expected[] = {false, true, false, true};
  for (std::int64_t i = 0; i < 4; ++i) {
    const Fetched fetched = fetch(store, i, sizes[static_cast<std::size_t>(i)]);
    EXPECT_EQ(fetched.from_disk, expected[i]) << i;
    EXPECT_EQ(fetched.wrong, 0) << i;
  }
}

TEST_F(SampleStoreIn, AllOnDisk) {
  constexpr std::int64_t bytes = 100'003;
  SampleStore store(disk(), std::vector<std::int64_t>(4, bytes), 1);
  for (std::int64_t sample = 0; sample < 4; ++sample) put(store, sample, bytes);
  EXPECT_EQ(store.memory_bytes(), 0);
  EXPECT_EQ(store.disk_bytes(), 4 * 100'032);
  for (std::int64_t sample = 0; sample < 4; ++sample) {
    const Fetched fetched = fetch(store, sample, bytes);
    EXPECT_EQ(fetched.wrong, 0);
    EXPECT_TRUE(fetched.from_disk);
  }
}

TEST_F(SampleStoreIn, TheSpaceIsTakenAtOnceAndGivenBack) {
  const auto free = [&] { return static_cast<std::int64_t>(fs::space(directory.path()).available); };
  constexpr std::int64_t bytes = std::int64_t{1} << 30;
  const std::int64_t before = free();
  if (before < 2 * bytes) GTEST_SKIP() << "less than 2 GiB free";
  {
    const SampleStore store(disk(), {bytes}, 1);
    EXPECT_LT(free(), before - bytes / 2);  // others use the disk too
  }
  EXPECT_GT(free(), before - bytes / 2);
  EXPECT_EQ(entries(directory.path()), 0);
}

TEST_F(SampleStoreIn, WhatDoesNotFitIsRefusedWithTheNumbers) {
  std::string message;
  {
    const FileSizeLimit limit(4096);
    message = message_of<ResourceError>([&] {
      const SampleStore store(memory(100 * kib), {64 * kib, 512 * kib, 512 * kib}, 3);
    });
  }
  const std::string known =
      "the data store of this rank needs 1.06 MiB: 64.0 KiB fit in memory (its budget is 100 KiB), "
      "and the 1.00 MiB for the disk are not to be had in " +
      directory.path().string() + ", which has ";
  EXPECT_EQ(message.substr(0, known.size()), known);
  EXPECT_TRUE(mentions(message, " free for the 3 rank(s) of this node (File too large)")) << message;
  for (const char* advice : {"more ranks", "data.store_budget", "data.store_dir", "data.store = \"off\""}) {
    EXPECT_TRUE(mentions(message, advice)) << message;
  }
  EXPECT_EQ(entries(directory.path()), 0);
}

TEST_F(SampleStoreIn, MoreThanTheDiskHasIsRefused) {
  constexpr std::int64_t pebibyte = std::int64_t{1} << 50;
  const std::string message = message_of<ResourceError>([&] {
    const SampleStore store(memory(0), {pebibyte, pebibyte}, 1);
  });
  EXPECT_TRUE(mentions(message, "needs 2.00 PiB: 0 B fit in memory (its budget is 0 B)")) << message;
}

TEST_F(SampleStoreIn, ADiskThatFailsLaterIsNamed) {
  SampleStore store(disk(), {512 * kib, 512 * kib}, 1);
  put(store, 0, 512 * kib);
  store.place_for(1, 512 * kib);
  std::string message;
  {
    const FileSizeLimit limit(700 * kib);  // in the middle of the sample: a short write first, then the error
    message = message_of<ResourceError>([&] { store.store(1); });
  }
  EXPECT_EQ(message, "cannot write the data store's file in " + directory.path().string() + ": File too large");
  EXPECT_FALSE(store.holds(1));
  EXPECT_EQ(fetch(store, 0, 512 * kib).wrong, 0);
}

/// The descriptor of the store's file, found as no name leads to it.
int store_descriptor(const fs::path& directory) {
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    const std::string target = fs::read_symlink(entry.path(), ignored).string();
    if (mentions(target, directory.string() + "/halograd_store_")) return std::stoi(entry.path().filename().string());
  }
  return -1;
}

TEST_F(SampleStoreIn, AFileCutShortIsNoticed) {
  SampleStore store(disk(), {1000, 1000}, 1);
  put(store, 0, 1000);
  put(store, 1, 1000);
  ASSERT_EQ(ftruncate(store_descriptor(directory.path()), 1500), 0);
  EXPECT_EQ(fetch(store, 0, 1000).wrong, 0);
  EXPECT_EQ(message_of<ResourceError>([&] { fetch(store, 1, 1000); }),
            "cannot read the data store's file in " + directory.path().string() +
                ": it was cut short (476 of 1000 bytes at 1024)");
}

TEST_F(SampleStoreIn, DirectoriesThatDoNotServeAreNamed) {
  const auto failure = [](const fs::path& path) {
    return message_of<ResourceError>(
        [&] { const SampleStore store({.kind = StoreKind::disk, .directory = path}, {100}, 1); });
  };
  const fs::path missing = directory.path() / "missing";
  EXPECT_EQ(failure(missing), "cannot make the data store's file in " + missing.string() +
                                  " (No such file or directory): data.store_dir must name a directory of this node "
                                  "that can be written to");
  const fs::path plain = directory.path() / "plain";
  std::ofstream(plain) << "text";
  EXPECT_TRUE(mentions(failure(plain), plain.string() + " (Not a directory)")) << failure(plain);
  EXPECT_TRUE(mentions(failure("/proc"), "file in /proc (")) << "not writable, even for root";
}

TEST_F(SampleStoreIn, TheDefaultDirectoryIsTheSystemsButNoMemory) {
  {
    const TemporaryDirectoryVariable variable(directory.path());
    SampleStore store({.kind = StoreKind::disk}, {100}, 1);
    EXPECT_GE(store_descriptor(directory.path()), 0);
    put(store, 5, 100);
    EXPECT_EQ(fetch(store, 5, 100).wrong, 0);
  }
  {
    const TemporaryDirectoryVariable variable(directory.path() / "missing");
    const std::string message =
        message_of<ResourceError>([] { const SampleStore store({.kind = StoreKind::disk}, {100}, 1); });
    EXPECT_TRUE(mentions(message, "TMPDIR or data.store_dir")) << message;
  }
  struct statfs system {};
  if (statfs("/dev/shm", &system) != 0 || system.f_type != TMPFS_MAGIC) GTEST_SKIP() << "no /dev/shm in memory";
  const TemporaryDirectoryVariable variable("/dev/shm");
  const std::string message =
      message_of<ResourceError>([] { const SampleStore store({.kind = StoreKind::disk}, {100}, 1); });
  EXPECT_EQ(message,
            "the data store of this rank has 128 B to put on a disk (its memory budget is 0 B), but the temporary "
            "directory /dev/shm is memory: name a directory on a disk of this node in data.store_dir");
  EXPECT_NO_THROW(SampleStore({.kind = StoreKind::disk, .directory = "/dev/shm"}, {100}, 1)) << "named: as is";
}

TEST_F(SampleStoreIn, SamplesMayBePlacedBeforeOthersAreStored) {
  SampleStore store(memory(128), {64, 64, 64, 64}, 1);
  std::byte* first = store.place_for(7, 64);
  std::byte* second = store.place_for(8, 64);
  for (std::int64_t i = 0; i < 64; ++i) first[i] = content(7, i);
  for (std::int64_t i = 0; i < 64; ++i) second[i] = content(8, i);
  EXPECT_FALSE(store.holds(7));
  store.store(8);
  store.store(7);
  EXPECT_EQ(fetch(store, 7, 64).wrong + fetch(store, 8, 64).wrong, 0);
  // There is but one buffer on the way to the disk.
  store.place_for(1, 64);
  EXPECT_EQ(message_of<UsageError>([&] { store.place_for(2, 64); }),
            "sample store: sample 1 must be stored before there is a place for sample 2");
  store.store(1);
  EXPECT_NO_THROW(store.place_for(2, 64));
  store.give_up(2);
  EXPECT_FALSE(store.holds(2));
  EXPECT_THROW(store.store(2), UsageError);
}

TEST_F(SampleStoreIn, MisuseIsRefused) {
  StoreOptions off = memory(100);
  off.kind = StoreKind::off;
  EXPECT_THROW(SampleStore(off, {}, 1), UsageError);
  EXPECT_THROW(SampleStore(memory(-1), {}, 1), UsageError);
  EXPECT_THROW(SampleStore(memory(100), {10, -1}, 1), UsageError);
  EXPECT_THROW(SampleStore(memory(100), {10}, 0), UsageError);

  SampleStore store(memory(64), {64}, 1);
  std::vector<std::byte> scratch;
  EXPECT_THROW(store.store(0), UsageError);
  EXPECT_THROW(store.fetch(0, scratch), UsageError);
  EXPECT_THROW(store.place_for(0, -1), UsageError);
  EXPECT_THROW(store.place_for(0, 65), UsageError) << "more than announced";
  put(store, 0, 64);
  EXPECT_THROW(store.place_for(0, 64), UsageError);
  EXPECT_THROW(store.place_for(1, 1), UsageError) << "more than announced";
  EXPECT_EQ(fetch(store, 0, 64).wrong, 0);
  EXPECT_NO_THROW(SampleStore(memory(0), {}, 1));
}

TEST_F(SampleStoreIn, RefusesABudgetThatTheMemoryDoesNotHold) {
  StoreOptions options = memory(1000);
  options.memory_free = 128;
  EXPECT_NO_THROW(SampleStore(options, {64, 64}, 1));
  const std::string message = message_of<ResourceError>([&] { SampleStore(options, {64, 65}, 1); });
  EXPECT_TRUE(mentions(message, "need 192 B, but there is 128 B")) << message;
  EXPECT_TRUE(mentions(message, "data.store_budget")) << message;
}

TEST(MemoryShare, IsEqualPartsOfNineTenthsLessWhatEachNeeds) {
  EXPECT_EQ(memory_share(1000, 0, 1), 900);
  EXPECT_EQ(memory_share(1000, 0, 4), 225);
  EXPECT_EQ(memory_share(1000, 25, 4), 200);
  EXPECT_EQ(memory_share(1000, 300, 4), 0);
}

}  // namespace
}  // namespace halograd
