#pragma once

#include "halograd/data/dataset.hpp"
#include "halograd/data/sample.hpp"
#include "halograd/tensor/box.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace halograd {

/// One rank's part of one group's part of a mini-batch, as the files hold it.
struct Batch {
  std::vector<RawSample>
      samples;                  ///< [n], in the order asked for; each with its own file, layout and voxels of the box
  std::vector<float> targets;   ///< [n, 4]
  std::vector<float> physical;  ///< [n, 4], or empty where a sample has none
  double io_seconds = 0.0;      ///< how long take() had to wait for this batch
};

/// Reads mini-batches in a background thread, one ahead of the one in use. Not collective: errors concern this rank
/// alone until the caller agrees on them. One thread calls request() and take().
class Loader {
public:
  /// Reads the voxels of `box` (global indices, the rank's own) of each sample.
  Loader(Dataset dataset, const Box& box);
  /// Waits for the sample being read, drops the rest. Not to be called under a Hdf5Lock.
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// Queues a mini-batch of sample numbers of the dataset (none for a rank without samples). Never blocks; throws
  /// UsageError on a number the dataset doesn't have.
  void request(std::vector<std::int64_t> samples);

  /// The oldest mini-batch requested and not yet taken, once it is read; it stays valid until the next take(). Throws
  /// what reading it threw (DataError naming the file), and UsageError where none was requested. After an error the
  /// next take() is about the next request.
  const Batch& take();

  /// Mini-batches requested and not yet taken.
  [[nodiscard]] std::int64_t pending() const;

private:
  struct Slot {
    Batch batch;
    std::vector<std::vector<std::byte>> spare;  // buffers of a longer mini-batch before
    std::exception_ptr error;
  };
  static constexpr std::int64_t slot_count = 2;  // one in use, one being read

  void run();
  void fill(Slot& slot, const std::vector<std::int64_t>& samples);
  Slot& slot(std::int64_t number) { return slots_[static_cast<std::size_t>(number % slot_count)]; }

  const Dataset dataset_;
  const Hdf5Source source_;
  const Box box_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::vector<std::int64_t>> queue_;
  std::array<Slot, slot_count> slots_;
  std::int64_t requested_ = 0;  // mini-batches so far
  std::int64_t read_ = 0;
  std::int64_t taken_ = 0;
  std::atomic<bool> stop_ = false;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace halograd
