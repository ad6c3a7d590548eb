#pragma once

#include "halograd/kernels/cpu/chain_gather.hpp"

#include <vector>

namespace halograd::cpu {

/// What a backward run reads; see Chain::backward_sums.
template <typename T>
struct BackwardCall {
  const T* y = nullptr;
  const FaceBuffers<const T>& received;
  const Activation& activation;
  OutputGradient<T> from;
  Range samples;
};

/// The backward pass of a chain. Rows of input voxels are independent of each other: da is gathered from the outputs, z
/// rebuilt from y, and what is asked for (sums, dy) made of both, in one go.
template <typename T>
class ChainBackward {
public:
  explicit ChainBackward(const ChainDesc& desc);

  /// See Chain::backward_faces.
  void faces(const OutputGradient<T>& from, const FaceBuffers<T>& dfaces);

  /// Adds Σ dz and Σ dz·(y − mean) over the voxels `part`: [C] each.
  void sums(const BackwardCall<T>& call, const Box& part, double* plain, double* weighted);

  /// dy over `in`, assigned or added; may be y.
  void data(const BackwardCall<T>& call, const Correction& correction, T* dy);

  [[nodiscard]] std::int64_t held_bytes() const;

private:
  struct Scratch {
    GatherScratch<T> gather;
    LineVector da;             ///< [W, C], dense
    std::vector<double> sums;  ///< [2·C]
  };

  template <typename MakeUse>
  void visit_own_rows(const BackwardCall<T>& call, const MakeUse& make_use);
  template <typename Use>
  void visit_row(const BackwardCall<T>& call, std::int64_t n, std::int64_t d, std::int64_t h, const Range& w,
                 Scratch& scratch, const Use& use) const;
  template <typename Given, typename Use>
  Range visit_direct(const ReaderRows<T>& readers, const Given* const* rows, const Range& w, const Use& use) const;
  template <typename Use>
  void visit_gathered(const BackwardCall<T>& call, const ReaderRows<T>& readers, std::int64_t n, std::int64_t d,
                      std::int64_t h, const Range& w, Scratch& scratch, const Use& use) const;
  [[nodiscard]] Range without_received(const FaceBuffers<const T>& received, std::int64_t d, std::int64_t h,
                                       const Range& w) const;
  void add_received(const FaceBuffers<const T>& received, std::int64_t n, std::int64_t d, std::int64_t h,
                    const Range& w, const Row<float>& da) const;

  ChainDesc desc_;
  ChainGather<T> gather_;
  std::vector<Scratch> scratch_;
};

}  // namespace halograd::cpu
