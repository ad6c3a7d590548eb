#include "halograd/kernels/input_converter.hpp"

#include <algorithm>
#include <cstring>

namespace halograd {
namespace {

/// Long enough for the bus to be at its speed, short enough to be filled while the one before travels.
constexpr std::int64_t piece_bytes = 16 << 20;

}  // namespace

InputConverter::InputConverter(const Device& device, const Queue& queue) : device_(device), queue_(queue) {
  if (queue_.works_at_once()) return;
  converted_ = queue_.make_event();
  for (Pinned& at : pinned_) {
    at.queue = device_.make_queue();
    at.memory = device_.allocate_host(piece_bytes);
    at.sent = at.queue.make_event();
  }
}

void InputConverter::begin(std::int64_t count) {
  const std::int64_t bytes = count * static_cast<std::int64_t>(sizeof(std::uint32_t));
  if (refused_.capacity() < bytes) {
    queue_.synchronize();
    refused_ = device_.allocate(bytes);
    refused_on_host_ = device_.allocate_host(bytes);
  }
  queue_.clear(refused_.data(), bytes);
  count_ = 0;
}

/// What queue_ is given from now on finds it there.
void InputConverter::send(const void* source, void* to, std::int64_t bytes) {
  queue_.record(converted_);  // what read the target before must be done with it
  for (std::int64_t at = 0, i = 0; at < bytes; at += piece_bytes, ++i) {
    Pinned& pinned = pinned_[static_cast<std::size_t>(i % 2)];
    const std::int64_t size = std::min(piece_bytes, bytes - at);
    pinned.queue.synchronize();
    std::memcpy(pinned.memory.data(), static_cast<const std::byte*>(source) + at, static_cast<std::size_t>(size));
    pinned.queue.wait(converted_);
    pinned.queue.copy(pinned.memory.data(), static_cast<std::byte*>(to) + at, size);
    pinned.queue.record(pinned.sent);
    queue_.wait(pinned.sent);
  }
}

void InputConverter::convert(const ConvertDesc& desc, const void* source, void* dst) {
  auto* const refused = reinterpret_cast<std::uint32_t*>(refused_.data()) + count_++;
  if (queue_.works_at_once()) return convert_input(queue_, desc, source, dst, refused);
  const std::int64_t bytes = dtype_size(desc.dtype) * desc.channels * desc.source.volume();
  if (raw_.capacity() < bytes) {
    queue_.synchronize();
    raw_ = device_.allocate(bytes);
  }
  send(source, raw_.data(), bytes);
  convert_input(queue_, desc, raw_.data(), dst, refused);
}

void InputConverter::copy_labels(const std::uint8_t* source, std::uint8_t* dst, std::int64_t count) {
  if (queue_.works_at_once()) return queue_.copy(source, dst, count);
  send(source, dst, count);
}

std::int64_t InputConverter::finish() {
  queue_.copy(refused_.data(), refused_on_host_.data(), count_ * static_cast<std::int64_t>(sizeof(std::uint32_t)));
  queue_.synchronize();
  const auto* const refused = reinterpret_cast<const std::uint32_t*>(refused_on_host_.data());
  for (std::int64_t i = 0; i < count_; ++i) {
    if (refused[i] != 0) return i;
  }
  return -1;
}

}  // namespace halograd
