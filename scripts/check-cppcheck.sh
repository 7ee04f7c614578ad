#!/bin/bash
# check-cppcheck.sh: cppcheck over lib and cmd.
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p build/cppcheck
exec cppcheck --quiet --std=c11 --language=c --enable=warning,performance,portability \
	--inline-suppr --error-exitcode=1 --cppcheck-build-dir=build/cppcheck -j 2 \
	--suppress=missingIncludeSystem --suppress=normalCheckLevelMaxBranches \
	--suppress=unknownMacro -D_GNU_SOURCE -DANVIL_VERSION='"0"' -I. -Ibuild lib cmd
