#!/usr/bin/env bash
# Restarts a service of two processes behind a proxy, again and again, under load,
# and fails when a single request did.
#
#   examples/rolling/run.sh rolling 5        both serve; each in turn is restarted
#   examples/rolling/run.sh blue-green 5     one serves; the new version starts beside
#                                            it, gets all requests at once, the old ends
#   examples/rolling/run.sh rolling 5 nginx  behind nginx instead of HAProxy
#
# Needs haproxy and socat (or nginx), curl, and build/moontide (or $MOONTIDE).
set -euo pipefail
cd "$(dirname "$0")"

mode=${1:-rolling} times=${2:-5} proxy=${3:-haproxy}
moontide=${MOONTIDE:-../../build/moontide}
work=$(mktemp -d)
export FRONT=${FRONT:-8000} ONE=${ONE:-8091} TWO=${TWO:-8092}
export ONE_MANAGE=${ONE_MANAGE:-8191} TWO_MANAGE=${TWO_MANAGE:-8192}
export ADMIN=$work/haproxy.sock

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

until_ok() { # until_ok WHAT COMMAND...: asks until it succeeds, 10 s at most
  local what=$1
  shift
  for _ in $(seq 200); do
    "$@" && return
    sleep 0.05
  done
  die "waited in vain for $what"
}

ready() { # ready MANAGEMENT-PORT
  curl -sf -o /dev/null "http://127.0.0.1:$1/health/ready"
}

start() { # start one|two VERSION: returns when it is ready
  local port=${1^^} manage=${1^^}_MANAGE
  PORT=${!port} MOONTIDE_MANAGE__PORT=${!manage} VERSION=$2 \
    MOONTIDE_STATE_DIR=$work/$1 "$moontide" run app.lua 2>>"$work/$1.log" &
  pids[$1]=$!
  until_ok "$1 to be ready" ready "${!manage}"
}

finish() { # finish NAME: SIGTERM, and the exit code must be 0
  kill -TERM "${pids[$1]}"
  wait "${pids[$1]}" || die "$1 ended with $?"
  unset "pids[$1]"
}

admin() { # admin COMMAND: HAProxy's answer
  socat - "UNIX-CONNECT:$ADMIN" <<<"$1"
}

serving() { # serving one|two: HAProxy has seen it ready
  admin "show stat" 2>/dev/null | grep -q "^both,$1,.*,UP,"
}

start_haproxy() {
  haproxy -db -f haproxy.cfg 2>"$work/haproxy.log" &
  pids[haproxy]=$!
  until_ok "HAProxy" serving one
}

start_nginx() {
  sed "s/:8000/:$FRONT/; s/:8091/:$ONE/; s/:8092/:$TWO/" nginx.conf >"$work/nginx.conf"
  nginx -p "$work" -c nginx.conf -e stderr 2>"$work/nginx.log" &
  pids[nginx]=$!
  until_ok "nginx" curl -sf -o /dev/null "http://127.0.0.1:$FRONT/orders/0"
}

rolling() { # both, one after the other
  for name in one two; do
    finish "$name"
    start "$name" "$1"
  done
  echo "version $1: both restarted"
}

other() {
  [[ $1 == one ]] && echo two || echo one
}

colour() {
  [[ $1 == one ]] && echo blue || echo green
}

blue_green() { # the new one beside the old one, all at once, then the old one ends
  local old=$live new
  new=$(other "$live")
  start "$new" "$1"
  # The switch goes by what HAProxy knows, so it must have seen the new one.
  until_ok "HAProxy to see $new" serving "$new"
  admin "set map live.map live $(colour "$new")" >/dev/null
  live=$new
  echo "version $1: $(colour "$new") serves, $(colour "$old") ends"
  finish "$old"
}

known='^(rolling (haproxy|nginx)|blue-green haproxy) [1-9][0-9]*$'
if [[ ! "$mode $proxy $times" =~ $known ]]; then
  sed -n '2,10s/^# \{0,1\}//p' run.sh >&2
  exit 64
fi

start one 1
if [[ $mode == rolling ]]; then
  start two 1
fi

"start_$proxy"
if [[ $mode == blue-green ]]; then
  live=one
  admin "set map live.map live blue" >/dev/null
fi

"$moontide" run load.lua >"$work/load.out" 2>"$work/load.log" &
pids[load]=$!

for version in $(seq 2 $((times + 1))); do
  "${mode//-/_}" "$version"
done

finish load
for name in one two; do
  [[ -z ${pids[$name]:-} ]] || finish "$name"
done
cat "$work/load.out"
grep '"request failed"' "$work/load.log" | head -n 5 || true
grep -qE '^answered=[1-9][0-9]* failed=0 ' "$work/load.out" || die "requests failed"
