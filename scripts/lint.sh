#!/usr/bin/env bash
# Reads the whole tree without running it: shell syntax, luacheck, clang-format,
# clang-tidy (needs the compile database of a build: scripts/build.sh first).
# Says nothing when all is well.
set -uo pipefail
cd "$(dirname "$0")/.."

build=${BUILD_DIR:-build}
failed=0
quietly() { # shows a command's output only when it fails
  local out
  if ! out=$("$@" 2>&1); then
    printf '%s\nlint.sh: failed: %s\n' "$out" "${*:1:3}" >&2
    failed=1
  fi
}

# Empty globs vanish, so that a folder may be without files of a kind.
shopt -s nullglob globstar
shell=(scripts/*.sh .ci/run examples/**/*.sh tests/**/*.sh)
lua=(lua tests scripts examples)
c=(core/**/*.[ch] include/*.h tests/**/*.[ch] examples/**/*.[ch])
tidy=(core/*.c core/http/*.c core/lua/*.c core/cli/*.c core/modules/*.c)

for file in "${shell[@]}"; do
  quietly bash -n "$file"
done

existing=()
for folder in "${lua[@]}"; do
  [[ -d $folder ]] && existing+=("$folder")
done
quietly luacheck --quiet --no-color "${existing[@]}"

quietly clang-format --dry-run -Werror "${c[@]}"

tidy_one() {
  local out
  # With asserts, whatever the build: they tell it what holds. What clang itself
  # counts ("3 warnings generated") goes to stderr.
  if ! out=$(clang-tidy --quiet -p "$1" --extra-arg=-UNDEBUG "$2" 2>/dev/null) ||
    [[ -n $out ]]; then
    printf '%s\n' "$out"
    return 1
  fi
}
export -f tidy_one
if [[ ! -f $build/compile_commands.json ]]; then
  echo "lint.sh: no $build/compile_commands.json; run scripts/build.sh" >&2
  failed=1
elif [[ ${#tidy[@]} -gt 0 ]]; then
  printf '%s\0' "${tidy[@]}" |
    xargs -0 -P "${JOBS:-2}" -I{} bash -c 'tidy_one "$0" "$1"' "$build" {} ||
    failed=1
fi

exit "$failed"
