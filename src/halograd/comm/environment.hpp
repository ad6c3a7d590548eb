#pragma once

namespace halograd::comm {

/// Whether the environment variable `name` says 0, off, false or no. Unset it does not.
bool switched_off(const char* name);

}  // namespace halograd::comm
