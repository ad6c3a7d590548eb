#include "halograd/kernels/upsample.hpp"

#include "kernels/cuda/on_device.hpp"
#include "kernels/upsample_cases.hpp"

#include <limits>

namespace halograd::test {
namespace {

class CudaUpsampling : public OnDevice {
protected:
  /// Where the slice's own channels begin.
  [[nodiscard]] std::byte* own(const DeviceArray& buffer, const Slice& slice) const {
    return buffer.data<std::byte>() + slice.shift * dtype_size(type());
  }
  [[nodiscard]] Slice buffer_of(Dice& dice, const UpsampleDesc& desc, const Box& box, std::uint64_t round) const {
    Slice slice = random_buffer(dice, desc, box, round, round % 3 != 0);
    slice.buffer = rounded(slice.buffer, type());
    return slice;
  }

  /// Both directions; what lies around the inputs that are needed, and around the gradients, must not be read.
  void expect_like_the_reference(UpsampleDesc desc, const Slice& x, const Slice& y) const {
    desc.src = x.layout;
    desc.dst = y.layout;
    UpsampleDesc typed = desc;
    typed.type = type();
    const Box needed = upsample_window(desc.kind, desc.factor).input_needed(desc.out, desc.in_extent);
    Slice expected = y;
    const Slice inputs = hidden_around(desc, needed, x);
    upsample(Backend::reference, desc, inputs.data(), expected.data());
    const DeviceArray on_x = activations(inputs.buffer);
    const DeviceArray on_y = activations(y.buffer);
    run([&] { upsample(queue, typed, own(on_x, x), own(on_y, y)); }, {&on_y});
    EXPECT_LT(beyond_rounding(on_y, expected.buffer), 1e-6);

    expected = x;
    const Slice gradients = hidden_around(desc, desc.out, y);
    upsample_backward(Backend::reference, desc, gradients.data(), expected.data());
    const DeviceArray on_dy = activations(gradients.buffer);
    const DeviceArray on_dx = activations(x.buffer);
    run([&] { upsample_backward(queue, typed, own(on_dy, y), own(on_dx, x)); }, {&on_dx});
    // Sums of up to 8³ numbers, in float.
    EXPECT_LT(beyond_rounding(on_dx, expected.buffer), 2e-5);
  }

private:
  [[nodiscard]] static Slice hidden_around(const UpsampleDesc& desc, const Box& box, const Slice& slice) {
    Slice hidden = slice;
    std::fill(hidden.buffer.begin(), hidden.buffer.end(), std::numeric_limits<float>::quiet_NaN());
    return with_values(desc.samples, box, hidden, values_of(desc.samples, box, slice));
  }
};

TEST_P(CudaUpsampling, MatchesTheReferenceOnRandomPartsAndWritesNothingElse) {
  Dice dice(5);
  for (std::uint64_t round = 0; round < 100; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const UpsampleDesc desc = random_upsampling(dice, round);
    const Box needed = upsample_window(desc.kind, desc.factor).input_needed(desc.out, desc.in_extent);
    const Slice x = buffer_of(dice, desc, needed, round);
    const Slice y = buffer_of(dice, desc, desc.out, round + 1000);
    expect_like_the_reference(desc, x, y);
  }
}

TEST_P(CudaUpsampling, MatchesTheReferenceOnALargeVolume) {
  for (const UpsampleKind kind : {UpsampleKind::nearest, UpsampleKind::trilinear}) {
    UpsampleDesc desc{.samples = 2, .channels = 32, .kind = kind, .in_extent = {12, 11, 13}};
    desc.out = Box::whole({24, 22, 26});
    Slice x = dense_slice(2, Box::whole(desc.in_extent), 32);
    x.buffer = random_activations(static_cast<std::int64_t>(x.buffer.size()), 1);
    Slice y = dense_slice(2, desc.out, 32);
    y.buffer = random_activations(static_cast<std::int64_t>(y.buffer.size()), 2);
    expect_like_the_reference(desc, x, y);
  }
}

INSTANTIATE_TEST_SUITE_P(Places, CudaUpsampling, all_places(), place_test_name);

}  // namespace
}  // namespace halograd::test
