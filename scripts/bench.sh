#!/usr/bin/env bash
# Measures an optimised build on this machine, beside the servers that are
# installed (scripts/setup.sh --bench installs them), and prints a table each.
#
#   scripts/bench.sh                 all parts, some minutes each
#   scripts/bench.sh http tasks      these parts
#   scripts/bench.sh --quick [PART]  fewer rounds: does it run at all
#   scripts/bench.sh --help          the parts
#
# Words behind "--" go to the one part that is named:
#
#   scripts/bench.sh http -- pipelined     BENCH_SERVERS=moontide,nginx
set -euo pipefail
cd "$(dirname "$0")/.."

# Name, script, its arguments (TOOLS: the folder of the tools; ROUNDS), rounds,
# rounds with --quick, what it measures.
parts=(
  "lifecycle|lifecycle.lua|TOOLS ROUNDS|40|3|exec to ready, size, signal to exit"
  "sigterm|sigterm.lua|ROUNDS|200|20|SIGTERM at random moments"
  "log|unread_pipe.lua|ROUNDS|5|1|a log that nobody reads"
  "order|order.lua||||ordering 10,000 phases"
  "tasks|tasks.lua||||10,000 tasks"
  "look|look.lua|ROUNDS|30|3|looking into a process with 10,000 and 200,000 tasks"
  "interrupt|interrupt_cost.lua|ROUNDS|60|3|what interrupting costs Lua"
  "embed|embed.lua|TOOLS ROUNDS|40|3|the host in a program of one's own"
  "runaway|runaway.lua|ROUNDS|40|3|Lua that spins, from its deadline to its end"
  "http|http.lua|TOOLS ROUNDS|10|1|requests: CPU, throughput, idle connections"
  "drain|drain.lua|TOOLS ROUNDS|100|3|what a stop costs clients: requests lost, time to the exit"
)

usage() {
  sed -n '2,13s/^# \{0,1\}//p' "$0"
  echo
  local part name text
  for part in "${parts[@]}"; do
    IFS='|' read -r name _ _ _ _ text <<<"$part"
    printf '  %-10s %s\n' "$name" "$text"
  done
}

quick= wanted=() words=()
while [[ $# -gt 0 ]]; do
  case "$1" in
    --quick) quick=1 ;;
    -h | --help) usage; exit 0 ;;
    --) shift; words=("$@"); break ;;
    -*) usage >&2; exit 64 ;;
    *) wanted+=("$1") ;;
  esac
  shift
done
for name in "${wanted[@]}"; do
  if ! printf '%s\n' "${parts[@]}" | grep -q "^$name|"; then
    echo "bench.sh: no part is named \"$name\"" >&2
    usage >&2
    exit 64
  fi
done
if [[ ${#words[@]} -gt 0 && ${#wanted[@]} -ne 1 ]]; then
  echo "bench.sh: words behind \"--\" need one part" >&2
  exit 64
fi

scripts/setup.sh
build=build-bench
BUILD_DIR=$build BUILD_TARGETS="moontide moontide_module bench_tools" \
  scripts/build.sh -DCMAKE_BUILD_TYPE=Release >/dev/null
tools=$build/bench
if command -v go >/dev/null; then
  (cd tests/bench/servers/go && go build -o "$OLDPWD/$tools/go_server" .)
else
  echo "bench.sh: no go: its server is left out (scripts/setup.sh --bench)" >&2
fi

export MOONTIDE=$PWD/$build/moontide MOONTIDE_SOURCE=$PWD
export MOONTIDE_DRAIN_TOOLS=$PWD/$build/tests
export LUA_PATH_5_4="$PWD/tests/?.lua;;" LUA_CPATH_5_4="$PWD/$build/?.so;;"

echo "moontide bench: $(nproc) CPUs, load $(cut -d' ' -f1-3 /proc/loadavg)," \
  "$(date -u +%FT%RZ), $(git describe --always --dirty 2>/dev/null || echo '?')"
failed=0
for part in "${parts[@]}"; do
  IFS='|' read -r name script arguments rounds few _ <<<"$part"
  if [[ ${#wanted[@]} -gt 0 && " ${wanted[*]} " != *" $name "* ]]; then
    continue
  fi
  if [[ -n $quick ]]; then rounds=$few; fi
  arguments=${arguments/TOOLS/$tools}
  read -ra arguments <<<"${arguments/ROUNDS/$rounds}"
  echo
  lua5.4 "tests/bench/$script" "${arguments[@]}" "${words[@]}" || failed=1
done
exit "$failed"
