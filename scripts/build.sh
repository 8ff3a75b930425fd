#!/usr/bin/env bash
# Builds build/moontide, the library in its two kinds, the Lua module and the
# tests. Arguments go to CMake:
#
#   scripts/build.sh -DCMAKE_BUILD_TYPE=Debug
#   BUILD_DIR=build-tsan scripts/build.sh -DTIDE_TSAN=ON
#   BUILD_TARGETS=moontide scripts/build.sh -DBUILD_TESTING=OFF
set -euo pipefail
cd "$(dirname "$0")/.."

build=${BUILD_DIR:-build}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! cmake -S . -B "$build" -G Ninja "$@" >"$log" 2>&1; then
  cat "$log" >&2
  exit 1
fi
grep -A3 -i "warning" "$log" >&2 || true
read -ra targets <<<"${BUILD_TARGETS:-}"
ninja -C "$build" --quiet ${JOBS:+-j "$JOBS"} "${targets[@]}" |
  { grep -v "^ninja: no work to do" || true; }
echo "built $build/moontide"
