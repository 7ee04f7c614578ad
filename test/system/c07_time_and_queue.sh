#!/bin/bash
# c07_time_and_queue.sh -- deadlines, what steps leave behind, and the queue of a project.
. "$(dirname "$0")/lib.sh"

# shellcheck disable=SC2016 # the steps expand it
{
	make_steps_repo "$T/left" \
		start 'sleep 300 & setsid sleep 301 & (sleep 302 & ) ; echo started' \
		look '! pgrep -x sleep; echo "nothing is left"' >/dev/null
	make_steps_repo "$T/pipe" \
		hold 'setsid sleep 300 & while [ "$(cat /proc/$!/comm)" != sleep ]; do :; done; echo "the step ends"' after 'echo "the next one runs"' >/dev/null
	TIMEOUT_SECONDS=2 make_steps_repo "$T/late" \
		fine 'echo fine' slow 'echo waiting; sleep 300' never 'echo never' >/dev/null
	make_steps_repo "$T/queue" wait 'echo begun; '"$HOLD"'' >/dev/null
	make_steps_repo "$T/fail" bad 'exit 7' never 'echo never' >/dev/null
	make_steps_repo "$T/signal" bad 'kill -SEGV $$' >/dev/null
}
start_all runs.max_concurrent=3
sign_in
left=$(trigger "$(new_project left "file://$T/left")")
pipe=$(trigger "$(new_project pipe "file://$T/pipe")")
late=$(trigger "$(new_project late "file://$T/late")")

has_ended "$left" passed
text=$(log_of "$left")
expect_in "$text" 'Killed 3 processes left by step "start": sleep (' "leftovers"
expect_in "$text" "nothing is left"
has_ended "$pipe" passed
expect_match "$(log_of "$pipe")" 'Killed 1 process(es)? left by step "hold": sleep [(]' "leftover"
expect_in "$(log_of "$pipe")" "the next one runs"

has_failed "$late" run_timeout 'Run exceeded its timeout of 2 s.'
detail=$(detail_of "$late")
expect "$(jq -c '[.run.exitCode, [.steps[].status]]' <<<"$detail")" \
	'[1,["passed","failed","queued"]]' "late run"

has_failed "$(trigger "$(new_project fail "file://$T/fail")")" step_failed \
	'Step "bad" failed with exit code 7.'
signal=$(trigger "$(new_project signal "file://$T/signal")")
has_failed "$signal" step_failed 'Step "bad" failed with exit code 139 (signal 11, SIGSEGV).'
expect "$(detail_of "$signal" | jq -c '[.run.exitCode, .steps[0].exitCode]')" '[139,139]' "exit codes"

# One is active, twenty wait, and there is room for no more.
queue=$(new_project queue "file://$T/queue")
other=$(new_project other "file://$T/fail")
first=$(trigger "$queue")
wait_for 20 "is_status $first running"
waiting=()
for _ in $(seq 20); do
	waiting+=("$(trigger "$queue")")
done
refused 409 project_queue_full POST "/api/private/projects/$queue/runs" '{}' >/dev/null
detail=$(api GET "/api/private/projects/$queue")
expect "$(jq -c '[.activeRun.id, [.pendingRuns[].runId]]' <<<"$detail")" \
	"$(jq -cn '[$ARGS.positional[0], $ARGS.positional[1:]]' --args "$first" "${waiting[@]}")" \
	"queue"
has_ended "$(trigger "$other")" failed	# another project has room
let_go "$first"
has_ended "$first" passed

# First in, first out: nobody starts before the one ahead has ended.
for run in "${waiting[@]:0:3}"; do
	wait_for 20 "is_status $run running"
	let_go "$run"
	has_ended "$run" passed
done
# The branch is looked up at checkout, so the others get something shorter to do.
write_steps "$T/queue" quick 'echo "now quick"'
commit_all "$T/queue" "Hold no more" >/dev/null
wait_for 20 "is_status ${waiting[3]} running || is_over ${waiting[3]}"
is_over "${waiting[3]}" || let_go "${waiting[3]}"
times=()
for run in "$first" "${waiting[@]}"; do
	has_ended "$run" passed
	times+=("$(detail_of "$run" | jq -r '.run | .startedAt, .finishedAt')")
done
expect "$(printf '%s\n' "${times[@]}")" "$(printf '%s\n' "${times[@]}" | sort)" "order of runs"
stop_all
