#include "halograd/kernels/chain.hpp"

#include "kernels/chain_run.hpp"
#include "kernels/cuda/on_device.hpp"

#include <tuple>

namespace halograd::test {
namespace {

using PlaceAndChain = std::tuple<Place, PlacedChain>;

class CudaChains : public DeviceTest, public testing::WithParamInterface<PlaceAndChain> {
protected:
  void SetUp() override { open(place().backend); }

  [[nodiscard]] static const Place& place() { return std::get<0>(GetParam()); }

  template <typename T>
  void expect_like_the_reference() const {
    const ChainInputs inputs = chain_inputs<T>(std::get<1>(GetParam()).desc);
    ChainResults expected = by_reference(inputs);
    ChainDesc desc = inputs.desc;
    desc.type = place().type;
    const auto chain = make_chain(queue, desc);
    const ChainRun<T> all(device, queue, inputs, &expected.argmax);
    run([&] { all.list(*chain); }, all.written());
    ChainResults got = all.results();
    expect_results<T>(desc, got, expected);
  }
};

TEST_P(CudaChains, MatchTheReference) {
  with_activation_type(place().type, [&]<typename T>(T) { expect_like_the_reference<T>(); });
}

std::vector<PlacedChain> all_chains() {
  std::vector<PlacedChain> chains = placed_chains();
  for (const PlacedChain& chain : large_chains()) chains.push_back(chain);
  return chains;
}

std::string chain_test_name(const testing::TestParamInfo<PlaceAndChain>& info) {
  return place_name(std::get<0>(info.param)) + "_" + std::get<1>(info.param).name;
}

INSTANTIATE_TEST_SUITE_P(Places, CudaChains, testing::Combine(all_places(), testing::ValuesIn(all_chains())),
                         chain_test_name);

}  // namespace
}  // namespace halograd::test
