#!/bin/bash
# check-headers.sh: every header compiles alone.  `make gen` has to have run.
#
# A generated file without a guard is a table of macro calls, for its includer to define.
set -euo pipefail
cd "$(dirname "$0")/.."

export CC=${CC:-gcc}
check() {
	printf '#include "%s"\n' "$1" |
		"$CC" -std=gnu17 -Wall -Wextra -Werror -D_GNU_SOURCE -DANVIL_VERSION='"0"' \
			-I. -Ibuild -fsyntax-only -xc -
}
export -f check
{
	find lib cmd test -name '*.h' -print0
	find build/gen -maxdepth 1 -name '*.h' -exec grep -lZ '^#ifndef' {} +
} |
	xargs -0 -P 2 -I '{}' bash -c 'check "$1" || { echo "$1: does not compile alone"; exit 1; }' - '{}'
