#pragma once

#include "halograd/core/bf16.hpp"

#include <bit>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace halograd::cuda::chain {

/// Calls `body(i)` for i from 0 to count − 1, each a constant: arrays that it indexes stay in registers.
template <int count, typename Body>
constexpr void unrolled(const Body& body) {
  [&]<int... i>(std::integer_sequence<int, i...>) {
    (body(std::integral_constant<int, i>{}), ...);
  }
  (std::make_integer_sequence<int, count>{});
}

/// How numbers of a type become floats and back: two at a time where they are 16 bits wide, the first in the lower half
/// of a word. Specialised for bf16 as the processor has it.
template <typename T>
struct Codec;

template <>
struct Codec<float> {
  static constexpr float widen(std::uint32_t word) { return std::bit_cast<float>(word); }
  static constexpr std::uint32_t narrow(float value) { return std::bit_cast<std::uint32_t>(value); }
};

template <>
struct Codec<Bf16> {
  static constexpr float widen(std::uint32_t bits) { return std::bit_cast<float>(bits << 16); }
  static constexpr float widen_upper(std::uint32_t bits) { return std::bit_cast<float>(bits & 0xFFFF0000U); }
  static constexpr std::uint32_t narrow(float value) { return Bf16(value).bits; }
  static constexpr std::uint32_t narrow(float low, float high) { return narrow(low) | narrow(high) << 16; }
};

/// Neighbouring channels of one voxel as they lie in memory, moved by one access. Held in words: what memory and
/// registers are made of.
template <typename T, int N>
struct Packet {
  static constexpr int bytes = static_cast<int>(sizeof(T)) * N;
  using Word =
      std::conditional_t<bytes % 4 == 0, std::uint32_t, std::conditional_t<bytes == 2, std::uint16_t, std::uint8_t>>;
  struct alignas(bytes) Elements {
    T at[N];
  };
  struct Words {
    Word at[bytes / static_cast<int>(sizeof(Word))];
  };
  Words words;
};

/// How many of them 16 bytes hold.
template <typename T>
constexpr int wide_lanes = 16 / static_cast<int>(sizeof(T));

template <int N, typename T>
constexpr Packet<T, N> load_packet(const T* from) {
  using Elements = typename Packet<T, N>::Elements;
  return {std::bit_cast<typename Packet<T, N>::Words>(*reinterpret_cast<const Elements*>(from))};
}

template <typename T, int N>
constexpr void store_packet(const Packet<T, N>& packet, T* to) {
  using Elements = typename Packet<T, N>::Elements;
  *reinterpret_cast<Elements*>(to) = std::bit_cast<Elements>(packet.words);
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
  if constexpr (sizeof(T) == 4 || N == 1) {
    for (int i = 0; i < N; ++i) lanes.at[i] = Codec<T>::widen(packet.words.at[i]);
  } else {
    for (int i = 0; i < N; i += 2) {
      lanes.at[i] = Codec<T>::widen(packet.words.at[i / 2]);
      lanes.at[i + 1] = Codec<T>::widen_upper(packet.words.at[i / 2]);
    }
  }
  return lanes;
}

template <typename T, int N>
constexpr Packet<T, N> narrow(const Lanes<N>& lanes) {
  Packet<T, N> packet;
  using Word = typename Packet<T, N>::Word;
  if constexpr (sizeof(T) == 4 || N == 1) {
    for (int i = 0; i < N; ++i) packet.words.at[i] = static_cast<Word>(Codec<T>::narrow(lanes.at[i]));
  } else {
    for (int i = 0; i < N; i += 2) packet.words.at[i / 2] = Codec<T>::narrow(lanes.at[i], lanes.at[i + 1]);
  }
  return packet;
}

/// Bytes that name the winners of max pooling.
template <int N>
using Winners = Packet<std::uint8_t, N>;

template <int N>
constexpr std::int32_t winner_of(const Winners<N>& winners, int i) {
  if constexpr (N < 4) {
    return winners.words.at[i];
  } else {
    return static_cast<std::int32_t>(winners.words.at[i / 4] >> (8 * (i % 4)) & 0xFFU);
  }
}

template <int N>
constexpr Winners<N> winners_of(const std::int32_t (&places)[N]) {
  Winners<N> winners;
  if constexpr (N < 4) {
    for (int i = 0; i < N; ++i) winners.words.at[i] = static_cast<std::uint8_t>(places[i]);
  } else {
    for (int i = 0; i < N; i += 4) {
      winners.words.at[i / 4] = static_cast<std::uint32_t>(places[i] | places[i + 1] << 8 | places[i + 2] << 16) |
                                static_cast<std::uint32_t>(places[i + 3]) << 24;
    }
  }
  return winners;
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
