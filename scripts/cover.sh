#!/bin/bash
# cover.sh BUILDDIR: runs the unit and actor tests of a build with --coverage and prints which
# share of the lines of each file and folder they executed.
set -euo pipefail
cd "$(dirname "$0")/.."

dir=$1
find "$dir" -name '*.gcda' -delete
for source in test/unit/test_*.c test/actor/test_*.c; do
	[ -e "$source" ] || continue
	name=${source%.c}
	printf 'cmocka\t%s\t180\t%s/%s\n' "${name#test/}" "$dir" "$name"
done | ANVIL_BUILD=$PWD/$dir scripts/run-tests.sh "$dir/log" 2 | tail -n 1

find "$dir/lib" "$dir/cmd" -name '*.gcno' -print0 | LC_ALL=C sort -z |
	xargs -0 gcov --no-output 2>/dev/null | awk '
	/^File / { file = substr($2, 2, length($2) - 2); next }
	/^Lines executed:/ && file ~ /^(lib|cmd)\/.*\.c$/ {
		split($0, part, /[:% ]+/)
		lines = $NF
		hit = part[3] * lines / 100
		printf "%6.1f%%  %5d  %s\n", part[3], lines, file
		folder = file
		sub(/\/[^\/]*$/, "", folder)
		all[folder] += lines
		done[folder] += hit
		all["total"] += lines
		done["total"] += hit
	}
	{ file = "" }
	END {
		print ""
		for (f in all)
			printf "%6.1f%%  %5d  %s\n", 100 * done[f] / all[f], all[f], f | "sort -k3"
	}'
