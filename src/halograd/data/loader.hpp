#pragma once

#include "halograd/data/dataset.hpp"
#include "halograd/data/group_reader.hpp"
#include "halograd/data/input_conversion.hpp"
#include "halograd/data/owner_map.hpp"
#include "halograd/data/read_choice.hpp"
#include "halograd/data/sample_store.hpp"
#include "halograd/tensor/process_grid.hpp"

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace halograd {

/// Where converted samples go: two buffers taken in turn, one in use by the network while the other is being filled.
struct InputSlots {
  Box own;                           ///< this rank's voxels of a sample
  Box tile;                          ///< the voxels a buffer holds of each sample; margins beyond `own` are not written
  std::array<std::byte*, 2> data{};  ///< [samples of this rank's group, tile, C] each, on the device
  DType type = DType::f32;
  std::array<std::uint8_t*, 2> labels{};  ///< [samples of this rank's group, own] each; null: labels are not wanted
};

/// A global mini-batch to be loaded.
struct BatchRequest {
  std::vector<std::int64_t> samples;  ///< numbers of the data set, in order; groups share them as group_samples says
  bool keep = true;                   ///< in the store, where there is one: false for samples that are needed only once
  bool augment = false;               ///< as LoaderOptions::augment says for `epoch`
  std::int64_t epoch = 0;
};

struct LoaderOptions {
  ProcessGrid grid;
  Device device;  ///< that the slots are on
  ValueTransform transform;
  LabelRange labels;
  AugmentOptions augment;
  ReadOptions read;
  StoreOptions store;
};

/// A mini-batch that is ready: its voxels and labels lie converted in an input slot.
struct LoadedBatch {
  std::vector<std::int64_t> samples;  ///< of this rank's group, in order
  int slot = 0;
  std::int64_t file_bytes = 0;       ///< this rank read from files for it (HyperslabReader::bytes_read)
  std::int64_t exchanged_bytes = 0;  ///< it sent to other groups
  double read_seconds = 0;           ///< reading files and passing on
  double exchange_seconds = 0;       ///< posting to other groups and waiting for them, flipping inside the group
  double convert_seconds = 0;
};

/// Loads mini-batches in a background thread, one ahead of the one in use: reads its hyperslabs with the spatial group
/// or takes them from the store, moves them between groups, flips them, converts them into the network's input buffer.
/// The paper's section III-B. All ranks make the same requests in the same order; a failure concerns one rank until the
/// caller agrees on it, and every rank goes on to play its part for the others.
class Loader {
public:
  /// Collective over `world`. `to_be_kept`: the mini-batches that will be requested with `keep`, in order, up to where
  /// every sample has come once; the store takes its space for them. Chooses how to read. Throws on all
  /// ranks alike: ResourceError where the store does not fit, DataError where a file cannot be read.
  Loader(const Communicator& world, const Dataset& dataset, const InputSlots& slots, const LoaderOptions& options,
         const std::vector<std::vector<std::int64_t>>& to_be_kept);
  /// Ends what was requested (all ranks do), unless an exception unwinds and another rank does not answer. Not to be
  /// called under a Hdf5Lock.
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// Queues a mini-batch; never blocks.
  void request(BatchRequest request);

  /// The oldest mini-batch requested and not yet taken, once it is ready; its slot stays as it is until the next
  /// take(). Throws what loading it threw on this rank, as soon as it did, and UsageError where none was requested.
  LoadedBatch take();

  /// What was chosen: how samples are read and where they are kept. Lines for the log.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
  /// How a sample is read.
  [[nodiscard]] ReadPlan plan_for(std::int64_t sample) const;
  /// Bytes this rank read from files to choose how to read.
  [[nodiscard]] std::int64_t probe_bytes() const { return probe_bytes_; }

private:
  struct Job {
    std::int64_t number = -1;  // of the mini-batch
    LoadedBatch batch;
    std::exception_ptr error;
  };
  static constexpr std::int64_t slot_count = 2;

  void choose_plans(const Communicator& world, const ReadOptions& options);
  void make_store(const Communicator& world, const StoreOptions& options,
                  const std::vector<std::vector<std::int64_t>>& to_be_kept);
  [[nodiscard]] std::int64_t bytes_of(std::int64_t sample) const { return dataset_.bytes(sample, slots_.own); }

  [[noreturn]] void rethrow(const std::exception_ptr& error) const;

  void run();
  template <typename Work>
  void attempt(Job& job, const Work& work);
  void load(Job& job, const BatchRequest& request);
  void post_moves(Job& job, const std::vector<SampleMove>& moves);
  const std::byte* read(Job& job, std::int64_t sample, bool keep);
  const std::byte* fetch(Job& job, std::int64_t sample, std::vector<std::byte>& scratch);
  void finish(Job& job, const BatchRequest& request, std::int64_t n, const std::byte* hyperslab);
  const std::byte* mirror(std::int64_t sample, const Flips& flip, const std::byte* hyperslab);

  const Dataset dataset_;
  const InputSlots slots_;
  InputConversion conversion_;
  const AugmentOptions augment_;
  const ProcessGrid grid_;
  const std::vector<Box> owned_;  // each rank's of the spatial group
  const int world_rank_;
  const int world_size_;
  const std::int64_t group_;
  OwnerMap owners_;
  GroupReader reader_;
  Transfers moves_;  // between the ranks of this place in all groups, numbered by group
  std::vector<std::pair<FileLayout, ReadPlan>> plans_;
  std::optional<SampleStore> store_;
  std::vector<std::string> notes_;
  std::int64_t probe_bytes_ = 0;
  std::vector<std::byte> voxels_;                 // of a sample that is not kept
  std::vector<std::byte> mirrored_;               // of one that is flipped
  std::vector<std::vector<std::byte>> outgoing_;  // samples on their way from the disk to other groups
  std::vector<std::vector<std::byte>> incoming_;  // from other groups

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<BatchRequest> queue_;
  std::array<Job, slot_count> jobs_;
  std::int64_t requested_ = 0;  // mini-batches so far
  std::int64_t loaded_ = 0;
  std::int64_t taken_ = 0;
  bool closing_ = false;
  bool ended_ = false;
  std::atomic<bool> cancelled_ = false;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace halograd
