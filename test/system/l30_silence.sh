#!/bin/bash
# l30_silence.sh -- a step that is silent for longer than nginx waits: events and WebSockets live
# on by what anvil sends in between, a text where the proxy is told to be patient.
#
# LONG=1: five minutes of silence, more than `make check` has time for.
. "$(dirname "$0")/lib.sh"
# shellcheck source=test/system/clients/clients.sh
. "$HERE/clients/clients.sh"

SLEEP=75
[ -z "${LONG-}" ] || SLEEP=300

make_steps_repo "$T/src" \
	quiet "echo 'quiet: begun'; $HOLD_LONG; sleep $SLEEP; echo 'quiet: ended'" >/dev/null
git_in "$T/src" switch -q -c short
write_steps "$T/src" short 'echo "short: all"'
commit_all "$T/src" "Be short" >/dev/null
proxy_start
sign_in
project=$(new_project hello "file://$T/src")

watch() {	# URL: its text, as it comes
	curl -sSN --cacert "$CA_FILE" -H "Authorization: Bearer $TOKEN" "$1"
}
# has_seen PID FILE RUN: the watcher is through, and its events are the whole run with heartbeats.
has_seen() {
	wait_for $((SLEEP + 120)) "! is_alive $1"
	wait "$1" || fail "curl was cut off: $(tail -n 3 "$2")"
	expect "$(tail -n 3 "$2")" $'event: end\ndata: {"type":"end","reason":"run_finished"}' \
		"end of $2"
	sed -n 's/^data: //p' "$2" | jq -j 'select(.type == "log").event.chunk' >"$T/joined"
	log_of "$3" | cmp - "$T/joined" || fail "the text of $2 differs"
	[ "$(grep -c '^event: hb$' "$2")" -ge $((SLEEP / 35)) ] || fail "$2: few heartbeats"
}

run=$(trigger "$project")
wait_for 40 "log_of $run | grep -q begun"
queued=$(trigger "$project" short)
watch "$AT/api/private/runs/$run/events" >"$T/events" &
events=$!
watch "$AT/api/private/runs/$queued/events" >"$T/queued" &
early=$!
watch "$AT_PATIENT/api/private/runs/$run/log?follow=1" >"$T/text" &
text=$!
socket=
if get_clients; then
	client quiet.mjs RUN="$run" SLEEP="$SLEEP" >"$T/socket" 2>&1 &
	socket=$!
	wait_for 60 "grep -q '^sockets are open' $T/socket || ! is_alive $socket"
else
	echo "without WebSockets: $WHY_NOT"
fi
wait_for 40 "grep -q begun $T/events && grep -q begun $T/text && grep -q queued $T/queued"
let_go "$run"

has_seen $events "$T/events" "$run"
has_ended "$run" passed
wait_for 40 "! is_alive $text"
wait $text || fail "the text was cut off"
log_of "$run" | cmp - "$T/text" || fail "the text differs"
has_ended "$queued" passed
has_seen $early "$T/queued" "$queued"
if [ -n "$socket" ]; then
	wait_for 40 "! is_alive $socket"
	wait $socket || fail "$(cat "$T/socket")"
fi
stop_all
