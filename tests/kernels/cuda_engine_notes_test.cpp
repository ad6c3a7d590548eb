#include "halograd/kernels/cuda/engine_notes.hpp"

#include <gtest/gtest.h>

namespace halograd::test {
namespace {

using cuda::admits;
using cuda::EngineNotes;

constexpr Precision all_precisions[] = {Precision::f32, Precision::tf32, Precision::bf16};

TEST(CudaEngineNotes, PlainEnginesAreAlwaysAdmitted) {
  for (const Precision precision : all_precisions) {
    EXPECT_TRUE(admits({}, precision, false));
    EXPECT_TRUE(admits({}, precision, true));
  }
}

TEST(CudaEngineNotes, OnlyTrueFloat32LeavesTensorCoresAside) {
  EXPECT_FALSE(admits({.tensor_cores = true}, Precision::f32, false));
  EXPECT_TRUE(admits({.tensor_cores = true}, Precision::tf32, false));
  EXPECT_TRUE(admits({.tensor_cores = true}, Precision::bf16, true));
}

TEST(CudaEngineNotes, WhatDiffersFromRunToRunOrIsNarrowerThanAskedForIsNever) {
  for (const Precision precision : all_precisions) {
    EXPECT_FALSE(admits({.nondeterministic = true}, precision, false));
    EXPECT_FALSE(admits({.narrows_inputs = true}, precision, false));
    EXPECT_FALSE(admits({.narrow_sums = true}, precision, false));
    EXPECT_FALSE(admits({.winograd = true, .winograd_13 = true}, precision, false));
  }
}

TEST(CudaEngineNotes, DirectTakesNothingThatDependsOnAVoxelsPlace) {
  for (const EngineNotes& notes :
       {EngineNotes{.fourier = true}, EngineNotes{.winograd = true}, EngineNotes{.shares_by_position = true}}) {
    EXPECT_TRUE(admits(notes, Precision::f32, false));
    EXPECT_FALSE(admits(notes, Precision::f32, true));
  }
}

}  // namespace
}  // namespace halograd::test
