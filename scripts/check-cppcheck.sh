#!/bin/bash
# check-cppcheck.sh: cppcheck over lib and cmd.
#
# Suppressed: what it says of outputs that are untouched on failure (uninitialized) and of
# OBJ_CHECK() after an initializer that looks into the object.
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p build/cppcheck
queue=$(echo '#include <sys/queue.h>' | "${CC:-gcc}" -M -xc - | grep -o '[^ ]*/sys/queue\.h')
exec cppcheck --quiet --std=c11 --language=c --enable=warning,performance,portability \
	--inline-suppr --error-exitcode=1 --cppcheck-build-dir=build/cppcheck -j 2 \
	--suppress=missingIncludeSystem --suppress=unknownMacro --suppress=ctuuninitvar \
	--suppress=uninitvar --suppress=nullPointerRedundantCheck --include="$queue" \
	-D_GNU_SOURCE -DANVIL_VERSION='"0"' -I. -Ibuild lib cmd
