#!/bin/bash
# check.sh: what `make check` does once the packages are there.
#
# Builds with both compilers and three flavours, then runs every test; the list below is all
# there is.  The last line is `N passed, N failed, N skipped`.
set -euo pipefail
cd "$(dirname "$0")/.."

# A make above this one has its own ideas about jobs and flags.
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES FLAVOUR CC CFLAGS CPPFLAGS LDFLAGS

jobs=2		# compilers at a time; a test waits more than it works, so one more of these
asan=build/asan
export ANVIL_BUILD=$PWD/$asan	# where tests find the programs

# Tests that run as root become an ordinary user, who may not enter this folder: then the
# programs are copied to where he may.
copied=
if [ "$(id -u)" = 0 ] && ! setpriv --reuid=65534 --clear-groups test -x "$PWD/scripts/check.sh"; then
	copied=$(mktemp -d)
	chmod 755 "$copied"
	trap 'rm -rf "$copied"' EXIT
	export ANVIL_BUILD=$copied
fi

# Sanitizers want their shadow memory where the kernel may have put something else.
fixed=
if setarch "$(uname -m)" -R true 2>/dev/null; then
	fixed="setarch $(uname -m) -R "
fi

row() {	# KIND NAME SECONDS COMMAND
	printf '%s\t%s\t%s\t%s\n' "$@"
}

builds() {
	row one build/asan 900 "make -k -j$jobs FLAVOUR=asan tests"
	row stage
	row one build/clang 900 "make -k -j$jobs CC=clang FLAVOUR=plain objects"	# what it warns of, soon
	row stage
	row one build/release 900 "make -k -j$jobs programs"
	row stage
	row one build/tsan 900 "make -k -j$jobs FLAVOUR=tsan tsan-tests"
	row stage
}

copies() {
	[ -z "$copied" ] || row one build/copies 60 "cp $asan/anvil* $copied"
	row stage
}

source_checks() {
	local check
	for check in headers source layers sizes format; do
		row one "source/$check" 300 "scripts/check-$check.sh"
	done
	row one source/shell 300 "scripts/check-shell.sh --alone"
	row one source/linkage 300 "scripts/check-linkage.sh build/release"
	row one source/model 60 "scripts/model.sh --names"
}

name_of() {
	basename "$1" | sed 's/\.[^.]*$//'
}

tests() {
	local file name
	local longest=test/system/l30_silence.sh	# mostly waits: begins first, beside the others
	for file in $longest test/system/[a-z][0-9]*.sh; do
		[ "$file" = $longest ] && [ -n "${name-}" ] && continue
		name=$(name_of "$file")
		row one "system/$name" 300 "$fixed$file"
	done
	for file in test/actor/test_*.c; do
		name=$(name_of "$file")
		[ ! -e "$file" ] || row cmocka "actor/$name" 300 "$fixed$asan/test/actor/$name"
	done
	for file in test/unit/test_*.c; do
		name=$(name_of "$file")
		[ ! -e "$file" ] || row cmocka "unit/$name" 300 "$fixed$asan/test/unit/$name"
	done
	for file in $(make -s print-tsan-tests FLAVOUR=tsan); do
		row cmocka "tsan/$(basename "$file")" 300 "$fixed$file"
	done
	for file in test/fuzz/fuzz_*.c; do
		name=$(name_of "$file")
		[ ! -e "$file" ] ||
			row one "fuzz/$name" 120 "$asan/test/fuzz/$name test/fuzz/corpus/${name#fuzz_}"
	done
}

{
	builds
	copies
	source_checks
	tests
} | scripts/run-tests.sh "$asan/log" $((jobs + 1))
