#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace halograd {

/// What went wrong, by who can mend it. The value is the process's exit code.
enum class ErrorKind : int {
  usage = 2,      ///< command line or configuration
  data = 3,       ///< a data file or folder
  numerical = 4,  ///< a loss or value that is not finite
  resource = 5,   ///< memory, disk, communication
};

/// The base of every exception HaloGrad throws: one line on what is wrong and what would be right.
class Error : public std::runtime_error {
public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  [[nodiscard]] ErrorKind kind() const { return kind_; }
  [[nodiscard]] int exit_code() const { return static_cast<int>(kind_); }

private:
  ErrorKind kind_;
};

template <ErrorKind Kind>
class ErrorOf : public Error {
public:
  template <typename... Args>
  explicit ErrorOf(fmt::format_string<Args...> format, Args&&... args)
      : Error(Kind, fmt::format(format, std::forward<Args>(args)...)) {}
};

using UsageError = ErrorOf<ErrorKind::usage>;
using DataError = ErrorOf<ErrorKind::data>;
using NumericalError = ErrorOf<ErrorKind::numerical>;
using ResourceError = ErrorOf<ErrorKind::resource>;

/// Throws the error of this kind.
[[noreturn]] inline void raise(ErrorKind kind, const std::string& message) {
  switch (kind) {
    case ErrorKind::usage: throw UsageError("{}", message);
    case ErrorKind::data: throw DataError("{}", message);
    case ErrorKind::numerical: throw NumericalError("{}", message);
    case ErrorKind::resource: break;
  }
  throw ResourceError("{}", message);
}

}  // namespace halograd
