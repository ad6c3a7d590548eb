#include "halograd/comm/exchange.hpp"

#include "halograd/comm/exchange_table.hpp"
#include "halograd/comm/mpi_support.hpp"
#include "halograd/comm/shared_memory.hpp"
#include "halograd/comm/waiting.hpp"
#include "halograd/core/error.hpp"

#include <algorithm>
#include <map>

namespace halograd {

namespace {

using comm::MessageRecord;
using comm::PrivateBuffer;
using comm::RankRecord;
using comm::SharedSegment;

enum class Path { own, shared, mpi };

// In the sender's segment: how often the message was sent, and how many of those the receiver is done with.
struct MessageState {
  alignas(64) comm::SharedWord ready;
  alignas(64) comm::SharedWord released;
};

struct Message {
  ExchangePeer peer;
  Path path = Path::mpi;
  std::byte* send = nullptr;
  const std::byte* receive = nullptr;
  MessageState* outgoing = nullptr;  // shared path only; null for empty messages
  MessageState* incoming = nullptr;
  std::uint32_t sent = 0;
  std::uint32_t received = 0;
};

void validate(const Communicator& communicator, const std::vector<ExchangePeer>& peers) {
  for (const auto& peer : peers) {
    if (peer.rank < 0 || peer.rank >= communicator.size()) {
      throw UsageError("exchange: peer {} is none of the {} ranks", peer.rank, communicator.size());
    }
    if (peer.send_bytes < 0 || peer.receive_bytes < 0) {
      throw UsageError("exchange: a message with rank {} has a negative size", peer.rank);
    }
  }
}

}  // namespace

struct Exchange::Implementation {
  Implementation(const Communicator& communicator_, const std::vector<ExchangePeer>& peers);
  ~Implementation();

  void choose_paths(bool shared_memory);
  [[nodiscard]] RankRecord lay_out_segment();
  bool open_segments(const std::vector<RankRecord>& records, const std::vector<std::size_t>& partners);
  void connect_private(const std::vector<std::size_t>& own_partners);
  void make_requests(const std::vector<RankRecord>& records, const std::vector<std::size_t>& partners);
  void add_requests(std::byte* data, std::int64_t bytes, int peer, int tag, bool sends);
  void run();
  void release();

  Communicator communicator;
  std::vector<Message> messages;
  SharedSegment segment;
  std::map<int, SharedSegment> peer_segments;
  PrivateBuffer buffer;
  std::vector<MPI_Request> requests;
  bool spin;
  bool holding = false;    // received and not released
  bool in_flight = false;  // MPI may still write to `buffer`
};

Exchange::Implementation::Implementation(const Communicator& communicator_, const std::vector<ExchangePeer>& peers)
    : communicator(communicator_), spin(communicator_.implementation().spin) {
  agree(communicator, [&] { validate(communicator, peers); });
  for (const auto& peer : peers) messages.push_back({.peer = peer});
  choose_paths(communicator.implementation().shared_memory);
  const auto records = comm::gather_records(communicator, lay_out_segment());
  std::vector<std::size_t> partners;
  agree(communicator, [&] { partners = comm::pair_messages(records, communicator.rank()); });
  const std::int64_t failed = open_segments(records, partners) ? 0 : 1;
  if (communicator.all_reduce_max(failed) != 0) {
    choose_paths(false);
    segment = {};
    peer_segments.clear();
  }
  segment.unlink();
  connect_private(partners);
  make_requests(records, partners);
}

Exchange::Implementation::~Implementation() {
  if (in_flight) buffer.leak();
  if (requests.empty() || !comm::mpi_running()) return;
  for (auto& request : requests) MPI_Request_free(&request);
}

void Exchange::Implementation::choose_paths(bool shared_memory) {
  const auto& c = communicator.implementation();
  const auto node = [&](int rank) { return c.node_of[static_cast<std::size_t>(rank)]; };
  for (auto& message : messages) {
    const int peer = message.peer.rank;
    message.path = Path::mpi;
    if (peer == c.rank)
      message.path = Path::own;
    else if (shared_memory && node(peer) == node(c.rank))
      message.path = Path::shared;
  }
}

// Makes this rank's segment: the state of every shared message, then their send buffers. Where that fails the record
// names no segment, and the peers' attempts to open it lead all ranks to fall back to MPI.
RankRecord Exchange::Implementation::lay_out_segment() {
  RankRecord record;
  std::int64_t offset = 0;
  const auto take = [&](std::int64_t bytes) {
    const std::int64_t place = offset;
    offset += comm::aligned(bytes);
    return place;
  };
  for (const auto& message : messages) {
    const auto& peer = message.peer;
    record.messages.push_back({.peer = peer.rank, .send_bytes = peer.send_bytes, .receive_bytes = peer.receive_bytes});
    if (message.path == Path::shared) record.messages.back().state_offset = take(sizeof(MessageState));
  }
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].path == Path::shared) record.messages[i].data_offset = take(messages[i].peer.send_bytes);
  }
  if (offset == 0) return record;
  try {
    segment = SharedSegment::create(offset);
    record.segment = segment.name();
    record.segment_bytes = segment.bytes();
  } catch (const ResourceError&) {
    record.segment.clear();
  }
  return record;
}

