#!/bin/bash
# u04_stop_runs.sh -- a stop that takes the builds along: those that have not begun are given
# back, the others are canceled; what does not answer holds it up for so long and no longer.
. "$(dirname "$0")/lib.sh"
HOLD=${HOLD/600/2400}	# a busy machine takes long to start anvild again and again

make_steps_repo "$T/src" say "echo begun; $HOLD; echo ended" >/dev/null
make_steps_repo "$T/slow" say "echo slow" >/dev/null
start_all runs.max_concurrent=3 shards=1
sign_in
project=$(new_project hello "file://$T/src")
slow=$(new_project slow "file://$T/slow")
has_ended "$(trigger "$slow")" passed	# the mirror is there
killed_some=yes

ended_with() {	# STATUS
	local rc=0
	wait_for 30 "! is_alive $ANVILD"
	wait "$ANVILD" || rc=$?
	expect "$rc" "$1" "exit status of anvild"
	ANVILD=
}

# says EVENT SIGNAL: once more, because of the signal.
says() {
	local before
	before=$(grep -ac "\"event\":\"$1\"" "$LOG") || true
	kill -"$2" "$ANVILD"
	wait_for 10 "[ \$(grep -ac '\"event\":\"$1\"' $LOG) -gt $before ]"
}

# Another process has the lock of a mirror: its run is held up in the checkout.
hold_mirror() {
	background flock "$DATA/cache/$slow.lock" sleep 60
	lock=$HELPER
	wait_for 10 "! flock -n $DATA/cache/$slow.lock true"
}
let_mirror_go() {
	local pid
	for pid in $(descendants "$lock") "$lock"; do
		kill "$pid" 2>/dev/null || true
	done
	wait_for 10 "flock -n $DATA/cache/$slow.lock true"
}

# The second SIGTERM: one run has begun a step, one has not, one waits behind the first.
hold_mirror
run=$(trigger "$project")
next=$(trigger "$project")
early=$(trigger "$slow")
wait_for 20 "log_of $run | grep -q begun"
wait_for 20 "is_status $early starting"
pids="$(pid_of "run/$run") $(pid_of "run/$early")"
ingress=$(pid_of ingress)
kill -STOP "$ingress"	# it goes first: the shards are not asked before the second
says stopping TERM
says runs_are_ended TERM
kill -CONT "$ingress"
ended_with 0
for pid in $pids; do
	! is_alive "$pid" || fail "a run has outlived --stop-runs"
done
check_leftovers
logged run_released "$early" || fail "the run that had not begun was not given back"

let_mirror_go
start_anvild
has_ended "$run" canceled
expect "$(ctl why "$run" --json | jq -r '[.. | .cancelBy? // empty] | first')" shutdown "who canceled"
has_ended "$early" passed
wait_for 20 "log_of $next | grep -q begun"

# --stop-runs is the same at once; SIGINT is as good as SIGTERM.
let_go "$next"
has_ended "$next" passed
stop_anvild
start_anvild --stop-runs
run=$(trigger "$project")
wait_for 20 "log_of $run | grep -q begun"
kill -INT "$ANVILD"
ended_with 0
check_leftovers
start_anvild
has_ended "$run" canceled

# Nobody is waited for after the third: neither a run that is silent, nor its shard.
run=$(trigger "$project")
wait_for 20 "log_of $run | grep -q begun"
kill -STOP "$(pid_of "run/$run")" "$(pid_of project/0)" "$(pid_of ingress)"
says stopping TERM
says runs_are_ended INT
says stop_hard TERM
ended_with 0
check_leftovers
start_anvild
has_failed "$run" runner_lost '*signal 9*'
allowed_errors='actor_exited'
stop_all
