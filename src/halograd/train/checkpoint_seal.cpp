#include "halograd/train/checkpoint_seal.hpp"

#include "halograd/core/error.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace halograd {
namespace {

constexpr std::string_view magic = "halograd checkpoint 1\n";

struct Seal {
  std::int64_t step = 0;
  std::int64_t bytes = 0;
  std::uint64_t hash = 0;

  /// The user block: text, then zeros. Reading it back is comparing with this, so that no byte of it goes unchecked.
  [[nodiscard]] std::string block() const {
    std::string text = fmt::format("{}step {}\nbytes {}\nhash {:016x}\n", magic, step, bytes, hash);
    text.resize(seal_bytes, '\0');
    return text;
  }
};

/// Four lanes of xor, multiply, rotate (the rounds of XXH64): every step is a bijection of lane and word, so that one
/// changed word always shows, and several at odds of 2^-64.
class Hash {
public:
  Hash(std::int64_t step, std::int64_t bytes) {
    mix(0, static_cast<std::uint64_t>(step));
    mix(1, static_cast<std::uint64_t>(bytes));
  }

  void add(const char* data, std::size_t size) {
    std::size_t at = 0;
    for (; at + 32 <= size; at += 32) {
      for (std::size_t lane = 0; lane < 4; ++lane) mix(lane, word(data + at + 8 * lane, 8));
    }
    for (std::size_t lane = 0; at < size; at += 8, ++lane)
      mix(lane, word(data + at, std::min<std::size_t>(size - at, 8)));
  }

  [[nodiscard]] std::uint64_t value() const {
    Hash folded = *this;
    for (std::size_t lane = 1; lane < 4; ++lane) folded.mix(0, lanes_[lane]);
    std::uint64_t result = folded.lanes_[0];
    result = (result ^ (result >> 33)) * 0xC2B2AE3D27D4EB4FU;
    return result ^ (result >> 29);
  }

private:
  static std::uint64_t word(const char* data, std::size_t size) {
    std::uint64_t result = 0;
    std::memcpy(&result, data, size);
    return result;
  }

  void mix(std::size_t lane, std::uint64_t value) {
    lanes_[lane] = std::rotl(lanes_[lane] ^ value, 31) * 0x9E3779B185EBCA87U;
  }

  std::array<std::uint64_t, 4> lanes_{0x60EA27EEADC0B5D6U, 0xC2B2AE3D27D4EB4FU, 0x165667B19E3779F9U,
                                      0x61C8864E7A143579U};
};

std::int64_t size_of(const std::filesystem::path& file) {
  std::error_code failure;
  const auto size = std::filesystem::file_size(file, failure);
  return failure ? 0 : static_cast<std::int64_t>(size);
}

/// The hash of all behind the user block; nothing where the file can't be read.
std::optional<std::uint64_t> hash_contents(const std::filesystem::path& file, std::int64_t step, std::int64_t bytes) {
  std::ifstream stream(file, std::ios::binary);
  stream.seekg(seal_bytes);
  Hash hash(step, bytes);
  std::vector<char> piece(std::size_t{1} << 20);
  while (stream) {
    stream.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    hash.add(piece.data(), static_cast<std::size_t>(stream.gcount()));
  }
  return stream.eof() ? std::optional(hash.value()) : std::nullopt;
}

std::string read_block(const std::filesystem::path& file) {
  std::string block(seal_bytes, '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.read(block.data(), seal_bytes);
  block.resize(static_cast<std::size_t>(std::max<std::streamsize>(stream.gcount(), 0)));
  return block;
}

/// The number behind `name` in a block's text, whatever it is worth.
std::uint64_t number_behind(const std::string& block, const char* name, int base) {
  const std::size_t at = block.find(name);
  return at == std::string::npos ? 0 : std::strtoull(block.c_str() + at + std::strlen(name), nullptr, base);
}

Seal parse_seal(const std::string& block) {
  return {.step = static_cast<std::int64_t>(number_behind(block, "\nstep ", 10)),
          .bytes = static_cast<std::int64_t>(number_behind(block, "\nbytes ", 10)),
          .hash = number_behind(block, "\nhash ", 16)};
}

}  // namespace

void seal_file(const std::filesystem::path& file, std::int64_t step) {
  Seal seal{.step = step, .bytes = size_of(file)};
  const auto hash = hash_contents(file, seal.step, seal.bytes);
  std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
  if (hash) seal.hash = *hash;
  stream.write(seal.block().data(), seal_bytes);
  stream.close();
  if (!hash || !stream) {
    throw ResourceError("cannot write {}: {}", file.string(), std::generic_category().message(errno));
  }
}

bool has_seal(const std::filesystem::path& file) {
  return read_block(file).starts_with(magic);
}

std::optional<std::int64_t> sealed_step(const std::filesystem::path& file) {
  const std::string block = read_block(file);
  return block.starts_with(magic) ? std::optional(parse_seal(block).step) : std::nullopt;
}

void verify_seal(const std::filesystem::path& file) {
  const std::string block = read_block(file);
  if (!block.starts_with(magic)) {
    throw DataError("{}: not a HaloGrad checkpoint, or its first bytes are damaged", file.string());
  }
  const Seal seal = parse_seal(block);
  const std::int64_t bytes = size_of(file);
  if (bytes < seal.bytes) {
    throw DataError("{}: a damaged checkpoint: cut short to {} of its {} bytes", file.string(), bytes, seal.bytes);
  }
  const auto hash = hash_contents(file, seal.step, seal.bytes);
  if (!hash) throw DataError("{}: cannot be read: {}", file.string(), std::generic_category().message(errno));
  if (bytes != seal.bytes || block != seal.block() || *hash != seal.hash) {
    throw DataError("{}: a damaged checkpoint: its contents do not match its checksum", file.string());
  }
}

}  // namespace halograd
