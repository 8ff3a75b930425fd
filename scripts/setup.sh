#!/usr/bin/env bash
# Installs the Debian packages that moontide needs. Asks apt only for what is
# missing, so that a second run costs nothing and needs neither root nor network.
#
#   scripts/setup.sh                to build, to test and to run the examples
#   scripts/setup.sh --build-only   to build and to run the demo
#   scripts/setup.sh --bench        also the servers that scripts/bench.sh
#                                   compares with
set -euo pipefail

build=(
  build-essential cmake ninja-build pkg-config
  lua5.4 liblua5.4-dev libuv1-dev lua-luv lua-luv-dev lua-cjson lua-cjson-dev
  lua-argparse curl libsqlite3-dev libedit-dev
)
test=(
  lua-busted lua-check libcmocka-dev clang-format clang-tidy # tests, lint
  clang libclang-rt-dev                                      # fuzzing
  procps python3 python3-yaml systemd faketime util-linux    # e2e, examples
  haproxy nginx-light nodejs socat wrk                       # other ends of HTTP
  slowhttptest                                               # ... hostile ones
  lua-luaossl python3-websockets                             # WebSocket
)
bench=(golang-go libnginx-mod-http-lua)

installed() {
  [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

usage() {
  sed -n '2,8s/^# \{0,1\}//p' "$0"
}

wanted=("${build[@]}" "${test[@]}")
case "${1:-}" in
  "") ;;
  --build-only) wanted=("${build[@]}") ;;
  --bench) wanted+=("${bench[@]}") ;;
  -h | --help) usage; exit 0 ;;
  *) usage >&2; exit 64 ;;
esac

missing=()
for package in "${wanted[@]}"; do
  case "$package" in
    # Any build of these does.
    nginx-light) command -v nginx >/dev/null && continue ;;
    golang-go) command -v go >/dev/null && continue ;;
    nodejs) command -v node >/dev/null && continue ;;
  esac
  installed "$package" || missing+=("$package")
done

# llhttp: a library of its own from Debian 13 on; Debian 12 has its C sources in
# node-llhttp. Which one there is can be asked once the package lists are here.
llhttp=
installed libllhttp-dev || installed node-llhttp || llhttp=wanted

if [[ ${#missing[@]} -eq 0 && -z $llhttp ]]; then
  exit 0
fi

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "setup.sh: run me as root: these packages are missing:" \
      "${missing[*]} ${llhttp:+llhttp}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

# apt is silent when all goes well and shows everything when it does not.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
quietly() {
  if ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive "$@" >"$log" 2>&1
  then
    cat "$log" >&2
    echo "setup.sh: failed: $*" >&2
    exit 1
  fi
}

quietly apt-get update
if [[ -n $llhttp ]]; then
  if [[ -n $(apt-cache madison libllhttp-dev 2>/dev/null) ]]; then
    missing+=(libllhttp-dev)
  else
    missing+=(node-llhttp)
  fi
fi
echo "setup.sh: installing ${missing[*]}"
quietly apt-get install -y --no-install-recommends "${missing[@]}"
