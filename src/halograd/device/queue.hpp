#pragma once

#include "halograd/device/backend.hpp"

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

namespace halograd {

/// A point in a queue's work, for other queues to wait for. Made by Queue::make_event; on the CPU there is nothing in
/// it.
class Event {
public:
  class Implementation;
  Event() = default;
  explicit Event(std::shared_ptr<Implementation> implementation) : implementation_(std::move(implementation)) {}
  [[nodiscard]] Implementation* implementation() const { return implementation_.get(); }

private:
  std::shared_ptr<Implementation> implementation_;
};

/// Work that a queue recorded instead of doing it, to be launched as often as wanted at the cost of one call (a CUDA
/// graph). The addresses in it are those of the recording. Made by Queue::end_recording; a small value, copied by
/// reference.
class Graph {
public:
  class Implementation;
  Graph() = default;
  explicit Graph(std::shared_ptr<Implementation> implementation) : implementation_(std::move(implementation)) {}
  /// Whether there is anything to launch.
  explicit operator bool() const { return implementation_ != nullptr; }
  [[nodiscard]] Implementation* implementation() const { return implementation_.get(); }

private:
  std::shared_ptr<Implementation> implementation_;
};

/// An ordered list of work on a device: a small value, copied by reference. Kernels take one where they are made or
/// called. On the CPU work is done at once, by the thread that asks for it; on a GPU (a stream) the call returns
/// when it is listed, so that what it reads must stay in place until synchronize(), or an event behind it, has passed.
class Queue {
public:
  /// The CPU's, of the backend `cpu` or `reference`. Implicit: on the CPU there is nothing else to say.
  Queue(Backend backend = Backend::cpu) : backend_(backend) {}

  class Implementation;
  Queue(Backend backend, std::shared_ptr<Implementation> implementation)
      : backend_(backend), implementation_(std::move(implementation)) {}

  [[nodiscard]] Backend backend() const { return backend_; }
  /// Whether work is done when the call that asked for it returns.
  [[nodiscard]] bool works_at_once() const { return implementation_ == nullptr; }

  /// Between any two places in memory of the device or of the host (pinned, or the copy waits).
  void copy(const void* from, void* to, std::int64_t bytes) const;
  void clear(void* to, std::int64_t bytes) const;
  [[nodiscard]] Event make_event() const;
  /// `event` now stands for all that was listed here before.
  void record(const Event& event) const;
  /// What is listed here from now on begins when `event` has passed.
  void wait(const Event& event) const;
  /// Blocks until all that was listed is done. Throws ResourceError where the device reports a failure.
  void synchronize() const;
  /// Names what is listed from now on, for profilers and for tests; costs nothing where nobody listens.
  void label(std::string_view what) const;

  /// Whether work can be recorded: on a GPU, not on the CPU.
  [[nodiscard]] bool can_record() const;
  /// What is listed here from now on is recorded and not done, until end_recording(). So is the work of other queues of
  /// this device from where they wait for an event of this recording on; each must be waited for here again before the
  /// end. Meanwhile the calling thread allocates no memory of the device, synchronizes with nothing and reads no
  /// result; other threads go on as ever. Throws UsageError where can_record() is false.
  void begin_recording() const;
  /// What was recorded, ready to launch; called by the thread that began. Throws ResourceError where something forbade
  /// it, or a queue was not waited for; the queue does work again all the same, so that the caller may do without a
  /// recording.
  [[nodiscard]] Graph end_recording() const;
  /// Lists all of the recording's work here, in one piece.
  void launch(const Graph& graph) const;

  [[nodiscard]] Implementation* implementation() const { return implementation_.get(); }

private:
  Backend backend_;
  std::shared_ptr<Implementation> implementation_;
};

/// What a device whose work is not done at once makes of a queue's calls.
class Queue::Implementation {
public:
  virtual ~Implementation() = default;
  virtual void copy(const void* from, void* to, std::int64_t bytes) = 0;
  virtual void clear(void* to, std::int64_t bytes) = 0;
  virtual Event make_event() = 0;
  virtual void record(const Event& event) = 0;
  virtual void wait(const Event& event) = 0;
  virtual void synchronize() = 0;
  virtual void label(std::string_view what) = 0;
  [[nodiscard]] virtual bool can_record() const = 0;
  virtual void begin_recording() = 0;
  virtual Graph end_recording() = 0;
  virtual void launch(const Graph& graph) = 0;
};

class Event::Implementation {
public:
  virtual ~Implementation() = default;
};

class Graph::Implementation {
public:
  virtual ~Implementation() = default;
};

}  // namespace halograd
