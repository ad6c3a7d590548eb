#pragma once

#include "halograd/core/bf16.hpp"

#include <cstdint>

namespace halograd::cuda::chain {

/// Neighbouring channels of one voxel as they lie in memory, moved by one access.
template <typename T, int N>
struct alignas(sizeof(T) * N) Packet {
  T at[N];
};

/// How many of them 16 bytes hold.
template <typename T>
constexpr int wide_lanes = 16 / static_cast<int>(sizeof(T));

template <int N, typename T>
constexpr Packet<T, N> load_packet(const T* from) {
  return *reinterpret_cast<const Packet<T, N>*>(from);
}

template <typename T, int N>
constexpr void store_packet(const Packet<T, N>& packet, T* to) {
  *reinterpret_cast<Packet<T, N>*>(to) = packet;
}

/// What is computed with: one float a channel.
template <int N>
struct Lanes {
  float at[N];
};

template <int N>
constexpr Lanes<N> all_lanes(float value) {
  Lanes<N> lanes;
  for (int i = 0; i < N; ++i) lanes.at[i] = value;
  return lanes;
}

template <typename T, int N>
constexpr Lanes<N> widen(const Packet<T, N>& packet) {
  Lanes<N> lanes;
  for (int i = 0; i < N; ++i) lanes.at[i] = static_cast<float>(packet.at[i]);
  return lanes;
}

template <typename T, int N>
constexpr Packet<T, N> narrow(const Lanes<N>& lanes) {
  Packet<T, N> packet;
  for (int i = 0; i < N; ++i) packet.at[i] = static_cast<T>(lanes.at[i]);
  return packet;
}

template <int N, typename T>
constexpr Lanes<N> load_lanes(const T* from) {
  return widen(load_packet<N>(from));
}

template <typename T, int N>
constexpr void store_lanes(const Lanes<N>& lanes, T* to) {
  store_packet(narrow<T>(lanes), to);
}

template <int N>
constexpr void add_to(Lanes<N>& sum, const Lanes<N>& other) {
  for (int i = 0; i < N; ++i) sum.at[i] += other.at[i];
}

}  // namespace halograd::cuda::chain
