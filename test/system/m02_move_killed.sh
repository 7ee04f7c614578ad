#!/bin/bash
# m02_move_killed.sh -- a process dies between any two steps of a move, in the shard that gives, in
# the one that takes, in ingress and in the supervisor: one shard has the project afterwards, its
# run goes on, and nothing is missing.
. "$(dirname "$0")/lib.sh"

HOLD=${HOLD/600/6000}	# for as long as all of this takes
make_steps_repo "$T/src" say "echo begun; $HOLD; echo ended" >/dev/null
order=$T/order/point
export ANVIL_CRASH_FILE=$order ANVIL_FAULT_FILE=$T/faults
export ANVIL_MOVE_PART_BYTES=900 ANVIL_MOVE_STALLED_MS=1000 ANVIL_MOVE_CLEAR_ROWS=1
mkdir "$T/order"
chmod 777 "$T/order" "$T"
start_all shards=2
sign_in
project=$(new_project hello "file://$T/src")
killed_some=yes
allowed_errors='actor_exited|request_failed|index_sync_failed|actor_failing|commit_failed'

active=$(trigger "$project")
wait_for 20 "is_status $active running"
pid=$(pid_of "run/$active")
declare -a queued=()
for _ in 1 2 3; do
	queued+=("$(trigger "$project")")
done

order_death() {	# POINT
	rm -f "$order.hit"
	echo "$1" >"$order.new"
	chmod 666 "$order.new"
	mv "$order.new" "$order"
}

# owners: shards with a row of the project that is more than a tombstone.
owners() {
	local shard
	for shard in 0 1; do
		ctl call project/$shard project.queue "{\"projectId\":\"$project\",\"cursor\":null}" 2>/dev/null |
			jq -r --arg shard $shard 'select(.kind != "moved" and .kind != "not_found") |
				$shard + " " + (.projects[0].phase // .kind)'
	done
}

# ledger: status and order of all runs, as their shard has them.
ledger() {
	ctl queue demo/hello --json | jq -c '.[0] | [.active.runId, [.pending[] | [.runId, .position]]]'
}

# clear: nobody is at anything of a move any more.
clear() {
	local shard
	for shard in 0 1; do
		[ "$(ctl call project/$shard actor.inspect | jq '.state.moves | length')" = 0 ] || return 1
	done
}

deaths=0
revive() {
	# Whoever dies often is held back, but the next supervisor knows nothing of that.
	deaths=$((deaths + 1))
	if [ $((deaths % 5)) = 0 ]; then
		kill -KILL "$ANVILD" 2>/dev/null || true
		wait "$ANVILD" 2>/dev/null || true
		start_anvild
	fi
	wait_for 30 healthy
}

# at POINT [full]: somebody dies there while the project is moved, to a shard that has no room.
at() {
	local to=$((1 - at)) rc=0 mover
	if [ $# = 2 ]; then
		echo "project-$to $2" >"$T/faults.new"
		mv "$T/faults.new" "$T/faults"
	fi
	order_death "$1"
	ctl project move demo/hello $to >"$T/moved" 2>&1 </dev/null &
	mover=$!
	# Without room the copy cannot be dropped either.
	[ $# = 1 ] || wait_for 20 "[ -e $order.hit ] || grep -q 'stays where it is' $T/moved"
	rm -f "$T/faults"
	wait_for 20 "[ -e $order.hit ]"
	revive
	wait $mover || rc=$?
	[ $# = 2 ] || expect "$rc" 0 "$1: $(cat "$T/moved")"
	[ $rc != 0 ] || at=$to
	wait_for 20 "[ \"\$(owners)\" = '$at live' ]"
	wait_for 20 "[ \"\$(ctl project list --json | jq '.[0].shard')\" = $at ]"
	expect "$(ledger)" "$before" "queue after $1"
	wait_for 20 clear
	is_alive "$pid" || fail "the run has ended at $1"
}

at=$(ctl project list --json | jq '.[0].shard')
before=$(ledger)
# The shard that gives.
for point in move_freezing move_frozen move_part_answered move_copied move_given move_activated \
	move_active move_flipped move_clearing move_done; do
	at $point
done
# The shard that takes, and the directory.
for point in import_part_kept import_part_made import_copy_made import_activated index_shard_set; do
	at $point
done
# Given up: the order is repeated by anvilctl when nobody has answered, else not.
for point in move_aborted import_dropped move_discarded; do
	at $point full
done

# Two shards have the runs while the one that gives has no room to go on; nobody starts it again
# before that is so.
to=$((1 - at))
kill -STOP "$ANVILD"
order_death move_copied
ctl call project/$at project.move "{\"projectId\":\"$project\",\"toShard\":$to}" >/dev/null 2>&1 &
mover=$!
wait_for 20 "[ -e $order.hit ]"
echo "project-$at full" >"$T/faults"
kill -CONT "$ANVILD"
wait $mover || true
looked() {
	ANVIL_CHECK_HOLD=0 ctl check >"$T/out" 2>&1
	grep -q run_twice "$T/out"
}
wait_for 30 looked
expect_match "$(cat "$T/out")" "run_twice .*$project .*its move to shard $to is under way" "check"
expect "$(grep -c run_twice "$T/out")" 1 "findings of one move"
rm "$T/faults"
wait_for 20 "[ \"\$(owners)\" = '$to live' ]"
wait_for 20 clear
wait_for 20 healthy
expect "$(ledger)" "$before" "queue after a move that had to wait for room"
expect_exit 0 ctl project move demo/hello "$at"

# The supervisor, as it follows the end of a run that began in the other shard.
expect_exit 0 ctl project move demo/hello $((1 - at))
order_death supervisor_exit_moved
let_go "$active"
wait_for 20 "[ -e $order.hit ]"
wait "$ANVILD" || true
start_anvild
has_ended "$active" passed
for run in "${queued[@]}"; do
	wait_for 30 "is_status $run running"
	let_go "$run"
	has_ended "$run" passed
done
expect "$(log_of "$active" | grep -cE 'begun|ended')" 2 "log"
expect "$(api GET "/api/private/projects/$project/runs" | jq -c '[.runs[].status] | unique')" '["passed"]' "runs"
ctl check >"$T/out" 2>&1 || fail "check: $(cat "$T/out")"
stop_all
