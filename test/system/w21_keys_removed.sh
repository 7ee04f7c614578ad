#!/bin/bash
# w21_keys_removed.sh -- a version of the key that is gone: what depends on it says so and nothing
# else suffers; put back, all of it works again.
. "$(dirname "$0")/lib.sh"

make_steps_repo "$T/src" say 'echo said' >/dev/null
https_server
serve_repo "$T/src" private/repo
start_all repositories.ca_file="$CA_FILE" repositories.allow_private_hosts=true
sign_in
at=https://localhost:$HTTPS_PORT
secret='correct horse battery staple'
keys=$T/keys.json

deliver() {	# PROJECT ID: a ping of gitea; prints the status
	local body='{"repository":null}' signature
	signature=$(printf %s "$body" | openssl dgst -sha256 -hmac "$secret" -r | cut -d' ' -f1)
	curl -sS -m 30 -o "$T/got" -w '%{http_code}' -H 'Content-Type: application/json' \
		-H "X-Gitea-Event: ping" -H "X-Gitea-Delivery: $2" \
		-H "X-Gitea-Signature: $signature" --data-binary "$body" \
		"http://127.0.0.1:$PORT/api/public/hooks/gitea/demo/$1"
}
webhook() {	# PROJECT
	api PUT "/api/private/projects/$1/webhooks/gitea" \
		"{\"enabled\":true,\"secret\":\"$secret\",\"config\":{\"instanceUrl\":\"$at\"}}" >/dev/null
}
state() {
	ctl keys status --json | jq -r '"\(.current):" + ([.versions[] |
		" \(if .present then "" else "!" end)\(.version)=\(.secrets)"] | join(""))'
}

old=$(new_project old "$at/private/repo" "{\"repoToken\":\"$GIT_TOKEN\"}")
webhook "$old"
expect "$(deliver old one)" 200 "delivery"
stop_all
cp -p "$keys" "$T/first.json"

# The current version is not in the file: no start, with the file, the mistake and the remedy.
jq '.current = 7' "$T/first.json" >"$T/broken.json"
cat "$T/broken.json" >"$keys"
expect_exit 1 timeout 20 "$BUILD/anvild" -c "$CONF"
expect_match "$(cat "$T/err")" "$keys: current: version 7 is not among the keys; put that key back" "reason"

# Version 1 has gone, version 2 has come.
jq '{current: 2, keys: {"2": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"}}' "$T/first.json" >"$T/second.json"
cat "$T/second.json" >"$keys"
allowed_errors='webhook_secret_unreadable|secret_not_opened|internal_unexpected|request_failed'
start_anvild
expect "$(deliver old two) $(field error.code <"$T/got")" "500 encryption_not_configured" "delivery"
logged webhook_secret_unreadable "\"projectId\":\"$old\"" || fail "nothing about the webhook"
wait_for 20 "[ \"\$(grep -ac secret_not_opened '$LOG')\" = 2 ]"
logged secret_not_opened "\"rowId\":\"$old\"" || fail "nothing about the token"
expect "$(state)" "2: !1=2 2=0" "keys"
expect_exit 1 ctl keys status
expect_match "$(cat "$T/out")" ' 1  missing +2' "table"
expect_in "$(cat "$T/out")" "version 1 is not in the keys file: 2 secrets of $old cannot be opened" "status"
expect_exit 1 ctl keys status --json
expect "$(jq -c '[.failed, .resealing, .shardsSilent]' "$T/out")" '[2,false,0]' "status --json"
ANVIL_CHECK_HOLD=0 expect_exit 1 ctl check
expect_match "$(cat "$T/out")" "key_missing .*version 1 is not in the keys file: 2 secrets.*put that key back" check
has_failed "$(trigger "$old")" internal_unexpected \
	'*key version 1, which is not in the keys file*`anvilctl keys status`*'
expect_exit 0 ctl health
expect_match "$(cat "$T/out")" "note: version 1 is not in the keys file: 2 secrets.*put that key back" health

# Everything else goes on: new secrets, also for that very project.
expect "$(request GET /healthz | field status)" ok "health"
new=$(new_project new "$at/private/repo" "{\"repoToken\":\"$GIT_TOKEN\"}")
webhook "$new"
expect "$(deliver new one)" 200 "delivery to another project"
has_ended "$(trigger "$new")" passed
api PATCH "/api/private/projects/$old" "{\"repoToken\":\"$GIT_TOKEN\"}" >/dev/null
has_ended "$(trigger "$old")" passed
expect "$(state)" "2: !1=1 2=3" "keys with a new token"

# A rotation passes over what does not open.
expect_exit 0 ctl keys rotate
wait_for 20 '[ "$(ctl keys status --json | jq -c ".resealing")" = false ]'
expect "$(state)" "3: !1=1 2=0 3=3" "keys after a rotation"
expect "$(deliver new two)" 200 "delivery after a rotation"
stop_all

# Another key under that number is none of it.
jq '.keys["1"] = .keys["2"]' "$keys" >"$T/other.json"
cat "$T/other.json" >"$keys"
start_anvild
ANVIL_CHECK_HOLD=0 expect_exit 1 ctl check
expect_match "$(cat "$T/out")" "key_other .*1 secret cannot be opened.*put the former keys back" check
expect_exit 0 ctl health
expect_match "$(cat "$T/out")" "note: 1 secret cannot be opened.*put the former keys back" health
stop_all

# Put back, the version opens what is under it, which then goes to the current one.
jq --slurpfile first "$T/first.json" '.keys["1"] = $first[0].keys["1"]' "$keys" >"$T/whole.json"
cat "$T/whole.json" >"$keys"
allowed_errors=none
: >"$LOG"
start_anvild
expect "$(deliver old three)" 200 "delivery with the key back"
wait_for 20 '[ "$(state)" = "3: 1=0 2=0 3=4" ]'
expect "$(deliver old four)" 200 "delivery of the secret that is sealed anew"
expect_exit 0 ctl keys status
stop_all
