#include "halograd/models/unet3d.hpp"

#include "halograd/core/error.hpp"

#include <algorithm>
#include <array>

namespace halograd {
namespace {

constexpr std::int64_t levels = 3;
constexpr std::int64_t group_channels = 16;

/// Numbers layers as it adds them: conv1, bn1, relu1, …
class Builder {
public:
  explicit Builder(const Unet3dOptions& options)
      : options_(options), net_({options.channels, Extent::cube(options.width)}) {}

  NodeId block(std::int64_t channels, std::vector<NodeId> inputs = {}) {
    const std::string number = std::to_string(++convolutions_);
    net_.add("conv" + number, Convolution{.channels = channels, .initializer = Initializer::he_normal},
             std::move(inputs));
    switch (options_.norm) {
      case UnetNorm::none: break;
      case UnetNorm::batch: net_.add("bn" + number, BatchNorm{.decay = options_.batch_norm_decay}); break;
      case UnetNorm::instance: net_.add("norm" + number, GroupNorm{}); break;
      case UnetNorm::group:
        net_.add("norm" + number, GroupNorm{.groups = std::max<std::int64_t>(1, channels / group_channels)});
        break;
    }
    return net_.add("relu" + number, LeakyRelu{0});
  }

  NodeId pool() { return net_.add("pool" + std::to_string(++pools_), Pool{PoolKind::max, pool_window}); }

  /// Twice as large, with the skip behind it.
  NodeId up(std::int64_t channels, NodeId skip) {
    const std::string number = std::to_string(++ups_);
    const NodeId grown = net_.add("deconv" + number, Deconvolution{channels});
    return net_.add("concat" + number, Concatenation{}, {grown, skip});
  }

  Network finish() {
    const Window one;
    net_.add("conv" + std::to_string(++convolutions_), Convolution{options_.classes, one, Initializer::he_normal});
    net_.add("loss", options_.loss);
    return std::move(net_);
  }

private:
  static constexpr Window pool_window{Extent::cube(2), Extent::cube(2), {}};
  Unet3dOptions options_;
  Network net_;
  int convolutions_ = 0;
  int pools_ = 0;
  int ups_ = 0;
};

}  // namespace

Network unet3d(const Unet3dOptions& options) {
  if (options.width < 8 || options.width % 8 != 0) {
    throw UsageError("model.width: unet3d takes a multiple of 8, not {}", options.width);
  }
  if (options.base_channels < 1) throw UsageError("model.base_channels: at least 1, not {}", options.base_channels);
  Builder net(options);
  std::array<NodeId, levels> skips;
  std::int64_t channels = options.base_channels;
  for (NodeId& skip : skips) {
    net.block(channels);
    channels *= 2;
    skip = net.block(channels);
    net.pool();
  }
  net.block(channels);
  channels *= 2;
  net.block(channels);
  for (std::size_t level = levels; level-- > 0;) {
    net.up(channels, skips[level]);
    channels /= 2;
    net.block(channels);
    net.block(channels);
  }
  return net.finish();
}

}  // namespace halograd
