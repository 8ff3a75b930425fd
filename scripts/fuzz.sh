#!/usr/bin/env bash
# Builds the fuzz targets (tests/fuzz) with clang, libFuzzer and the address and
# undefined-behaviour sanitizers, and lets each of them run on from the corpus
# of the tree and from what earlier runs have learned here. Fails at the first
# input that breaks one, and says how to see it.
#
#   scripts/fuzz.sh               60 seconds, shared by all targets
#   scripts/fuzz.sh 600           600 seconds
#   scripts/fuzz.sh 600 conn      all of them for one target
#   scripts/fuzz.sh --seed=1 30   the same inputs in the same order each time,
#                                 from the corpus of the tree alone
#   scripts/fuzz.sh --pack        puts the best of what was learned here into
#                                 the tree: tests/fuzz/learned.tar.gz
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  sed -n '2,14s/^# \{0,1\}//p' "$0" >&2
  exit 64
}

build=build-fuzz
packed=tests/fuzz/learned.tar.gz
seconds=60
seed=
pack=
case "${1:-}" in
  --seed=*[!0-9]* | --seed=) usage ;;
  --seed=*) seed=${1#--seed=} && shift ;;
  --pack) pack=1 && shift ;;
esac
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
rm -rf "$build/seeds" && mkdir "$build/seeds"
[[ ! -f $packed ]] || tar -xzf "$packed" -C "$build/seeds"

# Shorter stacks at each allocation, and no hoard of freed memory: twice as
# fast, and what is freed lately is still watched.
export ASAN_OPTIONS=malloc_context_size=2:quarantine_size_mb=16

# Where a run puts what it learns: with a seed, where nothing was learned yet.
learned() { # learned TARGET
  local folder=$build/corpus/$1
  if [[ -n $seed ]]; then
    folder=$build/seeded/$1
    rm -rf "$folder"
  fi
  mkdir -p "$folder" "$build/seeds/$1"
  echo "$folder"
}

# Folders are listed in an order of their own; a list is the same everywhere.
list_seeds() { # list_seeds TARGET
  find "tests/fuzz/corpus/$1" "$build/seeds/$1" -type f | LC_ALL=C sort |
    paste -sd, >"$build/seeds/$1.list"
}

run() { # run TARGET SECONDS
  local target=$1 log=$build/found/$1.log options=() folder
  folder=$(learned "$target")
  list_seeds "$target"
  [[ $target == conn ]] && options=(-dict=tests/fuzz/http.dict)
  # Without what comparisons saw: there are addresses among it.
  [[ -n $seed ]] && options+=("-seed=$seed" -use_cmp=0)
  if ! "$build/tests/fuzz/fuzz_$target" "${options[@]}" -max_len=4096 \
    -timeout=20 -max_total_time="$2" -print_final_stats=1 \
    -artifact_prefix="$build/found/$target-" \
    -seed_inputs="@$build/seeds/$target.list" "$folder" >"$log" 2>&1; then
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

# The fewest inputs that go wherever those of this machine and of the tree go;
# those that lie in the tree as files are not packed.
choose() { # choose TARGET
  local target=$1 folder=$build/packed/$1
  mkdir -p "$folder" "$build/seeds/$target" "$build/corpus/$target"
  "$build/tests/fuzz/fuzz_$target" -set_cover_merge=1 -use_counters=0 \
    -max_len=4096 "$folder" "tests/fuzz/corpus/$target" \
    "$build/seeds/$target" "$build/corpus/$target" \
    >"$build/found/$target.log" 2>&1
  for file in "tests/fuzz/corpus/$target"/*; do
    rm -f "$folder/$(sha1sum <"$file" | cut -d' ' -f1)"
  done
  echo "fuzz $target: $(find "$folder" -type f | wc -l) inputs packed"
}

if [[ -n $pack ]]; then
  rm -rf "$build/packed"
  for target in "${targets[@]}"; do
    choose "$target"
  done
  tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner \
    -C "$build/packed" -c "${targets[@]}" | gzip -9n >"$packed"
  exit
fi

for target in "${targets[@]}"; do
  run "$target" $((seconds / ${#targets[@]} + 1))
done
