#include "halograd/comm/communicator.hpp"
#include "halograd/comm/waiting.hpp"
#include "halograd/core/error.hpp"

#include <algorithm>
#include <new>
#include <optional>

namespace halograd {

namespace {

struct Failure {
  ErrorKind kind;
  std::string message;
};

std::optional<Failure> failure_of(const std::function<void()>& work) {
  try {
    work();
    return std::nullopt;
  } catch (const Error& error) {
    return Failure{error.kind(), error.what()};
  } catch (const std::bad_alloc&) {
    return Failure{ErrorKind::resource, "out of memory"};
  } catch (const std::exception& error) {
    return Failure{ErrorKind::resource, error.what()};
  } catch (...) {
    return Failure{ErrorKind::resource, "unknown failure"};
  }
}

/// Size − rank of the lowest rank that failed, which is the largest of all; 0 where none did.
std::int64_t lowest_failing(const Communicator& communicator, const std::optional<Failure>& failure,
                            std::optional<std::chrono::milliseconds> patience) {
  if (!failure) return communicator.all_reduce_max(std::int64_t{0});
  const std::int64_t mark = communicator.size() - communicator.rank();
  if (!patience) return communicator.all_reduce_max(mark);
  try {
    const comm::WaitLimit limit(*patience);
    return communicator.all_reduce_max(mark);
  } catch (const ResourceError&) {
    raise(failure->kind, failure->message);
  }
}

}  // namespace

void agree(const Communicator& communicator, const std::function<void()>& work,
           std::optional<std::chrono::milliseconds> patience) {
  const auto failure = failure_of(work);
  const int size = communicator.size();
  const std::int64_t highest = lowest_failing(communicator, failure, patience);
  if (highest == 0) return;
  const std::size_t first = static_cast<std::size_t>(size - highest);
  // A text starts with its kind; ranks that did well send none.
  const std::string text = failure ? static_cast<char>(failure->kind) + failure->message : std::string();
  const auto texts = communicator.all_gather(text);
  const auto kind = static_cast<ErrorKind>(texts[first].front());
  std::string message = texts[first].substr(1);
  const bool alike = std::ranges::all_of(texts, [&](const std::string& other) { return other == texts[first]; });
  const std::string mark_of_rank = fmt::format(" (rank {})", first);
  if (!alike && !message.ends_with(mark_of_rank)) message += mark_of_rank;
  raise(kind, message);
}

}  // namespace halograd
