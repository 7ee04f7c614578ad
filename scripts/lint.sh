#!/bin/bash
# lint.sh: what `make lint` does: the checks of the source, cppcheck and clang-tidy.
#
# Ends like `make check`, with a line that counts.
set -euo pipefail
cd "$(dirname "$0")/.."
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES FLAVOUR CC CFLAGS CPPFLAGS LDFLAGS

row() {	# KIND NAME SECONDS COMMAND
	printf '%s\t%s\t%s\t%s\n' "$@"
}

flags="-std=gnu17 -D_GNU_SOURCE -DANVIL_VERSION=\\\"0\\\" -I. -Ibuild"
tidy=$(command -v clang-tidy-14 || echo clang-tidy)

{
	row one build/release 900 "make -k -j2 gen programs"
	row stage
	for check in headers source layers sizes format shell; do
		row one "source/$check" 300 "scripts/check-$check.sh"
	done
	row one source/linkage 300 "scripts/check-linkage.sh build/release"
	row one source/model 60 "scripts/model.sh --names"
	row one source/cppcheck 1800 "scripts/check-cppcheck.sh"
	find lib cmd test -name '*.c' | LC_ALL=C sort | while read -r file; do
		row one "tidy/$file" 300 "$tidy --quiet --warnings-as-errors='*' $file -- $flags"
	done
} | scripts/run-tests.sh build/log-lint 2
