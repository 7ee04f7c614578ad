#!/bin/bash
# f03_run_dies.sh -- SIGKILL of a run: it is runner_lost, its steps are gone, the next one starts.
. "$(dirname "$0")/lib.sh"

make_steps_repo "$T/src" first "echo begun; sleep 290 & $HOLD" second 'echo never' >/dev/null
start_all
sign_in
project=$(new_project hello "file://$T/src")
killed_some=yes

run=$(trigger "$project")
next=$(trigger "$project")
wait_for 20 "is_status $run running"
wait_for 20 "log_of $run | grep -q begun"
pid=$(pid_of "run/$run")
below=$(descendants "$pid")
[ -n "$below" ] || fail "the run has no processes below it"
kill -KILL "$pid"
has_failed "$run" runner_lost \
	'The process that executed this run ended unexpectedly (signal 9 (SIGKILL)).'
for pid in $below; do
	wait_for 10 "! is_alive $pid"
done
detail=$(detail_of "$run")
expect "$(jq -c '[.run.exitCode, [.steps[].status]]' <<<"$detail")" '[1,["failed","queued"]]' "run"
[ "$(jq -r .run.startedAt <<<"$detail")" != null ] || fail "startedAt is lost"
expect_in "$(log_of "$run")" begun "log of the lost run"

wait_for 20 "is_status $next running"
kill -KILL "$(pid_of "run/$next")"
has_failed "$next" runner_lost '*SIGKILL*'
for gone in "$run" "$next"; do
	wait_for 10 "[ ! -e $DATA/runs/$gone/ws ] && [ ! -e $DATA/runs/$gone/home ]"
done

# The project is none the worse for it.
write_steps "$T/src" quick 'echo "all is well"'
commit_all "$T/src" "Something quick" >/dev/null
has_ended "$(trigger "$project")" passed
stop_all
