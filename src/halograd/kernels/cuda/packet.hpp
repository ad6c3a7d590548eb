#pragma once

#include <array>
#include <cstdint>

namespace halograd::cuda {

// What is shared by host and device in this folder is constexpr: nvcc compiles it for both.

/// The most bytes that a thread loads or stores with one instruction.
constexpr std::int64_t access_bytes = 16;

/// So many numbers of type T that one instruction moves; they must lie at a multiple of their size.
template <typename T, int count>
struct alignas(sizeof(T) * count) Packet {
  std::array<T, count> values;
};

template <int count, typename T>
constexpr Packet<T, count> load(const T* from) {
  return *static_cast<const Packet<T, count>*>(static_cast<const void*>(from));
}

template <typename T, int count>
constexpr void store(const Packet<T, count>& packet, T* to) {
  *static_cast<Packet<T, count>*>(static_cast<void*>(to)) = packet;
}

/// Numbers of type T in one access, at most `count`.
template <typename T>
constexpr int packet_size(int count) {
  return count * static_cast<int>(sizeof(T)) <= access_bytes
             ? count
             : static_cast<int>(access_bytes) / static_cast<int>(sizeof(T));
}

/// `count` numbers that lie together, in as few accesses as they take.
template <int count, typename T>
constexpr std::array<T, count> load_run(const T* from) {
  constexpr int size = packet_size<T>(count);
  std::array<T, count> values;
  for (std::size_t i = 0; i < count; i += size) {
    const Packet<T, size> packet = load<size>(from + i);
    for (std::size_t j = 0; j < size; ++j) values[i + j] = packet.values[j];
  }
  return values;
}

template <typename T, std::size_t count>
constexpr void store_run(const std::array<T, count>& values, T* to) {
  constexpr int size = packet_size<T>(static_cast<int>(count));
  for (std::size_t i = 0; i < count; i += size) {
    Packet<T, size> packet;
    for (std::size_t j = 0; j < size; ++j) packet.values[j] = values[i + j];
    store(packet, to + i);
  }
}

/// Whether packets of `bytes` may begin at an address.
inline bool aligned(const void* address, std::int64_t bytes) {
  return reinterpret_cast<std::uintptr_t>(address) % static_cast<std::uintptr_t>(bytes) == 0;
}

}  // namespace halograd::cuda
