#include "support/recording_device.hpp"

#include "halograd/comm/transfers.hpp"
#include "halograd/core/error.hpp"
#include "halograd/core/memory.hpp"
#include "halograd/core/system.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <mutex>

namespace halograd::testing {

class RecordingDevice::State {
public:
  explicit State(RecordingOptions options) : options_(std::move(options)) {}

  void add(QueueCall call) {
    const std::lock_guard lock(mutex_);
    call.thread = std::this_thread::get_id();
    if (call.kind == CallKind::label) labels_[call.queue] = call.label;
    call.label = labels_[call.queue];
    const bool refused = recording_ && call.kind == options_.refused_in_recordings;
    if (call.kind == CallKind::begin_recording) recording_ = true;
    if (call.kind == CallKind::end_recording) recording_ = false;
    calls_.push_back(call);
    if (refused) throw ResourceError("a stand-in records no {}", name_of(call.kind));
  }
  [[nodiscard]] std::vector<QueueCall> calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  void forget_calls() {
    const std::lock_guard lock(mutex_);
    calls_.clear();
  }
  /// A number for a new queue, event, graph or communicator.
  int next(int& counter) {
    const std::lock_guard lock(mutex_);
    return counter++;
  }
  void add_memory(const std::byte* begin, std::int64_t bytes, MemoryKind kind) {
    const std::lock_guard lock(mutex_);
    memories_[begin] = {bytes, kind};
  }
  void remove_memory(const std::byte* begin) {
    const std::lock_guard lock(mutex_);
    memories_.erase(begin);
  }
  [[nodiscard]] MemoryKind kind_of(const void* address) const {
    const std::lock_guard lock(mutex_);
    const auto* byte = static_cast<const std::byte*>(address);
    auto after = memories_.upper_bound(byte);
    if (after == memories_.begin()) return MemoryKind::other;
    const auto& [begin, memory] = *std::prev(after);
    return byte < begin + memory.bytes ? memory.kind : MemoryKind::other;
  }
  [[nodiscard]] const RecordingOptions& options() const { return options_; }

  int queues = 0;
  int events = 0;
  int graphs = 0;
  int communicators = 0;

private:
  struct Memory {
    std::int64_t bytes = 0;
    MemoryKind kind = MemoryKind::other;
  };

  RecordingOptions options_;
  mutable std::mutex mutex_;
  bool recording_ = false;
  std::vector<QueueCall> calls_;
  std::map<int, std::string> labels_;
  std::map<const std::byte*, Memory> memories_;
};

namespace {

using State = RecordingDevice::State;

struct NumberedEvent final : Event::Implementation {
  explicit NumberedEvent(int n) : number(n) {}
  int number;
};

struct NumberedGraph final : Graph::Implementation {
  explicit NumberedGraph(int n) : number(n) {}
  int number;
};

int number_of(const Event& event) {
  if (event.implementation() == nullptr) throw UsageError("an event that no queue of a device made");
  return static_cast<const NumberedEvent&>(*event.implementation()).number;
}

class RecordingQueue final : public Queue::Implementation {
public:
  RecordingQueue(std::shared_ptr<State> state, int number) : state_(std::move(state)), number_(number) {}
  [[nodiscard]] int number() const { return number_; }

  void copy(const void* from, void* to, std::int64_t bytes) override {
    state_->add({.kind = CallKind::copy, .queue = number_, .from = from, .to = to, .bytes = bytes});
    std::memmove(to, from, static_cast<std::size_t>(bytes));
  }
  void clear(void* to, std::int64_t bytes) override {
    state_->add({.kind = CallKind::clear, .queue = number_, .to = to, .bytes = bytes});
    std::memset(to, 0, static_cast<std::size_t>(bytes));
  }
  Event make_event() override { return Event(std::make_shared<NumberedEvent>(state_->next(state_->events))); }
  void record(const Event& event) override {
    state_->add({.kind = CallKind::record, .queue = number_, .event = number_of(event)});
  }
  void wait(const Event& event) override {
    state_->add({.kind = CallKind::wait, .queue = number_, .event = number_of(event)});
  }
  void synchronize() override { state_->add({.kind = CallKind::synchronize, .queue = number_}); }
  void label(std::string_view what) override {
    state_->add({.kind = CallKind::label, .queue = number_, .label = std::string(what)});
  }
  [[nodiscard]] bool can_record() const override { return state_->options().can_record; }
  void begin_recording() override { state_->add({.kind = CallKind::begin_recording, .queue = number_}); }
  Graph end_recording() override {
    const int graph = state_->next(state_->graphs);
    state_->add({.kind = CallKind::end_recording, .queue = number_, .graph = graph});
    return Graph(std::make_shared<NumberedGraph>(graph));
  }
  void launch(const Graph& graph) override {
    state_->add({.kind = CallKind::launch,
                 .queue = number_,
                 .graph = static_cast<const NumberedGraph&>(*graph.implementation()).number});
  }

private:
  std::shared_ptr<State> state_;
  int number_;
};

class RecordingMemory final : public DeviceMemory::Implementation {
public:
  RecordingMemory(std::shared_ptr<State> state, std::int64_t capacity, MemoryKind kind)
      : state_(std::move(state)), memory_(capacity) {
    if (capacity > 0) state_->add_memory(memory_.data(), capacity, kind);
  }
  ~RecordingMemory() override { state_->remove_memory(memory_.data()); }
  RecordingMemory(const RecordingMemory&) = delete;
  RecordingMemory& operator=(const RecordingMemory&) = delete;

