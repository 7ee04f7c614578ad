#!/bin/bash
# s02_permissions.sh -- a store that somebody has locked or made read-only: its actor is out until
# that is undone, the others serve.
. "$(dirname "$0")/lib.sh"

make_steps_repo "$T/src" say 'echo hello' >/dev/null
start_all
sign_in
allowed_errors='actor_failing|store_unavailable|actor_failed|actor_exited|request_failed'
declare -A on=()	# shard -> project
for slug in one two; do
	project=$(new_project $slug "file://$T/src")
	on[$(grep -a "project_confirmed.*$project" "$LOG" | jq .shard)]=$project
done

state_of() {
	ctl ps --json 2>/dev/null | jq -r --arg a "$1" '.[] | select(.address == $a) | .state'
}

begin() {
	"$BUILD/anvild" -c "$CONF" >>"$LOG" 2>&1 </dev/null &
	ANVILD=$!
}

others_serve() {	# STATE of project/0
	wait_for 30 "[ \"\$(state_of project/0)\" = $1 ] && [ \"\$(state_of ingress)\" = up ]"
	request POST "/api/private/projects/${on[0]}/runs" '{}' >/dev/null
	expect "$(cat "$LAST_STATUS")" 503 "run of the shard that is out"
	has_ended "$(trigger "${on[1]}")" passed
}

comes_back() {
	wait_for 30 healthy
	has_ended "$(trigger "${on[0]}")" passed
}

# Writing is not allowed; it is the file first, then its folder.
stop_all
chmod 0400 "$DATA/project-0.db"
begin
others_serve failing
expect_in "$(ctl health || true)" "project-0.db cannot be written" health
# Whoever asks it is sent to where the cause and the remedy stand.
expect_exit 1 ctl call project/0 project.queue '{"projectId": null, "cursor": null, "limit": 10}'
expect_in "$(cat "$T/err")" "anvilctl health" "an answer of a shard that is out"
# Nobody waits for it with a project that stands still.
expect_exit 1 ctl project move "${on[1]}" 0
expect_in "$(cat "$T/err")" "project/0 is failing" move
expect_exit 1 ctl run "${on[0]}"
expect_match "$(cat "$T/err")" "nothing was accepted, for project/0 cannot serve: .*owner, mode" run
# Nor does anybody who needs it: each is told at once which file, why and what helps.
expect_exit 1 ctl backup "$T/bk"
expect_match "$(cat "$T/err")" "project/0 .*project-0.db cannot be written.*owner, mode" backup
[ ! -e "$T/bk" ] || fail "the backup has left something behind"
expect_exit 0 ctl keys status
expect_in "$(cat "$T/out")" "project/0 did not answer" "keys status"
expect_exit 1 ctl check
expect_match "$(cat "$T/out")" "store_unusable +project/0 .*project-0.db cannot be written" check
chmod 0600 "$DATA/project-0.db"
comes_back

chmod 0500 "$DATA"
has_ended "$(trigger "${on[0]}")" passed
chmod 0700 "$DATA"

# Nor does one who looks at it meanwhile make it stay so.
stop_all
chmod 0400 "$DATA/project-0.db" "$DATA/supervisor.db"
expect_exit 1 ctl check
expect "$(grep -c 'cannot be written' "$T/out")" 2 "stores that cannot be written"
chmod 0600 "$DATA/project-0.db" "$DATA/supervisor.db"
begin
comes_back

# Somebody has the lock: two of one address never overlap.
stop_all
exec 9<"$DATA/project-0.db.lock"
flock 9
begin
others_serve starting
flock -u 9
exec 9<&-
comes_back
stop_all
