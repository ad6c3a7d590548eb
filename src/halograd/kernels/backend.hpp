#pragma once

namespace halograd {

/// Which implementation of the kernels runs: `reference` is plain loops that sum in double (the oracle), `cpu` is
/// oneDNN and vectorised code. Every kernel object is made once for its local shape and then run; making may allocate
/// and throw, running does neither.
enum class Backend { cpu, reference };

const char* backend_name(Backend backend);

}  // namespace halograd
