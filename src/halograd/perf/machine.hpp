#pragma once

#include "halograd/device/backend.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace halograd {

/// What an operation of one kind costs where neither its very shape nor one that differs in extents alone was measured:
/// overhead + max(flops / flops_per_second, bytes / bytes_per_second). A rate of 0: that part costs nothing.
struct KernelRate {
  double overhead_seconds = 0;
  double flops_per_second = 0;
  double bytes_per_second = 0;
  std::int64_t channel_tile = 1;  ///< convolutions compute with output channels rounded up to a multiple of this
  std::optional<double> error;    ///< of the fit: median relative deviation of what it was fitted to
};

/// An operation that was measured. Flops and bytes are kept, so that rates can be fitted to all that a file holds.
struct MeasuredKernel {
  double seconds = 0;  ///< median
  double flops = 0;
  double bytes = 0;
  std::int64_t held_bytes = 0;  ///< of a convolution (with its forward pass): packed weights and scratch memory
};

/// Messages from `from_bytes` up, to the next range: latency_seconds + bytes / bytes_per_second, between two ranks,
/// both ways at once, packed and unpacked.
struct LinkRange {
  double from_bytes = 0;
  double latency_seconds = 0;
  double bytes_per_second = 0;
  std::optional<double> error;
};
using LinkRanges = std::vector<LinkRange>;  ///< ascending, the first from 0; empty: not known

/// Sums of `bytes` over `ranks`, from `from_bytes` up:
/// seconds = exp2(constant + bytes_exponent · log2(bytes) + ranks_exponent · log2(ranks)). The regression on logarithms
/// of the paper, section III-C (AR).
struct ReductionRange {
  double from_bytes = 0;
  double constant = 0;
  double bytes_exponent = 0;
  double ranks_exponent = 0;
  std::optional<double> error;
};
using ReductionFit = std::vector<ReductionRange>;  ///< ascending, the first from 0; empty: not known

/// A machine's costs with so many ranks on a node, of so many threads: they share its cores and memory, so that each
/// such setting is measured by itself.
struct MachineSetting {
  std::int64_t ranks_on_node = 1;
  std::int64_t threads = 1;                        ///< of each rank
  double overlap = 1;                              ///< part of a message's time that costs computing nothing
  std::int64_t baseline_bytes = 0;                 ///< a process's own memory, before any network
  std::map<std::string, KernelRate> rates;         ///< by Operation::kind, the beginning of it, or "default"
  std::map<std::string, MeasuredKernel> measured;  ///< by operation_key()
  LinkRanges link;                                 ///< between two ranks of a node
  ReductionFit reduction;                          ///< over ranks of a node

  /// The rate of a kind: its own, else that of the longest name it begins with, else "default". Throws UsageError where
  /// there is none.
  [[nodiscard]] const KernelRate& rate(const std::string& kind) const;
};

/// What is known of a run to be priced: where its ranks are, and their threads.
struct SettingChoice {
  std::optional<std::int64_t> ranks_on_node;
  std::optional<std::int64_t> threads;  ///< of each rank
};

/// What a machine costs: measured by `calibrate`, or written down from data sheets. The file that `calibrate --out`
/// writes and `plan --machine` reads.
struct Machine {
  std::string name;
  std::map<std::string, std::string> description;  ///< processor, cores, libraries; or where figures come from
  Backend backend = Backend::cpu;                  ///< whose kernels its figures are of: plans are compiled for it
  std::int64_t node_memory_bytes = 0;              ///< for all ranks of a node
  std::int64_t rank_memory_bytes = 0;              ///< of a rank's own device; 0: ranks share the node's
  std::vector<MachineSetting> settings;            ///< ascending ranks_on_node, then threads
  LinkRanges network;                              ///< between ranks of two nodes
  ReductionFit network_reduction;                  ///< over ranks of several nodes

  /// What each rank of a setting may take.
  [[nodiscard]] std::int64_t memory_of_rank(const MachineSetting& setting) const {
    return rank_memory_bytes > 0 ? rank_memory_bytes : node_memory_bytes / setting.ranks_on_node;
  }
  /// How a run of `ranks` fills nodes: the setting with the most ranks on a node that it can fill, of those the one
  /// with `wanted`'s figures or, where it has none, the most threads. Throws UsageError where there is none.
  [[nodiscard]] const MachineSetting& setting_for(std::int64_t ranks, const SettingChoice& wanted = {}) const;
};

/// Seconds of a message; that of no bytes takes none. Throws UsageError where the link is not known.
double message_seconds(const LinkRanges& link, double bytes);
/// Seconds of a sum over `ranks` (1: none).
double reduction_seconds(const ReductionFit& fit, double bytes, std::int64_t ranks);

/// Reads a machine file. Throws UsageError that names file and key where a figure is missing, of the wrong type, or
/// absurd (negative, not finite, a range out of order). `changes`: "/settings/0/overlap=0.5", JSON pointers into the
/// file and the numbers to take instead, to see what a figure matters.
Machine load_machine(const std::filesystem::path& file, const std::vector<std::string>& changes = {});
/// Writes it, readable, to a temporary name first. Throws ResourceError.
void save_machine(const Machine& machine, const std::filesystem::path& file);

Machine machine_from_json(const nlohmann::ordered_json& json);
nlohmann::ordered_json to_json(const Machine& machine);

}  // namespace halograd
