#pragma once

#include "kernels/bf16_support.hpp"
#include "kernels/cuda_chain_support.hpp"
#include "kernels/device_array.hpp"

#include <memory>
#include <optional>

namespace halograd::test {

// All of a chain's work on any device, compared with the reference: on the same random inputs, faces and gradients,
// rounded to the type beforehand.

/// A box in two, along the first dimension that is long enough.
inline std::vector<Box> halves(const Box& box) {
  for (int i = 0; i < 3; ++i) {
    if (box.extent()[i] < 2) continue;
    Box low = box;
    Box high = box;
    low.hi[i] = box.lo[i] + 1;
    high.lo[i] = low.hi[i];
    return {high, low};
  }
  return {box};
}

inline std::vector<double> small_doubles(std::size_t count, std::uint64_t seed) {
  const auto values = random_values(static_cast<std::int64_t>(count), seed, -0.1, 0.1);
  return {values.begin(), values.end()};
}

/// Numbers that are equal or differ by much more than a float's rounding, so that maxima don't depend on it.
inline std::vector<float> spaced_values(std::int64_t count, std::uint64_t seed) {
  std::vector<float> values = random_values(count, seed);
  for (float& value : values) value = std::round(value * 4096) / 4096;
  return values;
}

/// What all chains of one test compute with.
struct ChainInputs {
  [[nodiscard]] Box written() const { return desc.out.intersect(desc.dst.box); }
  [[nodiscard]] std::size_t outputs() const { return static_cast<std::size_t>(elements(desc, desc.out)); }

  ChainDesc desc;
  std::vector<float> y, dout, held;
  Faces<float> faces, received;
  NormNumbers norm;
  std::vector<double> offset, pull;
};

/// Moves the numbers that normalisation takes so near to 0 that rounding might decide on the activation's side.
template <typename T>
void keep_from_zero(ChainInputs& in) {
  const auto channels = static_cast<std::size_t>(in.desc.channels);
  const std::size_t of_set = in.y.size() / set_count(in.desc);
  for (std::size_t i = 0; i < in.y.size() && in.desc.normalise; ++i) {
    const std::size_t c = i % channels;
    const std::size_t at = i / of_set * channels + c;
    const float z = (in.y[i] - in.norm.mean[at]) * in.norm.inverse_deviation[at] * in.norm.gamma[c] + in.norm.beta[c];
    if (std::abs(z) < 1e-3F) in.y[i] = static_cast<float>(static_cast<T>(in.y[i] + 0.0625F));
  }
}

template <typename T>
ChainInputs chain_inputs(const ChainDesc& desc) {
  ChainInputs in;
  in.desc = desc;
  in.y = rounded<T>(spaced_values(elements(desc, desc.in), 1));
  in.dout = rounded<T>(random_values(elements(desc, in.written()), 2));
  in.held = rounded<T>(random_values(elements(desc, desc.in), 5));
  in.faces = random_faces<T>(desc, false, 20);
  in.received = random_faces<T>(desc, true, 30);
  in.norm = norm_of(desc, in.y, 3);
  in.offset = small_doubles(in.norm.mean.size(), 7);
  in.pull = small_doubles(in.norm.mean.size(), 8);
  keep_from_zero<T>(in);
  return in;
}

/// What a chain makes of the inputs.
struct ChainResults {
  std::vector<float> out, dy;
  std::vector<std::uint8_t> argmax;
  Faces<float> dfaces;
  std::vector<double> sums, mean, m2;
};

/// A tensor with all that stands around it, in a device's memory.
template <typename U>
struct DeviceTensor {
  DeviceTensor(const Device& device, const Queue& queue, LaidOutAs<U> tensor)
      : host(std::move(tensor)), array(device, queue, host.buffer()) {}

  [[nodiscard]] U* data() const { return array.template data<U>() + host.lead(); }
  [[nodiscard]] std::vector<float> values() const {
    LaidOutAs<U> now = host;
    now.buffer() = array.template values<U>();
    EXPECT_TRUE(now.surroundings_kept());
    return now.values();
  }

