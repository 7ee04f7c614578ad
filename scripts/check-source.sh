#!/bin/bash
# check-source.sh: what can be seen in the text of the source, without compiling it.
# No -e and no pipefail: a grep that finds nothing is what is hoped for.  lastpipe lets complain,
# at the end of a pipe, set `bad` here.
set -u
shopt -s lastpipe
cd "$(dirname "$0")/.." || exit 1

mapfile -t sources < <(find lib cmd test -name '*.[ch]' | LC_ALL=C sort)
[ ${#sources[@]} -gt 0 ] || exit 0
bad=0

# complain TITLE < lines: nothing when there are none.
complain() {
	local found
	found=$(cat)
	[ -n "$found" ] || return 0
	printf '%s:\n%s\n' "$1" "$found"
	bad=1
}

stripped=$(awk -f scripts/strip-code.awk "${sources[@]}")

# Unbounded, ambiguous on failure, or running a shell; lib/base has what replaces them.
banned='strcpy|strcat|stpcpy|sprintf|vsprintf|gets|strtok|strncat|atoi|atol|atoll|atof|scanf'
banned+='|system|popen|alloca|mktemp|tmpnam|tempnam|rand|srand|vfork|readdir_r'
banned+='|gmtime|localtime|ctime|asctime|usleep|sleep'
grep -E '^(lib|cmd)/' <<<"$stripped" | grep -E "(^|[^A-Za-z0-9_.>])($banned)[[:space:]]*\\(" |
	complain "functions that are not to be used"
grep -E '^test/' <<<"$stripped" | grep -vE '^test/(bench|soak)/' | grep -E '(^|[^A-Za-z0-9_.>])(sleep|usleep|nanosleep)[[:space:]]*\(' |
	complain "tests that sleep instead of waiting for what they expect"

# Left-overs.
grep -nE '\b(TODO|FIXME|XXX|HACK)\b|\btodo\(' "${sources[@]}" | complain "left for later"

# Memory comes from lib/base/mem.h, so that tests can make it fail.
grep -E '^(lib|cmd)/' <<<"$stripped" | grep -vE '^(lib/base/mem\.[ch]|cmd/anvil-(protogen|init)/)' |
	grep -E '(^|[^A-Za-z0-9_.>])(malloc|calloc|realloc|strdup|strndup|asprintf|vasprintf)[[:space:]]*\(' |
	complain "memory that does not come from lib/base/mem.h"

# The magic number of a type tells it from all others.
grep -hoE '^[[:space:]]*#define [A-Z0-9_]*_?MAGIC[[:space:]]+0x[0-9a-fA-F]+' "${sources[@]}" |
	awk '{ v = tolower($3); if (v in name && name[v] != $2) print name[v], "and", $2, "are both", v; name[v] = $2 }' |
	complain "magic numbers used twice"

# Own header first, then <system>, <library> and "ours", each group in order.
awk '
function group_of(what) {
	if (what ~ /^"/)
		return 3
	return what ~ /^<(jansson|event2\/.*|sqlite3|sodium|git2|git2\/.*|yaml|zstd|http_parser|wslay\/.*|openssl\/.*|cmocka)\.?h?>$/ ? 2 : 1
}
FNR == 1 {
	group = 0
	last = ""
	own = FILENAME
	sub(/\.c$/, ".h", own)
	first = 1
}
/^#include/ && !/\.def"|_routes\.h"/ {	# the others are tables, put where they are wanted
	is_own = first && $2 == "\"" own "\""
	first = 0
	if (is_own)
		next
	g = group_of($2)
	if (g < group)
		print FILENAME ":" FNR ": " $2 " comes too late"
	else if (g == group && $2 <= last)
		print FILENAME ":" FNR ": " $2 " is not in order"
	group = g
	last = $2
}' "${sources[@]}" | complain "includes out of order"

# Each header guards itself with its own path.
for header in "${sources[@]}"; do
	case $header in
	*.h)
		guard=$(tr 'a-z/.-' 'A-Z___' <<<"$header")
		grep -q "^#ifndef $guard\$" "$header" && grep -q "^#define $guard\$" "$header" ||
			echo "$header: $guard"
		;;
	esac
done | complain "headers without their guard"

# Each library has a test that fails its allocations in turn, and one that fails its reads and
# writes in turn when it has any.
for folder in lib/*/; do
	folder=${folder%/}
	tests=("test/unit/test_${folder#lib/}"_*.c)
	grep -qE '\b(starve|starve_lenient|mem_fault_arm)\(' "${tests[@]}" 2>/dev/null ||
		echo "$folder: no loop over failed allocations"
	grep -qE '\b(fsync|fdatasync|pwrite|renameat?|io_write_file|io_read_file|sqlite3_open_v2)\(' \
		"$folder"/*.c || continue
	grep -qE '\b(io_starve|io_fault_arm|io_fault_arm_children|store_fault_arm)\(' "${tests[@]}" ||
		echo "$folder: no loop over failed reads and writes"
done | complain "libraries that are not starved"

# A header that everybody includes is on its way to hold everything.
find lib cmd -name '*.c' | wc -l | {
	read -r nfiles
	grep -rhoE --include='*.c' '^#include "[^"]+"' lib cmd | sort | uniq -c |
		awk -v most="$((nfiles / 2))" '$1 > most && $3 !~ /^"lib\/base\// { print $3, "in", $1, "files" }'
} | complain "included by more than half of the files"

exit $bad
