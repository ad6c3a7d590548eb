#pragma once

// Compiles a function several times and picks the version for this processor when the program is loaded. The loop has
// to stand in the function itself: what it calls is compiled once, for the oldest processor, unless it is inlined. Not
// under the thread sanitizer, which is not ready yet where the choice is made, and not by clang, which refuses
// templates.
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__SANITIZE_THREAD__) && !defined(__clang__)
#define HALOGRAD_MULTIVERSION __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define HALOGRAD_MULTIVERSION
#endif
