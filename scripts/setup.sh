#!/bin/bash
# setup.sh [--check|--list] GROUP...: installs the Debian packages that are missing.
#
# Groups: build (make), test (make check, make demo), lint (make check, make lint), bench, model and
# browser (tests with real clients, which make check skips without it).
# --check installs nothing: it names what is missing and the command, and fails.
# --list prints the packages of the groups.
set -euo pipefail

packages() {
	case $1 in
	build) echo gcc make pkg-config libc6-dev libevent-dev libsqlite3-dev libsodium-dev \
		libjansson-dev libgit2-dev libcmocka-dev libyaml-dev libwslay-dev libzstd-dev \
		libhttp-parser-dev libssl-dev ;;
	test) echo bubblewrap git nginx-light fcgiwrap curl jq zstd openssl ca-certificates procps \
		sqlite3 iproute2 binutils ;;
	lint) echo clang clang-tidy clang-format cppcheck libclang-rt-14-dev shellcheck \
		binutils ;;
	bench) echo bubblewrap git nginx-light curl openssl procps ;;
	model) echo spin gcc libc6-dev ;;
	browser)
		# Other packages of nodejs than Debian's bring npm along, and conflict with its own.
		echo chromium
		command -v npm >/dev/null || echo nodejs npm ;;
	*) echo "setup.sh: no group $1; there are build, test, lint, bench, model and browser" >&2 && return 2 ;;
	esac
}

# Prints those of its arguments that are not installed.
missing() {
	local p state
	for p in "$@"; do
		# shellcheck disable=SC2016 # the format is dpkg-query's
		state=$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null) || state=
		[ "${state%%installed*}" = "" ] && [ -n "$state" ] || echo "$p"
	done
}

as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	else
		sudo "$@"
	fi
}

policy=/usr/sbin/policy-rc.d
policy_is_ours=

# nginx and fcgiwrap are only programs for the tests: their packages must start no service.
hold_services() {
	[ -e "$policy" ] && return
	policy_is_ours=yes
	printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
	as_root chmod 755 "$policy"
}

release_services() {
	if [ -n "$policy_is_ours" ]; then
		as_root rm -f "$policy"
	fi
}

# ...not even at the next boot.  Only what this call brought is touched.
disable_services() {
	local p
	[ -d /run/systemd/system ] || return 0
	for p in "$@"; do
		case $p in
		nginx-light) as_root systemctl --quiet disable nginx.service ;;
		fcgiwrap) as_root systemctl --quiet disable fcgiwrap.service fcgiwrap.socket ;;
		esac || true
	done
}

apt() {
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
		-o DPkg::Lock::Timeout=300 -o APT::Color=0 "$@"
}

# Old lists name versions that are gone, so that a failure is tried again with new ones.
install_packages() {
	if compgen -G '/var/lib/apt/lists/*_Packages*' >/dev/null &&
		apt install --no-install-recommends "$@"; then
		return
	fi
	apt update
	apt install --no-install-recommends "$@"
}

mode=install
case ${1-} in
--check) mode=check && shift ;;
--list) mode=list && shift ;;
-h | --help) sed -n '2,7s/^# \{0,1\}//p' "$0" && exit ;;
esac
if [ $# = 0 ]; then
	echo "usage: setup.sh [--check|--list] build|test|lint|bench|model|browser ..." >&2
	exit 2
fi

wanted=()
for group in "$@"; do
	list=$(packages "$group")
	read -ra names <<<"$list"
	wanted+=("${names[@]}")
done
mapfile -t wanted < <(printf '%s\n' "${wanted[@]}" | sort -u)

if [ $mode = list ]; then
	printf '%s\n' "${wanted[@]}"
	exit
fi
if ! command -v dpkg-query >/dev/null; then
	echo "setup.sh: not a Debian system; it is up to you to have: ${wanted[*]}" >&2
	exit 0
fi
mapfile -t absent < <(missing "${wanted[@]}")
[ ${#absent[@]} -gt 0 ] || exit 0

if [ $mode = check ]; then
	echo "Missing packages: ${absent[*]}" >&2
	echo "Install them with: scripts/setup.sh $*" >&2
	exit 1
fi
if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
	echo "setup.sh: neither root nor sudo, so these cannot be installed: ${absent[*]}" >&2
	echo "As root: apt-get install --no-install-recommends ${absent[*]}" >&2
	exit 1
fi

echo "setup.sh: installing ${absent[*]}"
trap release_services EXIT
trap 'exit 130' INT TERM
hold_services
install_packages "${absent[@]}"
disable_services "${absent[@]}"
