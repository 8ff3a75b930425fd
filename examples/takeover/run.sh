#!/usr/bin/env bash
# Replaces a running service by its next version, again and again, under load, without
# a proxy, and fails when a single request did.
#
#   examples/takeover/run.sh 5    five new versions, one after the other
#
# Needs build/moontide (or $MOONTIDE).
set -euo pipefail
cd "$(dirname "$0")"

times=${1:-5}
moontide=${MOONTIDE:-../../build/moontide}
if [[ ! $times =~ ^[1-9][0-9]*$ ]]; then
  sed -n '2,7s/^# \{0,1\}//p' run.sh >&2
  exit 64
fi

work=$(mktemp -d)
export PORT=${PORT:-8000} MOONTIDE_MANAGE__PORT=${MANAGE:-8100} MOONTIDE_LOG__FORMAT=json
# Where the processes find each other; a systemd unit has it by RuntimeDirectory=.
export RUNTIME_DIRECTORY=$work MOONTIDE_STATE_DIR=$work/state

declare -A pids=()
clean_up() {
  { kill -TERM "${pids[@]}" && wait; } 2>/dev/null
  rm -rf "$work"
}
trap clean_up EXIT

die() {
  echo "run.sh: $*" >&2
  tail -n 5 "$work"/*.log >&2 || true
  exit 1
}

start() { # start VERSION MESSAGE: returns when its log has the message
  local log=$work/$1.log
  : >"$log" # the process opens it when it gets to run
  VERSION=$1 "$moontide" run --takeover app.lua 2>>"$log" &
  pids[$1]=$!
  for _ in $(seq 200); do
    grep -q "\"msg\":\"$2\"" "$log" && return
    kill -0 "${pids[$1]}" 2>/dev/null || die "version $1 has ended"
    sleep 0.05
  done
  die "version $1 does not become ready"
}

start 1 ready # nobody is there: a plain start
FRONT=$PORT "$moontide" run ../rolling/load.lua >"$work/load.out" 2>"$work/load.log" &
pids[load]=$!

for version in $(seq 2 $((times + 1))); do
  old=$((version - 1))
  start "$version" "taken over"
  wait "${pids[$old]}" || die "version $old ended with $?"
  echo "version $version: process ${pids[$version]} serves, ${pids[$old]} has ended"
  unset "pids[$old]"
done

kill -TERM "${pids[load]}"
wait "${pids[load]}" || die "the load ended with $?"
unset "pids[load]"
kill -TERM "${pids[$version]}"
wait "${pids[$version]}" || die "version $version ended with $?"
unset "pids[$version]"
cat "$work/load.out"
grep '"request failed"' "$work/load.log" | head -n 5 || true
grep -qE '^answered=[1-9][0-9]* failed=0 ' "$work/load.out" || die "requests failed"
