#include "halograd/comm/mpi_sum.hpp"

#include "halograd/core/error.hpp"

#include <algorithm>

namespace halograd::comm {

namespace {

constexpr std::int64_t staging_budget_bytes = 8 * 1024 * 1024;
constexpr std::int64_t gathered_bytes = 256 * 1024;  // over all ranks
constexpr std::int64_t fewest_gathered = 512;        // elements: a gather beats 2·ranks messages
constexpr std::int64_t smallest_slice_bytes = 4 * 1024;

template <typename T>
void add(const T* from, std::int64_t count, T* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] += from[i];
}

}  // namespace

template <typename T>
MpiSum<T>::MpiSum(const Communicator& communicator, std::int64_t largest_count) : communicator_(communicator) {
  const auto& c = communicator.implementation();
  constexpr std::int64_t element = sizeof(T);
  tag_ = take_tags(c);
  small_ = std::min(largest_count, std::max(fewest_gathered, gathered_bytes / element / c.size));
  const std::int64_t affordable = std::clamp(staging_budget_bytes / c.size, smallest_slice_bytes, piece_bytes);
  slice_ = std::min(affordable / element, (largest_count + c.size - 1) / c.size);
  // A gathered part has one element more, which says whether it counts.
  staging_ = PrivateBuffer((c.size + 1) * std::max(small_ + 1, slice_) * element);
  requests_.resize(2 * static_cast<std::size_t>(c.size), MPI_REQUEST_NULL);
  statuses_.resize(requests_.size());
}

template <typename T>
void MpiSum<T>::wait_for_all() {
  wait_all(requests_, statuses_.data(), communicator_.implementation().spin);
}

template <typename T>
void MpiSum<T>::run_small(T* values, std::int64_t count, bool contributes) {
  const auto& c = communicator_.implementation();
  T* parts = reinterpret_cast<T*>(staging_.data());
  T* mine = parts + c.size * (count + 1);
  mine[0] = contributes ? T{1} : T{0};
  std::copy_n(values, count, mine + 1);
  const int bytes = static_cast<int>((count + 1) * static_cast<std::int64_t>(sizeof(T)));
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Iallgather(mine, bytes, MPI_BYTE, parts, bytes, MPI_BYTE, c.comm, &request), "MPI_Iallgather");
  wait(request, MPI_STATUS_IGNORE, c.spin);
  bool empty = true;
  for (int r = 0; r < c.size; ++r) {
    const T* part = parts + r * (count + 1);
    if (part[0] == T{0}) continue;
    if (empty)
      std::copy_n(part + 1, count, values);
    else
      add(part + 1, count, values);
    empty = false;
  }
  if (empty) std::fill_n(values, count, T{0});
}

// values: one block of at most ranks · slice elements. A rank that does not contribute sends empty messages.
template <typename T>
void MpiSum<T>::run_block(T* values, std::int64_t count, bool contributes) {
  const auto& c = communicator_.implementation();
  const auto cut = [&](std::int64_t r) { return count * r / c.size; };
  const auto bytes_of = [&](std::int64_t r) {
    return static_cast<int>((cut(r + 1) - cut(r)) * static_cast<std::int64_t>(sizeof(T)));
  };
  T* parts = reinterpret_cast<T*>(staging_.data());
  const auto size = static_cast<std::size_t>(c.size);
  for (int step = 1; step < c.size; ++step) {  // begins beside itself, so that not all write to rank 0 at once
    const int r = (c.rank + step) % c.size;
    const auto at = static_cast<std::size_t>(r);
    check(MPI_Irecv(parts + r * slice_, bytes_of(c.rank), MPI_BYTE, r, tag_, c.comm, &requests_[at]), "MPI_Irecv");
    check(MPI_Isend(values + cut(r), contributes ? bytes_of(r) : 0, MPI_BYTE, r, tag_, c.comm, &requests_[size + at]),
          "MPI_Isend");
  }
  wait_for_all();

  T* mine = values + cut(c.rank);
  const std::int64_t length = cut(c.rank + 1) - cut(c.rank);
  T* total = parts + c.size * slice_;
  bool empty = true;
  for (int r = 0; r < c.size; ++r) {
    int received = 0;
    if (r != c.rank)
      check(MPI_Get_count(&statuses_[static_cast<std::size_t>(r)], MPI_BYTE, &received), "MPI_Get_count");
    const bool counts = r == c.rank ? contributes : received > 0;
    if (!counts) continue;
    const T* part = r == c.rank ? mine : parts + r * slice_;
    if (empty)
      std::copy_n(part, length, total);
    else
      add(part, length, total);
    empty = false;
  }
  if (empty)
    std::fill_n(mine, length, T{0});
  else
    std::copy_n(total, length, mine);

  for (int step = 1; step < c.size; ++step) {
    const int r = (c.rank + step) % c.size;
    const auto at = static_cast<std::size_t>(r);
    check(MPI_Irecv(values + cut(r), bytes_of(r), MPI_BYTE, r, tag_, c.comm, &requests_[at]), "MPI_Irecv");
    check(MPI_Isend(mine, bytes_of(c.rank), MPI_BYTE, r, tag_, c.comm, &requests_[size + at]), "MPI_Isend");
  }
  wait_for_all();
}

template <typename T>
void MpiSum<T>::run(T* values, std::int64_t count, bool contributes) {
  if (count <= small_) return run_small(values, count, contributes);
  const std::int64_t block = slice_ * communicator_.size();
  for (std::int64_t begin = 0; begin < count; begin += block) {
    run_block(values + begin, std::min(block, count - begin), contributes);
  }
}

template class MpiSum<float>;
template class MpiSum<double>;

}  // namespace halograd::comm
