#include "halograd/cli/outcome.hpp"

#include "halograd/comm/session.hpp"
#include "halograd/core/error.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <future>
#include <new>

namespace halograd {
namespace {

Outcome failure(ErrorKind kind, std::string message) {
  std::ranges::replace(message, '\n', ' ');
  return {static_cast<int>(kind), std::move(message)};
}

void print_error(const std::string& message) {
  std::fputs(("halograd: error: " + message + '\n').c_str(), stderr);
  std::fflush(stderr);
}

/// Names the rank, where the message doesn't do so already.
std::string of_rank(const std::string& message, int rank) {
  const std::string mark = fmt::format(" (rank {})", rank);
  return message.ends_with(mark) ? message : message + mark;
}

/// How long a rank that failed waits for the others: later ranks longer, so that one speaks before it ends the job.
std::chrono::duration<double> patience(int rank) {
  return std::chrono::duration<double>(3.0 + std::min(0.3 * rank, 10.0));
}

/// `texts`: every rank's exit code as a character, and message. Returns the job's exit code.
int report(int rank, const std::vector<std::string>& texts) {
  const auto failed = [](const std::string& text) { return text.front() != '\0'; };
  const auto first = std::ranges::find_if(texts, failed);
  if (first == texts.end()) return 0;
  const bool alike = std::ranges::all_of(texts, [&](const std::string& text) { return text == *first; });
  if (rank == static_cast<int>(first - texts.begin())) {
    print_error(alike ? first->substr(1) : of_rank(first->substr(1), rank));
  }
  return first->front();
}

}  // namespace

Outcome outcome_of(const std::function<void()>& work) {
  try {
    work();
    return {};
  } catch (const Error& error) {
    return failure(error.kind(), error.what());
  } catch (const std::bad_alloc&) {
    return failure(ErrorKind::resource, "out of memory: take a finer grid, more nodes or a smaller mini-batch");
  } catch (const std::exception& error) {
    return failure(ErrorKind::resource, error.what());
  } catch (...) {
    return failure(ErrorKind::resource, "unknown failure");
  }
}

int settle(const Communicator& endings, const Outcome& own) {
  const std::string text = static_cast<char>(own.exit_code) + own.message;
  if (endings.size() == 1) return report(0, {text});
  const auto gather = [&] { return endings.all_gather(text); };
  if (own.exit_code == 0) return report(endings.rank(), gather());
  auto others = std::async(std::launch::async, gather);
  if (others.wait_for(patience(endings.rank())) == std::future_status::ready) {
    return report(endings.rank(), others.get());
  }
  print_error(of_rank(own.message, endings.rank()));
  abort_job(own.exit_code);
}

}  // namespace halograd
