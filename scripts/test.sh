#!/usr/bin/env bash
# test.sh [CTEST-OPTION...]: installs what is missing, builds, and runs every test.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/install-packages.sh build test
scripts/build.sh -DHALOGRAD_BUILD_TESTS=ON -DHALOGRAD_BUILD_EXAMPLES=ON
ctest --preset release "$@"
