#include "halograd/comm/nccl_communicator.hpp"
#include "halograd/core/error.hpp"
#include "halograd/device/cuda/runtime.hpp"

#include <nccl.h>

#include <chrono>
#include <cstdlib>
#include <exception>

namespace halograd {
namespace {

using namespace std::chrono_literals;

// How long a rank on which NCCL failed waits for the others, which may still be waiting for it in NCCL.
constexpr auto patience = 10s;

void check(ncclResult_t status, const char* what) {
  if (status == ncclSuccess || status == ncclInProgress) return;
  const char* const details = ncclGetLastError(nullptr);
  throw ResourceError("{}: NCCL says: {}{}{} (HALOGRAD_NCCL=0 does without NCCL, NCCL_DEBUG=WARN says more)", what,
                      ncclGetErrorString(status), details != nullptr && *details != '\0' ? ": " : "",
                      details != nullptr ? details : "");
}

// Between ncclGroupStart and ncclGroupEnd, also where something in between throws.
class Group {
public:
  Group() { check(ncclGroupStart(), "a group of messages"); }
  ~Group() {
    if (open_) ncclGroupEnd();
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  void end() {
    open_ = false;
    check(ncclGroupEnd(), "a group of messages");
  }

private:
  bool open_ = true;
};

class CudaNccl final : public NcclCommunicator {
public:
  CudaNccl(const ncclUniqueId& id, int ranks, int rank, const Device& device) {
    cuda::make_current(cuda::device_of(device));
    check(ncclCommInitRank(&comm_, ranks, id, rank), "connecting the GPUs");
  }

  ~CudaNccl() override {
    if (comm_ == nullptr) return;
    // While an exception unwinds the other ranks may never answer.
    if (std::uncaught_exceptions() > 0) {
      ncclCommAbort(comm_);
    } else {
      ncclCommDestroy(comm_);
    }
  }

  CudaNccl(const CudaNccl&) = delete;
  CudaNccl& operator=(const CudaNccl&) = delete;

  void exchange(std::span<const DeviceMessage> sends, std::span<const DeviceMessage> receives,
                const Queue& queue) override {
    const cudaStream_t stream = cuda::stream_of(queue);
    Group group;
    for (const DeviceMessage& message : sends) {
      check(ncclSend(message.data, static_cast<std::size_t>(message.bytes), ncclInt8, message.rank, comm_, stream),
            "sending a halo");
    }
    for (const DeviceMessage& message : receives) {
      check(ncclRecv(message.data, static_cast<std::size_t>(message.bytes), ncclInt8, message.rank, comm_, stream),
            "receiving a halo");
    }
    group.end();
  }

  void sum(float* values, std::int64_t count, const Queue& queue) override { sum(values, count, ncclFloat32, queue); }
  void sum(double* values, std::int64_t count, const Queue& queue) override { sum(values, count, ncclFloat64, queue); }

private:
  void sum(void* values, std::int64_t count, ncclDataType_t type, const Queue& queue) {
    const cudaStream_t stream = cuda::stream_of(queue);
    check(ncclAllReduce(values, values, static_cast<std::size_t>(count), type, ncclSum, comm_, stream), "a sum");
  }

  ncclComm_t comm_ = nullptr;
};

}  // namespace

bool nccl_available() {
  return true;
}

std::shared_ptr<NcclCommunicator> make_nccl_communicator(const Communicator& communicator, const Device& device) {
  // Communicators whose kernels wait for each other in unlike order would never end. NCCL starts them in the order in
  // which the program calls, which is the same on all ranks, where it is told to (2.26 and later).
  setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 0);
  ncclUniqueId id{};
  agree(communicator, [&] {
    static_cast<void>(cuda::device_of(device));  // throws where it is no GPU
    if (communicator.rank() == 0) check(ncclGetUniqueId(&id), "preparing NCCL");
  });
  communicator.broadcast(&id, sizeof(id), 0);
  std::shared_ptr<NcclCommunicator> made;
  const auto connect = [&] { made = std::make_shared<CudaNccl>(id, communicator.size(), communicator.rank(), device); };
  agree(communicator, connect, patience);
  return made;
}

}  // namespace halograd
