#!/bin/bash
# c02_runs_at_once.sh -- three runs over two projects side by side, each with its own log.
. "$(dirname "$0")/lib.sh"

# shellcheck disable=SC2016 # the step expands it
wait_step='echo "begin $ANVIL_PROJECT $ANVIL_RUN_ID"
'$HOLD'
for n in $(seq 200); do echo "$ANVIL_PROJECT line $n"; done
echo "end $ANVIL_RUN_ID"'
for name in one two three; do
	make_steps_repo "$T/$name" talk "$wait_step" >/dev/null
done
start_all runs.max_concurrent=3
sign_in

declare -A run=()
for name in one two three; do
	run[$name]=$(trigger "$(new_project "$name" "file://$T/$name")")
done
for name in one two three; do
	wait_for 30 "is_status ${run[$name]} running"
	wait_for 30 "log_of ${run[$name]} | grep -q '^begin demo/$name ${run[$name]}'"
done
expect "$(ctl ps --json | jq '[.[] | select(.address | startswith("run/"))] | length')" 3 \
	"run processes"
for name in one two three; do
	let_go "${run[$name]}"
done
for name in one two three; do
	has_ended "${run[$name]}" passed
	text=$(log_of "${run[$name]}")
	expect "$(grep -c "^demo/$name line " <<<"$text")" 200 "lines of $name"
	expect "$(grep -c "^demo/.* line " <<<"$text")" 200 "lines in the log of $name"
	expect_in "$text" "end ${run[$name]}"
done
stop_all
