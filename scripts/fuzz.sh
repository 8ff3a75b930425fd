#!/usr/bin/env bash
# Builds the fuzz targets (tests/fuzz) with clang, libFuzzer and the address and
# undefined-behaviour sanitizers, and lets each of them run on from the corpus
# of the tree. Fails at the first input that breaks one, and says how to see it.
#
#   scripts/fuzz.sh             60 seconds, shared by all targets
#   scripts/fuzz.sh 600         600 seconds
#   scripts/fuzz.sh 600 conn    all of them for one target
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
  exit 64
}

build=build-fuzz
seconds=60
case "${1:-}" in
  "") ;;
  *[!0-9]*) usage ;;
  *) seconds=$1 ;;
esac

targets=()
for file in tests/fuzz/fuzz_*.c; do
  name=${file##*/fuzz_}
  targets+=("${name%.c}")
done
if [[ -n ${2:-} ]]; then
  if [[ ! -f tests/fuzz/fuzz_$2.c ]]; then
    echo "fuzz.sh: no target \"$2\"; there are: ${targets[*]}" >&2
    exit 64
  fi
  targets=("$2")
fi

BUILD_DIR=$build BUILD_TARGETS="${targets[*]/#/fuzz_}" scripts/build.sh \
  -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=Debug -DTIDE_FUZZ=ON \
  -DTIDE_ASAN=ON -DTIDE_UBSAN=ON -DTIDE_WERROR=OFF >/dev/null
mkdir -p "$build/found"

# Shorter stacks at each allocation, and no hoard of freed memory: twice as
# fast, and what is freed lately is still watched.
export ASAN_OPTIONS=malloc_context_size=2:quarantine_size_mb=16

run() { # run TARGET SECONDS
  local target=$1 log=$build/found/$1.log options=()
  mkdir -p "$build/corpus/$target"
  [[ $target == conn ]] && options=(-dict=tests/fuzz/http.dict)
  if ! "$build/tests/fuzz/fuzz_$target" "${options[@]}" -max_len=4096 \
    -timeout=20 -max_total_time="$2" -print_final_stats=1 \
    -artifact_prefix="$build/found/$target-" \
    "$build/corpus/$target" "tests/fuzz/corpus/$target" >"$log" 2>&1; then
    grep -vE "^(#|INFO|NEW|REDUCE|==.*WARNING)" "$log" | tail -n 60 >&2
    echo "fuzz.sh: \"$target\" broke; again with that input:" \
      "$build/tests/fuzz/fuzz_$target" \
      "$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)" >&2
    return 1
  fi
  awk -v target="$target" '
    /^#.* cov: / { for (i = 1; i < NF; i++) {
      if ($i == "cov:") cov = $(i + 1)
      if ($i == "ft:") ft = $(i + 1) } }
    /number_of_executed_units/ { units = $2 }
    /average_exec_per_sec/ { speed = $2 }
    END { printf "fuzz %-9s %9d inputs, %6d/s, %5d edges, %6d features\n",
          target, units, speed, cov, ft }' "$log"
}

for target in "${targets[@]}"; do
  run "$target" $((seconds / ${#targets[@]} + 1))
done
