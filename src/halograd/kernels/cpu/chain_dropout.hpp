#pragma once

#include "halograd/kernels/chain.hpp"
#include "halograd/kernels/cpu/chain_rows.hpp"

namespace halograd::cpu {

/// Drops the elements `first` … of the whole output out of `values` and divides those kept by `keep`, in place.
void apply_dropout(const RandomStream& stream, float keep, std::int64_t first, std::int64_t count, float* values);

/// Likewise for the row of outputs from (n, d, h, w) on, n counted within this rank.
void apply_dropout(const ChainDesc& desc, const DropoutKey& key, std::int64_t n, const Index& at, std::int64_t voxels,
                   const Row<float>& row);

}  // namespace halograd::cpu