  LaidOutAs<U> host;
  DeviceArray array;
};

/// Face buffers in a device's memory; none where the width is 0.
template <typename U>
class DeviceFaces {
public:
  DeviceFaces(const Device& device, const Queue& queue, const Faces<float>& faces) {
    for (std::size_t i = 0; i < 3; ++i) {
      if (!faces.lo[i].empty()) lo_[i].emplace(device, queue, as_type<U>(faces.lo[i]));
      if (!faces.hi[i].empty()) hi_[i].emplace(device, queue, as_type<U>(faces.hi[i]));
    }
  }

  template <typename Pointer>
  [[nodiscard]] FaceBuffers<Pointer> buffers() const {
    FaceBuffers<Pointer> result;
    for (std::size_t i = 0; i < 3; ++i) {
      if (lo_[i]) result.lo[i] = lo_[i]->data();
      if (hi_[i]) result.hi[i] = hi_[i]->data();
    }
    return result;
  }
  [[nodiscard]] Faces<float> values() const {
    Faces<float> result;
    for (std::size_t i = 0; i < 3; ++i) {
      if (lo_[i]) result.lo[i] = as_floats(lo_[i]->template values<U>());
      if (hi_[i]) result.hi[i] = as_floats(hi_[i]->template values<U>());
    }
    return result;
  }
  void add_to(std::vector<const DeviceArray*>& arrays) const {
    for (std::size_t i = 0; i < 3; ++i) {
      if (lo_[i]) arrays.push_back(&*lo_[i]);
      if (hi_[i]) arrays.push_back(&*hi_[i]);
    }
  }

private:
  std::array<std::optional<DeviceArray>, 3> lo_, hi_;
};

/// Runs all of a chain on buffers of type U in a device's memory. `winners`: argmax of the reference, for the backward
/// pass; null: the chain's own.
template <typename U>
class ChainRun {
public:
  ChainRun(const Device& device, const Queue& queue, const ChainInputs& in,
           const std::vector<std::uint8_t>* winners = nullptr)
      : desc_(in.desc),
        y_(device, queue, {desc_, desc_.src, desc_.in, in.y, nan_value}),
        dst_(device, queue, {desc_, desc_.dst, in.written(), std::vector<float>(in.dout.size(), 1e30F), untouched}),
        dout_(device, queue, {desc_, desc_.dst, in.written(), in.dout, nan_value}),
        apart_(device, queue, {desc_, desc_.src, desc_.in, in.held, untouched}),
        faces_(device, queue, in.faces),
        received_(device, queue, in.received),
        dfaces_(device, queue, in.faces),
        argmax_(device, queue, std::vector<std::uint8_t>(in.outputs(), 255)),
        mean_(device, queue, in.norm.mean),
        inverse_(device, queue, in.norm.inverse_deviation),
        gamma_(device, queue, in.norm.gamma),
        beta_(device, queue, in.norm.beta),
        offset_(device, queue, in.offset),
        pull_(device, queue, in.pull),
        moments_(device, queue, std::vector<double>(2 * in.norm.mean.size(), 5)),
        sums_(device, queue, small_doubles(2 * in.norm.mean.size(), 9)),
        step_(device, queue, std::vector<std::uint32_t>{9}) {
    if (winners != nullptr) winners_.emplace(device, queue, *winners);
  }

