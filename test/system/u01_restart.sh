#!/bin/bash
# u01_restart.sh -- anvild is stopped and started in the middle of a build, then killed, and then
# has lost its store: nothing of it shows in the build's result and log, and the queue stands.
. "$(dirname "$0")/lib.sh"
HOLD=${HOLD/600/2400}	# a busy machine takes long to start anvild again and again

make_steps_repo "$T/src" \
	first 'for i in $(seq 40); do echo "line $i"; done; echo "and an error" >&2; '"$HOLD"'
for i in $(seq 41 80); do echo "line $i"; done' \
	second 'echo "in the second step"; printf "no newline at the end"' >/dev/null
start_all
sign_in
project=$(new_project hello "file://$T/src")

# What is to be the same: everything but ids and times.
result_of() {
	detail_of "$1" | jq 'del(.. | .id?, .runId?, .queuedAt?, .startedAt?, .finishedAt?, .createdAt?)'
}
same() {	# RUN
	log_of "$1" | cmp - "$T/log" || fail "the log of $1 is another: $(log_of "$1")"
	result_of "$1" | cmp - "$T/result" || fail "the result of $1 is another: $(result_of "$1")"
}

# The first makes the mirror of the repository, the second is what it is like undisturbed.
for _ in 1 2; do
	run=$(trigger "$project")
	wait_for 20 "log_of $run | grep -q 'line 40'"
	let_go "$run"
	has_ended "$run" passed
done
log_of "$run" >"$T/log"
result_of "$run" >"$T/result"

run=$(trigger "$project")
next=$(trigger "$project")
wait_for 20 "log_of $run | grep -q 'line 40'"
pid=$(pid_of "run/$run")
lives_on() {
	is_alive "$pid" || fail "$1: the run has ended"
	expect "$(pid_of "run/$run")" "$pid" "$1: pid of the run"
	is_status "$run" running || fail "$1: $(status_of "$run")"
	is_status "$next" queued || fail "$1: the next is $(status_of "$next")"
}

stop_anvild
start_anvild
lives_on "stopped and started"

stop_anvild
# Stopped again before it has come to anything, and as soon as it begins.
for _ in 1 2; do
	"$BUILD/anvild" -c "$CONF" >>"$LOG" 2>&1 </dev/null &
	pid_of_anvild=$!
	wait_for 20 "grep -aqE '\"event\":\"(runner_adopted|actor_started)\".*\"pid\":$pid_of_anvild' $LOG"
	kill -TERM $pid_of_anvild
	wait $pid_of_anvild || fail "exit $? of an anvild that was stopped as it began"
done
start_anvild
lives_on "stopped while starting"

killed_some=yes
kill -KILL "$ANVILD"
wait "$ANVILD" 2>/dev/null || true
start_anvild
lives_on "killed"
logged runner_adopted "$run" || fail "the run was not adopted"

# Without its store: the run is found by the lock that it holds.
stop_anvild
rm "$DATA"/supervisor.db*
start_anvild
wait_for 20 "logged runner_found $run"
lives_on "bereft of its store"
# It needs no row: the next one would find it again.
expect_not_in "$(ANVIL_CHECK_HOLD=0 ctl check --json)" process_unrecorded "check"

let_go "$run"
has_ended "$run" passed
same "$run"
wait_for 20 "is_status $next running && log_of $next | grep -q 'line 40'"
let_go "$next"
has_ended "$next" passed
same "$next"
expect "$(ctl why "$run" --json | jq -c '[.. | .event? | select(. == "claimed" or . == "taken_over")]')" \
	'["claimed"]' "claims of the run"
for run in "$run" "$next"; do
	! logged lease_lost "$run" || fail "a lease was lost"
done
stop_all
