#include "halograd/comm/exchange_paths.hpp"
#include "halograd/comm/exchange_table.hpp"
#include "halograd/comm/mpi_support.hpp"
#include "halograd/comm/shared_memory.hpp"
#include "halograd/comm/waiting.hpp"
#include "halograd/core/error.hpp"

#include <algorithm>
#include <map>

namespace halograd::comm {
namespace {

enum class Path { own, shared, mpi };

// In the sender's segment: how often the message was sent, and how many of those the receiver is done with.
struct MessageState {
  alignas(64) SharedWord ready;
  alignas(64) SharedWord released;
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

class HostExchange final : public Exchange::Implementation {
public:
  HostExchange(const Communicator& communicator, const std::vector<ExchangePeer>& peers);
  ~HostExchange() override;

  [[nodiscard]] std::size_t peers() const override { return messages_.size(); }
  [[nodiscard]] std::byte* send_buffer(std::size_t peer) override;
  void run() override;
  [[nodiscard]] const std::byte* receive_buffer(std::size_t peer) const override { return messages_.at(peer).receive; }
  void release() override;

private:
  void choose_paths(bool shared_memory);
  [[nodiscard]] RankRecord lay_out_segment();
  bool open_segments(const std::vector<RankRecord>& records, const std::vector<std::size_t>& partners);
  void connect_private(const std::vector<std::size_t>& own_partners);
  void make_requests(const std::vector<RankRecord>& records, const std::vector<std::size_t>& partners);
  void add_requests(std::byte* data, std::int64_t bytes, int peer, int tag, bool sends);

  Communicator communicator_;
  std::vector<Message> messages_;
  SharedSegment segment_;
  std::map<int, SharedSegment> peer_segments_;
  PrivateBuffer buffer_;
  std::vector<MPI_Request> requests_;
  bool spin_;
  bool holding_ = false;    // received and not released
  bool in_flight_ = false;  // MPI may still write to `buffer_`
};

HostExchange::HostExchange(const Communicator& communicator, const std::vector<ExchangePeer>& peers)
    : communicator_(communicator), spin_(communicator.implementation().spin) {
  agree(communicator_, [&] { check_peers(communicator_, peers); });
  for (const auto& peer : peers) messages_.push_back({.peer = peer});
  choose_paths(communicator_.implementation().shared_memory);
  const auto records = gather_records(communicator_, lay_out_segment());
  std::vector<std::size_t> partners;
  agree(communicator_, [&] { partners = pair_messages(records, communicator_.rank()); });
  const std::int64_t failed = open_segments(records, partners) ? 0 : 1;
  if (communicator_.all_reduce_max(failed) != 0) {
    choose_paths(false);
    segment_ = {};
    peer_segments_.clear();
  }
  segment_.unlink();
  connect_private(partners);
  make_requests(records, partners);
}

HostExchange::~HostExchange() {
  if (in_flight_) buffer_.leak();
  if (requests_.empty() || !mpi_running()) return;
  for (auto& request : requests_) MPI_Request_free(&request);
}

void HostExchange::choose_paths(bool shared_memory) {
  const auto& c = communicator_.implementation();
  const auto node = [&](int rank) { return c.node_of[static_cast<std::size_t>(rank)]; };
  for (auto& message : messages_) {
    const int peer = message.peer.rank;
    message.path = Path::mpi;
    if (peer == c.rank)
      message.path = Path::own;
    else if (shared_memory && node(peer) == node(c.rank))
      message.path = Path::shared;
  }
}

// Makes this rank's segment_: the state of every shared message, then their send buffers. Where that fails the record
// names no segment_, and the peers' attempts to open it lead all ranks to fall back to MPI.
RankRecord HostExchange::lay_out_segment() {
  RankRecord record;
  std::int64_t offset = 0;
  const auto take = [&](std::int64_t bytes) {
    const std::int64_t place = offset;
    offset += aligned(bytes);
    return place;
  };
  for (const auto& message : messages_) {
    const auto& peer = message.peer;
    record.messages.push_back({.peer = peer.rank, .send_bytes = peer.send_bytes, .receive_bytes = peer.receive_bytes});
    if (message.path == Path::shared) record.messages.back().state_offset = take(sizeof(MessageState));
  }
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    if (messages_[i].path == Path::shared) record.messages[i].data_offset = take(messages_[i].peer.send_bytes);
  }
  if (offset == 0) return record;
  try {
    segment_ = SharedSegment::create(offset);
    record.segment = segment_.name();
    record.segment_bytes = segment_.bytes();
  } catch (const ResourceError&) {
    record.segment.clear();
  }
  return record;
}

bool HostExchange::open_segments(const std::vector<RankRecord>& records, const std::vector<std::size_t>& partners) {
  const auto state_at = [](std::byte* base, std::int64_t offset) {
    return reinterpret_cast<MessageState*>(base + offset);
  };
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    auto& message = messages_[i];
    if (message.path != Path::shared) continue;
    const auto& mine = records[static_cast<std::size_t>(communicator_.rank())].messages[i];
    const auto& theirs = records[static_cast<std::size_t>(message.peer.rank)];
    if (segment_.data() == nullptr || theirs.segment.empty()) return false;
    auto& opened = peer_segments_[message.peer.rank];
    try {
      if (opened.data() == nullptr) opened = SharedSegment::open(theirs.segment, theirs.segment_bytes);
    } catch (const ResourceError&) {
      return false;
    }
    const auto& partner = theirs.messages[partners[i]];
    message.send = segment_.data() + mine.data_offset;
    message.receive = opened.data() + partner.data_offset;
    if (message.peer.send_bytes > 0) message.outgoing = state_at(segment_.data(), mine.state_offset);
    if (message.peer.receive_bytes > 0) message.incoming = state_at(opened.data(), partner.state_offset);
  }
  return true;
}

// Buffers of messages_ to this rank itself (read where they were written) and of those that MPI carries.
void HostExchange::connect_private(const std::vector<std::size_t>& partners) {
  std::int64_t bytes = 0;
  for (const auto& message : messages_) {
    if (message.path != Path::shared) bytes += aligned(message.peer.send_bytes);
    if (message.path == Path::mpi) bytes += aligned(message.peer.receive_bytes);
  }
  buffer_ = PrivateBuffer(bytes);
  std::byte* next = buffer_.data();
  const auto take = [&](std::int64_t size) {
    std::byte* place = next;
    if (size > 0) next += aligned(size);
    return place;
  };
  for (auto& message : messages_) {
    if (message.path == Path::shared) continue;
    message.outgoing = message.incoming = nullptr;
    message.send = take(message.peer.send_bytes);
    if (message.path == Path::mpi) message.receive = take(message.peer.receive_bytes);
  }
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    if (messages_[i].path == Path::own) messages_[i].receive = messages_[partners[i]].send;
  }
}

