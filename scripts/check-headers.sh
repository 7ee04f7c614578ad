#!/bin/bash
# check-headers.sh: every header compiles alone.  `make gen` has to have run.
set -euo pipefail
cd "$(dirname "$0")/.."

export CC=${CC:-gcc}
check() {
	printf '#include "%s"\n' "$1" |
		"$CC" -std=gnu17 -Wall -Wextra -Werror -D_GNU_SOURCE -DANVIL_VERSION='"0"' \
			-I. -Ibuild -fsyntax-only -xc -
}
export -f check
find lib cmd test build/gen -name '*.h' -print0 |
	xargs -0 -P 2 -I '{}' bash -c 'check "$1" || { echo "$1: does not compile alone"; exit 1; }' - '{}'
