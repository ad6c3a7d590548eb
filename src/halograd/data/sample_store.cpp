#include "halograd/data/sample_store.hpp"

#include "halograd/core/error.hpp"
#include "halograd/core/system.hpp"

#include <algorithm>
#include <utility>

namespace halograd {

namespace {

constexpr std::int64_t alignment = 64;  // a cache line

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

void validate(const StoreOptions& options, const std::vector<std::int64_t>& sizes, std::int64_t ranks_on_node) {
  if (options.kind == StoreKind::off) throw UsageError("a sample store was made where data.store is \"off\"");
  if (options.memory_budget < 0) {
    throw UsageError("sample store: memory budget {} bytes: expected 0 or more", options.memory_budget);
  }
  if (ranks_on_node < 1) throw UsageError("sample store: {} ranks on the node: expected 1 or more", ranks_on_node);
  if (std::ranges::any_of(sizes, [](std::int64_t bytes) { return bytes < 0; })) {
    throw UsageError("sample store: a sample has a negative size");
  }
}

// What of the budget can be used at all.
std::int64_t memory_limit(const StoreOptions& options, const std::vector<std::int64_t>& sizes) {
  if (options.kind == StoreKind::disk) return 0;
  std::int64_t total = 0;
  for (const std::int64_t bytes : sizes) total += aligned(bytes);
  return std::min(options.memory_budget, total);
}

}  // namespace

// The one rule of where a sample goes: what the constructor found to fit fits when it comes to storing.
SampleStore::Place SampleStore::next_place(Usage& used, std::int64_t memory_limit, std::int64_t bytes) {
  const bool on_disk = aligned(bytes) > memory_limit - used.memory;
  std::int64_t& end = on_disk ? used.disk : used.memory;
  const Place place{.on_disk = on_disk, .offset = end, .bytes = bytes};
  end += aligned(bytes);
  return place;
}

SampleStore::SampleStore(const StoreOptions& options, const std::vector<std::int64_t>& sizes,
                         std::int64_t ranks_on_node) {
  validate(options, sizes, ranks_on_node);
  const std::int64_t limit = memory_limit(options, sizes);
  for (const std::int64_t bytes : sizes) next_place(announced_, limit, bytes);
  if (announced_.memory > options.memory_free) {
    throw ResourceError(
        "the samples this rank keeps in memory need {}, but there is {} for them: lower data.store_budget, take more "
        "ranks, or set data.store to \"disk\" or \"off\"",
        format_bytes(static_cast<double>(announced_.memory)), format_bytes(static_cast<double>(options.memory_free)));
  }
  if (announced_.disk > 0) {
    file_ = StoreFile(options.directory, {.bytes = announced_.disk,
                                          .memory_bytes = announced_.memory,
                                          .memory_budget = options.kind == StoreKind::disk ? 0 : options.memory_budget,
                                          .ranks_on_node = ranks_on_node});
  }
  memory_ = ReservedMemory(limit);
}

std::byte* SampleStore::place_for(std::int64_t sample, std::int64_t bytes) {
  if (bytes < 0) throw UsageError("sample store: sample {} of {} bytes: expected 0 or more", sample, bytes);
  if (holds(sample) || pending_.contains(sample))
    throw UsageError("sample store: sample {} has a place already", sample);
  Usage used = used_;
  const Place place = next_place(used, memory_.capacity(), bytes);
  if (used.disk > announced_.disk) {
    throw UsageError("sample store: sample {} of {} bytes is more than was announced", sample, bytes);
  }
  if (place.on_disk) {
    const auto on_its_way = std::ranges::find_if(pending_, [](const auto& entry) { return entry.second.on_disk; });
    if (on_its_way != pending_.end()) {
      throw UsageError("sample store: sample {} must be stored before there is a place for sample {}",
                       on_its_way->first, sample);
    }
    if (std::cmp_less(on_the_way_.size(), bytes)) on_the_way_.resize(static_cast<std::size_t>(bytes));
  }
  pending_.emplace(sample, place);
  used_ = used;
  return place.on_disk ? on_the_way_.data() : memory_.data() + place.offset;
}

void SampleStore::store(std::int64_t sample) {
  const auto given = pending_.find(sample);
  if (given == pending_.end()) throw UsageError("sample store: sample {} was given no place", sample);
  const Place place = given->second;
  if (place.on_disk) file_.write(on_the_way_.data(), place.bytes, place.offset);
  places_.emplace(sample, place);
  pending_.erase(given);
}

const std::byte* SampleStore::fetch(std::int64_t sample, std::vector<std::byte>& scratch) const {
  const auto found = places_.find(sample);
  if (found == places_.end()) throw UsageError("sample store: sample {} was never stored", sample);
  const Place& place = found->second;
  if (!place.on_disk) return memory_.data() + place.offset;
  if (std::cmp_less(scratch.size(), place.bytes)) scratch.resize(static_cast<std::size_t>(place.bytes));
  file_.read(scratch.data(), place.bytes, place.offset);
  return scratch.data();
}

std::int64_t memory_share(std::int64_t available, std::int64_t own_needs, std::int64_t ranks_on_node) {
  return std::max<std::int64_t>(0, (available - available / 10) / ranks_on_node - own_needs);
}

}  // namespace halograd