void HostExchange::add_requests(std::byte* data, std::int64_t bytes, int peer, int tag, bool sends) {
  const MPI_Comm comm = communicator_.implementation().comm;
  for (std::int64_t begin = 0; begin < bytes; begin += piece_bytes) {
    const int count = static_cast<int>(std::min(piece_bytes, bytes - begin));
    MPI_Request request = MPI_REQUEST_NULL;
    if (sends)
      check(MPI_Send_init(data + begin, count, MPI_BYTE, peer, tag, comm, &request), "MPI_Send_init");
    else
      check(MPI_Recv_init(data + begin, count, MPI_BYTE, peer, tag, comm, &request), "MPI_Recv_init");
    requests_.push_back(request);
  }
}

// The pieces of a message share its tag: MPI keeps them in order. Receives start before sends.
void HostExchange::make_requests(const std::vector<RankRecord>& records, const std::vector<std::size_t>& partners) {
  const auto& c = communicator_.implementation();
  if (c.comm == MPI_COMM_NULL) return;
  const int tags = take_tags(c);
  const auto tag_of = [&](int sender, std::size_t index, int receiver) {
    const auto list = records[static_cast<std::size_t>(sender)].with(receiver);
    const auto ordinal = std::ranges::find(list, index) - list.begin();
    return tags + static_cast<int>(ordinal % tags_each);
  };
  for (const bool sends : {false, true}) {
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      auto& message = messages_[i];
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

void HostExchange::run() {
  if (holding_) throw UsageError("exchange: run() again before release()");
  if (!requests_.empty()) {
    in_flight_ = true;
    check(MPI_Startall(static_cast<int>(requests_.size()), requests_.data()), "MPI_Startall");
  }
  for (auto& message : messages_) {
    if (message.outgoing == nullptr) continue;
    message.outgoing->released.wait_until(message.sent, spin_);
    message.outgoing->ready.set(++message.sent);
  }
  for (auto& message : messages_) {
    if (message.incoming != nullptr) message.incoming->ready.wait_until(++message.received, spin_);
  }
  if (!requests_.empty()) {
    wait_all(requests_, MPI_STATUSES_IGNORE, spin_);
    in_flight_ = false;
  }
  holding_ = true;
}

void HostExchange::release() {
  if (!holding_) return;
  holding_ = false;
  for (auto& message : messages_) {
    if (message.incoming != nullptr) message.incoming->released.set(message.received);
  }
}

std::byte* HostExchange::send_buffer(std::size_t peer) {
  auto& message = messages_.at(peer);
  if (message.outgoing != nullptr) message.outgoing->released.wait_until(message.sent, spin_);
  return message.send;
}

}  // namespace

std::unique_ptr<Exchange::Implementation> make_host_exchange(const Communicator& communicator,
                                                             const std::vector<ExchangePeer>& peers) {
  return std::make_unique<HostExchange>(communicator, peers);
}

}  // namespace halograd::comm
