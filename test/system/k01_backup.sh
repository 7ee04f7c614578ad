#!/bin/bash
# k01_backup.sh -- a backup while webhooks and runs go on, and the drill: restored into a new
# data_dir everything that was acknowledged before it is there, and what was under way ends.
. "$(dirname "$0")/lib.sh"

# shellcheck disable=SC2016 # the step expands it
commit=$(make_steps_repo "$T/src" say 'i=0; while [ $i -lt 400 ]; do echo "line $i"; i=$((i + 1)); done')
make_steps_repo "$T/long" begin 'echo begun' hold "$HOLD" >/dev/null
https_server
serve_repo "$T/src" private/repo
start_all repositories.ca_file="$CA_FILE" repositories.allow_private_hosts=true
sign_in
killed_some=yes
at=https://localhost:$HTTPS_PORT
secret='correct horse battery staple'

hook() {	# ID: a push of gitea; prints the status
	local body signature
	body=$(jq -cn --arg url "$at/private/repo" --arg commit "$commit" '{ref: "refs/heads/main", before: ("0" * 40),
		after: $commit, repository: {clone_url: $url, html_url: $url}}')
	signature=$(printf %s "$body" | openssl dgst -sha256 -hmac "$secret" -r | cut -d' ' -f1)
	curl -sS -m 30 -o "$T/got" -w '%{http_code}' -H 'Content-Type: application/json' \
		-H "X-Gitea-Event: push" -H "X-Gitea-Delivery: $1" \
		-H "X-Gitea-Signature: $signature" --data-binary "$body" \
		"http://127.0.0.1:$PORT/api/public/hooks/gitea/demo/hooked"
}

# ---- something to lose ---------------------------------------------------------------

hooked=$(new_project hooked "$at/private/repo" "{\"repoToken\":\"$GIT_TOKEN\"}")
api PUT "/api/private/projects/$hooked/webhooks/gitea" \
	"{\"enabled\":true,\"secret\":\"$secret\",\"config\":{\"instanceUrl\":\"$at\"}}" >/dev/null
plain=$(new_project plain "file://$T/src")
long=$(new_project long "file://$T/long")
mkdir "$T/before"
ended=()
for n in 1 2 3; do
	run=$(trigger "$plain")
	has_ended "$run" passed
	log_of "$run" >"$T/before/$run"
	ended+=("$run")
done
expect "$(hook zero)" 202 delivery
run=$(jq -r .runId "$T/got")
has_ended "$run" passed
log_of "$run" >"$T/before/$run"
ended+=("$run")
# One that will go on during the backup, and one that waits behind it.
active=$(trigger "$long")
wait_for 20 "log_of $active | grep -q begun"
queued=$(trigger "$long")

# ---- all of it or none ---------------------------------------------------------------

shard=$(ctl ps --json | jq '.[] | select(.address == "project/0") | .pid')
kill -STOP "$shard"
expect_exit 1 ctl backup "$T/none"
expect_in "$(cat "$T/err")" "project/0 cannot be copied" "a shard that is stopped"
expect_in "$(cat "$T/err")" "process $shard is stopped" "a shard that is stopped"
[ ! -e "$T/none" ] || fail "something was left behind"
kill -CONT "$shard"

# ---- the backup, under load ----------------------------------------------------------

