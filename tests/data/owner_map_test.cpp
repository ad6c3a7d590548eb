#include "halograd/data/owner_map.hpp"

#include "halograd/core/error.hpp"
#include "halograd/data/sampler.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace halograd {

// How GoogleTest prints one.
void PrintTo(const SampleMove& move, std::ostream* stream) {
  *stream << move.sample << ": " << move.from << " -> " << move.to;
}

namespace {

constexpr std::int64_t file = SampleMove::file;
using Moves = std::vector<SampleMove>;

Moves next(OwnerMap& map, const std::vector<std::int64_t>& mini_batch, bool keep = true) {
  return map.next(mini_batch, keep);
}

TEST(OwnerMap, FirstReadersOwnAndPassOn) {
  OwnerMap map(6, 2);
  EXPECT_EQ(next(map, {4, 1, 0, 3}), (Moves{{4, file, 0}, {1, file, 0}, {0, file, 1}, {3, file, 1}}));
  EXPECT_EQ(map.owner(4), 0);
  EXPECT_EQ(map.owner(3), 1);
  EXPECT_EQ(map.owner(2), file);
  // Held by the other, by the group itself, by nobody.
  EXPECT_EQ(next(map, {3, 4, 2, 0}), (Moves{{3, 1, 0}, {4, 0, 0}, {2, file, 1}, {0, 1, 1}}));
  EXPECT_EQ(map.owner(3), 1) << "passing on is not giving away";
  EXPECT_EQ(map.owned_by(0), (std::vector<std::int64_t>{1, 4}));
  EXPECT_EQ(map.owned_by(1), (std::vector<std::int64_t>{0, 2, 3}));
}

TEST(OwnerMap, FirstGroupsTakeTheRemainder) {
  OwnerMap map(5, 3);
  EXPECT_EQ(next(map, {0, 1, 2, 3, 4}), (Moves{{0, file, 0}, {1, file, 0}, {2, file, 1}, {3, file, 1}, {4, file, 2}}));
}

TEST(OwnerMap, ABatchOfOneGoesToTheFirstGroup) {
  OwnerMap map(4, 3);
  EXPECT_EQ(next(map, {2}), (Moves{{2, file, 0}}));
  EXPECT_EQ(next(map, {3}), (Moves{{3, file, 0}}));
  EXPECT_EQ(next(map, {2}), (Moves{{2, 0, 0}}));
  EXPECT_EQ(next(map, {}), Moves{});
  EXPECT_TRUE(map.owned_by(1).empty());
  EXPECT_TRUE(map.owned_by(2).empty());
}

TEST(OwnerMap, WithoutKeepingEverySampleComesFromItsFileAgain) {
  OwnerMap map(3, 2);
  const Moves expected{{0, file, 0}, {1, file, 0}, {2, file, 1}};
  EXPECT_EQ(next(map, {0, 1, 2}, false), expected);
  EXPECT_EQ(next(map, {0, 1, 2}, false), expected);
  for (std::int64_t sample = 0; sample < 3; ++sample) EXPECT_EQ(map.owner(sample), file);
  // What is owned before is still found.
  next(map, {1});
  EXPECT_EQ(next(map, {0, 2, 1}, false), (Moves{{0, file, 0}, {2, file, 0}, {1, 0, 1}}));
}

TEST(OwnerMap, OfTwoInOneMiniBatchTheFirstOwns) {
  OwnerMap map(2, 2);
  EXPECT_EQ(next(map, {1, 1}), (Moves{{1, file, 0}, {1, file, 1}}));
  EXPECT_EQ(map.owner(1), 0);
}

struct Epoch {
  std::int64_t from_file = 0;
  std::int64_t from_first_reader = 0;
  std::int64_t moved = 0;  // between unlike groups
  Moves moves;
};

Epoch run_epoch(OwnerMap& map, Sampler& sampler, std::int64_t epoch, std::int64_t first_batch = 0) {
  Epoch result;
  for (std::int64_t index = first_batch; index < sampler.batches_per_epoch(); ++index) {
    const std::vector<std::int64_t> mini_batch = sampler.mini_batch(epoch, index);
    std::vector<std::int64_t> owners;
    owners.reserve(mini_batch.size());
    for (const std::int64_t sample : mini_batch) owners.push_back(map.owner(sample));
    const Moves moves = map.next(mini_batch, true);
    EXPECT_EQ(moves.size(), mini_batch.size());
    for (std::size_t i = 0; i < moves.size(); ++i) {
      EXPECT_EQ(moves[i].sample, mini_batch[i]);
      result.from_file += moves[i].from == file;
      result.from_first_reader += moves[i].from != file && moves[i].from == owners[i];
      result.moved += moves[i].from != file && moves[i].from != moves[i].to;
    }
    result.moves.insert(result.moves.end(), moves.begin(), moves.end());
  }
  return result;
}

Sampler shuffled(std::int64_t samples, std::int64_t batch) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(samples));
  std::iota(all.begin(), all.end(), 0);
  return Sampler(all, {.batch = batch, .shuffle = true, .seed = 7});
}

