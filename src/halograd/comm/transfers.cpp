#include "halograd/comm/transfers.hpp"

#include "halograd/comm/mpi_support.hpp"
#include "halograd/core/error.hpp"

#include <algorithm>
#include <vector>

namespace halograd {

namespace {

struct Piece {
  MPI_Request request = MPI_REQUEST_NULL;
  int peer = 0;
  int bytes = 0;
  bool received = false;
};

}  // namespace

struct Transfers::Implementation {
  explicit Implementation(const Communicator& communicator_) : communicator(communicator_) {
    const auto& c = communicator.implementation();
    if (c.comm != MPI_COMM_NULL) tag = comm::take_tags(c);
  }

  void require_peer(int peer, std::int64_t bytes) const;
  template <typename Post>
  void in_pieces(int peer, std::int64_t bytes, bool received, const Post& post);
  void wait();

  Communicator communicator;
  int tag = 0;  // one for all: MPI keeps the messages of a pair of ranks, and their pieces, in order
  std::vector<Piece> pieces;
  std::int64_t bytes_sent = 0;
};

void Transfers::Implementation::require_peer(int peer, std::int64_t bytes) const {
  if (peer < 0 || peer >= communicator.size() || peer == communicator.rank()) {
    throw UsageError("transfers: peer {} of rank {} is none of the other {} rank(s)", peer, communicator.rank(),
                     communicator.size() - 1);
  }
  if (bytes < 0) throw UsageError("transfers: a message of {} bytes with rank {}: expected 0 or more", bytes, peer);
}

template <typename Post>
void Transfers::Implementation::in_pieces(int peer, std::int64_t bytes, bool received, const Post& post) {
  require_peer(peer, bytes);
  for (std::int64_t begin = 0; begin < bytes; begin += comm::piece_bytes) {
    const int count = static_cast<int>(std::min(comm::piece_bytes, bytes - begin));
    // Listed before it is posted: no memory can be missing for a request that MPI has already taken.
    pieces.push_back({.peer = peer, .bytes = count, .received = received});
    post(begin, count, &pieces.back().request);
  }
}

// Where it throws `pieces` stays as it is: what is done is a null request by then, the rest MPI still works on, and a
// later wait() goes on with it.
void Transfers::Implementation::wait() {
  for (auto& piece : pieces) {
    if (piece.request == MPI_REQUEST_NULL) continue;
    MPI_Status status;
    comm::wait(piece.request, &status, false);
    if (!piece.received) continue;
    int arrived = 0;
    comm::check(MPI_Get_count(&status, MPI_BYTE, &arrived), "MPI_Get_count");
    if (arrived != piece.bytes) {
      throw ResourceError("communication failed: {} bytes came from rank {} where {} were expected", arrived,
                          piece.peer, piece.bytes);
    }
  }
  pieces.clear();
}

Transfers::Transfers(const Communicator& communicator)
    : implementation_(std::make_unique<Implementation>(communicator)) {}
// Requests that a wait() left outstanding are not cancelled: MPI could not promise it for what is on its way.
Transfers::~Transfers() = default;
Transfers::Transfers(Transfers&&) noexcept = default;
Transfers& Transfers::operator=(Transfers&&) noexcept = default;

void Transfers::send(int peer, const std::byte* data, std::int64_t bytes) {
  auto& own = *implementation_;
  const MPI_Comm comm = own.communicator.implementation().comm;
  own.in_pieces(peer, bytes, false, [&](std::int64_t begin, int count, MPI_Request* request) {
    comm::check(MPI_Isend(data + begin, count, MPI_BYTE, peer, own.tag, comm, request), "MPI_Isend");
  });
  own.bytes_sent += bytes;
}

void Transfers::receive(int peer, std::byte* data, std::int64_t bytes) {
  auto& own = *implementation_;
  const MPI_Comm comm = own.communicator.implementation().comm;
  own.in_pieces(peer, bytes, true, [&](std::int64_t begin, int count, MPI_Request* request) {
    comm::check(MPI_Irecv(data + begin, count, MPI_BYTE, peer, own.tag, comm, request), "MPI_Irecv");
  });
}

void Transfers::wait() {
  implementation_->wait();
}

bool Transfers::pending() const {
  return !implementation_->pieces.empty();
}

const Communicator& Transfers::communicator() const {
  return implementation_->communicator;
}

std::int64_t Transfers::bytes_sent() const {
  return implementation_->bytes_sent;
}

}  // namespace halograd
