#pragma once

#include "halograd/comm/exchange.hpp"

#include <string>
#include <vector>

namespace halograd::comm {

/// A message as the rank on its other side must know it.
struct MessageRecord {
  std::int64_t peer = 0;
  std::int64_t send_bytes = 0;
  std::int64_t receive_bytes = 0;
  std::int64_t state_offset = 0;  ///< in the sender's segment
  std::int64_t data_offset = 0;
};

/// What one rank puts into an Exchange.
struct RankRecord {
  std::string segment;  ///< name of its shared memory, empty where it has none
  std::int64_t segment_bytes = 0;
  std::vector<MessageRecord> messages;

  /// Indices into `messages` of those with this peer, in list order.
  [[nodiscard]] std::vector<std::size_t> with(int peer) const;
};

/// Collective. Every rank's record, in rank order.
std::vector<RankRecord> gather_records(const Communicator& communicator, const RankRecord& mine);

/// For each of this rank's messages the index of its other half in the peer's list: first pairs with last. Throws
/// UsageError where the two sides do not agree on number or bytes.
std::vector<std::size_t> pair_messages(const std::vector<RankRecord>& records, int rank);

}  // namespace halograd::comm
