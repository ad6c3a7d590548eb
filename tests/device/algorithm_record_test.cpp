#include "halograd/device/algorithm_record.hpp"

#include "halograd/core/error.hpp"

#include <gtest/gtest.h>

namespace halograd::test {
namespace {

const Algorithm plain{.engine = 0};
const Algorithm tuned{.engine = 28, .knobs = {{2, 15}, {13, -1}, {22, 0}}, .pieces = 4};

std::string error_of(const std::string& text) {
  AlgorithmRecord record;
  record.set("kept", plain);
  try {
    record.add(text, "algorithms.txt");
  } catch (const DataError& error) {
    EXPECT_EQ(record.size(), 1U) << "nothing of a damaged text is added";
    return error.what();
  }
  return "";
}

TEST(AlgorithmRecord, FindsWhatWasSet) {
  AlgorithmRecord record;
  EXPECT_FALSE(record.find("conv1"));
  record.set("conv1", tuned);
  EXPECT_EQ(record.find("conv1"), tuned);
  record.set("conv1", plain);
  EXPECT_EQ(record.find("conv1"), plain);
  EXPECT_FALSE(record.find("conv"));
  EXPECT_EQ(record.size(), 1U);
}

TEST(AlgorithmRecord, TextHasALineAnEntryInTheOrderOfTheKeys) {
  AlgorithmRecord record;
  EXPECT_EQ(record.text(), "halograd algorithms 1\n");
  record.set("forward of b; GPU", tuned);
  record.set("forward of a; GPU", plain);
  EXPECT_EQ(record.text(),
            "halograd algorithms 1\n"
            "forward of a; GPU\tengine 0 pieces 1\n"
            "forward of b; GPU\tengine 28 knobs 2=15,13=-1,22=0 pieces 4\n");
}

TEST(AlgorithmRecord, ReadsItsOwnText) {
  AlgorithmRecord record;
  record.set("a", tuned);
  record.set("b; c=d, engine 9", plain);
  AlgorithmRecord copy;
  copy.add(record.text(), "copy");
  EXPECT_EQ(copy.text(), record.text());
  EXPECT_EQ(copy.find("a"), tuned);
  EXPECT_EQ(copy.find("b; c=d, engine 9"), plain);
}

TEST(AlgorithmRecord, AddingKeepsWhatWasChosenHere) {
  AlgorithmRecord record;
  record.set("a", plain);
  record.add("halograd algorithms 1\na\tengine 5 pieces 1\nb\tengine 6 pieces 2\n", "other ranks'");
  EXPECT_EQ(record.find("a"), plain);
  EXPECT_EQ(record.find("b"), (Algorithm{.engine = 6, .pieces = 2}));
}

TEST(AlgorithmRecord, NamesTheLineThatIsWrong) {
  const std::string head = "halograd algorithms 1\n";
  EXPECT_EQ(error_of(head + "a\tengine 1 pieces 1\n"), "");
  EXPECT_EQ(error_of(head), "");
  EXPECT_EQ(error_of("engines\n"),
            "algorithms.txt is no record of algorithms: its first line should be \"halograd algorithms 1\"");
  const std::string good = head + "a\tengine 1 pieces 1\n";
  for (const std::string bad :
       {"b\tengine x pieces 1", "b\tengine 1", "b engine 1 pieces 1", "\tengine 1 pieces 1", "b\tengine 1 pieces 0",
        "b\tengine 1 pieces -2", "b\tengine -1 pieces 1", "b\tengine 1 knobs pieces 1",
        "b\tengine 1 knobs 2=,3=1 pieces 1", "b\tengine 1 knobs 2=1, pieces 1", "b\tengine 1 pieces 1 more",
        "b\tengine 99999999999999999999 pieces 1", ""}) {
    EXPECT_EQ(error_of(good + bad + "\nc\tengine 1 pieces 1\n"),
              "algorithms.txt, line 3: expected a key, a tab and \"engine E knobs K=V,... pieces P\"")
        << bad;
  }
}

TEST(AlgorithmRecord, RefusesKeysThatAreNoPartOfALine) {
  AlgorithmRecord record;
  EXPECT_THROW(record.set("a\tb", plain), UsageError);
  EXPECT_THROW(record.set("a\nb", plain), UsageError);
  EXPECT_THROW(record.set("", plain), UsageError);
}

}  // namespace
}  // namespace halograd::test
