#!/bin/bash
# m01_move.sh -- a project goes to another shard: idle, with a queue, with a run that goes on and
# settles there, under deliveries; and back; and to a shard that was just added.
. "$(dirname "$0")/lib.sh"

make_steps_repo "$T/src" say "for i in 1 2 3 4 5 6 7 8; do echo line \$i; done; $HOLD; echo ended" >/dev/null
make_steps_repo "$T/quick" say 'echo hello' >/dev/null
https_server
serve_repo "$T/src" repo
start_all shards=2 repositories.ca_file="$CA_FILE" repositories.allow_private_hosts=true
sign_in
at=https://localhost:$HTTPS_PORT
secret='correct horse battery staple'
need openssl

shard_of() {	# PROJECT: as the directory has it
	ctl project list --json | jq --arg id "$1" '.[] | select(.project.projectId == $id) | .shard'
}

# phases PROJECT: in each shard, as its ledger has it
phases() {
	local shard
	for shard in $(ctl ps --json | jq -r '.[].address | select(startswith("project/"))'); do
		ctl call "$shard" project.queue "{\"projectId\":\"$1\",\"cursor\":null}" |
			jq -r '.kind + " " + (.projects[0].phase // "")'
	done | sort | uniq -c | sed 's/^ *//'
}

# move PROJECT SHARD
move() {
	expect_exit 0 ctl project move "$1" "$2"
	expect "$(shard_of "$1")" "$2" "shard of $1"
}

# ---- idle, there and back ----

idle=$(new_project idle "file://$T/quick")
from=$(shard_of "$idle")
to=$((1 - from))
has_ended "$(trigger "$idle")" passed
old=$(api GET "/api/private/projects/$idle/runs" | jq -c .runs)
move "$idle" $to
expect_in "$(cat "$T/out")" "demo/idle is in shard $to now" "answer"
expect "$(phases "$idle")" "1 moved 
1 page live" "owners"
logged project_moved "\"projectId\":\"$idle\"" || fail "no event"
expect "$(api GET "/api/private/projects/$idle/runs" | jq -c .runs)" "$old" "runs"
run=$(trigger "$idle")
has_ended "$run" passed
expect "$(ctl why "$run" --json | jq .run.projectId)" "\"$idle\"" "why"
expect "$(ctl project move demo/idle $to --json | jq -c '[.shard, .moved]')" "[$to,false]" "again"
move "$idle" "$from"
has_ended "$(trigger "$idle")" passed
ctl check >"$T/out" 2>&1 || fail "check: $(cat "$T/out")"

# ---- refused ----

expect_exit 1 ctl project move demo/idle 7
expect_in "$(cat "$T/err")" "there is no shard 7, the last one is 1; set \`shards: 8\`" "no such shard"
expect_exit 2 ctl project move demo/idle x
expect_exit 1 ctl project move demo/nobody 1
expect_in "$(ctl call "project/$from" project.move "{\"projectId\":\"$idle\",\"toShard\":40}")" \
	'project/40 cannot be reached' "a shard that is not there"
has_ended "$(trigger "$idle")" passed

# ---- with a queue and a run that goes on, under deliveries ----

hooked=$(new_project hooked "$at/repo")
api PUT "/api/private/projects/$hooked/webhooks/gitea" "$(jq -cn --arg secret "$secret" --arg at "$at" \
	'{enabled: true, secret: $secret, config: {instanceUrl: $at}}')" >/dev/null
from=$(shard_of "$hooked")
to=$((1 - from))

deliver() {	# ID EVENT: prints status, duplicate and run
	local body signature
	body=$(jq -cn --arg url "$at/repo.git" --arg id "$1" '{ref: "refs/heads/main", before: ("0" * 40),
		after: ("a" * 40), id: $id, repository: {clone_url: $url}}')
	signature=$(printf %s "$body" | openssl dgst -sha256 -hmac "$secret" -r | cut -d' ' -f1)
	curl -sS -m 30 -w ' %{http_code}' -H 'Content-Type: application/json' \
		-H "X-Gitea-Event: $2" -H "X-Gitea-Delivery: $1" -H "X-Gitea-Signature: $signature" \
		--data-binary "$body" "http://127.0.0.1:$PORT/api/public/hooks/gitea/demo/hooked"
	echo
}

