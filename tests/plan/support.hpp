#pragma once

#include "halograd/plan/plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace halograd::test {

/// Where the first step of this kind on this unit stands; −1 where there is none.
inline int find(const Plan& plan, StepKind kind, int unit, int part = 0) {
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    if (step.kind == kind && step.unit == unit && step.part == part) return static_cast<int>(i);
  }
  return -1;
}

inline int exchange_named(const Plan& plan, const std::string& name) {
  const auto at = std::ranges::find(plan.exchanges, name, &ExchangePlan::name);
  return at == plan.exchanges.end() ? -1 : static_cast<int>(at - plan.exchanges.begin());
}

/// No two buffers that live at the same time share a place.
inline void expect_living_buffers_apart(const Plan& plan) {
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    const BufferPlan& a = plan.buffers[i];
    if (a.first_step < 0 || a.external) continue;
    EXPECT_LE(a.offset + a.bytes, plan.arena_bytes);
    for (std::size_t j = 0; j < i; ++j) {
      const BufferPlan& b = plan.buffers[j];
      if (b.first_step < 0 || b.external || a.first_step > b.last_step || b.first_step > a.last_step) continue;
      EXPECT_TRUE(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset) << a.name << " and " << b.name;
    }
  }
}

/// Every message has its counterpart: ranks of a group compile apart and must agree. `plans`: of all of them, in order.
inline void expect_matching_messages(const std::vector<Plan>& plans) {
  for (std::size_t rank = 0; rank < plans.size(); ++rank) {
    ASSERT_EQ(plans[rank].exchanges.size(), plans[0].exchanges.size());
    for (std::size_t e = 0; e < plans[rank].exchanges.size(); ++e) {
      const ExchangePlan& exchange = plans[rank].exchanges[e];
      ASSERT_EQ(exchange.name, plans[0].exchanges[e].name);
      ASSERT_EQ(exchange.phases.size(), plans[0].exchanges[e].phases.size());
      for (std::size_t p = 0; p < exchange.phases.size(); ++p) {
        for (const Transfer& transfer : exchange.phases[p]) {
          const auto& theirs = plans[static_cast<std::size_t>(transfer.peer)].exchanges[e].phases[p];
          const auto back = std::ranges::find(theirs, static_cast<int>(rank), &Transfer::peer);
          ASSERT_NE(back, theirs.end()) << exchange.name;
          EXPECT_EQ(back->receive_box.volume(), transfer.send_box.volume()) << exchange.name;
          if (transfer.send_box.volume() > 0) {
            EXPECT_EQ(back->receive_box, transfer.send_box) << exchange.name;
          }
        }
      }
    }
  }
}

}  // namespace halograd::test
