#!/bin/bash
# check-shell.sh: shellcheck over every script.
set -euo pipefail
cd "$(dirname "$0")/.."

{
	find scripts test -name '*.sh' -print0
	printf '.ci/run\0'
} | xargs -0 shellcheck -x -P SCRIPTDIR -S warning
