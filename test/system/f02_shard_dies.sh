#!/bin/bash
# f02_shard_dies.sh -- SIGKILL of a shard, idle and with an active run, which goes on and passes.
. "$(dirname "$0")/lib.sh"

make_steps_repo "$T/src" say "echo begun; $HOLD; echo ended" >/dev/null
start_all shards=1
sign_in
project=$(new_project hello "file://$T/src")
killed_some=yes
allowed_errors='actor_exited|request_failed'

kill -KILL "$(pid_of project/0)"
wait_for 10 "request GET /api/private/projects/$project >'$T/out' && [ \"\$(cat '$LAST_STATUS')\" = 200 ]"

run=$(trigger "$project")
wait_for 20 "is_status $run running"
next=$(trigger "$project")
pid=$(pid_of "run/$run")
for _ in 1 2; do
	old=$(pid_of project/0)
	kill -KILL "$old"
	# Without the shard the detail is what the run itself says.
	is_status "$run" running
	wait_for 10 "healthy && [ \"\$(pid_of project/0)\" != $old ]"
done
expect "$(pid_of "run/$run")" "$pid" "pid of the run"
wait_for 10 "logged heartbeat_restored $run || [ \"\$(ctl queue --json | jq '[.. | objects | select(.runId? == \"$run\")] | length')\" -ge 1 ]"
let_go "$run"
has_ended "$run" passed
wait_for 20 "is_status $next running"
let_go "$next"
has_ended "$next" passed

# A run that ends while its shard is away settles when it is back.
run=$(trigger "$project")
wait_for 20 "is_status $run running"
kill -STOP "$(pid_of project/0)"
let_go "$run"
wait_for 20 "log_of $run | grep -q ended"
kill -KILL "$(pgrep -f "^$BUILD/anvil-project 0" -P "$ANVILD")"
has_ended "$run" passed
wait_for 20 "! is_alive $(pid_of "run/$run")"
stop_all
