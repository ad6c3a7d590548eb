#pragma once

namespace halograd {

/// MPI for the life of the process: initialised on construction where the process was started by mpirun (or `force`s
/// it), finalised on destruction unless an exception is unwinding. Without mpirun a plain process stays one rank alone.
class MpiSession {
public:
  MpiSession(int& argc, char**& argv);
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;
};

/// Ends the whole job at once with this exit code: for a failure inside a step, where other ranks wait.
[[noreturn]] void abort_job(int exit_code);

}  // namespace halograd