active=$(trigger "$hooked")
wait_for 20 "log_of $active | grep -q 'line 8'"
pid=$(pid_of "run/$active")
second=$(trigger "$hooked")
third=$(trigger "$hooked")
ctl logs -f "$active" >"$T/followed" 2>&1 </dev/null &
follower=$!
deliveries() {	# NAME
	local n=0
	while [ ! -e "$T/enough" ]; do
		n=$((n + 1))
		deliver "ping-$1$n" ping
		[ $((n % 10)) != 1 ] || deliver "push-$1$n" push
	done >"$T/answers.$1"
}
declare -a delivering=()
for name in a b; do
	deliveries $name &
	delivering+=($!)
done
for target in $to "$from" $to "$from" $to; do
	move "$hooked" "$target"
	# Whichever shard has them by then: no secret stays behind under an old key.
	[ "$target" = "$from" ] || expect_exit 0 ctl keys rotate
	wait_for 20 "ctl queue demo/hooked --json | jq -e --arg run $active '.[0].active.runId == \$run' >/dev/null"
done
touch "$T/enough"
wait "${delivering[@]}"
cat "$T"/answers.? >"$T/answers"
expect "$(grep -vcE ' (200|202)$' "$T/answers")" 0 "deliveries refused: $(sort "$T/answers" | uniq -c)"
sent=$(grep -c . "$T/answers")
expect "$(ctl deliveries demo/hooked --limit 500 --json | jq '.deliveries | length')" "$sent" "deliveries kept"
expect "$(deliver ping-a1 ping)" '{"outcome":"ignored_ping","duplicate":true,"runId":null} 200' "the first ping again"
pushed=$(jq -rR 'capture("(?<j>.*) 202$").j | fromjson.runId' "$T/answers.a" | head -n 1)
expect "$(deliver push-a1 push)" "{\"outcome\":\"accepted\",\"duplicate\":true,\"runId\":\"$pushed\"} 200" "the first push again"

wait_for 20 "ctl keys status --json | jq -e '.current == 4 and .failed == 0 and .shardsSilent == 0 and
	all(.versions[]; .secrets == (if .version == 4 then 1 else 0 end))' >/dev/null"

# The run has gone on, and those behind it follow in order.
expect "$(pid_of "run/$active")" "$pid" "pid of the run"
let_go "$active"
has_ended "$active" passed
wait $follower || fail "following the log: $(cat "$T/followed")"
expect "$(grep -c line "$T/followed") $(grep -c ended "$T/followed")" "8 1" "log that was followed"
expect "$(log_of "$active" | grep -c line)" 8 "log"
wait_for 20 "is_status $second running"
expect "$(ctl cancel "$third" --json | jq -r .status)" canceled "cancel"
move "$hooked" "$from"
let_go "$second"
has_ended "$second" passed
has_ended "$third" canceled
wait_for 30 "is_over $pushed"
ctl check >"$T/out" 2>&1 || fail "check: $(cat "$T/out")"

# ---- to a shard that was just added ----

configure shards=3
kill -HUP "$ANVILD"
wait_for 20 "[ -n \"\$(pid_of project/2)\" ]"
move "$idle" 2
has_ended "$(trigger "$idle")" passed
expect "$(phases "$idle" | grep -c live)" 1 "owners"

# It cannot be left out while it holds a project, and the way out is told.
stop_all
configure shards=2
expect_exit 1 "$BUILD/anvild" -c "$CONF"
expect_in "$(cat "$T/err")" "shard 2 holds 1 projects; move them first (anvilctl project move): demo/idle" "fewer shards"
configure shards=3
start_anvild
move "$idle" 0
expect_exit 0 ctl project rm --yes demo/hooked
wait_for 30 "! ctl project list --json | grep -q hooked"
# Where it had been before, nobody takes it for lost.
wait_for 30 "ctl check >'$T/out'"
stop_all
configure shards=2
start_anvild
has_ended "$(trigger "$idle")" passed
stop_all
