#!/usr/bin/env bash
# Measures start, size, shutdown, signals and logging of an optimised build on
# this machine, beside the servers that are installed, and prints one table each.
#
#   scripts/bench.sh          all, some minutes
#   scripts/bench.sh --quick  fewer rounds: does it run at all
set -euo pipefail
cd "$(dirname "$0")/.."

rounds=40 signals=200 pipes=5 windows=60
case "${1:-}" in
  "") ;;
  --quick) rounds=3 signals=20 pipes=1 windows=3 ;;
  *) sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 64 ;;
esac

scripts/setup.sh
build=build-bench
BUILD_DIR=$build scripts/build.sh -DCMAKE_BUILD_TYPE=Release >/dev/null
tools=$build/bench
mkdir -p "$tools"
cflags=(-O2 -Wall -Wextra -D_GNU_SOURCE)
gcc "${cflags[@]}" -o "$tools/lifetime" tests/bench/lifetime.c
gcc "${cflags[@]}" -o "$tools/bare_epoll" tests/bench/servers/bare_epoll.c
if command -v go >/dev/null; then
  (cd tests/bench/servers/go && go build -o "$OLDPWD/$tools/go_server" .)
else
  echo "bench.sh: no go: its server is left out (scripts/setup.sh --bench)" >&2
fi

export MOONTIDE=$PWD/$build/moontide MOONTIDE_SOURCE=$PWD
export LUA_PATH_5_4="$PWD/tests/?.lua;;" LUA_CPATH_5_4="$PWD/$build/?.so;;"
run() {
  echo
  lua5.4 "$@"
}

echo "moontide bench: $(nproc) CPUs, load $(cut -d' ' -f1-3 /proc/loadavg)," \
  "$(date -u +%FT%RZ), $(git describe --always --dirty 2>/dev/null || echo '?')"
run tests/bench/lifecycle.lua "$tools" "$rounds"
run tests/bench/sigterm.lua "$signals"
run tests/bench/unread_pipe.lua "$pipes"
run tests/bench/order.lua
run tests/bench/tasks.lua
run tests/bench/interrupt_cost.lua "$windows"
run tests/bench/runaway.lua "$rounds"
