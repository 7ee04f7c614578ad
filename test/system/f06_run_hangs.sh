#!/bin/bash
# f06_run_hangs.sh -- a run that is stopped loses its lease, is killed, and the next one starts;
# nobody else waits for it.
. "$(dirname "$0")/lib.sh"

make_steps_repo "$T/src" wait "echo begun; $HOLD" >/dev/null
make_steps_repo "$T/other" quick 'echo quick' >/dev/null
start_all runs.max_concurrent=3
sign_in
project=$(new_project hello "file://$T/src")
other=$(new_project other "file://$T/other")
killed_some=yes

run=$(trigger "$project")
next=$(trigger "$project")
wait_for 20 "log_of $run | grep -q begun"
kill -STOP "$(pid_of "run/$run")"
has_ended "$(trigger "$other")" passed

# Its lease lasts 30 s from its last heartbeat.
wait_for 90 "is_status $run failed"
has_failed "$run" runner_lost \
	'The process that executed this run ended unexpectedly (stopped answering and was killed).'
wait_for 20 "is_status $next running"
let_go "$next"
has_ended "$next" passed
stop_all
