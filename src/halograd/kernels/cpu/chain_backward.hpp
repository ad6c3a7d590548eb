#pragma once

#include "halograd/kernels/cpu/chain_gather.hpp"

#include <array>
#include <vector>

namespace halograd::cpu {

/// What a backward run reads; see Chain::backward_sums.
struct BackwardCall {
  const float* y = nullptr;
  const FaceBuffers<const float>& received;
  const Activation& activation;
  OutputGradient from;
  Range samples;
};

/// The backward pass of a chain. Rows of input voxels are independent of each other: da is gathered from the outputs, z
/// rebuilt from y, and what is asked for (sums, dy) made of both, in one go.
class ChainBackward {
public:
  explicit ChainBackward(const ChainDesc& desc);

  /// See Chain::backward_faces.
  void faces(const OutputGradient& from, const FaceBuffers<float>& dfaces);

  /// Adds Σ dz and Σ dz·(y − mean) over the voxels `part`: [C] each.
  void sums(const BackwardCall& call, const Box& part, double* plain, double* weighted);

  /// dy over `in`, assigned or added; may be y.
  void data(const BackwardCall& call, const Correction& correction, float* dy);

  [[nodiscard]] std::int64_t held_bytes() const;

private:
  struct Scratch {
    GatherScratch gather;
    std::vector<float> da;     ///< [W, C], dense
    std::vector<double> sums;  ///< [2·C]
    std::array<const float*, 4> from_pair;
  };

  template <typename MakeUse>
  void visit_own_rows(const BackwardCall& call, const MakeUse& make_use);
  template <typename Use>
  void visit_row(const BackwardCall& call, std::int64_t n, std::int64_t d, std::int64_t h, const Range& w,
                 Scratch& scratch, const Use& use) const;
  template <typename Use>
  void visit_gathered(const BackwardCall& call, const ReaderRows& readers, std::int64_t n, std::int64_t d,
                      std::int64_t h, const Range& w, Scratch& scratch, const Use& use) const;
  [[nodiscard]] Range without_received(const FaceBuffers<const float>& received, std::int64_t d, std::int64_t h,
                                       const Range& w) const;
  void add_received(const FaceBuffers<const float>& received, std::int64_t n, std::int64_t d, std::int64_t h,
                    const Range& w, const Row<float>& da) const;

  ChainDesc desc_;
  const RowKernels& kernels_;
  ChainGather gather_;
  std::vector<Scratch> scratch_;
};

}  // namespace halograd::cpu