  [[nodiscard]] std::byte* data() const override { return memory_.data(); }
  [[nodiscard]] std::int64_t capacity() const override { return memory_.capacity(); }
  void commit(std::int64_t bytes) override {
    if (bytes > capacity()) throw UsageError("{} bytes of {} reserved are wanted", bytes, capacity());
  }

private:
  std::shared_ptr<State> state_;
  ReservedMemory memory_;
};

class StandIn final : public Device::Implementation {
public:
  explicit StandIn(std::shared_ptr<State> state) : state_(std::move(state)) {}

  [[nodiscard]] std::string name() const override { return "stand-in"; }
  [[nodiscard]] std::string id() const override { return state_->options().id; }
  Queue make_queue(Priority) override {
    return {state_->options().backend, std::make_shared<RecordingQueue>(state_, state_->next(state_->queues))};
  }
  DeviceMemory reserve(std::int64_t capacity) override { return make(capacity, MemoryKind::device); }
  DeviceMemory allocate(std::int64_t bytes) override { return make(bytes, MemoryKind::device); }
  DeviceMemory allocate_host(std::int64_t bytes) override { return make(bytes, MemoryKind::pinned); }
  [[nodiscard]] std::int64_t available_bytes() const override { return available_memory_bytes(); }
  [[nodiscard]] std::int64_t total_bytes() const override { return total_memory_bytes(); }

private:
  DeviceMemory make(std::int64_t bytes, MemoryKind kind) {
    return DeviceMemory(std::make_shared<RecordingMemory>(state_, bytes, kind));
  }

  std::shared_ptr<State> state_;
};

class NcclStandIn final : public NcclCommunicator {
public:
  NcclStandIn(const Communicator& communicator, std::shared_ptr<State> state)
      : communicator_(communicator.duplicate()),
        transfers_(communicator_),
        state_(std::move(state)),
        number_(state_->next(state_->communicators)) {}

  void exchange(std::span<const DeviceMessage> sends, std::span<const DeviceMessage> receives,
                const Queue& queue) override {
    state_->add({.kind = CallKind::exchange,
                 .queue = number_of_queue(queue),
                 .communicator = number_,
                 .sends = {sends.begin(), sends.end()},
                 .receives = {receives.begin(), receives.end()}});
    for (const auto& message : receives) transfers_.receive(message.rank, message.data, message.bytes);
    for (const auto& message : sends) transfers_.send(message.rank, message.data, message.bytes);
    transfers_.wait();
  }
  void sum(float* values, std::int64_t count, const Queue& queue) override { sum_of(values, count, queue); }
  void sum(double* values, std::int64_t count, const Queue& queue) override { sum_of(values, count, queue); }

private:
  static int number_of_queue(const Queue& queue) {
    return static_cast<const RecordingQueue&>(*queue.implementation()).number();
  }

  template <typename T>
  void sum_of(T* values, std::int64_t count, const Queue& queue) {
    const std::int64_t bytes = count * static_cast<std::int64_t>(sizeof(T));
    state_->add({.kind = CallKind::sum,
                 .queue = number_of_queue(queue),
                 .from = values,
                 .to = values,
                 .bytes = bytes,
                 .communicator = number_});
    std::vector<T> all(static_cast<std::size_t>(count * communicator_.size()));
    communicator_.all_gather(values, bytes, all.data());
    std::copy_n(all.data(), count, values);
    for (int rank = 1; rank < communicator_.size(); ++rank) {
      for (std::int64_t i = 0; i < count; ++i) values[i] += all[static_cast<std::size_t>(rank * count + i)];
    }
  }

  Communicator communicator_;
  Transfers transfers_;
  std::shared_ptr<State> state_;
  int number_;
};

}  // namespace

const char* name_of(CallKind kind) {
  static constexpr std::array names{"copy",  "clear",           "record",        "wait",   "synchronize",
                                    "label", "begin_recording", "end_recording", "launch", "exchange",
                                    "sum"};
  return names.at(static_cast<std::size_t>(kind));
}

RecordingDevice::RecordingDevice(RecordingOptions options) : state_(std::make_shared<State>(std::move(options))) {}

Device RecordingDevice::device() const {
  return {state_->options().backend, std::make_shared<StandIn>(state_)};
}

std::vector<QueueCall> RecordingDevice::calls() const {
  return state_->calls();
}

void RecordingDevice::forget_calls() const {
  state_->forget_calls();
}

MemoryKind RecordingDevice::kind_of(const void* address) const {
  return state_->kind_of(address);
}

NcclFactory RecordingDevice::nccl() const {
  return [state = state_](const Communicator& communicator, const Device&) {
    return std::make_shared<NcclStandIn>(communicator, state);
  };
}

}  // namespace halograd::testing
