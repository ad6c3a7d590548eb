#include "halograd/data/group_reader.hpp"

#include "halograd/core/error.hpp"
#include "halograd/data/hyperslab.hpp"

#include <algorithm>
#include <exception>
#include <new>

namespace halograd {

GroupReader::GroupReader(const Communicator& group, const GlobalShape& sample, std::vector<Box> owned)
    : sample_(sample), owned_(std::move(owned)), transfers_(group.duplicate()) {
  if (static_cast<int>(owned_.size()) == group.size()) return;
  throw UsageError("{} boxes for a group of {} ranks; expected one each", owned_.size(), group.size());
}

GroupReader::~GroupReader() {
  if (transfers_.pending()) never_free(std::move(messages_));
}

HyperslabReader& GroupReader::reader(ReadDriver driver) {
  const auto found = std::ranges::find(readers_, driver, &HyperslabReader::driver);
  return found != readers_.end() ? *found : readers_.emplace_back(group(), driver);
}

std::int64_t GroupReader::bytes_read() const {
  std::int64_t bytes = 0;
  for (const HyperslabReader& reader : readers_) bytes += reader.bytes_read();
  return bytes;
}

void GroupReader::read(const SamplePlace& place, const ReadPlan& plan, std::byte* to) {
  const auto boxes = boxes_to_read(plan.shape, place.layout.image, place.origin, sample_.extent, owned_);
  const Box& mine = boxes[static_cast<std::size_t>(group().rank())];
  HyperslabReader& files = reader(plan.driver);
  // A rank that reads what it owns has nothing for the others, nor they for it.
  if (mine == own()) {
    files.read(place, mine, to);
    return;
  }
  const SampleLayout layout = place.layout.sample();
  block_.resize(static_cast<std::size_t>(hyperslab_bytes(layout, sample_.channels, mine)));
  std::exception_ptr failure;
  try {
    files.read(place, mine, block_.data());
  } catch (...) {
    failure = std::current_exception();
  }
  redistribute(layout, boxes, block_.data(), owned_, to);
  if (failure) std::rethrow_exception(failure);
}

void GroupReader::redistribute(const SampleLayout& layout, const std::vector<Box>& held, const std::byte* from,
                               const std::vector<Box>& wanted, std::byte* to) {
  const int self = group().rank();
  const HyperslabSource block{held[static_cast<std::size_t>(self)], from};
  const HyperslabView target{wanted[static_cast<std::size_t>(self)], to};
  struct Message {
    int peer;
    Box box;
    std::int64_t bytes;
  };
  std::vector<Message> outgoing;
  std::vector<Message> incoming;
  std::int64_t total = 0;
  const auto list = [&](std::vector<Message>& messages, int peer, const Box& box) {
    const std::int64_t bytes = hyperslab_bytes(layout, sample_.channels, box);
    if (bytes == 0) return;
    messages.push_back({peer, box, bytes});
    total += bytes;
  };
  // Each rank begins with the one after it, so that not all send to the same one at once.
  for (int step = 1; step < group().size(); ++step) {
    const int next = (self + step) % group().size();
    const int last = (self - step + group().size()) % group().size();
    list(outgoing, next, block.box.intersect(wanted[static_cast<std::size_t>(next)]));
    list(incoming, last, held[static_cast<std::size_t>(last)].intersect(target.box));
  }
  messages_.resize(static_cast<std::size_t>(total));
  std::byte* at = messages_.data();
  for (const Message& m : outgoing) at += m.bytes;
  std::byte* const received = at;
  for (const Message& m : incoming) {
    transfers_.receive(m.peer, at, m.bytes);
    at += m.bytes;
  }
  at = messages_.data();
  for (const Message& m : outgoing) {
    copy_hyperslab(layout, sample_.channels, block, {m.box, at});
    transfers_.send(m.peer, at, m.bytes);
    at += m.bytes;
  }
  copy_hyperslab(layout, sample_.channels, block, target);
  transfers_.wait();
  at = received;
  for (const Message& m : incoming) {
    copy_hyperslab(layout, sample_.channels, {m.box, at}, target);
    at += m.bytes;
  }
}

}  // namespace halograd
