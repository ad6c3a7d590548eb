#include <halograd/comm/communicator.hpp>
#include <halograd/comm/nccl_version.hpp>
#include <halograd/device/cuda_version.hpp>
#include <halograd/exec/executor.hpp>
#include <halograd/kernels/cuda/versions.hpp>
#include <halograd/models/cosmoflow.hpp>

#include <iostream>
#include <vector>

// The paper's network has as many parameters as Table I says, and a small one of the same make runs. The versions come
// from the libraries that a build with CUDA links besides.
int main() {
  using namespace halograd;
  std::cout << "parameters " << cosmoflow({.width = 128, .batch_norm = false}).trainable_parameters() << '\n';

  Executor executor(cosmoflow({.width = 32}), Communicator::self(), {});
  const std::vector<float> voxels(4 * 32 * 32 * 32, 1.0F);
  executor.predict({.size = 1, .samples = {{.data = voxels.data(), .name = "ones"}}});
  std::cout << "outputs " << executor.output().size() << '\n';
  std::cout << cuda_versions() << "; " << cuda::cuda_library_versions() << "; NCCL " << comm::nccl_version() << '\n';
}
