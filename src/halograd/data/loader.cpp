#include "halograd/data/loader.hpp"

#include "halograd/comm/waiting.hpp"
#include "halograd/core/error.hpp"
#include "halograd/core/parallel.hpp"
#include "halograd/core/system.hpp"

#include <algorithm>
#include <chrono>
#include <functional>

namespace halograd {
namespace {

/// How long an unwinding rank lets its loader finish, before it gives up on ranks that may never answer.
constexpr std::chrono::seconds patience{2};

Communicator spatial_group(const Communicator& world, const ProcessGrid& grid) {
  return world.split(static_cast<int>(grid.place(world.rank()).group), world.rank());
}

/// The ranks that stand at this rank's place in their groups, in the order of the groups.
Communicator same_place(const Communicator& world, const ProcessGrid& grid) {
  return world.split(static_cast<int>(world.rank() % grid.spatial_size()), world.rank());
}

std::vector<Box> gather_boxes(const Communicator& group, const Box& own) {
  std::vector<Box> boxes(static_cast<std::size_t>(group.size()));
  group.all_gather(&own, sizeof own, boxes.data());
  return boxes;
}

/// How many entries a stacked file has is of no account for reading one.
FileLayout one_entry(FileLayout layout) {
  layout.image.entries = 1;
  return layout;
}

/// Adds the time of its own life to a sum.
class Stopwatch {
public:
  explicit Stopwatch(double& sum) : sum_(sum) {}
  ~Stopwatch() { sum_ += now_seconds() - start_; }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

private:
  double& sum_;
  double start_ = now_seconds();
};

}  // namespace

Loader::Loader(const Communicator& world, const Dataset& dataset, const InputSlots& slots, const LoaderOptions& options,
               const std::vector<std::vector<std::int64_t>>& to_be_kept)
    : dataset_(dataset),
      slots_(slots),
      conversion_({.device = options.device,
                   .type = slots.type,
                   .transform = options.transform,
                   .labels = options.labels,
                   .channels = dataset.shape().channels,
                   .own = slots.own,
                   .tile = slots.tile}),
      augment_(options.augment),
      grid_(options.grid),
      owned_(gather_boxes(spatial_group(world, options.grid), slots.own)),
      world_rank_(world.rank()),
      world_size_(world.size()),
      group_(options.grid.place(world.rank()).group),
      owners_(dataset.size(), options.grid.data),
      reader_(spatial_group(world, options.grid), dataset.shape(), owned_),
      moves_(same_place(world, options.grid)) {
  choose_plans(world, options.read);
  make_store(world, options.store, to_be_kept);
  thread_ = std::thread([this] { run(); });
}

Loader::~Loader() {
  std::unique_lock lock(mutex_);
  closing_ = true;
  changed_.notify_all();
  if (std::uncaught_exceptions() > 0 && !changed_.wait_for(lock, patience, [this] { return ended_; })) {
    cancelled_ = true;
  }
  lock.unlock();
  thread_.join();
  if (!moves_.pending()) return;
  never_free(std::move(incoming_));
  never_free(std::move(outgoing_));
  never_free(std::move(store_));
}

void Loader::choose_plans(const Communicator& world, const ReadOptions& options) {
  for (std::int64_t sample = 0; sample < dataset_.size(); ++sample) {
    const FileLayout layout = one_entry(dataset_.layout(sample));
    if (std::ranges::any_of(plans_, [&](const auto& known) { return known.first == layout; })) continue;
    const ReadChoice choice = choose_read_plan(world, reader_, dataset_.place(sample), options);
    plans_.emplace_back(layout, choice.plan);
    probe_bytes_ += choice.probe_bytes;
    notes_.push_back(fmt::format("reading {}: {} by {} ({})", to_text(layout), shape_name(choice.plan.shape),
                                 driver_name(choice.plan.driver), choice.why));
  }
}

void Loader::make_store(const Communicator& world, const StoreOptions& options,
                        const std::vector<std::vector<std::int64_t>>& to_be_kept) {
  if (options.kind == StoreKind::off) return;
  OwnerMap owners(dataset_.size(), grid_.data);
  std::vector<std::int64_t> sizes;
  for (const std::vector<std::int64_t>& mini_batch : to_be_kept) {
    for (const SampleMove& move : owners.next(mini_batch, true)) {
      if (move.from == SampleMove::file && move.to == group_) sizes.push_back(bytes_of(move.sample));
    }
  }
  agree(world, [&] { store_.emplace(options, sizes, world.ranks_on_node()); });
  const auto most = [&](std::int64_t bytes) { return format_bytes(static_cast<double>(world.all_reduce_max(bytes))); };
  notes_.push_back(fmt::format("keeping {} of samples in memory on each rank, {} on disk", most(store_->memory_bytes()),
                               most(store_->disk_bytes())));
}

/// What boxes a file's chunks allow depends on where in it a sub-volume begins.
ReadPlan Loader::plan_for(std::int64_t sample) const {
  const FileLayout& layout = dataset_.layout(sample);
  ReadPlan plan = std::ranges::find(plans_, one_entry(layout), [](const auto& known) { return known.first; })->second;
  if (plan.shape == ReadShape::sample) return plan;
  const bool slow = boxes_are_slow(layout.image, dataset_.place(sample).origin, dataset_.shape().extent, owned_);
  plan.shape = slow ? ReadShape::blocks : ReadShape::boxes;
  return plan;
}

void Loader::request(BatchRequest request) {
  for (const std::int64_t sample : request.samples) {
    if (sample < 0 || sample >= dataset_.size()) {
      throw UsageError("sample {}: expected 0 to {}, the dataset's", sample, dataset_.size() - 1);
    }
  }
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(request));
    ++requested_;
  }
  changed_.notify_all();
}

