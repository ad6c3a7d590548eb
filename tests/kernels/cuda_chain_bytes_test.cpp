#include "kernels/chain_bytes.hpp"
#include "kernels/cuda_chain_support.hpp"
#include "kernels/software_launcher.hpp"

namespace halograd::test {
namespace {

std::int64_t numbers_looked_at = 0;

/// A float, or bf16, that counts how often it is looked at.
struct CountedFloat {
  CountedFloat() = default;
  explicit CountedFloat(float value) : value_(value) {}
  explicit operator float() const { return value_; }

private:
  float value_ = 0;
};
struct CountedBf16 {
  CountedBf16() = default;
  explicit CountedBf16(float value) : value_(value) {}
  explicit operator float() const { return static_cast<float>(value_); }

private:
  Bf16 value_;
};

}  // namespace
}  // namespace halograd::test

namespace halograd::cuda::chain {

template <>
struct Codec<test::CountedFloat> {
  static float widen(std::uint32_t word) {
    ++test::numbers_looked_at;
    return Codec<float>::widen(word);
  }
  static std::uint32_t narrow(float value) { return Codec<float>::narrow(value); }
};

template <>
struct Codec<test::CountedBf16> {
  static float widen(std::uint32_t bits) {
    ++test::numbers_looked_at;
    return Codec<Bf16>::widen(bits);
  }
  static float widen_upper(std::uint32_t bits) {
    ++test::numbers_looked_at;
    return Codec<Bf16>::widen_upper(bits);
  }
  static std::uint32_t narrow(float value) { return Codec<Bf16>::narrow(value); }
  static std::uint32_t narrow(float low, float high) { return Codec<Bf16>::narrow(low, high); }
};

}  // namespace halograd::cuda::chain

namespace halograd::test {
namespace {

constexpr int processors = 132;

/// Every number of a buffer that several kernels share, 16 bytes at its start.
template <typename T>
struct Buffers {
  explicit Buffers(const ChainDesc& desc)
      : y(desc, desc.src, desc.in, random_values(elements(desc, desc.in), 1), 0),
        dst(desc, desc.dst, written(desc), random_values(elements(desc, written(desc)), 2), 0),
        argmax(static_cast<std::size_t>(elements(desc, desc.out))),
        norm(norm_of(desc, random_values(elements(desc, desc.in), 1), 3)),
        sums(2 * norm.mean.size()) {
    auto outside = random_faces<float>(desc, false, 5);
    auto inside = random_faces<float>(desc, true, 6);
    faces = typed_faces<T>(outside);
    received = typed_faces<T>(inside);
  }
  static Box written(const ChainDesc& desc) { return desc.out.intersect(desc.dst.box); }

