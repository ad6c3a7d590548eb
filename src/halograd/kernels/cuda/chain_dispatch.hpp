#pragma once

#include "halograd/kernels/cuda/chain_forward.hpp"
#include "halograd/kernels/cuda/chain_sums.hpp"

#include <algorithm>
#include <cstddef>
#include <type_traits>

namespace halograd::cuda::chain {

/// A Chain (that check_chain has let through) made of the kernels of this namespace. What runs them is a `Launcher`:
///   int processors() const;                          of the GPU
///   void allocate(std::int64_t count);               scratch memory: called once
///   double* scratch() const;
///   template <typename Kernel>
///   void launch(const typename Kernel::Args& args, std::int64_t blocks) const;   no blocks: nothing
template <typename T, typename Launcher>
class KernelChain final : public Chain {
public:
  KernelChain(const ChainDesc& desc, Launcher launcher)
      : desc_(desc), geometry_(geometry_of(desc)), launcher_(std::move(launcher)) {
    const std::int64_t wide_count = wide() ? scratch_count<wide_lanes<T>>() : 0;
    scratch_count_ = std::max(scratch_count<1>(), wide_count);
    launcher_.allocate(scratch_count_);
  }

  void moments(const void* y, double* mean, double* m2) override {
    with_lanes(aligned(y), [&](auto lanes) { run_moments<lanes()>(static_cast<const T*>(y), mean, m2); });
  }

  void forward(const void* y, const FaceBuffers<const void>& faces, const Normalisation& norm,
               const DropoutKey& dropout, const Box& part, void* dst, std::uint8_t* argmax) override {
    if (part.empty() || desc_.samples == 0) return;
    const bool vectors = aligned(y) && aligned(dst) && aligned_sides(faces) && aligned_winners(argmax);
    with_lanes(vectors, [&](auto lanes) {
      const auto common = [&](auto& args) {
        args.geometry = geometry_;
        args.y = static_cast<const T*>(y);
        copy_sides(faces, args.faces);
        args.norm = norm;
        args.dropout = dropout_of(desc_, dropout);
        args.dst = static_cast<T*>(dst);
        args.winners = desc_.training ? argmax : nullptr;
      };
      run_forward<lanes()>(region_of(part), common);
    });
  }

  void backward_faces(const void* dout, const std::uint8_t* argmax, const DropoutKey& dropout,
                      const FaceBuffers<void>& dfaces) override {
    const bool vectors = aligned(dout) && aligned_sides(dfaces) && aligned_winners(argmax);
    with_lanes(vectors, [&](auto lanes) {
      if (desc_.pool == PoolKind::max) {
        run_faces<lanes(), true>(source(dout, argmax, dropout), dfaces);
      } else {
        run_faces<lanes(), false>(source(dout, argmax, dropout), dfaces);
      }
    });
  }

  void backward_sums(const void* y, const FaceBuffers<const void>& received, const Normalisation& norm,
                     const void* dout, const std::uint8_t* argmax, const DropoutKey& dropout, const Box& part,
                     double* sums) override {
    if (part.empty() || desc_.samples == 0) return;
    BackwardArgs<T> args = backward_args(y, received, norm, source(dout, argmax, dropout));
    args.partial = launcher_.scratch();
    with_lanes(vectors(args, received), [&](auto lanes) {
      with_gather<lanes()>([&](auto gather) {
        launch_work<BackwardSums<T, lanes(), decltype(gather)>>(args, region_of(part), lanes(), least_summed);
      });
    });
    const Merge merge = merge_of(geometry_, args.work, args.partial);
    launch<MergeSums>({geometry_, merge, norm, sums}, merge.blocks());
  }

