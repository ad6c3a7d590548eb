#include "halograd/core/control_group.hpp"

#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>

namespace halograd {
namespace {

using test::TemporaryDirectory;

void write(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  test::write_file(file, text);
}

std::optional<std::int64_t> room(const TemporaryDirectory& root) {
  return control_group_room(root / "membership", root / "mount");
}

TEST(ControlGroup, version_2_takes_the_tightest_of_a_group_and_its_ancestors) {
  const TemporaryDirectory root;
  write(root / "membership", "0::/jobs/one\n");
  const std::filesystem::path jobs = root / "mount/jobs";
  write(jobs / "one/memory.max", "max\n");
  write(jobs / "one/memory.current", "700\n");
  write(jobs / "memory.max", "1000\n");
  write(jobs / "memory.current", "800\n");
  write(jobs / "memory.stat", "anon 500\ninactive_file 50\nactive_file 250\n");
  EXPECT_EQ(room(root), 250);
  write(jobs / "one/memory.max", "900\n");
  EXPECT_EQ(room(root), 200);
  write(jobs / "one/memory.max", "100\n");
  EXPECT_EQ(room(root), 0);
}

TEST(ControlGroup, version_1_has_its_own_names) {
  const TemporaryDirectory root;
  write(root / "membership", "5:cpu:/x\n4:memory:/job\n0::/\n");
  const std::filesystem::path memory = root / "mount/memory";
  write(memory / "memory.limit_in_bytes", "9223372036854771712\n");
  write(memory / "memory.usage_in_bytes", "5\n");
  EXPECT_EQ(room(root), std::nullopt);
  write(memory / "job/memory.limit_in_bytes", "600\n");
  write(memory / "job/memory.usage_in_bytes", "500\n");
  write(memory / "job/memory.stat", "inactive_file 1\ntotal_inactive_file 70\n");
  EXPECT_EQ(room(root), 170);
}

TEST(ControlGroup, in_a_container_the_mount_is_the_group) {
  const TemporaryDirectory root;
  write(root / "membership", "0::/../../outside/of/here\n");
  write(root / "mount/memory.max", "4096\n");
  write(root / "mount/memory.current", "96\n");
  EXPECT_EQ(room(root), 4000);
}

TEST(ControlGroup, without_any_there_is_no_limit) {
  const TemporaryDirectory root;
  EXPECT_EQ(room(root), std::nullopt);
}

}  // namespace
}  // namespace halograd
