#!/usr/bin/env bash
# The quickstart from nothing to its end: installs, builds, starts it, waits for
# ready, sends it slow requests, SIGTERMs it in the middle of them, and shows
# when each phase ran and that no request was lost. Fails when one was.
set -euo pipefail
cd "$(dirname "$0")/.."

slow=20 # requests of two seconds each, in flight when the signal comes
app=examples/quickstart/app.lua
work=$(mktemp -d)
log=$work/app.log
pid=
trap '[[ -n $pid ]] && kill -KILL "$pid" 2>/dev/null; rm -rf "$work"' EXIT

die() {
  echo "demo.sh: $*" >&2
  [[ -f $log ]] && tail -n 30 "$log" >&2
  exit 1
}

# Two ports of 127.0.0.1 that nobody uses now.
free_ports() {
  lua5.4 -e 'local uv = require "luv"
    local a, b = uv.new_tcp(), uv.new_tcp()
    a:bind("127.0.0.1", 0) b:bind("127.0.0.1", 0)
    print(a:getsockname().port, b:getsockname().port)'
}

# get NAME PATH: one request; NAME.code gets its status, or curl's own error:
# "refused" is an answer too (the client knows that nothing was taken).
get() {
  local code rc=0
  code=$(curl -s -o "$work/$1.body" -w '%{http_code}' --max-time 20 \
    "http://127.0.0.1:$PORT$2") || rc=$?
  case $rc in
    0) echo "$code" ;;
    7) echo refused ;;
    *) echo "lost (curl error $rc)" ;;
  esac >"$work/$1.code"
}

count() { # count PATTERN NAME...: how many of the answers are this
  local pattern=$1
  shift
  cat "$work"/$1-*.code 2>/dev/null | grep -cx "$pattern" || true
}

echo "== install and build"
scripts/setup.sh --build-only
BUILD_TARGETS=moontide scripts/build.sh

read -r PORT MANAGE <<<"$(free_ports)"
export PORT MOONTIDE_MANAGE__PORT=$MANAGE MOONTIDE_LOG__FORMAT=json
export MOONTIDE_STATE_DIR=$work/state
echo "== start $app, application :$PORT, management :$MANAGE"
build/moontide run "$app" 2>"$log" &
pid=$!

ready=
for _ in $(seq 200); do
  kill -0 "$pid" 2>/dev/null || die "it ended before it was ready"
  ready=$(curl -s -o /dev/null -w '%{http_code}' \
    "http://127.0.0.1:$MANAGE/health/ready" || true)
  [[ $ready == 200 ]] && break
  sleep 0.05
done
[[ $ready == 200 ]] || die "not ready after 10 s"
echo "ready: $(curl -s "http://127.0.0.1:$MANAGE/health/ready")"
echo "GET /orders/7: $(curl -s "http://127.0.0.1:$PORT/orders/7")"

echo "== $slow slow requests, then SIGTERM to $pid in the middle of them"
clients=()
for i in $(seq "$slow"); do
  get "slow-$i" /slow &
  clients+=($!)
done
sleep 0.7
kill -TERM "$pid"
after=$(curl -s -o /dev/null -w '%{http_code}' \
  "http://127.0.0.1:$MANAGE/health/ready" || true)
echo "readiness right after the signal: $after"

# New requests go on coming until the port is closed.
i=0
while kill -0 "$pid" 2>/dev/null; do
  i=$((i + 1))
  get "late-$i" /
  [[ $(cat "$work/late-$i.code") == refused ]] && break
done
wait "${clients[@]}"
code=0
wait "$pid" || code=$?
pid=

echo "== timeline"
lua5.4 scripts/timeline.lua "$log"

served=$(count 200 slow)
late=$(count 200 late)
lost=$(cat "$work"/*.code | grep -cvxE '200|refused' || true)
echo "== $served of $slow slow requests answered, $late quick ones answered" \
  "after the signal, $lost lost; exit code $code"
[[ $after == 503 ]] || die "readiness was $after after the signal, not 503"
[[ $served -eq $slow && $lost -eq 0 ]] || die "requests were lost"
[[ $late -gt 0 ]] || die "no request was served after the signal (linger)"
[[ $code -eq 0 ]] || die "exit code $code"
