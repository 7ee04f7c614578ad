#!/bin/bash
# u03_one_at_a_time.sh -- whoever is killed, stopped or started: steps of two runs of a project are
# never there at a time, runs go in their order, and each ends once.
. "$(dirname "$0")/lib.sh"

# Outside of the sandbox the step is known by its name, which has the run in it.
# shellcheck disable=SC2016 # the step expands it
make_steps_repo "$T/src" work 'exec -a "step-$ANVIL_RUN_ID" bash -c '\''echo begun; for i in $(seq 2400); do [ ! -e "$HOME/go" ] || break; sleep 0.05; done; echo ended'\''' >/dev/null
start_all shards=1
sign_in
project=$(new_project hello "file://$T/src")
killed_some=yes
allowed_errors='actor_exited|request_failed|index_sync_failed'

# Looks at all processes again and again, and notes what is seen more than once at a time.
watch_steps() {
	local seen
	while [ ! -e "$T/enough" ]; do
		seen=$(pgrep -af '^step-run_' | grep -o 'step-run_[0-9A-Za-z]*' | sort -u) || true
		[ "$(wc -w <<<"$seen")" -lt 2 ] || echo "$seen" >>"$T/twice"
		[ -z "$seen" ] || echo "$seen" >>"$T/seen"
	done
}
runs=()
for _ in 1 2 3 4 5; do
	runs+=("$(trigger "$project")")
done
background watch_steps
has_begun() {
	wait_for 30 "log_of $1 | grep -q begun"
}

has_begun "${runs[0]}"
kill -KILL "$(pid_of "run/${runs[0]}")"
has_begun "${runs[1]}"
kill -KILL "$(pid_of project/0)" "$(pid_of "run/${runs[1]}")"
has_begun "${runs[2]}"
kill -KILL "$ANVILD" "$(pid_of "run/${runs[2]}")"
wait "$ANVILD" 2>/dev/null || true
start_anvild
has_begun "${runs[3]}"
stop_anvild
start_anvild
let_go "${runs[3]}"
has_ended "${runs[3]}" passed
has_begun "${runs[4]}"
let_go "${runs[4]}"
has_ended "${runs[4]}" passed
touch "$T/enough"
wait "$HELPER"

[ ! -e "$T/twice" ] || fail "at a time: $(sort "$T/twice" | uniq -c)"
expect "$(uniq "$T/seen" | sort -u | wc -l)" 5 "runs whose steps were seen"
times=()
for i in 0 1 2; do
	has_failed "${runs[i]}" runner_lost '*'
done
for run in "${runs[@]}"; do
	times+=("$(detail_of "$run" | jq -r '.run | .startedAt, .finishedAt')")
	expect "$(ctl why "$run" --json | jq '[.. | .event? | select(. == "settled" or . == "taken_over")] | length')" 1 \
		"ends of $run"
done
expect "$(printf '%s\n' "${times[@]}")" "$(printf '%s\n' "${times[@]}" | sort)" "order of runs"
stop_all
