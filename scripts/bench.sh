#!/bin/bash
# bench.sh BUILDDIR FAULTS_BUILDDIR: every bench, one after the other.
#
# Each is a program or script of test/bench that prints its own numbers; those that need a slow
# disk or a lost message take the programs of the second folder.
set -euo pipefail
cd "$(dirname "$0")/.."

export ANVIL_BUILD=$PWD/$1 ANVIL_FAULTS_BUILD=$PWD/$2
echo "$(nproc) cores, $(uname -sr), $(git rev-parse --short HEAD 2>/dev/null || cat proto/VERSION)"
for bench in test/bench/bench_*.c test/bench/bench_*.sh; do
	[ -e "$bench" ] || continue
	name=$(basename "$bench")
	echo "== ${name%.*}"
	case $bench in
	*.c) "$1/test/bench/${name%.c}" ;;
	*) "$bench" ;;
	esac
done
