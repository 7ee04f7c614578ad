#!/bin/bash
# l06_watch_text.sh -- the text log with curl: whole, following from the queue to the end, read
# slowly, with a ticket, and across the deaths of those who serve it.
. "$(dirname "$0")/lib.sh"

make_steps_repo "$T/src" \
	bulk "head -c 6000000 /dev/zero | tr '\\0' x; echo; echo 'bulk is over'" \
	lines 'for i in $(seq 100); do echo "out $i"; echo "err $i" >&2; sleep 0.005; done' \
	hold "echo begun; $HOLD; printf 'no newline at the end'" >/dev/null
start_all runs.max_concurrent=1
sign_in
project=$(new_project hello "file://$T/src")
killed_some=yes
allowed_errors='actor_exited|request_failed|index_sync_failed|lease_lost'

text() {	# RUN [QUERY [CURL OPTION...]]
	curl -sSN -m 60 -H "Authorization: Bearer $TOKEN" "${@:3}" \
		"http://127.0.0.1:$PORT/api/private/runs/$1/log${2-}"
}

holder=$(trigger "$project")
text "$holder" '?follow=1' >"$T/begin" &
begin=$!
wait_for 30 "grep -qas begun $T/begin"
run=$(trigger "$project")
text "$run" '?follow=1&download=1' -D "$T/head" >"$T/queued" &
queued=$!
wait_for 10 "[ -s $T/head ]"
expect_in "$(tr -d '\r' <"$T/head")" "Content-Disposition: attachment; filename=\"$run.log\"" head
expect "$(text "$run")" '' "text of a queued run"
text "$holder" '?follow=1' --limit-rate 2M >"$T/slow" &
slow=$!
text "$holder" '?follow=1' >"$T/middle" &
middle=$!
wait_for 20 "grep -qas begun $T/middle"
let_go "$holder"
for pid in $begin $middle $slow; do
	wait "$pid" || fail "a text of $holder was cut"
done
has_ended "$holder" passed
log_of "$holder" >"$T/stored"
for file in begin middle slow; do
	cmp "$T/$file" "$T/stored" || fail "$file differs from the stored text"
done

wait_for 30 "grep -qas begun $T/queued"
let_go "$run"
wait "$queued" || fail "the text of $run was cut"
has_ended "$run" passed
log_of "$run" | cmp - "$T/queued" || fail "text from the queue on differs"

# Tickets.
ticket() {
	api POST "/api/private/runs/$1/log-ticket" | field ticket
}
by_ticket() {	# RUN TICKET [QUERY]: the body; the status goes to $LAST_STATUS
	curl -sS -m 60 -w '%{stderr}%{http_code}' 2>"$LAST_STATUS" \
		"http://127.0.0.1:$PORT/api/private/runs/$1/log?ticket=$2${3-}"
}
one=$(ticket "$run")
expect_match "$one" '^[0-9A-Za-z_-]{43}$' ticket
by_ticket "$run" "$one" '&follow=2' >/dev/null
expect "$(cat "$LAST_STATUS")" 400 "a bad flag"
by_ticket "$run" "$one" | cmp - "$T/queued" || fail "the text by ticket differs"
expect "$(by_ticket "$run" "$one" | field error.code)" invalid_log_ticket "the ticket again"
expect "$(cat "$LAST_STATUS")" 403 status
one=$(ticket "$run")
expect "$(by_ticket "$holder" "$one" | field error.code)" invalid_log_ticket "the ticket of another run"
expect "$(by_ticket "$run" "$one" | field error.code)" invalid_log_ticket "it is used up"
expect "$(by_ticket "$run" '' | field error.code)" invalid_log_ticket "no ticket"
expect "$(by_ticket "${run}x" "$one" | field error.code)" run_not_found "no run"
one=$(ticket "$run")
ctl user disable demo >/dev/null
expect "$(by_ticket "$run" "$one" | field error.code)" user_disabled "a disabled user's"
ctl user enable demo >/dev/null
log_in demo

# The shard dies, then the run: the text goes on, and ends with the run.
run=$(trigger "$project")
text "$run" '?follow=1' >"$T/killed" &
killed=$!
wait_for 30 "grep -qas begun $T/killed"
kill -KILL "$(pid_of project/0)" "$(pid_of project/1)" 2>/dev/null || true
wait_for 10 healthy
is_alive $killed || fail "the death of the shard has ended the text"
kill -KILL "$(pid_of "run/$run")"
wait "$killed" || fail "the text of $run was cut"
has_failed "$run" runner_lost '*'
log_of "$run" | cmp - "$T/killed" || fail "the text of a run that died differs"
stop_all
