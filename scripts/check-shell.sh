#!/bin/bash
# check-shell.sh: shellcheck over every script; those that are run by name are executable.
set -euo pipefail
cd "$(dirname "$0")/.."

plain=$(find scripts test/system .ci/run ! -path '*/clients/*' ! -name lib.sh ! -name repo.sh \
	! -name https.sh \( -name '*.sh' -o -name run \) ! -perm -u+x)
[ -z "$plain" ] || { echo "not executable; chmod +x: $plain" >&2 && exit 1; }

{
	find scripts test -name '*.sh' -print0
	printf '.ci/run\0'
} | xargs -0 shellcheck -x -P SCRIPTDIR -S warning