  void backward_data(const void* y, const FaceBuffers<const void>& received, const Normalisation& norm,
                     const void* dout, const std::uint8_t* argmax, const DropoutKey& dropout,
                     const NormGradient& statistics, void* dy) override {
    if (desc_.in.empty() || desc_.samples == 0) return;
    BackwardArgs<T> args = backward_args(y, received, norm, source(dout, argmax, dropout));
    args.statistics = statistics;
    args.dy = static_cast<T*>(dy);
    with_lanes(vectors(args, received), [&](auto lanes) {
      with_gather<lanes()>([&](auto gather) {
        launch_work<BackwardData<T, lanes(), decltype(gather)>>(args, geometry_.in, lanes(), 2);
      });
    });
  }

  [[nodiscard]] std::int64_t held_bytes() const override {
    return scratch_count_ * static_cast<std::int64_t>(sizeof(double));
  }

private:
  template <int value>
  using Lane = std::integral_constant<int, value>;

  [[nodiscard]] bool wide() const { return takes_vectors(desc_, wide_lanes<T>); }
  [[nodiscard]] static bool aligned(const void* pointer, std::uintptr_t to = 16) {
    return reinterpret_cast<std::uintptr_t>(pointer) % to == 0;
  }
  [[nodiscard]] static bool aligned_winners(const std::uint8_t* argmax) { return aligned(argmax, wide_lanes<T>); }
  template <typename Void>
  [[nodiscard]] static bool aligned_sides(const FaceBuffers<Void>& sides) {
    bool all = true;
    for (std::size_t i = 0; i < 3; ++i) all = all && aligned(sides.lo[i]) && aligned(sides.hi[i]);
    return all;
  }
  [[nodiscard]] static bool vectors(const BackwardArgs<T>& args, const FaceBuffers<const void>& received) {
    return aligned(args.y) && aligned(args.dy) && aligned(args.from.dout) && aligned_winners(args.from.winners) &&
           aligned_sides(received);
  }

  /// Calls `body` with the number of channels of an access.
  template <typename Body>
  void with_lanes(bool vectors, const Body& body) const {
    vectors&& wide() ? body(Lane<wide_lanes<T>>{}) : body(Lane<1>{});
  }

  template <int N, bool max, typename Body>
  void with_pool_gather(const Body& body) const {
    if constexpr (N > 1) {
      if (known_window(desc_) == 2) return body(GatherPairs<T, N, 2, max>{});
      if (known_window(desc_) == 3) return body(GatherPairs<T, N, 3, max>{});
    }
    body(GatherAny<T, N, max>{});
  }
  template <int N, typename Body>
  void with_gather(const Body& body) const {
    if (desc_.pool == PoolKind::none) return body(GatherPlain<T, N>{});
    desc_.pool == PoolKind::max ? with_pool_gather<N, true>(body) : with_pool_gather<N, false>(body);
  }

  template <typename Void, typename Pointer>
  static void copy_sides(const FaceBuffers<Void>& from, Pointer* to) {
    for (std::size_t i = 0; i < 3; ++i) {
      to[2 * i] = static_cast<Pointer>(from.lo[i]);
      to[2 * i + 1] = static_cast<Pointer>(from.hi[i]);
    }
  }

  [[nodiscard]] GradientSource<T> source(const void* dout, const std::uint8_t* argmax, const DropoutKey& key) const {
    return {static_cast<const T*>(dout), argmax, dropout_of(desc_, key)};
  }

  [[nodiscard]] BackwardArgs<T> backward_args(const void* y, const FaceBuffers<const void>& received,
                                              const Normalisation& norm, const GradientSource<T>& from) const {
    BackwardArgs<T> args;
    args.geometry = geometry_;
    args.y = static_cast<const T*>(y);
    copy_sides(received, args.received);
    for (const T* side : args.received) args.any_received = args.any_received || side != nullptr;
    args.norm = norm;
    args.from = from;
    return args;
  }

  template <typename Kernel>
  void launch(const typename Kernel::Args& args, std::int64_t blocks) const {
    launcher_.template launch<Kernel>(args, blocks);
  }

  template <typename Kernel>
  [[nodiscard]] std::int32_t resident() const {
    return launcher_.processors() * Kernel::blocks_per_processor;
  }

