#!/bin/bash
# l07_watch_deaths.sh -- viewers of a run while its shard, ingress and the run itself are killed,
# and when its store has gone.
. "$(dirname "$0")/lib.sh"

make_steps_repo "$T/src" say "echo begun; $HOLD; echo ended" >/dev/null
start_all
sign_in
project=$(new_project hello "file://$T/src")
killed_some=yes
allowed_errors='actor_exited|request_failed|index_sync_failed|lease_lost'

# events RUN [QUERY]: the stream, to its end or the end of the connection.
events() {
	curl -sSN -m 60 -H "Authorization: Bearer $TOKEN" \
		"http://127.0.0.1:$PORT/api/private/runs/$1/events${2-}" 2>/dev/null
}
messages() {
	sed -n 's/^data: //p' "$1"
}
states() {
	messages "$1" | jq -r 'select(.type == "state").run.status' | uniq | xargs
}
ended_well() {
	expect "$(tail -n 2 "$1")" 'data: {"type":"end","reason":"run_finished"}' "end of $1"
}

# The shard dies, and the stream knows nothing of it.
run=$(trigger "$project")
events "$run" >"$T/one" &
one=$!
wait_for 20 "grep -qs begun $T/one"
kill -KILL "$(pid_of project/0)" "$(pid_of project/1)" 2>/dev/null || true
wait_for 10 healthy

# Ingress dies: who comes again with the number behind the last line misses nothing.
kill -KILL "$(pid_of ingress)"
! wait "$one" || fail "a stream has outlived ingress"
wait_for 10 healthy
next=$(($(sed -n 's/^id: //p' "$T/one" | tail -n 1) + 1))
events "$run" "?from=$next" >"$T/two" &
two=$!
wait_for 20 "grep -qs '^event: state' $T/two"
let_go "$run"
wait "$two" || fail "the second stream was cut"
has_ended "$run" passed
ended_well "$T/two"
{
	messages "$T/one"
	messages "$T/two"
} | jq -j 'select(.type == "log").event.chunk' >"$T/joined"
log_of "$run" | cmp - "$T/joined" || fail "the two streams together are not the log"

# The run is killed: its viewers see that, and the last line.
run=$(trigger "$project")
events "$run" >"$T/one" &
one=$!
wait_for 20 "grep -qs begun $T/one"
kill -KILL "$(pid_of "run/$run")"
wait "$one" || fail "the stream of a killed run was cut"
has_failed "$run" runner_lost '*'
ended_well "$T/one"
expect_match "$(states "$T/one")" ' ?running failed$' "states of a killed run"
expect "$(messages "$T/one" | jq -r 'select(.type == "state").run.failureCode' | tail -n 1)" \
	runner_lost "failureCode of the last state"

# Its store goes: one state, from the index.
kill -TERM "$(pid_of "run/$run")" 2>/dev/null || true
wait_for 20 "[ -z \"\$(pid_of run/$run)\" ]"
rm -rf "$DATA/runs/$run"
events "$run" >"$T/gone"
expect "$(messages "$T/gone" | jq -r '.run.status // .reason' | xargs)" "failed run_finished" \
	"stream of a run whose store has gone"
expect "$(messages "$T/gone" | head -n 1 | jq -c '[.run.failureCode, .steps]')" \
	'["runner_lost",[]]' "its state"
refused 410 log_expired GET "/api/private/runs/$run/log" >/dev/null
refused 410 log_expired GET "/api/private/runs/$run/log?follow=1" >/dev/null
stop_all