  LaidOutAs<T> y, dst;
  std::vector<std::uint8_t> argmax;
  Faces<T> faces, received;
  NormNumbers norm;
  std::vector<double> sums;
};

template <typename Run>
std::int64_t bytes_looked_at(std::size_t size, const Run& run) {
  numbers_looked_at = 0;
  run();
  return numbers_looked_at * static_cast<std::int64_t>(size);
}

template <typename T>
void expect_counts(ChainDesc desc, DType type, std::size_t size) {
  desc.type = type;
  // A chain whose tensors lie in slices takes vectors where they happen to be aligned: here they are not to.
  const bool sliced = desc.src.pitch != desc.channels || desc.dst.pitch != desc.channels;
  if (sliced && cuda::chain::takes_vectors(desc, static_cast<std::int64_t>(16 / size))) return;
  Buffers<T> at(desc);
  cuda::chain::KernelChain<T, SoftwareLauncher> chain(desc, SoftwareLauncher(processors));
  const ChainBytes expected = chain_bytes(desc, processors);
  const DropoutKey key;
  EXPECT_EQ(bytes_looked_at(size, [&] { chain.moments(at.y.data(), at.sums.data(), at.sums.data()); }),
            expected.moments.looked_at);
  EXPECT_EQ(bytes_looked_at(size,
                            [&] {
                              chain.forward(at.y.data(), at.faces.template buffers<const void>(), at.norm.view(), key,
                                            desc.out, at.dst.data(), at.argmax.data());
                            }),
            expected.forward.looked_at);
  EXPECT_EQ(
      bytes_looked_at(
          size, [&] { chain.backward_faces(at.dst.data(), at.argmax.data(), key, at.faces.template buffers<void>()); }),
      expected.backward_faces.looked_at);
  EXPECT_EQ(bytes_looked_at(size,
                            [&] {
                              chain.backward_sums(at.y.data(), at.received.template buffers<const void>(),
                                                  at.norm.view(), at.dst.data(), at.argmax.data(), key, desc.in,
                                                  at.sums.data());
                            }),
            expected.backward_sums.looked_at);
  EXPECT_EQ(bytes_looked_at(size,
                            [&] {
                              chain.backward_data(at.y.data(), at.received.template buffers<const void>(),
                                                  at.norm.view(), at.dst.data(), at.argmax.data(), key, {},
                                                  at.y.data());
                            }),
            expected.backward_data.looked_at);
}

class CudaChainBytes : public testing::TestWithParam<PlacedChain> {};

TEST_P(CudaChainBytes, AreWhatThreadsLookAt) {
  expect_counts<CountedFloat>(GetParam().desc, DType::f32, sizeof(float));
  expect_counts<CountedBf16>(GetParam().desc, DType::bf16, sizeof(Bf16));
}

INSTANTIATE_TEST_SUITE_P(Cases, CudaChainBytes, testing::ValuesIn(placed_chains()), placed_name);

ChainDesc network_chain(std::int64_t channels, std::int64_t width, PoolKind pool, const Window& window, DType type) {
  ChainDesc desc = whole_chain({.samples = 1,
                                .channels = channels,
                                .extent = Extent::cube(width),
                                .normalise = true,
                                .negative_slope = 0.01F,
                                .pool = pool,
                                .window = window});
  desc.type = type;
  return desc;
}

constexpr std::int64_t mib = 1 << 20;

/// Partial sums of 16 channels: [264 blocks, 2, 16] doubles, written and read again.
constexpr std::int64_t partial = 264 * 2 * 16 * 8;

TEST(CudaChainBytesOf, CosmoFlowsFirstChain) {
  const Window centred{Extent::cube(3), Extent::cube(2), Extent::cube(1)};
  const auto bytes = chain_bytes(network_chain(16, 128, PoolKind::average, centred, DType::f32));
  const std::int64_t y = 128 * mib;
  const std::int64_t out = 16 * mib;
  EXPECT_EQ(bytes.moments.read, y + partial);
  EXPECT_EQ(bytes.moments.written, partial);
  EXPECT_EQ(bytes.forward.read, y);
  EXPECT_EQ(bytes.forward.written, out);
  EXPECT_EQ(bytes.forward.least, y + out);
  EXPECT_EQ(bytes.backward_faces.moved(), 0);
  EXPECT_EQ(bytes.backward_sums.read, y + out + partial);
  EXPECT_EQ(bytes.backward_data.read, y + out);
  EXPECT_EQ(bytes.backward_data.written, y);
  // Windows overlap: 8 runs of 8 outputs look at 17 planes each, the first at 16, and at 191 rows and columns.
  EXPECT_EQ(bytes.forward.looked_at, std::int64_t{8 * 17 - 1} * 191 * 191 * 64);
  // A voxel has 191 / 128 readers along d and h; along w two voxels share two outputs, the last pair one.
  EXPECT_EQ(bytes.backward_data.looked_at, y + std::int64_t{191} * 191 * 127 * 64);
  const KernelBytes step = bytes.step(true);
  EXPECT_EQ(step.least, 5 * y + 3 * out);
  EXPECT_LT(static_cast<double>(step.moved()), 1.001 * static_cast<double>(step.least));
}

TEST(CudaChainBytesOf, TheUNetsFirstPooling) {
  const Window halve{Extent::cube(2), Extent::cube(2), {}};
  const auto bytes = chain_bytes(network_chain(64, 128, PoolKind::max, halve, DType::bf16));
  const std::int64_t y = 256 * mib;
  const std::int64_t out = 32 * mib;
  const std::int64_t winners = 16 * mib;
  EXPECT_EQ(bytes.forward.read, y);
  EXPECT_EQ(bytes.forward.written, out + winners);
  EXPECT_EQ(bytes.forward.looked_at, y);
  EXPECT_EQ(bytes.backward_data.read, y + out + winners);
  EXPECT_EQ(bytes.backward_data.written, y);
  // What knowing the winners costs: 3 × 16 MiB.
  const KernelBytes step = bytes.step(true);
  EXPECT_EQ(step.least, 5 * y + 3 * out);
  EXPECT_LT(static_cast<double>(step.moved()), 1.04 * static_cast<double>(step.least));
}

TEST(CudaChainBytesOf, BlocksSumsAreAsManyAsTheyLeave) {
  for (const DType type : {DType::f32, DType::bf16}) {
    for (const ChainCase& test : sliced_chain_cases()) {
      ChainDesc desc = whole_chain(test);
      desc.type = type;
      with_activation_type(type, [&](auto one) {
        using T = decltype(one);
        Buffers<T> at(desc);
        std::vector<double> scratch;
        cuda::chain::KernelChain<T, SoftwareLauncher> chain(desc, SoftwareLauncher(processors, false, &scratch));
        const auto left = [&](const auto& run) {
          std::fill(scratch.begin(), scratch.end(), std::numeric_limits<double>::quiet_NaN());
          run();
          return std::count_if(scratch.begin(), scratch.end(), [](double value) { return value == value; }) * 8;
        };
        const ChainBytes expected = chain_bytes(desc, processors);
        EXPECT_EQ(left([&] { chain.moments(at.y.data(), at.sums.data(), at.sums.data()); }), expected.moments.written);
        EXPECT_EQ(left([&] {
                    chain.backward_sums(at.y.data(), {}, at.norm.view(), at.dst.data(), at.argmax.data(), {}, desc.in,
                                        at.sums.data());
                  }),
                  expected.backward_sums.written);
        EXPECT_LE(expected.backward_sums.written, chain.held_bytes());
      });
    }
  }
}

}  // namespace
}  // namespace halograd::test