load() {
	local n=0
	while [ ! -e "$T/enough" ]; do
		n=$((n + 1))
		hook "load-$n" >>"$T/load" || true
		trigger "$plain" >>"$T/loaded" 2>/dev/null || true
		sleep 0.1
	done
}
background load
loading=$HELPER
wait_for 20 '[ -s "$T/loaded" ]'
# A second one waits for its turn.
as_account touch "$RUNTIME/backup.lock"
exec 8<"$RUNTIME/backup.lock"
flock 8
ctl backup "$T/bk" --json >"$T/out" 2>"$T/err" 8<&- &
backup=$!
wait_for 10 "grep -q 'another backup is being made (process [0-9]' '$T/err'"
[ ! -e "$T/bk" ] || fail "a backup that waits has made its folder"
exec 8<&-
wait_for 60 "! is_alive $backup"
wait "$backup" || fail "the backup that waited: $(cat "$T/err")"
expect "$(jq -r .path "$T/out")" "$T/bk" path
[ "$(jq .runs "$T/out")" -ge 5 ] || fail "only $(jq .runs "$T/out") runs"
expect "$(jq .leftOut "$T/out")" 0 "left out"
touch "$T/enough"
wait "$loading" || fail "the load has failed"
expect "$(stat -c '%a %U' "$T/bk")" "700 ${ACCOUNT:-$(id -un)}" "mode and owner"
expect "$(jq -c '[.format, .keys, .leftOut]' "$T/bk/manifest.json")" '[1,[1],[]]' manifest
expect "$(jq -r '.files[] | .sha256 + "  " + .path' "$T/bk/manifest.json" |
	(cd "$T/bk" && sha256sum -c --quiet 2>&1))" "" digests
expect "$(find "$T/bk" -name '*.part*' -o -name '*-wal' -o -name '*-shm' -o -name 'lock')" "" leftovers
! grep -rqaF "$secret" "$T/bk" || fail "a secret is in the backup"
! grep -rqaF "$(jq -r '.keys["1"]' "$T/keys.json")" "$T/bk" || fail "a key is in the backup"
for run in "${ended[@]}" "$active"; do
	[ -s "$T/bk/runs/$run/run.db" ] || fail "$run is not in the backup"
done
find "$DATA/runs" -name 'run.db-wal' >"$T/wal"
logged store_copied '"folder"' || fail "nothing in the log"
# A folder that has something in it is refused.
expect_exit 1 ctl backup "$T/bk"
expect_in "$(cat "$T/err")" "is not empty" reason
expect_exit 1 ctl backup "$CONF"
# Within what it would spoil, or would go away with.
for place in "$T/bk" "$DATA" "$RUNTIME"; do
	expect_exit 1 ctl backup "$place/inside"
	expect_in "$(cat "$T/err")" "lies within" "a backup in $place"
	[ ! -e "$place/inside" ] || fail "$place/inside was left behind"
done

# ---- what refuses to be restored -----------------------------------------------------

expect_exit 1 ctl restore "$T/bk"
expect_in "$(cat "$T/err")" "anvil runs: process $ANVILD holds" "live system"
expect_exit 1 "$BUILD/anvilctl" -d "$RUNTIME" restore "$T/bk"
stop_anvild
# Those of the load may go on as well.
nlive=0
while expect_exit 1 ctl restore "$T/nothing" &&
	[[ $(cat "$T/err") =~ "a run goes on: process "([0-9]+)" holds run_" ]]; do
	nlive=$((nlive + 1))
	expect_in "$(cat "$T/err")" "kill -KILL ${BASH_REMATCH[1]}" "the remedy"
	kill -KILL "${BASH_REMATCH[1]}"
	wait_for 20 "! is_alive ${BASH_REMATCH[1]}"
done
[ $nlive -gt 0 ] || fail "live run: $(cat "$T/err")"
# The backup may be older than some of them: on another host there are no sockets of theirs.
rm -f "$RUNTIME"/run_*.sock
before=$(cd "$DATA" && find . -type f -not -name '*.lock' -exec sha256sum {} + | sort)

spoiled() {	# WHAT PATTERN COMMAND: a copy of the backup that COMMAND has spoiled is refused
	rm -rf "$T/spoiled"
	cp -a "$T/bk" "$T/spoiled"
	(cd "$T/spoiled" && eval "$3")
	expect_exit 1 ctl restore "$T/spoiled"
	expect_in "$(cat "$T/err")" "$2" "$1"
	expect "$(cd "$DATA" && find . -type f -not -name '*.lock' -exec sha256sum {} + | sort)" \
		"$before" "data after: $1"
}
spoiled "flipped bit" "project-0.db is damaged" \
	'printf "\377" | dd of=project-0.db bs=1 seek=5000 conv=notrunc status=none'
