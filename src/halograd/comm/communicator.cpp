#include "halograd/comm/communicator.hpp"

#include "halograd/comm/environment.hpp"
#include "halograd/comm/mpi_support.hpp"
#include "halograd/comm/waiting.hpp"
#include "halograd/core/error.hpp"

#include <algorithm>
#include <cstring>

namespace halograd {

namespace {

using Implementation = Communicator::Implementation;

std::shared_ptr<const Implementation>& world_implementation() {
  static std::shared_ptr<const Implementation> world;
  return world;
}

template <typename T>
void all_gather_one(const Implementation& c, T value, std::vector<T>& all) {
  all.resize(static_cast<std::size_t>(c.size));
  MPI_Request request = MPI_REQUEST_NULL;
  comm::check(MPI_Iallgather(&value, sizeof(T), MPI_BYTE, all.data(), sizeof(T), MPI_BYTE, c.comm, &request),
              "MPI_Iallgather");
  comm::wait(request, MPI_STATUS_IGNORE, c.spin);
}

template <typename T>
T all_reduce_max_one(const Implementation& c, T value, MPI_Datatype type) {
  if (c.size == 1) return value;
  struct Numbers {
    T own{};
    T largest{};
  };
  auto numbers = std::make_unique<Numbers>(Numbers{.own = value});
  MPI_Request request = MPI_REQUEST_NULL;
  comm::check(MPI_Iallreduce(&numbers->own, &numbers->largest, 1, type, MPI_MAX, c.comm, &request), "MPI_Iallreduce");
  try {
    comm::wait(request, MPI_STATUS_IGNORE, c.spin);
  } catch (...) {
    static_cast<void>(numbers.release());  // MPI may still write to them
    throw;
  }
  return numbers->largest;
}

// Collective over `comm`, which it takes over. `node` names the node of this rank.
std::shared_ptr<Implementation> adopt(MPI_Comm comm, int node, bool spin) {
  auto made = std::make_shared<Implementation>();
  made->comm = comm;
  comm::check(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  comm::check(MPI_Comm_rank(comm, &made->rank), "MPI_Comm_rank");
  comm::check(MPI_Comm_size(comm, &made->size), "MPI_Comm_size");
  made->spin = spin;
  all_gather_one(*made, node, made->node_of);
  made->one_node = std::ranges::all_of(made->node_of, [&](int other) { return other == node; });
  const std::int64_t unwanted = comm::switched_off("HALOGRAD_SHARED_MEMORY") ? 1 : 0;
  made->shared_memory = all_reduce_max_one(*made, unwanted, MPI_INT64_T) == 0;
  return made;
}

int own_node(const Implementation& c) {
  return c.node_of[static_cast<std::size_t>(c.rank)];
}

}  // namespace

Implementation::~Implementation() {
  if (comm != MPI_COMM_NULL && comm::mpi_running()) MPI_Comm_free(&comm);
}

namespace comm {

void open_world() {
  MPI_Comm duplicate = MPI_COMM_NULL;
  check(MPI_Comm_dup(MPI_COMM_WORLD, &duplicate), "MPI_Comm_dup");
  int world_rank = 0;
  check(MPI_Comm_rank(duplicate, &world_rank), "MPI_Comm_rank");
  MPI_Comm node = MPI_COMM_NULL;
  check(MPI_Comm_split_type(duplicate, MPI_COMM_TYPE_SHARED, world_rank, MPI_INFO_NULL, &node), "MPI_Comm_split_type");
  int ranks_on_node = 1;
  check(MPI_Comm_size(node, &ranks_on_node), "MPI_Comm_size");
  int lowest = world_rank;
  check(MPI_Bcast(&lowest, 1, MPI_INT, 0, node), "MPI_Bcast");
  check(MPI_Comm_free(&node), "MPI_Comm_free");
  world_implementation() = adopt(duplicate, lowest, may_spin(ranks_on_node));
}

void close_world() {
  world_implementation().reset();
}

}  // namespace comm

Communicator::Communicator(std::shared_ptr<const Implementation> implementation)
    : implementation_(std::move(implementation)) {}

Communicator Communicator::self() {
  static const auto alone = std::make_shared<const Implementation>();
  return Communicator(alone);
}

Communicator Communicator::world() {
  const auto& world = world_implementation();
  return world ? Communicator(world) : self();
}

int Communicator::rank() const {
  return implementation_->rank;
}
int Communicator::size() const {
  return implementation_->size;
}
int Communicator::ranks_on_node() const {
  const Implementation& c = *implementation_;
  return static_cast<int>(std::ranges::count(c.node_of, c.node_of[static_cast<std::size_t>(c.rank)]));
}

int Communicator::rank_on_node() const {
  const Implementation& c = *implementation_;
  const auto own = c.node_of.begin() + c.rank;
  return static_cast<int>(std::count(c.node_of.begin(), own, *own));
}

bool Communicator::uses_shared_memory() const {
  return implementation_->one_node && implementation_->shared_memory;
}

bool Communicator::on_one_node() const {
  return implementation_->one_node;
}

Communicator Communicator::split(int color, int key) const {
  const auto& c = *implementation_;
  if (c.comm == MPI_COMM_NULL) return *this;
  MPI_Comm part = MPI_COMM_NULL;
  comm::check(MPI_Comm_split(c.comm, color, key, &part), "MPI_Comm_split");
  return Communicator(adopt(part, own_node(c), c.spin));
}

Communicator Communicator::duplicate() const {
  const auto& c = *implementation_;
  if (c.comm == MPI_COMM_NULL) return *this;
  MPI_Comm same = MPI_COMM_NULL;
  comm::check(MPI_Comm_dup(c.comm, &same), "MPI_Comm_dup");
  return Communicator(adopt(same, own_node(c), c.spin));
}

void Communicator::barrier() const {
  const auto& c = *implementation_;
  if (c.size == 1) return;
  MPI_Request request = MPI_REQUEST_NULL;
  comm::check(MPI_Ibarrier(c.comm, &request), "MPI_Ibarrier");
  comm::wait(request, MPI_STATUS_IGNORE, c.spin);
}

void Communicator::broadcast(void* data, std::int64_t bytes, int root) const {
  const auto& c = *implementation_;
  if (c.size == 1) return;
  for (std::int64_t begin = 0; begin < bytes; begin += comm::piece_bytes) {
    const int count = static_cast<int>(std::min(comm::piece_bytes, bytes - begin));
    MPI_Request request = MPI_REQUEST_NULL;
    comm::check(MPI_Ibcast(static_cast<std::byte*>(data) + begin, count, MPI_BYTE, root, c.comm, &request),
                "MPI_Ibcast");
    comm::wait(request, MPI_STATUS_IGNORE, c.spin);
  }
}

void Communicator::all_gather(const void* send, std::int64_t bytes, void* receive) const {
  const auto& c = *implementation_;
  if (c.size == 1) {
    if (bytes > 0) std::memmove(receive, send, static_cast<std::size_t>(bytes));
    return;
  }
  for (std::int64_t begin = 0; begin < bytes; begin += comm::piece_bytes) {
    const int count = static_cast<int>(std::min(comm::piece_bytes, bytes - begin));
    // One rank's piece, as far from the next rank's as whole contributions are.
    MPI_Datatype dense = MPI_DATATYPE_NULL;
    MPI_Datatype spaced = MPI_DATATYPE_NULL;
    comm::check(MPI_Type_contiguous(count, MPI_BYTE, &dense), "MPI_Type_contiguous");
    comm::check(MPI_Type_create_resized(dense, 0, static_cast<MPI_Aint>(bytes), &spaced), "MPI_Type_create_resized");
    comm::check(MPI_Type_commit(&spaced), "MPI_Type_commit");
    MPI_Request request = MPI_REQUEST_NULL;
    comm::check(MPI_Iallgather(static_cast<const std::byte*>(send) + begin, count, MPI_BYTE,
                               static_cast<std::byte*>(receive) + begin, 1, spaced, c.comm, &request),
                "MPI_Iallgather");
    comm::wait(request, MPI_STATUS_IGNORE, c.spin);
    MPI_Type_free(&spaced);
    MPI_Type_free(&dense);
  }
}

std::vector<std::string> Communicator::all_gather(const std::string& text) const {
  const auto& c = *implementation_;
  if (c.size == 1) return {text};
  std::vector<std::int64_t> lengths;
  all_gather_one(c, static_cast<std::int64_t>(text.size()), lengths);
  const std::int64_t longest = *std::ranges::max_element(lengths);
  std::string padded = text;
  padded.resize(static_cast<std::size_t>(longest));
  std::string all(static_cast<std::size_t>(longest * c.size), '\0');
  all_gather(padded.data(), longest, all.data());
  std::vector<std::string> texts;
  for (int r = 0; r < c.size; ++r) {
    texts.push_back(all.substr(static_cast<std::size_t>(longest * r),
                               static_cast<std::size_t>(lengths[static_cast<std::size_t>(r)])));
  }
  return texts;
}

void Communicator::all_reduce_sum(double* values, std::int64_t count) const {
  const auto& c = *implementation_;
  if (c.size == 1 || count == 0) return;
  std::vector<double> all(static_cast<std::size_t>(count * c.size));
  all_gather(values, count * static_cast<std::int64_t>(sizeof(double)), all.data());
  std::copy_n(all.begin(), count, values);
  for (int r = 1; r < c.size; ++r) {
    const double* part = all.data() + count * r;
    for (std::int64_t i = 0; i < count; ++i) values[i] += part[i];
  }
}

double Communicator::all_reduce_max(double value) const {
  return all_reduce_max_one(*implementation_, value, MPI_DOUBLE);
}

std::int64_t Communicator::all_reduce_max(std::int64_t value) const {
  return all_reduce_max_one(*implementation_, value, MPI_INT64_T);
}

}  // namespace halograd
