#include "halograd/comm/shared_sum.hpp"

#include "halograd/comm/mpi_support.hpp"
#include "halograd/comm/waiting.hpp"
#include "halograd/core/error.hpp"

#include <algorithm>
#include <cstring>

namespace halograd::comm {

namespace {

constexpr std::int64_t largest_piece_bytes = 1024 * 1024;
constexpr std::int64_t smallest_piece_bytes = 32 * 1024;
constexpr std::int64_t node_budget_bytes = 32 * 1024 * 1024;
// Up to here every rank sums everything by itself, which saves the second barrier.
constexpr std::int64_t small_bytes = 64 * 1024;

}  // namespace

template <typename T>
struct SharedSum<T>::Control {
  SharedBarrier barrier;
};

// Control, then a flag a rank and turn, then areas [2][ranks][piece], then results [2][piece].
template <typename T>
std::int64_t SharedSum<T>::segment_bytes(int ranks, std::int64_t piece) {
  const std::int64_t area = aligned(piece * static_cast<std::int64_t>(sizeof(T)));
  return aligned(sizeof(Control)) + 2 * (ranks + 1) * (area + buffer_alignment);
}

template <typename T>
std::optional<SharedSum<T>> SharedSum<T>::make(const Communicator& communicator, std::int64_t largest_count) {
  const auto& c = communicator.implementation();
  if (!c.one_node || !c.shared_memory) return std::nullopt;
  constexpr std::int64_t element = sizeof(T);
  const std::int64_t affordable = node_budget_bytes / (2 * (c.size + 1));
  const std::int64_t area_bytes = std::clamp(affordable, smallest_piece_bytes, largest_piece_bytes);
  const std::int64_t piece = std::max<std::int64_t>(1, std::min(area_bytes / element, largest_count));
  const std::int64_t bytes = segment_bytes(c.size, piece);

  SharedSegment segment;
  std::string name;
  bool failed = false;
  const auto attempt = [&](const auto& action) {
    try {
      action();
    } catch (const ResourceError&) {
      failed = true;
    }
  };
  if (c.rank == 0) {
    attempt([&] {
      segment = SharedSegment::create(bytes);
      name = segment.name();
    });
  }
  name = communicator.all_gather(name).front();
  if (c.rank != 0) attempt([&] { segment = SharedSegment::open(name, bytes); });
  if (communicator.all_reduce_max(std::int64_t{failed}) != 0) return std::nullopt;
  segment.unlink();
  return SharedSum(communicator, std::move(segment), piece);
}

template <typename T>
SharedSum<T>::SharedSum(const Communicator& communicator, SharedSegment segment, std::int64_t piece)
    : rank_(communicator.rank()),
      ranks_(communicator.size()),
      spin_(communicator.implementation().spin),
      piece_(piece),
      segment_(std::move(segment)) {
  std::byte* next = segment_.data();
  control_ = reinterpret_cast<Control*>(next);
  next += aligned(sizeof(Control));
  const std::int64_t area = aligned(piece * static_cast<std::int64_t>(sizeof(T)));
  for (std::size_t turn : {0, 1}) {
    for (int r = 0; r < ranks_; ++r) {
      // The cache line before an area says whether it counts.
      areas_[turn].push_back(reinterpret_cast<T*>(next + buffer_alignment));
      next += buffer_alignment + area;
    }
    results_[turn] = reinterpret_cast<T*>(next + buffer_alignment);
    next += buffer_alignment + area;
  }
  parts_.reserve(static_cast<std::size_t>(ranks_));
}

template <typename T>
void SharedSum<T>::barrier() {
  control_->barrier.arrive_and_wait(ranks_, spin_);
}

template <typename T>
void SharedSum<T>::copy_in(const T* values, std::int64_t count, bool contributes) {
  T* area = areas_[static_cast<std::size_t>(turn_ % 2)][static_cast<std::size_t>(rank_)];
  *(reinterpret_cast<std::byte*>(area) - buffer_alignment) = static_cast<std::byte>(contributes);
  if (contributes) std::memcpy(area, values, static_cast<std::size_t>(count) * sizeof(T));
}

// Sums elements [begin, end) of the contributors' areas of this turn into out[0 …), in rank order.
template <typename T>
void SharedSum<T>::sum(std::int64_t begin, std::int64_t end, T* out) {
  parts_.clear();
  for (const T* area : areas_[static_cast<std::size_t>(turn_ % 2)]) {
    const bool counts = *(reinterpret_cast<const std::byte*>(area) - buffer_alignment) != std::byte{0};
    if (counts) parts_.push_back(area);
  }
  constexpr std::int64_t block = 2048;  // stays in the first-level cache over all ranks
  for (std::int64_t start = begin; start < end; start += block) {
    const std::int64_t n = std::min(block, end - start);
    T* __restrict to = out + (start - begin);
    if (parts_.empty()) {
      std::fill_n(to, n, T{0});
      continue;
    }
    if (parts_.size() == 1) {
      std::copy_n(parts_[0] + start, n, to);
      continue;
    }
    const T* __restrict first = parts_[0] + start;
    const T* __restrict second = parts_[1] + start;
    for (std::int64_t i = 0; i < n; ++i) to[i] = first[i] + second[i];
    for (std::size_t part = 2; part < parts_.size(); ++part) {
      const T* __restrict next = parts_[part] + start;
      for (std::int64_t i = 0; i < n; ++i) to[i] += next[i];
    }
  }
}

template <typename T>
void SharedSum<T>::run_small(T* values, std::int64_t count, bool contributes) {
  ++turn_;
  copy_in(values, count, contributes);
  barrier();
  sum(0, count, values);
}

// One barrier a piece: while others still copy results out, the next piece goes into the other areas. A rank writes an
// area (or result) again only after the barrier that its last readers reach when done.
template <typename T>
void SharedSum<T>::run_pieces(T* values, std::int64_t count, bool contributes) {
  const auto length_at = [&](std::int64_t begin) { return std::min(piece_, count - begin); };
  ++turn_;
  copy_in(values, length_at(0), contributes);
  barrier();
  for (std::int64_t begin = 0; begin < count; begin += piece_) {
    const std::int64_t length = length_at(begin);
    constexpr std::int64_t line = 64 / static_cast<std::int64_t>(sizeof(T));
    const auto cut = [&](std::int64_t r) { return r == ranks_ ? length : length * r / ranks_ / line * line; };
    T* result = results_[static_cast<std::size_t>(turn_ % 2)];
    sum(cut(rank_), cut(rank_ + 1), result + cut(rank_));
    const std::int64_t next = begin + piece_;
    ++turn_;
    if (next < count) copy_in(values + next, length_at(next), contributes);
    barrier();
    std::memcpy(values + begin, result, static_cast<std::size_t>(length) * sizeof(T));
  }
}

template <typename T>
void SharedSum<T>::run(T* values, std::int64_t count, bool contributes) {
  if (count <= piece_ && count * static_cast<std::int64_t>(sizeof(T)) * ranks_ <= small_bytes) {
    run_small(values, count, contributes);
  } else {
    run_pieces(values, count, contributes);
  }
}

template class SharedSum<float>;
template class SharedSum<double>;

}  // namespace halograd::comm
