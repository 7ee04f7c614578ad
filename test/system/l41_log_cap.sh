#!/bin/bash
# l41_log_cap.sh -- more output than runs.max_log_bytes: head and tail stay and the gap between
# them is named, in lines and in a single line of 100 MB; who follows sees more.
. "$(dirname "$0")/lib.sh"

CAP=3000000 # With the 2 MiB of the hot tail it holds all lines of the first run.
# The leftover holds the pipe of the first step; the second says its last line and is gone.
# shellcheck disable=SC2016 # the step expands it
make_steps_repo "$T/lines" \
	pipe '(sleep 1000; echo never) & echo "parent is done"' \
	many 'seq -f "line %06.0f" 400000; printf "no newline at the end"' >/dev/null
make_steps_repo "$T/long" \
	long "head -c 100000000 /dev/zero | tr '\\0' y; printf 'the very end'" >/dev/null
start_all runs.max_log_bytes=$CAP
sign_in

follow() {	# RUN: what one sees who came before the run began; it ends with the run
	curl -sSN -m 60 -H "Authorization: Bearer $TOKEN" \
		"http://127.0.0.1:$PORT/api/private/runs/$1/log?follow=1"
}

# has_gap RUN: its stored text, which then is in $T/text, and that all of it is accounted for.
has_gap() {
	local all head marker omitted
	log_of "$1" >"$T/text"
	marker=$(grep -abx '\[anvil: [0-9]* bytes omitted\]' "$T/text") || fail "no gap is named"
	expect "$(wc -l <<<"$marker")" 1 "gaps: $marker"
	head=${marker%%:*}
	omitted=$(grep -oE '[0-9]+ bytes' <<<"$marker" | cut -d' ' -f1)
	[ "$head" -le $((CAP + 1)) ] && [ "$head" -gt $((CAP - 20000)) ] || fail "a head of $head bytes"
	# The marker is a line of its own, so that a newline before it may be no one's.
	all=$(($(wc -c <"$T/text") + omitted - (${#marker} - ${#head})))
	expect_match "$((all - $(detail_of "$1" | field logBytes)))" '^[01]$' "bytes too many"
	[ "$(du -s -B1 "$DATA/runs/$1" | cut -f1)" -lt 12000000 ] || fail "the store has no cap"
	logged log_capped "$1" || fail "the cap is not logged"
}

run=$(trigger "$(new_project lines "file://$T/lines")")
follow "$run" >"$T/followed"
has_ended "$run" passed
expect "$(grep -a '^line ' "$T/followed")" "$(seq -f 'line %06.0f' 400000)" "lines that were followed"
grep -qax 'parent is done' "$T/followed" || fail "the first step's line is lost"
! grep -qa never "$T/followed" || fail "the leftover has written"
expect "$(tail -c 21 "$T/followed")" "no newline at the end" "the end of what was followed"
expect "$(detail_of "$run" | field logBytes)" "$(wc -c <"$T/followed")" "logBytes"
has_gap "$run"
expect "$(tail -c 21 "$T/text")" "no newline at the end" "the end of what was stored"
cmp -n $((CAP - 20000)) "$T/text" "$T/followed" || fail "the head differs"
cmp <(tail -c 900000 "$T/text") <(tail -c 900000 "$T/followed") || fail "the tail differs"

run=$(trigger "$(new_project long "file://$T/long")")
has_ended "$run" passed
has_gap "$run"
expect "$(tail -c 12 "$T/text")" "the very end" "the end of the line"
[ "$(detail_of "$run" | field logBytes)" -gt 100000000 ] || fail "logBytes forgets what is omitted"
stop_all
