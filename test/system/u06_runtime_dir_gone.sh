#!/bin/bash
# u06_runtime_dir_gone.sh -- systemd removes the runtime directory when anvild stops and makes a new
# one when it starts; and somebody empties it under a running system.  Everybody is found again.
. "$(dirname "$0")/lib.sh"
HOLD=${HOLD/600/2400}	# a busy machine takes long to start anvild again and again

make_steps_repo "$T/src" say "echo begun; $HOLD; echo ended" >/dev/null
start_all shards=1
sign_in
project=$(new_project hello "file://$T/src")
run=$(trigger "$project")
wait_for 20 "log_of $run | grep -q begun"
pid=$(pid_of "run/$run")

# RuntimeDirectory= without RuntimeDirectoryPreserve=.
stop_anvild
rm -r "$RUNTIME"
start_anvild
expect "$(pid_of "run/$run")" "$pid" "pid of the run"
wait_for 20 "[ -S $RUNTIME/$run.sock ] && ctl inspect run/$run >/dev/null 2>&1"
wait_for 20 "log_of $run | grep -q begun"
logged socket_bound_again || fail "the run did not say so"
let_go "$run"
has_ended "$run" passed
expect_in "$(log_of "$run")" ended "log"

# All sockets, and what is called next works: links that stand are none the worse for it.
run=$(trigger "$project")
wait_for 20 "log_of $run | grep -q begun"
rm "$RUNTIME"/*.sock
for name in supervisor ingress project-0 "$run"; do
	wait_for 20 "[ -S $RUNTIME/$name.sock ]"
done
wait_for 20 "ctl ps >/dev/null 2>&1 && ctl inspect run/$run >/dev/null 2>&1"
expect "$(ctl health --json | jq -r .status)" ok health
let_go "$run"
has_ended "$run" passed

# Whoever comes later takes the new ones.
killed_some=yes
allowed_errors='actor_exited|request_failed'
kill -KILL "$(pid_of project/0)"
wait_for 20 "healthy"
run=$(trigger "$project")
wait_for 20 "is_status $run running"
let_go "$run"
has_ended "$run" passed
stop_all
