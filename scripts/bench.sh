#!/bin/bash
# bench.sh BUILDDIR FAULTS_BUILDDIR [--json FILE] [BENCH...]: every bench, or those named, one
# after the other, and a table of what they measured.
#
# Each is a program of test/bench that prints its own numbers next to a floor from the same
# minute, and judges nothing: a row that misses its target says so and the next one follows.  Those
# that need a slow disk are run a second time from the second folder.
set -euo pipefail
cd "$(dirname "$0")/.."

export ANVIL_BUILD=$PWD/$1
faults=$PWD/$2
shift 2
json=
if [ "${1-}" = --json ]; then
	json=$2
	shift 2
fi
wanted=" $* "
BENCH_ROWS=$(mktemp)
export BENCH_ROWS
trap 'rm -f "$BENCH_ROWS"' EXIT

# run NAME PROGRAM...: says so when it breaks, and lets the others have their turn.
run() {
	if [ "$wanted" != "  " ] && [[ $wanted != *" $1 "* ]]; then
		return
	fi
	echo "== $1"
	"${@:2}" || printf 'note\t%s: not measured\n' "$1" | tee -a "$BENCH_ROWS"
}

machine="$(nproc) cores, $(awk '/MemTotal/ { printf "%d GiB", $2 / 1048576 + 0.5 }' /proc/meminfo), \
$(uname -sr), $(git rev-parse --short HEAD 2>/dev/null || cat proto/VERSION)"
echo "$machine"
for bench in run accept deliver output watch rpc idle queue recover http record_log; do
	run "$bench" "$ANVIL_BUILD/test/bench/bench_$bench"
	case $bench in
	accept | deliver)
		run "${bench}_slow" env ANVIL_BUILD="$faults" ANVIL_FAULT_FSYNC_US=5000 \
		    "$faults/test/bench/bench_$bench"
		;;
	esac
done

echo
echo "$machine"
awk -F '\t' '
$1 == "row" {
	measured = $5 " (" $6 ")"
	ratio = $7 == "-" ? "-" : $7 " (" $8 ")"
	line[++n] = $2 SUBSEP $3 SUBSEP $4 SUBSEP measured SUBSEP ratio SUBSEP $9 SUBSEP $10
}
$1 == "note" {
	line[++n] = "  " $2
}
function print_row(text, i, cell) {
	split(text, cell, SUBSEP)
	for (i = 1; i < 7; i++)
		printf "%-" width[i] "s  ", cell[i]
	print cell[7]
}
END {
	head = "what" SUBSEP "unit" SUBSEP "floor" SUBSEP "measured" SUBSEP "ratio" SUBSEP "target" SUBSEP ""
	line[0] = head
	for (l = 0; l <= n; l++)
		if (split(line[l], cell, SUBSEP) > 1)
			for (i = 1; i < 7; i++)
				if (length(cell[i]) > width[i])
					width[i] = length(cell[i])
	for (l = 0; l <= n; l++)
		if (index(line[l], SUBSEP))
			print_row(line[l])
		else
			print line[l]
}' "$BENCH_ROWS"

[ -z "$json" ] && exit 0
awk -F '\t' -v machine="$machine" '
function or_null(text) {
	return text == "-" ? "null" : text
}
function range(text, ends) {
	return split(text, ends, /\.\./) < 2 ? "null" : "[" ends[1] "," ends[2] "]"
}
BEGIN {
	printf "{\"machine\":\"%s\",\"rows\":[", machine
}
$1 == "row" {
	printf "%s\n{\"what\":\"%s\",\"unit\":\"%s\",\"floor\":%s,\"measured\":%s,\"spread\":%s,", \
	    n++ ? "," : "", $2, $3, or_null($4), $5, range($6)
	printf "\"ratio\":%s,\"ratioSpread\":%s,\"target\":\"%s\",\"good\":%s}", or_null($7), \
	    range($8), $9, $10 == "pass" ? "true" : "false"
}
END {
	print "\n]}"
}' "$BENCH_ROWS" > "$json"