LoadedBatch Loader::take() {
  std::unique_lock lock(mutex_);
  if (taken_ == requested_) throw UsageError("no mini-batch to take: request() one first");
  const std::int64_t number = taken_++;  // gives the slot of the mini-batch before back to the thread
  changed_.notify_all();
  const Job& job = jobs_[static_cast<std::size_t>(number % slot_count)];
  // A failure is told at once: what is left of the job may wait for ranks that have failed themselves.
  changed_.wait(lock, [&] { return loaded_ > number || (job.number == number && job.error); });
  if (job.error) rethrow(job.error);
  return job.batch;
}

/// Whoever has to look after a file wants to know which rank could not have it.
void Loader::rethrow(const std::exception_ptr& error) const {
  try {
    std::rethrow_exception(error);
  } catch (const Error& failure) {
    if (world_size_ == 1) throw;
    raise(failure.kind(), fmt::format("{} (rank {})", failure.what(), world_rank_));
  }
}

void Loader::run() {
  work_alone();
  comm::set_cancellation(&cancelled_);
  std::unique_lock lock(mutex_);
  while (true) {
    // The slot of mini-batch number loaded_ is free once its earlier user, number loaded_ − slot_count, was given back.
    changed_.wait(lock, [this] { return queue_.empty() ? closing_ : closing_ || loaded_ < taken_ + slot_count - 1; });
    if (queue_.empty() || cancelled_) break;
    const BatchRequest request = std::move(queue_.front());
    queue_.pop_front();
    Job& job = jobs_[static_cast<std::size_t>(loaded_ % slot_count)];
    job.number = loaded_;
    job.error = nullptr;
    job.batch = {.samples = {}, .slot = static_cast<int>(loaded_ % slot_count)};
    lock.unlock();
    attempt(job, [&] { load(job, request); });
    lock.lock();
    ++loaded_;
    changed_.notify_all();
  }
  ended_ = true;
  changed_.notify_all();
}

/// Runs one part of a mini-batch's loading. Of several failures the first is kept; the rest must go on, since other
/// ranks count on it.
template <typename Work>
void Loader::attempt(Job& job, const Work& work) {
  std::exception_ptr error;
  try {
    work();
    return;
  } catch (const std::bad_alloc&) {
    error = std::make_exception_ptr(ResourceError("no memory for the next mini-batch"));
  } catch (...) {
    error = std::current_exception();
  }
  {
    const std::lock_guard lock(mutex_);
    if (!job.error) job.error = error;
  }
  changed_.notify_all();
}

void Loader::load(Job& job, const BatchRequest& request) {
  const std::int64_t read_before = reader_.bytes_read();
  const std::int64_t sent_before = moves_.bytes_sent();
  const bool keep = request.keep && store_.has_value();
  const std::vector<SampleMove> moves = owners_.next(request.samples, keep);
  post_moves(job, moves);
  std::vector<std::int64_t> awaited;  // numbers in this group's share
  for (const SampleMove& move : moves) {
    if (cancelled_) return;  // buffers that MPI may still write to stay as they are
    if (move.to != group_) continue;
    const auto n = static_cast<std::int64_t>(job.batch.samples.size());
    job.batch.samples.push_back(move.sample);
    if (move.from == SampleMove::file) {
      finish(job, request, n, read(job, move.sample, keep));
    } else if (move.from == group_) {
      finish(job, request, n, fetch(job, move.sample, voxels_));
    } else {
      awaited.push_back(n);
    }
  }
  attempt(job, [&] {
    const Stopwatch watch(job.batch.exchange_seconds);
    moves_.wait();
  });
  for (std::size_t i = 0; i < awaited.size() && !cancelled_; ++i) {
    finish(job, request, awaited[i], incoming_[i].data());
  }
  job.batch.file_bytes = reader_.bytes_read() - read_before;
  job.batch.exchanged_bytes = moves_.bytes_sent() - sent_before;
}