  /// Forward and backward pass, in parts where the operation allows them; the gradient of y over y unless it adds.
  void list(Chain& chain) const {
    const Normalisation norm{mean_.data<float>(), inverse_.data<float>(), gamma_.data<float>(), beta_.data<float>()};
    const DropoutKey key{random_stream(13, RandomPurpose::dropout, 4, 1), 5, step_.data<std::uint32_t>()};
    auto* const argmax = argmax_.data<std::uint8_t>();
    for (const Box& piece : halves(desc_.out)) {
      chain.forward(y_.data(), faces_.template buffers<const void>(), norm, key, piece, dst_.data(), argmax);
    }
    auto* const mean = moments_.data<double>();
    chain.moments(y_.data(), mean, mean + static_cast<std::int64_t>(set_count(desc_)) * desc_.channels);
    const auto* const winners = winners_ ? winners_->data<std::uint8_t>() : argmax;
    chain.backward_faces(dout_.data(), winners, key, dfaces_.template buffers<void>());
    for (const Box& piece : desc_.normalise ? halves(desc_.in) : std::vector<Box>{}) {
      chain.backward_sums(y_.data(), received_.template buffers<const void>(), norm, dout_.data(), winners, key, piece,
                          sums_.data<double>());
    }
    const bool reads = desc_.normalise || desc_.negative_slope != 1;
    const NormGradient statistics{offset_.data<double>(), pull_.data<double>()};
    chain.backward_data(reads ? y_.data() : nullptr, received_.template buffers<const void>(), norm, dout_.data(),
                        winners, key, desc_.normalise ? statistics : NormGradient{}, gradient().data());
  }

  [[nodiscard]] ChainResults results() const {
    const auto moments = moments_.values<double>();
    const auto middle = moments.begin() + static_cast<std::ptrdiff_t>(moments.size() / 2);
    return {.out = dst_.values(),
            .dy = gradient().values(),
            .argmax = argmax_.values<std::uint8_t>(),
            .dfaces = dfaces_.values(),
            .sums = sums_.values<double>(),
            .mean = {moments.begin(), middle},
            .m2 = {middle, moments.end()}};
  }

  /// All arrays that the chain writes.
  [[nodiscard]] std::vector<const DeviceArray*> written() const {
    std::vector<const DeviceArray*> arrays{&dst_.array, &argmax_, &moments_, &sums_, &gradient().array};
    dfaces_.add_to(arrays);
    return arrays;
  }

private:
  [[nodiscard]] const DeviceTensor<U>& gradient() const { return desc_.accumulate ? apart_ : y_; }

  ChainDesc desc_;
  DeviceTensor<U> y_, dst_, dout_, apart_;
  DeviceFaces<U> faces_, received_, dfaces_;
  DeviceArray argmax_, mean_, inverse_, gamma_, beta_, offset_, pull_, moments_, sums_, step_;
  std::optional<DeviceArray> winners_;
};

inline ChainResults by_reference(const ChainInputs& inputs) {
  ChainDesc desc = inputs.desc;
  desc.type = DType::f32;
  const auto chain = make_chain(Backend::reference, desc);
  const ChainRun<float> run(Device(), Queue(), inputs);
  run.list(*chain);
  return run.results();
}

/// Results in buffers of type T are those of the reference: rounded once to bf16, or up to the rounding of float
/// arithmetic. Sums are taken in double, of terms in float.
template <typename T>
void expect_results(const ChainDesc& desc, ChainResults& got, ChainResults& expected) {
  const auto expect_near = [](const std::vector<float>& values, const std::vector<float>& wanted, const char* what) {
    SCOPED_TRACE(what);
    if constexpr (sizeof(T) == 2) {
      expect_rounded(values, wanted, 4e-6);
    } else {
      EXPECT_LT(relative_l2(values, wanted), 1e-6);
    }
  };
  expect_near(got.out, expected.out, "out");
  if (desc.pool == PoolKind::max) {
    const Box written = desc.out.intersect(desc.dst.box);
    EXPECT_EQ(cut(desc, got.argmax, desc.out, written, std::uint8_t{255}),
              cut(desc, expected.argmax, desc.out, written, std::uint8_t{255}));
  }
  EXPECT_LT(relative_l2(got.mean, expected.mean), 1e-12);
  EXPECT_LT(relative_l2(got.m2, expected.m2), 1e-12);
  for (int i = 0; i < 3; ++i) {
    for (const bool high : {false, true}) expect_near(got.dfaces.side(i, high), expected.dfaces.side(i, high), "face");
  }
  EXPECT_LT(relative_l2(got.sums, expected.sums), 1e-6);
  expect_near(got.dy, expected.dy, "dy");
}

}  // namespace halograd::test
