#pragma once

#include "halograd/comm/communicator.hpp"
#include "halograd/device/device.hpp"

#include <string>

namespace halograd {

/// Collective. What choose_device would choose for the same `name`, without opening it: no GPU need be there for
/// "cuda".
Backend choose_backend(const std::string& name, const Communicator& world);

/// Collective. Where each rank computes. "cpu" and "reference": its processor. "cuda": a GPU; the ranks of a node take
/// its GPUs in turn, and share them where they are fewer. "auto": GPUs where every node has one, else processors.
/// Throws ResourceError on all ranks alike where one asked for a GPU has none that can be used.
Device choose_device(const std::string& name, const Communicator& world);

}  // namespace halograd
