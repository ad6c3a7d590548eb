#include "halograd/train/class_map.hpp"

#include "halograd/core/error.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace halograd::test {
namespace {

TEST(ClassMap, a_voxel_is_of_the_class_with_the_largest_logit_the_first_of_equals) {
  const std::vector<float> logits{1, 2, 3, 2, 2, 1, -1, -3, -1, 0, 5, 5};
  EXPECT_EQ(predicted_classes(logits, 3), (std::vector<std::uint8_t>{2, 0, 0, 1}));
  EXPECT_EQ(predicted_classes(logits, 2), (std::vector<std::uint8_t>{1, 0, 0, 0, 1, 0}));
}

TEST(ClassMap, logits_that_are_not_finite_say_nothing) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> logits(3000, 1);
    logits[2998] = bad;
    EXPECT_THROW(predicted_classes(logits, 3), NumericalError);
  }
}

}  // namespace
}  // namespace halograd::test
