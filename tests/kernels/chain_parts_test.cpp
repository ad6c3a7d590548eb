#include "kernels/chain_support.hpp"

#include "halograd/kernels/chain.hpp"

#include <fmt/format.h>

#include <tuple>

namespace halograd::test {
namespace {

// Every rank's part of a chain, run here one after the other with faces filled from the whole volume, must add up to
// what one rank computes.

const DropoutKey dropout_key{random_stream(12, RandomPurpose::dropout, 1, 2), 3};

struct Part {
  ChainDesc desc;
  std::unique_ptr<Chain> chain;
  LaidOut y;
  Faces<float> faces;
  Faces<float> received;
  LaidOut dst;
  LaidOut dout;  ///< its margins are never read
  std::vector<std::uint8_t> argmax;
};

/// A box in two, along the first dimension that is long enough.
std::vector<Box> halves(const Box& box) {
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

/// A chain and the grid it is cut by.
struct CutChain {
  ChainCase test;
  Extent grid;
};

std::string name_of(const CutChain& cut_chain) {
  return fmt::format("{}_{}x{}x{}", cut_chain.test.name, cut_chain.grid.d, cut_chain.grid.h, cut_chain.grid.w);
}

void PrintTo(const CutChain& cut_chain, std::ostream* out) {
  *out << name_of(cut_chain);
}

/// Every chain on every grid whose parts are as thick as their neighbours' faces.
std::vector<CutChain> cut_chains() {
  std::vector<CutChain> result;
  for (const ChainCase& test : chain_cases()) {
    for (const Extent& grid : {Extent{2, 1, 1}, Extent{1, 2, 1}, Extent{1, 1, 2}, Extent{2, 2, 2}, Extent{3, 2, 1}}) {
      if (test.extent.d < grid.d) continue;
      const Partition input = Partition::even(test.extent, grid);
      if (halos_fit(input, input.derive(test.window), test.window)) result.push_back({test, grid});
    }
  }
  return result;
}

class ChainPartsTest : public testing::TestWithParam<std::tuple<Backend, CutChain>> {
protected:
  void SetUp() override {
    // The oracle is the reference on one rank, each tensor alone in its buffer, whatever the parts run on.
    ChainCase alone = test();
    alone.src_margin = alone.src_spare = alone.dst_margin = alone.dst_spare = 0;
    alone.accumulate = false;
    const ChainDesc whole = whole_chain(alone);
    y_ = random_values(elements(whole, whole.in), 1);
    dout_ = random_values(elements(whole, whole.out), 2);
    held_ = random_values(elements(whole, whole.in), 5);
    norm_ = norm_of(whole, y_, 3);
    for_each_index(Box::whole(grid()), [&](const Index& place) { parts_.push_back(make_part(place)); });
    const auto chain = make_chain(Backend::reference, whole);
    out_.resize(dout_.size());
    argmax_.resize(dout_.size());
    chain->forward(y_.data(), {}, norm_.view(), dropout_key, whole.out, out_.data(), argmax_.data());
    sums_.resize(set_count(whole) * static_cast<std::size_t>(2 * test().channels));
    chain->backward_sums(y_.data(), {}, norm_.view(), dout_.data(), argmax_.data(), dropout_key, whole.in,
                         sums_.data());
    dy_.resize(y_.size());
    chain->backward_data(y_.data(), {}, norm_.view(), dout_.data(), argmax_.data(), dropout_key,
                         statistics(sums_).view(), dy_.data());
    for (std::size_t i = 0; i < dy_.size() && test().accumulate; ++i) dy_[i] += held_[i];
  }

  [[nodiscard]] const ChainCase& test() const { return std::get<1>(GetParam()).test; }
  [[nodiscard]] Extent grid() const { return std::get<1>(GetParam()).grid; }
  [[nodiscard]] Partition input() const { return Partition::even(test().extent, grid()); }
  [[nodiscard]] StatisticsGradient statistics(const std::vector<double>& sums) const {
    const double count = static_cast<double>((test().per_sample ? 1 : test().samples) * test().extent.volume());
    return {whole_chain(test()), norm_, sums, count};
  }

  Part make_part(const Index& place) {
    const ChainDesc desc = part_chain(test(), input(), place, 1);
    const Box volume = Box::whole(test().extent);
    const auto outputs = static_cast<std::size_t>(elements(desc, desc.out));
    Part part{.desc = desc,
              .chain = make_chain(std::get<0>(GetParam()), desc),
              .y = {desc, desc.src, desc.in, cut(desc, y_, volume, desc.in, nan_value), nan_value},
              .dst = {desc, desc.dst, desc.out, std::vector<float>(outputs, 1e30F), untouched},
              .dout = {desc, desc.dst, desc.out, cut(desc, dout_, Box::whole(desc.out_extent), desc.out, nan_value),
                       nan_value},
              .argmax = std::vector<std::uint8_t>(outputs, 255)};
    const std::vector<float> zeros(static_cast<std::size_t>(elements(desc, desc.in)), 0.0F);
    for (int i = 0; i < 3; ++i) {
      for (const bool high : {false, true}) {
        part.faces.side(i, high) = cut(desc, y_, volume, face_voxels(desc, i, high), nan_value);
        part.received.side(i, high) = cut(desc, zeros, desc.in, returned_voxels(desc, i, high), nan_value);
      }
    }
    return part;
  }

  /// The gradient that a part makes: in place over y, or added to what stands elsewhere.
  std::vector<float> backward_data(Part& part, const NormGradient& statistics) {
    const ChainDesc& desc = part.desc;
    const auto held = cut(desc, held_, Box::whole(test().extent), desc.in, nan_value);
    LaidOut apart(desc, desc.src, desc.in, held, untouched);
    LaidOut& dy = desc.accumulate ? apart : part.y;
    part.chain->backward_data(part.y.data(), part.received.buffers<const float>(), norm_.view(), part.dout.data(),
                              part.argmax.data(), dropout_key, statistics, dy.data());
    EXPECT_TRUE(dy.surroundings_kept());
    return dy.values();
  }

  void forward() {
    for (Part& part : parts_) {
      for (const Box& piece : halves(part.desc.out)) {
        // The interior may run before the faces have arrived.
        const bool needs_faces = !part.desc.in.contains(test().window.input_needed(piece, test().extent));
        Faces<float> anything = part.faces;
        for (int i = 0; i < 3; ++i) {
          for (const bool high : {false, true}) {
            auto& face = anything.side(i, high);
            std::fill(face.begin(), face.end(), nan_value);
          }
        }
        part.chain->forward(part.y.data(), (needs_faces ? part.faces : anything).buffers<const float>(), norm_.view(),
                            dropout_key, piece, part.dst.data(), part.argmax.data());
      }
    }
  }

  /// Brings what a part gives to a voxel of its faces to the part that owns it.
  void deliver(const Index& at, std::int64_t n, std::int64_t c, float value) {
    for (Part& part : parts_) {
      if (!part.desc.in.contains(at)) continue;
      for (int i = 0; i < 3; ++i) {
        for (const bool high : {false, true}) {
          const Box box = returned_voxels(part.desc, i, high);
          if (!box.contains(at)) continue;
          part.received.side(i, high)[element_at(part.desc, box, n, at, c)] += value;
          return;
        }
      }
    }
    ADD_FAILURE() << "nobody expects a gradient at " << at.d << " " << at.h << " " << at.w;
  }

  void backward_faces() {
    for (Part& part : parts_) {
      Faces<float> given;
      for (int i = 0; i < 3; ++i) {
        for (const bool high : {false, true}) given.side(i, high).assign(part.faces.side(i, high).size(), nan_value);
      }
      part.chain->backward_faces(part.dout.data(), part.argmax.data(), dropout_key, given.buffers<float>());
      for (int i = 0; i < 3; ++i) {
        for (const bool high : {false, true}) {
          const Box box = face_voxels(part.desc, i, high);
          if (box.empty()) continue;
          for (std::int64_t n = 0; n < test().samples; ++n) {
            for_each_index(box, [&](const Index& at) {
              for (std::int64_t c = 0; c < test().channels; ++c) {
                deliver(at, n, c, given.side(i, high)[element_at(part.desc, box, n, at, c)]);
              }
            });
          }
        }
      }
    }
  }

  std::vector<float> y_, dout_, out_, held_, dy_;
  std::vector<std::uint8_t> argmax_;
  std::vector<double> sums_;
  NormNumbers norm_;
  std::vector<Part> parts_;
};

TEST_P(ChainPartsTest, OutputsAreThoseOfTheWhole) {
  forward();
  for (const Part& part : parts_) {
    const Box volume = Box::whole(part.desc.out_extent);
    EXPECT_LT(relative_l2(part.dst.values(), cut(part.desc, out_, volume, part.desc.out, nan_value)), 1e-6);
    EXPECT_TRUE(part.dst.surroundings_kept());  // the margins are the halo exchange's, not ours
    if (test().pool == PoolKind::max) {
      EXPECT_EQ(part.argmax, cut(part.desc, argmax_, volume, part.desc.out, std::uint8_t{255}));
    }
  }
}

TEST_P(ChainPartsTest, GradientsAreThoseOfTheWhole) {
  forward();
  backward_faces();
  std::vector<double> sums(sums_.size());
  for (Part& part : parts_) {
    for (const Box& piece : test().normalise ? halves(part.desc.in) : std::vector<Box>{}) {
      part.chain->backward_sums(part.y.data(), part.received.buffers<const float>(), norm_.view(), part.dout.data(),
                                part.argmax.data(), dropout_key, piece, sums.data());
    }
  }
  if (test().normalise) {
    EXPECT_LT(relative_l2(sums, sums_), 1e-5);
  }
  for (Part& part : parts_) {
    const auto expected = cut(part.desc, dy_, Box::whole(test().extent), part.desc.in, nan_value);
    EXPECT_LT(relative_l2(backward_data(part, statistics(sums).view()), expected), 1e-5);
  }
}

TEST_P(ChainPartsTest, MomentsCombineToThoseOfTheWhole) {
  const Moments whole = moments_by_definition(test().samples, test().channels, test().per_sample, y_);
  std::vector<double> mean(whole.mean.size()), m2(whole.mean.size()), distance(whole.mean.size());
  for (Part& part : parts_) {
    part.chain->moments(part.y.data(), mean.data(), m2.data());
    const double share = static_cast<double>(part.desc.in.volume()) / static_cast<double>(test().extent.volume());
    for (std::size_t i = 0; i < mean.size(); ++i) {
      distance[i] += m2[i] + whole.count * share * std::pow(whole.mean[i] - mean[i], 2);
    }
  }
  EXPECT_LT(relative_l2(distance, whole.m2), 1e-9);
}

TEST(CutChains, MostCasesFitEveryGrid) {
  // Two voxels can't be cut in three, and some shards come out thinner than a face; all the rest runs.
  EXPECT_GE(cut_chains().size(), 5 * chain_cases().size() - 8);
}

std::string parts_test_name(const testing::TestParamInfo<std::tuple<Backend, CutChain>>& info) {
  return std::string(backend_name(std::get<0>(info.param))) + "_" + name_of(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Cases, ChainPartsTest, testing::Combine(both_backends(), testing::ValuesIn(cut_chains())),
                         parts_test_name);

}  // namespace
}  // namespace halograd::test
