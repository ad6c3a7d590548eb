#include "halograd/data/medical/label_table.hpp"

#include "halograd/core/error.hpp"
#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace halograd::test {
namespace {

TEST(LabelTable, without_groups_labels_are_classes) {
  const LabelTable table(3);
  EXPECT_EQ(table.find(0), 0);
  EXPECT_EQ(table.find(2), 2);
  for (const double bad : {3.0, -1.0, 0.5, -0.5, 1e300, std::nan("")}) EXPECT_EQ(table.find(bad), std::nullopt) << bad;
  EXPECT_EQ(LabelTable(256).find(255), 255);
}

TEST(LabelTable, groups_gather_labels) {
  const LabelTable table(3, "1:1-90,95,2:91-94,100");
  EXPECT_EQ(table.find(0), 0);
  EXPECT_EQ(table.find(1), 1);
  EXPECT_EQ(table.find(90), 1);
  EXPECT_EQ(table.find(91), 2);
  EXPECT_EQ(table.find(95), 1);
  EXPECT_EQ(table.find(96), 0);
  EXPECT_EQ(table.find(100), 2);
  EXPECT_EQ(table.find(14175), 0);
  EXPECT_EQ(table.find(1.5), std::nullopt);
}

TEST(LabelTable, what_makes_no_sense_is_refused) {
  const auto refusal = [](std::int64_t classes, const std::string& groups) {
    return message_of<UsageError>([&] { LabelTable(classes, groups); });
  };
  EXPECT_NE(refusal(0, "").find("0 classes"), std::string::npos);
  EXPECT_NE(refusal(257, "").find("257 classes"), std::string::npos);
  EXPECT_NE(refusal(3, "1-90").find("begins without a class"), std::string::npos);
  EXPECT_NE(refusal(3, "3:1").find("names class 3"), std::string::npos);
  EXPECT_NE(refusal(3, "0:1").find("names class 0"), std::string::npos);
  EXPECT_NE(refusal(3, "1:9-5").find("backwards"), std::string::npos);
  EXPECT_NE(refusal(3, "1:1-5,2:5").find("label 5 is in two"), std::string::npos);
  for (const char* text : {"1:", "1:a", ":1", "1:1-", "1:1,,2", "1:-1", "1:70000"}) {
    EXPECT_NE(refusal(3, text).find("can't read"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace halograd::test