  /// Deals the cells of `box` out and starts the kernel; `args` keeps the work.
  template <typename Kernel>
  void launch_work(typename Kernel::Args& args, const Region& box, std::int32_t lanes, std::int32_t least) const {
    std::int32_t width = 1;
    if constexpr (requires { Kernel::width; }) width = Kernel::width;
    args.work = deal(geometry_, box, width, lanes, resident<Kernel>(), least);
    launch<Kernel>(args, args.work.blocks());
  }

  template <int N, typename Fill>
  void run_forward(const Region& part, const Fill& fill) const {
    if (desc_.pool == PoolKind::none) return launch_forward<ForwardPlain<T, N>>(part, N, fill);
    desc_.pool == PoolKind::max ? run_pooled<N, true>(part, fill) : run_pooled<N, false>(part, fill);
  }
  template <int N, bool max, typename Fill>
  void run_pooled(const Region& part, const Fill& fill) const {
    if constexpr (N > 1) {
      if (known_window(desc_) == 2) return run_tiled<N, 2, max>(part, fill);
      if (known_window(desc_) == 3) return run_tiled<N, 3, max>(part, fill);
    }
    launch_forward<ForwardAny<T, N, max>>(part, N, fill);
  }
  template <int N, int kernel, bool max, typename Fill>
  void run_tiled(const Region& part, const Fill& fill) const {
    if (reads_own_only(geometry_, part)) {
      launch_tiled<ForwardPooled<T, N, kernel, max, false>>(part, N, fill);
    } else {
      launch_tiled<ForwardPooled<T, N, kernel, max, true>>(part, N, fill);
    }
  }
  template <typename Kernel, typename Fill>
  void launch_forward(const Region& part, std::int32_t lanes, const Fill& fill) const {
    typename Kernel::Args args;
    fill(args);
    launch_work<Kernel>(args, part, lanes, 2);
  }
  template <typename Kernel, typename Fill>
  void launch_tiled(const Region& part, std::int32_t lanes, const Fill& fill) const {
    typename Kernel::Args args;
    fill(args);
    args.work = tile(geometry_, part, lanes, resident<Kernel>());
    launch<Kernel>(args, args.work.blocks());
  }

  template <int N, bool max>
  void run_faces(const GradientSource<T>& from, const FaceBuffers<void>& dfaces) const {
    using Kernel = BackwardFaces<T, N, max>;
    FacesArgs<T> args;
    args.geometry = geometry_;
    args.from = from;
    copy_sides(dfaces, args.dfaces);
    std::int64_t blocks = 0;
    for (int side = 0; side < side_count; ++side) {
      if (args.dfaces[side] != nullptr) {
        args.work[side] = deal(geometry_, geometry_.faces[side], 1, N, resident<Kernel>(), 1);
        blocks += args.work[side].blocks();
      }
      args.first_block[side + 1] = static_cast<std::uint32_t>(blocks);
    }
    launch<Kernel>(args, blocks);
  }

  template <int N>
  void run_moments(const T* y, double* mean, double* m2) const {
    MomentsArgs<T> args;
    args.geometry = geometry_;
    args.y = y;
    args.partial = launcher_.scratch();
    launch_work<Moments<T, N>>(args, geometry_.in, N, least_summed);
    const Merge merge = merge_of(geometry_, args.work, args.partial);
    launch<MergeMoments<T>>({geometry_, merge, y, mean, m2}, merge.blocks());
  }

  /// The most that the blocks of either sum leave behind: cells are never more than voxels.
  template <int N>
  [[nodiscard]] std::int64_t scratch_count() const {
    using Sums = BackwardSums<T, N, GatherAny<T, N, false>>;
    const std::int32_t most = std::max(resident<Moments<T, N>>(), resident<Sums>());
    return partial_count(deal(geometry_, geometry_.in, 1, N, most, least_summed));
  }

  ChainDesc desc_;
  Geometry geometry_;
  Launcher launcher_;
  std::int64_t scratch_count_ = 0;
};

}  // namespace halograd::cuda::chain
