#!/bin/bash
# f01_ingress_dies.sh -- SIGKILL of ingress: the sockets stay open, requests are served again.
. "$(dirname "$0")/lib.sh"

make_steps_repo "$T/src" say "echo begun; $HOLD; echo ended" >/dev/null
start_all
sign_in
project=$(new_project hello "file://$T/src")
killed_some=yes
allowed_errors='actor_exited|request_failed|index_sync_failed'

old=$(pid_of ingress)
kill -KILL "$old"
# The supervisor holds the listening socket: nobody is refused, at worst somebody waits.
api GET /api/public/app-config >/dev/null
wait_for 10 "healthy"
new=$(pid_of ingress)
[ "$old" != "$new" ] || fail "ingress is still pid $old"
expect "$(api GET /api/private/me | field user.slug)" demo "session after the restart"

# The same while a run is active: it goes on, and its end arrives in the lists.
run=$(trigger "$project")
wait_for 20 "is_status $run running"
kill -KILL "$(pid_of ingress)"
wait_for 10 "healthy"
is_status "$run" running
let_go "$run"
has_ended "$run" passed
wait_for 10 "[ \"\$(api GET /api/private/projects/$project/runs | field 'runs[0].status')\" = passed ]"
expect "$(ctl history --json | jq '[.. | objects | select(.address? == "ingress" and .signal? == 9)] | length >= 2')" \
	true "deaths in the history"
stop_all
