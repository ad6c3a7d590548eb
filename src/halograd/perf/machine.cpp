#include "halograd/perf/machine.hpp"

#include "halograd/core/error.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace halograd {

const KernelRate& MachineSetting::rate(const std::string& kind) const {
  const KernelRate* best = nullptr;
  std::size_t longest = 0;
  for (const auto& [name, rate] : rates) {
    if (kind.starts_with(name) && name.size() > longest) {
      best = &rate;
      longest = name.size();
    }
  }
  if (best != nullptr) return *best;
  const auto fallback = rates.find("default");
  if (fallback != rates.end()) return fallback->second;
  throw UsageError(
      "the machine has no rate for {} with {} ranks on a node: calibrate it for this network, or add a "
      "rate \"default\"",
      kind, ranks_on_node);
}

const MachineSetting& Machine::setting_for(std::int64_t ranks, const SettingChoice& wanted) const {
  const MachineSetting* best = nullptr;
  for (const MachineSetting& setting : settings) {
    if (setting.ranks_on_node > ranks) continue;
    if (wanted.ranks_on_node && setting.ranks_on_node != *wanted.ranks_on_node) continue;
    if (wanted.threads && setting.threads != *wanted.threads) continue;
    if (best == nullptr ||
        std::pair(setting.ranks_on_node, setting.threads) >= std::pair(best->ranks_on_node, best->threads)) {
      best = &setting;
    }
  }
  if (best != nullptr) return *best;
  throw UsageError("{} was not measured with {} rank(s) on a node{}: start calibrate so", name,
                   wanted.ranks_on_node ? fmt::to_string(*wanted.ranks_on_node) : fmt::format("up to {}", ranks),
                   wanted.threads ? fmt::format(" of {} thread(s)", *wanted.threads) : "");
}

double message_seconds(const LinkRanges& link, double bytes) {
  if (bytes <= 0) return 0;
  if (link.empty())
    throw UsageError(
        "the machine file says nothing of messages between these ranks: start calibrate with as many on a node, "
        "or over two nodes");
  const auto above = std::ranges::upper_bound(link, bytes, {}, &LinkRange::from_bytes);
  const LinkRange& range = *std::prev(above);
  return range.latency_seconds + bytes / range.bytes_per_second;
}

double reduction_seconds(const ReductionFit& fit, double bytes, std::int64_t ranks) {
  if (ranks <= 1 || bytes <= 0) return 0;
  if (fit.empty())
    throw UsageError(
        "the machine file says nothing of sums over {} ranks: start calibrate with as many on a node, or over two "
        "nodes",
        ranks);
  const auto above = std::ranges::upper_bound(fit, bytes, {}, &ReductionRange::from_bytes);
  const ReductionRange& range = *std::prev(above);
  return std::exp2(range.constant + range.bytes_exponent * std::log2(bytes) +
                   range.ranks_exponent * std::log2(static_cast<double>(ranks)));
}

}  // namespace halograd
