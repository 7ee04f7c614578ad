#!/bin/bash
# check-linkage.sh BUILDDIR: each program needs only the libraries that are its business.
#
# Nothing that parses what strangers send is linked into a program that does not have to.
set -euo pipefail
cd "$(dirname "$0")/.."

dir=${1:-build/release}

# The programs that may need a library; nothing: any program may.
may_need() {
	case $1 in
	libgit2.*) echo "anvil-checkout" ;;
	libhttp_parser.* | libwslay.*) echo "anvil-ingress" ;;
	libzstd.*) echo "anvil-run anvilctl" ;;
	libyaml-*) echo "anvil-run anvilctl anvild" ;;
	libsqlite3.*) echo "anvild anvil-ingress anvil-project anvil-run" ;;
	libsodium.* | libcrypto.*) echo "anvild anvil-ingress anvil-project anvil-run" ;;
	libc.so.* | libm.so.* | libjansson.* | libevent_core-* | libevent_pthreads-* | \
		ld-linux*) echo "any" ;;
	esac
}

bad=0
for main in cmd/*/main.c; do
	[ -e "$main" ] || continue
	program=$(basename "$(dirname "$main")")
	[ "$program" != anvil-protogen ] || continue
	if [ ! -x "$dir/$program" ]; then
		echo "$dir/$program: not built"
		bad=1
		continue
	fi
	while read -r library; do
		programs=$(may_need "$library")
		case " $programs " in
		"  ") echo "$program needs $library, which scripts/check-linkage.sh does not know" ;;
		" any " | *" $program "*) continue ;;
		*) echo "$program needs $library, which is for $programs" ;;
		esac
		bad=1
	done < <(readelf -d "$dir/$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
done
exit $bad
