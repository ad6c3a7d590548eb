#pragma once

#include "halograd/tensor/box.hpp"
#include "halograd/tensor/window.hpp"

#include <vector>

namespace halograd {

/// How a convolution's outputs are cut so that most of them can be computed while margins are on their way: first those
/// whose windows read nothing but `own` inputs and the zeros outside the `volume` of inputs, then the slabs around
/// them. None where they are fewer than half: more launches, of less each, then cost more than a message takes.
std::vector<Box> convolution_parts(const Window& window, const Box& outputs, const Box& own, const Extent& volume);

}  // namespace halograd
