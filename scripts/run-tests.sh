#!/bin/bash
# run-tests.sh LOGDIR [JOBS] < LIST: runs tests side by side and counts what passed.
#
# A line of LIST is KIND, NAME, SECONDS and COMMAND, separated by tabs.  KIND is `cmocka` (a
# program that runs a group; each of its tests counts) or `one` (counts as one; exit status 0
# passed, 77 skipped, all else failed).  The line `stage` waits for everything above it.
# SECONDS is the time limit; the process group of a test that exceeds it is killed.
# Each test has a log in LOGDIR and a scratch directory of its own in TMPDIR.
# The last line is `N passed, N failed, N skipped`; the exit status is 1 when one failed.
set -u

logs=$1
jobs=${2:-2}
passed=0 failed=0 skipped=0
started=0
failures=()
declare -A name_of=()		# by pid of the worker
terminal=
[ -t 1 ] && terminal=yes

log_of() {
	echo "$logs/${1//\//.}.log"
}

# In the background: one test, its counts in a file beside the log.
work() {
	local kind=$1 name=$2 limit=$3 command=$4 log scratch pid rc from
	log=$(log_of "$name")
	scratch=$(mktemp -d) || exit 1
	chmod 1777 "$scratch"		# tests may become another user
	from=$EPOCHREALTIME
	# Background jobs ignore SIGINT, which programs under test would inherit.
	TMPDIR=$scratch timeout -k 10 "$limit" env --default-signal=INT,QUIT \
		bash -c "$command" >"$log" 2>&1 </dev/null &
	pid=$!
	trap 'kill -TERM $pid' TERM
	wait $pid
	rc=$?
	while kill -0 $pid 2>/dev/null; do	# the trap ended the wait, not the test
		wait $pid
		rc=$?
	done
	rm -rf "$scratch"
	case $rc in
	124 | 137) echo "run-tests.sh: over the limit of $limit s, or killed" >>"$log" ;;
	esac
	"count_$kind" "$log" $rc >"$log.counts"
	echo $(((${EPOCHREALTIME/[.,]/} - ${from/[.,]/}) / 100000)) >>"$log.counts"
}

count_one() {
	case $2 in
	0) echo 1 0 0 ;;
	77) echo 0 0 1 ;;
	*) echo 0 1 0 ;;
	esac
}

# Tests that were announced and not reported have failed: the program ended in their midst.
# One that fails as a whole, at its end or before its first test, counts as one failure.
count_cmocka() {
	awk -v rc="$2" '
	/\[==========\] Running [0-9]+ test\(s\)\./ {
		sub(/.*Running /, "")
		announced += $1
	}
	/\[       OK \] / { ok++ }
	/\[  SKIPPED \] [0-9]+ test\(s\), listed below:/ {
		sub(/.*SKIPPED \] /, "")
		skipped += $1
	}
	END {
		failed = announced - ok - skipped
		if (failed <= 0)
			failed = (rc != 0 || announced == 0) ? 1 : 0
		print ok + 0, failed, skipped + 0
	}' "$1"
}

progress() {
	[ -n "$terminal" ] || return 0
	printf '\r\033[K%d done, running: %s' $((started - ${#name_of[@]})) "${name_of[*]}"
}

say() {
	[ -z "$terminal" ] || printf '\r\033[K'
	printf '%s\n' "$*"
}

# Waits for one worker and reports what it did.
reap() {
	local pid name log p=0 f=1 s=0 tenths=0 verdict
	wait -n -p pid "${!name_of[@]}"
	name=${name_of[$pid]}
	unset "name_of[$pid]"
	log=$(log_of "$name")
	if [ -e "$log.counts" ]; then
		{ read -r p f s && read -r tenths; } <"$log.counts"
	fi
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	verdict=ok
	[ "$p" -gt 0 ] || verdict=skip
	[ "$f" = 0 ] || verdict=FAIL
	say "$(printf '%-5s%-52s%4d passed%6d.%d s' $verdict "$name" "$p" $((tenths / 10)) $((tenths % 10)))"
	if [ "$f" != 0 ]; then
		failures+=("$name ($log)")
		# What make did all the same is no news.
		grep -vE '^  (CC|LINK|GEN) ' "$log" | tail -n 40 | sed 's/^/    | /'
	elif [ "$s" != 0 ]; then
		tail -n 1 "$log" | sed 's/^/    | /'
	fi
	progress
}

stop() {
	trap '' INT TERM
	if [ ${#name_of[@]} -gt 0 ]; then
		kill -TERM "${!name_of[@]}" 2>/dev/null
		wait "${!name_of[@]}"
	fi
	say "interrupted"
	exit 130
}
trap stop INT TERM

mkdir -p "$logs"
export ASAN_OPTIONS=${ASAN_OPTIONS-detect_leaks=1:strict_string_checks=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS-print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS-halt_on_error=1}
unset CMOCKA_MESSAGE_OUTPUT CMOCKA_XML_FILE CMOCKA_TEST_ABORT

while IFS=$'\t' read -r kind name limit command <&3; do
	limit_of_jobs=$jobs
	[ "$kind" != stage ] || limit_of_jobs=1
	while [ ${#name_of[@]} -ge "$limit_of_jobs" ]; do
		reap
	done
	[ "$kind" != stage ] || continue
	rm -f "$(log_of "$name").counts"
	work "$kind" "$name" "$limit" "$command" 3<&- 2>>"$(log_of "$name")" &
	name_of[$!]=$name
	started=$((started + 1))
	progress
done 3<&0
while [ ${#name_of[@]} -gt 0 ]; do
	reap
done

[ -z "$terminal" ] || printf '\r\033[K'
if [ ${#failures[@]} -gt 0 ]; then
	echo "Failed:"
	printf '  %s\n' "${failures[@]}"
fi
[ $((passed + failed + skipped)) -gt 0 ] || failed=1
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
