#!/bin/bash
# check-shell.sh [--alone]: shellcheck over every script; those that are run by name are executable.
#
# --alone reads each file by itself, in a tenth of the time, and so does not know what the tests
# have from lib.sh: its variables, and that it ends a test at the first failure.
set -euo pipefail
cd "$(dirname "$0")/.."

how=(-x -P SCRIPTDIR)
[ "${1-}" != --alone ] || how=(-e "SC1091,SC2034,SC2153,SC2154,SC2164")

plain=$(find scripts test/system .ci/run ! -path '*/clients/*' ! -name lib.sh ! -name repo.sh \
	! -name https.sh \( -name '*.sh' -o -name run \) ! -perm -u+x)
[ -z "$plain" ] || { echo "not executable; chmod +x: $plain" >&2 && exit 1; }

{
	find scripts test -name '*.sh' -print0
	printf '.ci/run\0'
} | xargs -0 shellcheck "${how[@]}" -S warning
