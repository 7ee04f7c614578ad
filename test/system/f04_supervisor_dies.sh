#!/bin/bash
# f04_supervisor_dies.sh -- SIGKILL of the supervisor: its children end, the next one serves all.
. "$(dirname "$0")/lib.sh"

make_steps_repo "$T/src" say "echo hello" >/dev/null
start_all
sign_in
project=$(new_project hello "file://$T/src")
run=$(trigger "$project")
has_ended "$run" passed
text=$(log_of "$run")
killed_some=yes

residents="$(pid_of ingress) $(pid_of project/0) $(pid_of project/1)"
kill -KILL "$ANVILD"
wait "$ANVILD" 2>/dev/null || true
for pid in $residents; do
	wait_for 20 "! is_alive $pid"
done

# Whatever is left of the first is no obstacle to the second.
start_anvild
expect "$(status_of "$run")" passed "run from before"
expect "$(log_of "$run")" "$text" "log from before"
expect "$(api GET /api/private/me | field user.slug)" demo "session from before"
again=$(trigger "$project")
has_ended "$again" passed
expect "$(api GET "/api/private/projects/$project/runs" | jq -c '[.runs[].id]')" "[\"$again\",\"$run\"]" runs

# An orderly stop keeps it all, too.
stop_all
start_anvild
expect "$(status_of "$again")" passed "run from before the stop"
stop_all
