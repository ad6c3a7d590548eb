#include "halograd/comm/exchange_table.hpp"

#include "halograd/core/error.hpp"

#include <cstring>

namespace halograd::comm {

namespace {

struct Header {
  char segment[64] = {};
  std::int64_t segment_bytes = 0;
};

}  // namespace

std::vector<std::size_t> RankRecord::with(int peer) const {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].peer == peer) indices.push_back(i);
  }
  return indices;
}

std::vector<RankRecord> gather_records(const Communicator& communicator, const RankRecord& mine) {
  Header header;
  mine.segment.copy(header.segment, sizeof(header.segment) - 1);
  header.segment_bytes = mine.segment_bytes;
  std::string text(reinterpret_cast<const char*>(&header), sizeof(header));
  text.append(reinterpret_cast<const char*>(mine.messages.data()), mine.messages.size() * sizeof(MessageRecord));

  std::vector<RankRecord> records;
  for (const auto& packed : communicator.all_gather(text)) {
    RankRecord record;
    std::memcpy(&header, packed.data(), sizeof(header));
    record.segment = header.segment;
    record.segment_bytes = header.segment_bytes;
    record.messages.resize((packed.size() - sizeof(header)) / sizeof(MessageRecord));
    // Message by message, as the list of a rank without peers has no memory to copy to.
    const char* next = packed.data() + sizeof(header);
    for (auto& message : record.messages) {
      std::memcpy(&message, next, sizeof(message));
      next += sizeof(message);
    }
    records.push_back(std::move(record));
  }
  return records;
}

std::vector<std::size_t> pair_messages(const std::vector<RankRecord>& records, int rank) {
  const auto& mine = records[static_cast<std::size_t>(rank)];
  std::vector<std::size_t> partners(mine.messages.size());
  for (std::size_t i = 0; i < partners.size(); ++i) {
    const int peer = static_cast<int>(mine.messages[i].peer);
    const auto& theirs = records[static_cast<std::size_t>(peer)];
    const auto here = mine.with(peer);
    const auto there = theirs.with(rank);
    if (here.size() != there.size()) {
      throw UsageError("exchange: rank {} has {} messages with rank {}, which has {} with it", rank, here.size(), peer,
                       there.size());
    }
    std::size_t position = 0;
    while (here[position] != i) ++position;
    partners[i] = there[there.size() - 1 - position];
    const auto& out = mine.messages[i];
    const auto& back = theirs.messages[partners[i]];
    if (out.send_bytes != back.receive_bytes || out.receive_bytes != back.send_bytes) {
      throw UsageError("exchange: rank {} sends {} and receives {} bytes with rank {}, which receives {} and sends {}",
                       rank, out.send_bytes, out.receive_bytes, peer, back.receive_bytes, back.send_bytes);
    }
  }
  return partners;
}

}  // namespace halograd::comm
