#pragma once

#include "halograd/tensor/box.hpp"
#include "halograd/tensor/window.hpp"

#include <vector>

namespace halograd {

/// How a convolution's outputs are cut so that most of them can be computed while margins are on their way: first those
/// whose windows read nothing but `own` inputs and the zeros outside the `volume` of inputs, then the slabs around
/// them. None where the first are fewer than half: by judgement, not measured, launches of so little work then cost
/// more than the wait that they cover.
std::vector<Box> convolution_parts(const Window& window, const Box& outputs, const Box& own, const Extent& volume);

}  // namespace halograd
