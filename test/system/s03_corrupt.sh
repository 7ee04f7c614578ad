#!/bin/bash
# s03_corrupt.sh -- a store that is damaged takes out its own actor and no other, and says so.
. "$(dirname "$0")/lib.sh"

make_steps_repo "$T/src" say 'echo hello' >/dev/null
start_all
sign_in
allowed_errors='actor_failing|store_damaged|store_replaced|store_not_opened|actor_exited|request_failed'

# A project on each shard; each has had a run.
declare -A on=() past=()	# shard -> project, run
for slug in one two; do
	project=$(new_project $slug "file://$T/src")
	run=$(trigger "$project")
	has_ended "$run" passed
	shard=$(grep -a "project_confirmed.*$project" "$LOG" | jq .shard)
	on[$shard]=$project
	past[$shard]=$run
done
expect "${#on[@]}" 2 "shards in use"
ctl backup "$T/backup" >"$T/out" || fail "no backup: $(cat "$T/out")"
stop_all
cp -a "$DATA" "$T/stopped"
# And as it is when the machine loses power: commits are in the logs.
start_anvild
has_ended "$(trigger "${on[0]}")" passed
cut_power
cp -a "$DATA" "$T/cut"

noise() {	# FILE OFFSET BYTES
	head -c "$3" /dev/urandom | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

start_damaged() {
	"$BUILD/anvild" -c "$CONF" >>"$LOG" 2>&1 </dev/null &
	ANVILD=$!
}

rounds=0
put_back() {	# stopped|cut
	rm -rf "$DATA" "$RUNTIME"
	cp -a "$T/$1" "$DATA"
	mv "$LOG" "$T/log.$((++rounds))"
}
put_back stopped

states() {
	ctl ps --json 2>/dev/null | jq -r 'map(select(.address | startswith("run/") | not)) |
		map(.address + "=" + .state) | sort | join(" ")'
}

comes_up() {	# STATES
	start_damaged
	wait_for 40 "[ \"\$(states)\" = '$1' ]"
}

# Shard 0 is out, whatever was done to its files; shard 1 is not, and neither is the rest.
shard_0_is_out() {
	comes_up "ingress=up project/0=failing project/1=up supervisor=up"
	refused 503 storage_unavailable POST "/api/private/projects/${on[0]}/runs" '{}' >/dev/null
	has_ended "$(trigger "${on[1]}")" passed
	! ctl health >"$T/out" || fail "all is well, with a damaged shard"
	expect_in "$(cat "$T/out")" "actor_failing" "health after $1"
	expect_in "$(cat "$T/out")" "project-0.db" "health after $1"
	expect_in "$(ctl ps)" "project-0.db" "ps after $1"
	expect_in "$(grep -a '"event":"store_damaged"' "$LOG")" "anvilctl restore" "remedy"
	expect "$(curl -sS "http://127.0.0.1:$PORT/healthz" | jq -r '.status + " " + .reasons[0]')" \
		"degraded actor_failing" "healthz after $1"
	# It lives, and is no loop: what is said is said once.
	expect "$(grep -ac '"event":"store_damaged"' "$LOG")" 1 "complaints after $1"
	expect "$(ctl ps --json | jq '[.[] | .restarts // 0] | add')" 0 "restarts after $1"
}

next() {	# stopped|cut
	stop_all
	put_back "${1-stopped}"
}

db=$DATA/project-0.db
noise "$db" 0 64
shard_0_is_out "noise in the head"
expect_match "$(ctl health || true)" "project/0 cannot serve: .*project-0.db.*anvilctl restore" health
expect_exit 1 ctl backup "$T/none"
expect_match "$(cat "$T/err")" "project/0 cannot be copied.*project-0.db.*anvilctl restore" backup
expect_exit 1 ctl check
expect_match "$(cat "$T/out")" "store_unusable +project/0 .*project-0.db.*anvilctl restore" check

# Other files there, and it serves again without a restart of anvild.
cp -a "$T/stopped/project-0.db" "$db"
wait_for 20 "[ \"\$(states)\" = 'ingress=up project/0=up project/1=up supervisor=up' ]"
has_ended "$(trigger "${on[0]}")" passed
next

truncate -s $(($(stat -c %s "$db") / 2 / 4096 * 4096)) "$db"
shard_0_is_out "half of the file"
next
: >"$db"
shard_0_is_out "an empty file"
next
rm "$db"
shard_0_is_out "no file"
next cut

# The log: noise in its head, in its first frame, and something that is none.
noise "$db-wal" 8 4
shard_0_is_out "noise in the head of the log"
next cut
noise "$db-wal" 300 16
shard_0_is_out "noise in the first frame of the log"
next cut
head -c 5000 /dev/urandom >"$db-wal"
shard_0_is_out "another log"
next cut
# Its index is made anew, whatever is in it.
head -c 32768 /dev/urandom >"$db-shm"
comes_up "ingress=up project/0=up project/1=up supervisor=up"
has_ended "$(trigger "${on[0]}")" passed
next cut

# A file of a backup, beside a log that is whole and not its own; after damage, as one does it.
: >"$db"
comes_up "ingress=up project/0=failing project/1=up supervisor=up"
cp "$db-wal" "$T/log-of-the-other"
cp "$T/backup/project-0.db" "$db"
wait_for 20 "[ \"\$(states)\" = 'ingress=up project/0=up project/1=up supervisor=up' ]"
logged foreign_log_set_aside project-0.db || fail "the log of the damaged store was not put aside"
cmp "$T/log-of-the-other" "$db"-wal.stale-* || fail "the log was not kept"
has_ended "$(trigger "${on[0]}")" passed
next

# Every page but the first.
noise "$db" 4096 $(($(stat -c %s "$db") - 4096))
shard_0_is_out "noise in all pages"
next

# The index: whoever comes is told, shards and their runs go on.
noise "$DATA/ingress.db" 0 64
comes_up "ingress=failing project/0=up project/1=up supervisor=up"
expect_in "$(refused 503 storage_unavailable GET /api/private/me)" "anvilctl health" "message"
curl -sS -o /dev/null -D "$T/head" -H "Authorization: Bearer $TOKEN" "http://127.0.0.1:$PORT/api/private/me"
expect_match "$(tr -d '\r' <"$T/head")" 'Retry-After: [0-9]+' "header"
expect "$(curl -sS "http://127.0.0.1:$PORT/healthz" | jq -r '.reasons | sort | join(" ")')" \
	"actor_failing storage_unavailable" "healthz without an index"
expect_in "$(ctl health || true)" "ingress.db" health
ctl queue >"$T/out" || fail "the shards do not say what they do: $(cat "$T/out")"
next

# The supervisor's own is put aside, and a new one does.
noise "$DATA/supervisor.db" 4096 4096
comes_up "ingress=up project/0=up project/1=up supervisor=up"
logged store_replaced supervisor.db || fail "supervisor.db was not replaced"
[ -n "$(ls "$DATA"/supervisor.db.damaged-*)" ] || fail "the damaged one was not kept"
has_ended "$(trigger "${on[0]}")" passed

# One run: its detail is still there, its log is not, and others are.
noise "$DATA/runs/${past[0]}/run.db" 0 64
rm -f "$DATA/runs/${past[0]}/run.db-wal"
expect "$(detail_of "${past[0]}" | field run.status)" passed "status of the damaged run"
request GET "/api/private/runs/${past[0]}/log" >/dev/null
expect_match "$(cat "$LAST_STATUS")" '^(503|410)$' "log of the damaged run"
expect_in "$(log_of "${past[1]}")" hello "log of another run"
expect_in "$(grep -a '"event":"store_not_opened"' "$LOG")" "${past[0]}" "file"
stop_all
