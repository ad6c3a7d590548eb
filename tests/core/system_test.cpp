#include "halograd/core/system.hpp"

#include "halograd/core/error.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace halograd {
namespace {

TEST(ParseBytes, BinaryUnitsArePowersOf1024) {
  EXPECT_EQ(parse_bytes("100KiB"), 102'400);
  EXPECT_EQ(parse_bytes("512MiB"), 536'870'912);
  EXPECT_EQ(parse_bytes("8GiB"), 8'589'934'592);
  EXPECT_EQ(parse_bytes("2 TiB"), 2'199'023'255'552);
  EXPECT_EQ(parse_bytes("1PiB"), 1'125'899'906'842'624);
}

TEST(ParseBytes, DecimalUnitsArePowersOf1000) {
  EXPECT_EQ(parse_bytes("4GB"), 4'000'000'000);
  EXPECT_EQ(parse_bytes("3 kB"), 3'000);
  EXPECT_EQ(parse_bytes("7MB"), 7'000'000);
}

TEST(ParseBytes, PlainNumbersAreBytesAndExact) {
  EXPECT_EQ(parse_bytes("0"), 0);
  EXPECT_EQ(parse_bytes("123"), 123);
  EXPECT_EQ(parse_bytes("123 B"), 123);
  EXPECT_EQ(parse_bytes("9007199254740993"), 9'007'199'254'740'993);  // no double
  EXPECT_EQ(parse_bytes("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
}

TEST(ParseBytes, FractionsAreRoundedToBytes) {
  EXPECT_EQ(parse_bytes("1.5 GiB"), 1'610'612'736);
  EXPECT_EQ(parse_bytes("0.25KiB"), 256);
  EXPECT_EQ(parse_bytes("0.29 kB"), 290);
  EXPECT_EQ(parse_bytes("0.0999 KiB"), 102);  // 102.3
  EXPECT_EQ(parse_bytes("1.10GB"), 1'100'000'000);
}

TEST(ParseBytes, UnitsInAnyCase) {
  EXPECT_EQ(parse_bytes("1gib"), parse_bytes("1GiB"));
  EXPECT_EQ(parse_bytes("1GIB"), parse_bytes("1GiB"));
  EXPECT_EQ(parse_bytes("1Kb"), 1000);
}

std::string complaint(std::string_view text) {
  try {
    return std::to_string(parse_bytes(text));
  } catch (const UsageError& error) {
    return error.what();
  }
}

TEST(ParseBytes, SaysWhatIsWrongAndWhatWouldBeRight) {
  EXPECT_EQ(complaint("-1GiB"),
            "'-1GiB' is no number of bytes (negative): expected something like 8GiB, 1.5 GiB, 512MiB, 4GB or 123");
  const std::pair<const char*, const char*> wrong[] = {
      {"", "it begins with no digit"},
      {"GiB", "it begins with no digit"},
      {" 1GiB", "it begins with no digit"},
      {"+1", "it begins with no digit"},
      {".5GiB", "it begins with no digit"},
      {"nan", "it begins with no digit"},
      {"1.GiB", "no digit behind the point"},
      {"1.5", "part of a byte"},
      {"1.5B", "part of a byte"},
      {"8G", "unknown unit"},
      {"8 Gi", "unknown unit"},
      {"8XiB", "unknown unit"},
      {"8GiBs", "unknown unit"},
      {"8GiB ", "unknown unit"},
      {"1e9", "unknown unit"},
      {"1,5GiB", "unknown unit"},
      {"1.5.5GiB", "unknown unit"},
      {"0x10", "unknown unit"},
      {"8xxB", "unknown unit"},
      {"8iB", "unknown unit"},
      {"8 G iB", "unknown unit"},
      {"9223372036854775808", "more than 64 bits hold"},
      {"8192PiB", "more than 64 bits hold"},
      {"8191.99999999999999999PiB", "more than 64 bits hold"},
      {"99999999999999999999999GiB", "more than 64 bits hold"},
  };
  for (const auto& [text, why] : wrong) {
    EXPECT_NE(complaint(text).find(fmt::format("({})", why)), std::string::npos) << complaint(text);
  }
  EXPECT_EQ(complaint("8191PiB"), std::to_string(std::int64_t{8191} << 50));
}

TEST(FormatBytes, ThreeDigits) {
  EXPECT_EQ(format_bytes(1.5 * (1 << 30)), "1.50 GiB");
  EXPECT_EQ(format_bytes(12.0 * (1 << 20)), "12.0 MiB");
  EXPECT_EQ(format_bytes(999), "999 B");
}

}  // namespace
}  // namespace halograd