/// Both sides post in the order of the moves, so that messages pair up.
void Loader::post_moves(Job& job, const std::vector<SampleMove>& moves) {
  const Stopwatch watch(job.batch.exchange_seconds);
  std::size_t sent = 0;
  std::size_t received = 0;
  for (const SampleMove& move : moves) {
    if (move.from == SampleMove::file || move.from == move.to) continue;
    const std::int64_t bytes = bytes_of(move.sample);
    if (move.from == group_) {
      if (outgoing_.size() <= sent) outgoing_.resize(sent + 1);
      moves_.send(static_cast<int>(move.to), fetch(job, move.sample, outgoing_[sent++]), bytes);
    } else if (move.to == group_) {
      if (incoming_.size() <= received) incoming_.resize(received + 1);
      std::vector<std::byte>& buffer = incoming_[received++];
      buffer.resize(static_cast<std::size_t>(bytes));
      moves_.receive(static_cast<int>(move.from), buffer.data(), bytes);
    }
  }
}

/// A sample of the store. One that cannot be had is sent or passed on all the same, whatever its buffer holds: the
/// failure is agreed on before anybody uses it.
const std::byte* Loader::fetch(Job& job, std::int64_t sample, std::vector<std::byte>& scratch) {
  const std::byte* hyperslab = nullptr;
  attempt(job, [&] { hyperslab = store_->fetch(sample, scratch); });
  if (hyperslab != nullptr) return hyperslab;
  scratch.assign(static_cast<std::size_t>(bytes_of(sample)), std::byte{0});
  return scratch.data();
}

/// A sample of a file, and into the store with it; valid until the next is read.
const std::byte* Loader::read(Job& job, std::int64_t sample, bool keep) {
  const std::int64_t bytes = bytes_of(sample);
  std::byte* hyperslab = nullptr;
  if (keep) attempt(job, [&] { hyperslab = store_->place_for(sample, bytes); });
  const bool kept = hyperslab != nullptr;  // not behind a sample that could not be read: others wait for this one still
  if (!kept) {
    voxels_.resize(static_cast<std::size_t>(bytes));
    hyperslab = voxels_.data();
  }
  attempt(job, [&] {
    const Stopwatch watch(job.batch.read_seconds);
    reader_.read(dataset_.place(sample), plan_for(sample), hyperslab);
    if (kept) store_->store(sample);
  });
  if (kept && !store_->holds(sample)) store_->give_up(sample);
  return hyperslab;
}

/// Turns a hyperslab into number `n` of this group's share, all ranks of the group in the same order.
void Loader::finish(Job& job, const BatchRequest& request, std::int64_t n, const std::byte* hyperslab) {
  const std::int64_t sample = job.batch.samples[static_cast<std::size_t>(n)];
  Augmentation augmentation;
  if (request.augment) augmentation = draw_augmentation(augment_, request.epoch, sample);
  attempt(job, [&] {
    const Stopwatch watch(job.batch.exchange_seconds);
    hyperslab = mirror(sample, augmentation.flip, hyperslab);
  });
  if (job.error) return;  // the buffer may hold nothing of use
  attempt(job, [&] {
    const Stopwatch watch(job.batch.convert_seconds);
    const auto slot = static_cast<std::size_t>(job.batch.slot);
    const std::int64_t bytes = dtype_size(slots_.type) * slots_.tile.volume() * dataset_.shape().channels;
    std::uint8_t* const labels = slots_.labels[slot];
    conversion_.convert({.layout = dataset_.layout(sample),
                         .scale = dataset_.scale(sample),
                         .file = dataset_.file(sample),
                         .augmentation = augmentation},
                        hyperslab, slots_.data[slot] + n * bytes,
                        labels == nullptr ? nullptr : labels + n * slots_.own.volume());
  });
}

/// The hyperslab that flipping puts in this rank's box. Where the grid cuts what is flipped other ranks have it, and
/// all of the group take part, even one that failed.
const std::byte* Loader::mirror(std::int64_t sample, const Flips& flip, const std::byte* hyperslab) {
  std::vector<Box> wanted;
  for (const Box& box : owned_) wanted.push_back(mirrored(box, dataset_.shape().extent, flip));
  if (wanted == owned_) return hyperslab;
  mirrored_.resize(static_cast<std::size_t>(bytes_of(sample)));
  reader_.redistribute(dataset_.layout(sample).sample(), owned_, hyperslab, wanted, mirrored_.data());
  return mirrored_.data();
}

}  // namespace halograd
