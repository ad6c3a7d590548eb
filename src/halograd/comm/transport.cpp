#include "halograd/comm/transport.hpp"

#include "halograd/comm/environment.hpp"
#include "halograd/comm/mpi_support.hpp"
#include "halograd/comm/nccl_communicator.hpp"
#include "halograd/comm/nccl_version.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace halograd {
namespace {

// Why these ranks, on GPUs, can't use NCCL; empty where they can.
std::string reason_against_nccl(const std::vector<RankFacts>& ranks) {
  std::map<std::string, std::size_t> owners;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const RankFacts& facts = ranks[rank];
    if (!facts.nccl_built) return fmt::format("rank {} was built without NCCL", rank);
    if (!facts.nccl_wanted) return fmt::format("HALOGRAD_NCCL=0 on rank {}", rank);
    if (facts.device_id.empty()) return fmt::format("rank {} computes on the processor", rank);
    const auto [owner, first] = owners.emplace(facts.device_id, rank);
    if (!first) return fmt::format("ranks {} and {} share a GPU", owner->second, rank);
  }
  return {};
}

std::string host_description(const Communicator& communicator) {
  if (communicator.size() == 1) return "none: one rank";
  if (communicator.uses_shared_memory()) return "shared memory";
  const bool within_nodes = communicator.implementation().shared_memory && communicator.ranks_on_node() > 1;
  return within_nodes ? "shared memory and MPI" : "MPI";
}

// The facts as text, for Communicator::all_gather: a letter for each yes or no, then the identifier.
std::string packed(const RankFacts& facts) {
  return std::string{facts.nccl_built ? 'y' : 'n', facts.nccl_wanted ? 'y' : 'n'} + facts.device_id;
}

RankFacts unpacked(const std::string& text) {
  return {.device_id = text.substr(2), .nccl_built = text[0] == 'y', .nccl_wanted = text[1] == 'y'};
}

}  // namespace

TransportChoice choose_transport(const std::vector<RankFacts>& ranks) {
  const bool on_host = std::ranges::all_of(ranks, [](const RankFacts& facts) { return facts.device_id.empty(); });
  if (on_host) return {Transport::host, "shared memory and MPI"};
  if (ranks.size() == 1) return {Transport::staged, "none: one rank"};
  const std::string reason = reason_against_nccl(ranks);
  if (reason.empty()) return {Transport::nccl, "NCCL"};
  return {Transport::staged, "pinned host memory and MPI: " + reason};
}

TransportChoice choose_transport(const Communicator& communicator, const Device& device) {
  const RankFacts mine{
      .device_id = device.id(), .nccl_built = nccl_available(), .nccl_wanted = !comm::switched_off("HALOGRAD_NCCL")};
  std::vector<RankFacts> ranks;
  for (const std::string& text : communicator.all_gather(packed(mine))) ranks.push_back(unpacked(text));
  TransportChoice choice = choose_transport(ranks);
  if (choice.transport == Transport::host) choice.description = host_description(communicator);
  if (choice.transport == Transport::nccl) choice.description = "NCCL " + comm::nccl_version();
  return choice;
}

}  // namespace halograd
