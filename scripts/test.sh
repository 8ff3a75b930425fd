#!/usr/bin/env bash
# Everything that must hold: packages, two builds (normal, and with the address
# and the undefined-behaviour sanitizer), lint, half a minute of fuzzing, and all
# tests in both builds.
# The last lines are ctest's own for the normal build; any failure before it is
# said once more after them.
#
#   scripts/test.sh                 all of it
#   scripts/test.sh -R e2e.drain    arguments go to ctest, in both builds
set -euo pipefail
cd "$(dirname "$0")/.."

failures=()
step() { # step NAME COMMAND...: goes on after a failure and remembers it
  local name=$1
  shift
  echo "== $name"
  "$@" || failures+=("$name")
}

run_ctest() {
  local build=$1
  shift
  ctest --test-dir "$build" --output-on-failure --no-tests=error \
    -j "${JOBS:-2}" "$@"
}

echo "== packages"
scripts/setup.sh
echo "== normal build"
scripts/build.sh
echo "== sanitizer build"
BUILD_DIR=build-asan scripts/build.sh -DCMAKE_BUILD_TYPE=Debug \
  -DTIDE_ASAN=ON -DTIDE_UBSAN=ON

step lint scripts/lint.sh
[[ $# -gt 0 ]] || step fuzzing scripts/fuzz.sh --seed=1 30
step "tests, sanitizer build" run_ctest build-asan "$@"
step "tests, normal build" run_ctest build "$@"

if [[ ${#failures[@]} -gt 0 ]]; then
  printf 'test.sh: failed: %s\n' "${failures[@]}" >&2
  exit 1
fi
