#!/bin/bash
# check-format.sh: the source is as clang-format leaves it.  --fix makes it so.
set -euo pipefail
cd "$(dirname "$0")/.."

mode=(--dry-run -Werror)
[ "${1-}" != --fix ] || mode=(-i)
find lib cmd test -name '*.[ch]' -print0 |
	xargs -0 -r "$(command -v clang-format-14 || echo clang-format)" "${mode[@]}"
