#include "halograd/models/cosmoflow.hpp"

#include "halograd/core/error.hpp"

#include <array>

namespace halograd {
namespace {

constexpr std::int64_t input_channels = 4;  // redshifts
constexpr std::array<std::int64_t, 7> channels{16, 32, 64, 128, 256, 256, 256};
constexpr std::size_t strided = 3;  // conv4
constexpr std::array<std::int64_t, 3> features{2048, 256, 4};

}  // namespace

Network cosmoflow(const CosmoflowOptions& options) {
  if (options.width < 32 || options.width % 16 != 0) {
    throw UsageError("model.width: cosmoflow takes a multiple of 16 from 32 up, not {}", options.width);
  }
  Network net({input_channels, Extent::cube(options.width)});
  const Window pool{Extent::cube(options.pool_window), Extent::cube(2), Extent::cube((options.pool_window - 1) / 2)};
  for (std::size_t i = 0; i < channels.size(); ++i) {
    const auto name = [&](const char* kind) { return fmt::format("{}{}", kind, i + 1); };
    const Window window{Extent::cube(3), Extent::cube(i == strided ? 2 : 1), Extent::cube(1)};
    net.add(name("conv"), Convolution{channels[i], window});
    if (options.batch_norm) net.add(name("bn"), BatchNorm{.decay = options.batch_norm_decay});
    net.add(name("relu"), LeakyRelu{});
    if (pool.output_extent(net.output().extent).d >= 2) net.add(name("pool"), Pool{options.pool, pool});
  }
  net.add("flatten", Flatten{});
  for (std::size_t i = 0; i < features.size(); ++i) {
    const bool last = i + 1 == features.size();
    net.add(fmt::format("fc{}", i + 1), FullyConnected{.features = features[i]});
    if (last) break;
    net.add(fmt::format("fc_relu{}", i + 1), LeakyRelu{});
    if (options.dropout_keep < 1) net.add(fmt::format("dropout{}", i + 1), Dropout{options.dropout_keep});
  }
  net.add("loss", MeanSquaredError{});
  return net;
}

}  // namespace halograd
