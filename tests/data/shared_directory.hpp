#pragma once

#include "data/sample_files.hpp"
#include "halograd/comm/communicator.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace halograd::test {

/// A directory made by rank 0 and known to all ranks; it goes away when all are done with it.
class SharedDirectory {
public:
  explicit SharedDirectory(const Communicator& world) : world_(world) {
    if (world_.rank() == 0) owned_ = std::make_unique<TemporaryDirectory>();
    path_ = world_.all_gather(owned_ ? owned_->path().string() : std::string())[0];
  }
  ~SharedDirectory() { world_.barrier(); }
  SharedDirectory(const SharedDirectory&) = delete;
  SharedDirectory& operator=(const SharedDirectory&) = delete;

  /// Rank 0 writes, the others wait.
  void write(const std::function<void()>& work) const {
    if (owned_) work();
    world_.barrier();
  }
  /// Rank 0 writes `count` samples, the others wait for them.
  void fill(std::int64_t count, const SampleFile& sample) const {
    write([&] { write_samples(path_, count, sample); });
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }

private:
  Communicator world_;
  std::unique_ptr<TemporaryDirectory> owned_;
  std::filesystem::path path_;
};

}  // namespace halograd::test