spoiled "cut store" "no whole store" 'truncate -s -4096 ingress.db'
spoiled "cut log" "where the manifest says" "truncate -s -1 runs/${ended[0]}/log.zst"
spoiled "missing file" "is missing" "rm runs/${ended[0]}/log.zst"
spoiled "extra file" "is not in the manifest" 'echo x >runs/more'
spoiled "no manifest" "has no manifest.json" 'rm manifest.json'
spoiled "half a manifest" "manifest.json: it is no JSON" 'truncate -s 300 manifest.json'
spoiled "newer schema" "made by a newer anvil" \
	'jq "(.files[] | select(.role == \"ingress\") | .schema) = 999" manifest.json >m && mv m manifest.json'
spoiled "newer format" "newer anvil" 'jq ".format = 9" manifest.json >m && mv m manifest.json'
spoiled "lacking store" "lacks a store" \
	'jq "del(.files[] | select(.role == \"ingress\"))" manifest.json >m && mv m manifest.json'
spoiled "no copy" "lacks the mark" 'head -c 4 /dev/zero |
	dd of=ingress.db bs=1 seek=68 conv=notrunc status=none
	jq --arg sum "$(sha256sum <ingress.db | cut -d" " -f1)" \
		"(.files[] | select(.role == \"ingress\") | .sha256) = \$sum" manifest.json >m
	mv m manifest.json'

# ---- the drill -----------------------------------------------------------------------

mv "$T/keys.json" "$T/keys.away"
DATA=$T/fresh
configure data_dir="$DATA"
expect_exit 0 ctl restore "$T/bk"
expect_in "$(cat "$T/err")" "secrets need version 1 of the key" "warning of the keys"
mv "$T/keys.away" "$T/keys.json"
expect "$(stat -c '%a %U' "$DATA")" "700 ${ACCOUNT:-$(id -un)}" "mode and owner of the data"
expect "$(find "$DATA" -type f -not -perm 600)" "" "files of another mode"
expect "$(find "$T" -maxdepth 1 -name 'fresh.*')" "" "leftovers of the restore"

start_anvild
has_ended "$active" failed
expect "$(field failureCode <<<"$DETAIL")" runner_lost "the run that went on during the backup"
for run in "${ended[@]}"; do
	expect "$(status_of "$run")" passed "run from before"
	log_of "$run" >"$T/now"
	cmp "$T/before/$run" "$T/now" || fail "log of $run differs"
done
expect "$(api GET /api/private/me | field user.slug)" demo "session from before"
expect "$(hook zero)" 200 "delivery that is known"
expect "$(hook fresh)" 202 "delivery after the restore"
has_ended "$(jq -r .runId "$T/got")" passed
# What waited runs now.
wait_for 20 "log_of $queued | grep -q begun"
let_go "$queued"
has_ended "$queued" passed
# And all that the ledger of the backup knows comes to its end.
nothing_waits() {
	[ -z "$(ctl queue --json | jq -r '.. | .runId? // empty')" ]
}
wait_for 60 nothing_waits
expect "$(api GET "/api/private/projects" | jq -r '[.projects[].projectSlug] | sort | join(" ")')" \
	"hooked long plain" projects

stop_all

# ---- over what is there, keeping it --------------------------------------------------

was=$(sha256sum <"$DATA/supervisor.db")
expect_exit 0 ctl restore "$T/bk" --json
kept=$(jq -r .kept "$T/out")
expect_match "$kept" "^$T/fresh\.before-restore-" "where the old data is"
expect "$(sha256sum <"$kept/supervisor.db")" "$was" "the old data"
expect "$(sha256sum <"$DATA/supervisor.db")" "$(sha256sum <"$T/bk/supervisor.db")" "the new data"