bool Exchange::Implementation::open_segments(const std::vector<RankRecord>& records,
                                             const std::vector<std::size_t>& partners) {
  const auto state_at = [](std::byte* base, std::int64_t offset) {
    return reinterpret_cast<MessageState*>(base + offset);
  };
  for (std::size_t i = 0; i < messages.size(); ++i) {
    auto& message = messages[i];
    if (message.path != Path::shared) continue;
    const auto& mine = records[static_cast<std::size_t>(communicator.rank())].messages[i];
    const auto& theirs = records[static_cast<std::size_t>(message.peer.rank)];
    if (segment.data() == nullptr || theirs.segment.empty()) return false;
    auto& opened = peer_segments[message.peer.rank];
    try {
      if (opened.data() == nullptr) opened = SharedSegment::open(theirs.segment, theirs.segment_bytes);
    } catch (const ResourceError&) {
      return false;
    }
    const auto& partner = theirs.messages[partners[i]];
    message.send = segment.data() + mine.data_offset;
    message.receive = opened.data() + partner.data_offset;
    if (message.peer.send_bytes > 0) message.outgoing = state_at(segment.data(), mine.state_offset);
    if (message.peer.receive_bytes > 0) message.incoming = state_at(opened.data(), partner.state_offset);
  }
  return true;
}

// Buffers of messages to this rank itself (read where they were written) and of those that MPI carries.
void Exchange::Implementation::connect_private(const std::vector<std::size_t>& partners) {
  std::int64_t bytes = 0;
  for (const auto& message : messages) {
    if (message.path != Path::shared) bytes += comm::aligned(message.peer.send_bytes);
    if (message.path == Path::mpi) bytes += comm::aligned(message.peer.receive_bytes);
  }
  buffer = PrivateBuffer(bytes);
  std::byte* next = buffer.data();
  const auto take = [&](std::int64_t size) {
    std::byte* place = next;
    if (size > 0) next += comm::aligned(size);
    return place;
  };
  for (auto& message : messages) {
    if (message.path == Path::shared) continue;
    message.outgoing = message.incoming = nullptr;
    message.send = take(message.peer.send_bytes);
    if (message.path == Path::mpi) message.receive = take(message.peer.receive_bytes);
  }
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].path == Path::own) messages[i].receive = messages[partners[i]].send;
  }
}

void Exchange::Implementation::add_requests(std::byte* data, std::int64_t bytes, int peer, int tag, bool sends) {
  const MPI_Comm comm = communicator.implementation().comm;
  for (std::int64_t begin = 0; begin < bytes; begin += comm::piece_bytes) {
    const int count = static_cast<int>(std::min(comm::piece_bytes, bytes - begin));
    MPI_Request request = MPI_REQUEST_NULL;
    if (sends)
      comm::check(MPI_Send_init(data + begin, count, MPI_BYTE, peer, tag, comm, &request), "MPI_Send_init");
    else
      comm::check(MPI_Recv_init(data + begin, count, MPI_BYTE, peer, tag, comm, &request), "MPI_Recv_init");
    requests.push_back(request);
  }
}

// The pieces of a message share its tag: MPI keeps them in order. Receives start before sends.
void Exchange::Implementation::make_requests(const std::vector<RankRecord>& records,
                                             const std::vector<std::size_t>& partners) {
  const auto& c = communicator.implementation();
  if (c.comm == MPI_COMM_NULL) return;
  const int tags = comm::take_tags(c);
  const auto tag_of = [&](int sender, std::size_t index, int receiver) {
    const auto list = records[static_cast<std::size_t>(sender)].with(receiver);
    const auto ordinal = std::ranges::find(list, index) - list.begin();
    return tags + static_cast<int>(ordinal % comm::tags_each);
  };
  for (const bool sends : {false, true}) {
    for (std::size_t i = 0; i < messages.size(); ++i) {
      auto& message = messages[i];
      if (message.path != Path::mpi) continue;
      const int peer = message.peer.rank;
      if (sends) {
        add_requests(message.send, message.peer.send_bytes, peer, tag_of(c.rank, i, peer), true);
      } else {
        add_requests(const_cast<std::byte*>(message.receive), message.peer.receive_bytes, peer,
                     tag_of(peer, partners[i], c.rank), false);
      }
    }
  }
}

void Exchange::Implementation::run() {
  if (holding) throw UsageError("exchange: run() again before release()");
  if (!requests.empty()) {
    in_flight = true;
    comm::check(MPI_Startall(static_cast<int>(requests.size()), requests.data()), "MPI_Startall");
  }
  for (auto& message : messages) {
    if (message.outgoing == nullptr) continue;
    message.outgoing->released.wait_until(message.sent, spin);
    message.outgoing->ready.set(++message.sent);
  }
  for (auto& message : messages) {
    if (message.incoming != nullptr) message.incoming->ready.wait_until(++message.received, spin);
  }
  if (!requests.empty()) {
    comm::wait_all(requests, MPI_STATUSES_IGNORE, spin);
    in_flight = false;
  }
  holding = true;
}

void Exchange::Implementation::release() {
  if (!holding) return;
  holding = false;
  for (auto& message : messages) {
    if (message.incoming != nullptr) message.incoming->released.set(message.received);
  }
}

Exchange::Exchange(const Communicator& communicator, std::vector<ExchangePeer> peers)
    : implementation_(std::make_unique<Implementation>(communicator, peers)) {}
Exchange::~Exchange() = default;
Exchange::Exchange(Exchange&&) noexcept = default;
Exchange& Exchange::operator=(Exchange&&) noexcept = default;

std::size_t Exchange::peers() const {
  return implementation_->messages.size();
}

std::byte* Exchange::send_buffer(std::size_t peer) {
  auto& message = implementation_->messages.at(peer);
  if (message.outgoing != nullptr) message.outgoing->released.wait_until(message.sent, implementation_->spin);
  return message.send;
}

void Exchange::run() {
  implementation_->run();
}

const std::byte* Exchange::receive_buffer(std::size_t peer) const {
  return implementation_->messages.at(peer).receive;
}

void Exchange::release() {
  implementation_->release();
}

}  // namespace halograd