TEST(OwnerMap, TheSecondEpochTakesEverySampleFromItsFirstReader) {
  constexpr std::int64_t samples = 103;  // batches of 10 and one of 3
  OwnerMap map(samples, 4);
  Sampler sampler = shuffled(samples, 10);
  const Epoch first = run_epoch(map, sampler, 0);
  EXPECT_EQ(first.from_file, samples);
  std::vector<std::int64_t> reader(samples);
  for (const SampleMove& move : first.moves) reader[static_cast<std::size_t>(move.sample)] = move.to;
  for (const std::int64_t epoch : {1, 2}) {
    const Epoch later = run_epoch(map, sampler, epoch);
    EXPECT_EQ(later.from_file, 0);
    EXPECT_EQ(later.from_first_reader, samples);
    EXPECT_GT(later.moved, samples / 2) << "another order";
    for (const SampleMove& move : later.moves) EXPECT_EQ(move.from, reader[static_cast<std::size_t>(move.sample)]);
  }
  // Shares of the groups in 10 batches of 10 (3, 3, 2, 2) and one of 3 (1, 1, 1, 0).
  EXPECT_EQ(map.owned_by(0).size(), 31U);
  EXPECT_EQ(map.owned_by(1).size(), 31U);
  EXPECT_EQ(map.owned_by(2).size(), 21U);
  EXPECT_EQ(map.owned_by(3).size(), 20U);
}

TEST(OwnerMap, ResumedInMidEpochWhoSeesASampleFirstOwnsIt) {
  constexpr std::int64_t samples = 60;
  Sampler sampler = shuffled(samples, 6);
  OwnerMap resumed(samples, 3);
  const Epoch rest = run_epoch(resumed, sampler, 0, 4);
  EXPECT_EQ(rest.from_file, 36);
  std::int64_t owned = 0;
  for (std::int64_t group = 0; group < 3; ++group) owned += static_cast<std::int64_t>(resumed.owned_by(group).size());
  EXPECT_EQ(owned, 36);
  const Epoch next_epoch = run_epoch(resumed, sampler, 1);
  EXPECT_EQ(next_epoch.from_file, 24);
  EXPECT_EQ(next_epoch.from_first_reader, 36);
  EXPECT_EQ(run_epoch(resumed, sampler, 2).from_file, 0);
}

TEST(OwnerMap, AllRanksComputeTheSame) {
  constexpr std::int64_t samples = 41;
  std::vector<Moves> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    OwnerMap map(samples, 3);
    Sampler sampler = shuffled(samples, 7);
    Moves all;
    for (const std::int64_t epoch : {0, 1, 2}) {
      const Moves moves = run_epoch(map, sampler, epoch).moves;
      all.insert(all.end(), moves.begin(), moves.end());
    }
    ranks.push_back(all);
  }
  EXPECT_EQ(ranks[0].size(), 3U * samples);
  EXPECT_EQ(ranks[1], ranks[0]);
  EXPECT_EQ(ranks[2], ranks[0]);
}

TEST(OwnerMap, RefusesWhatIsNoSample) {
  OwnerMap map(3, 2);
  EXPECT_THROW(next(map, {0, 3}), UsageError);
  EXPECT_THROW(next(map, {-1, 2}), UsageError);
  EXPECT_EQ(map.owner(0), file) << "a refused mini-batch changes nothing";
  EXPECT_THROW(OwnerMap(-1, 2), UsageError);
  EXPECT_THROW(OwnerMap(3, 0), UsageError);
}

}  // namespace
}  // namespace halograd
