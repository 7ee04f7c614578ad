#!/bin/bash
# w20_keys.sh -- a rotation of the key while deliveries and runs go on: everything is sealed anew,
# the old version can go, and no key or secret is anywhere but in its place.
. "$(dirname "$0")/lib.sh"

make_steps_repo "$T/src" say 'echo said' >/dev/null
https_server
serve_repo "$T/src" private/repo
start_all repositories.ca_file="$CA_FILE" repositories.allow_private_hosts=true log.level=debug
sign_in
at=https://localhost:$HTTPS_PORT
secret='correct horse battery staple'
keys=$T/keys.json

deliver() {	# ID: a ping of gitea; prints the status
	local body='{"repository":null}' signature
	signature=$(printf %s "$body" | openssl dgst -sha256 -hmac "$secret" -r | cut -d' ' -f1)
	curl -sS -m 30 -o "$T/got" -w '%{http_code}' -H 'Content-Type: application/json' \
		-H "X-Gitea-Event: ping" -H "X-Gitea-Delivery: $1" \
		-H "X-Gitea-Signature: $signature" --data-binary "$body" \
		"http://127.0.0.1:$PORT/api/public/hooks/gitea/demo/right"
}
# state: the current version, then for each its secrets, `!` before one that is missing.
state() {
	ctl keys status --json | jq -r '"\(.current):" + ([.versions[] |
		" \(if .present then "" else "!" end)\(.version)=\(.secrets)"] | join(""))'
}

expect "$(state)" "1: 1=0" "keys at first"
right=$(new_project right "$at/private/repo" "{\"repoToken\":\"$GIT_TOKEN\"}")
api PUT "/api/private/projects/$right/webhooks/gitea" \
	"{\"enabled\":true,\"secret\":\"$secret\",\"config\":{\"instanceUrl\":\"$at\"}}" >/dev/null
for n in 1 2 3 4 5 6; do
	new_project "p$n" "$at/private/repo" "{\"repoToken\":\"$GIT_TOKEN\"}" >/dev/null
done
expect "$(deliver one)" 200 "delivery"
expect "$(state)" "1: 1=8" "keys before the rotation"

owner=$(stat -c '%u %g %a' "$keys")
expect_exit 0 ctl keys rotate
expect_in "$(cat "$T/out")" "version 2 of the key is current" "rotate"
expect "$(jq -c '[.current, (.keys | keys)]' "$keys")" '[2,["1","2"]]' "keys file"
expect "$(stat -c '%u %g %a' "$keys")" "$owner" "owner and mode of the keys file"
expect "$(deliver two)" 200 "delivery after the rotation"
wait_for 20 '[ "$(state)" = "2: 1=0 2=8" ]'
expect_exit 0 ctl keys status
expect_match "$(cat "$T/out")" ' 1  present +0' "table"
expect_match "$(cat "$T/out")" ' 2  current +8' "table"
expect_in "$(cat "$T/out")" "nothing is left to be sealed anew; 8 done" "progress"
expect_in "$(cat "$T/out")" "version 1 is not needed any more and may be removed" "advice"
expect "$(deliver three)" 200 "delivery of the secret that is sealed anew"
has_ended "$(trigger "$right")" passed
logged keys_rotated '"version":2' || fail "nothing about the rotation"
logged keys_taken '"version":2' || fail "ingress has not said that it has the keys"
logged keys_resealed '"version":2' || fail "nothing about the secrets"

# Two at once; and the second sees what the first has done.
expect_exit 0 ctl keys rotate --json
expect "$(jq -c . "$T/out")" '{"kind":"rotated","version":3}' "rotate --json"
expect_exit 0 ctl keys rotate
wait_for 20 '[ "$(state)" = "4: 1=0 2=0 3=0 4=8" ]'

# What is not needed goes from the file; a rotation before the restart does not bring it back.
cp -p "$keys" "$T/all.json"
jq 'del(.keys["1"], .keys["2"])' "$T/all.json" >"$T/less.json"
cat "$T/less.json" >"$keys"
expect_exit 0 ctl keys rotate
expect "$(jq -c '[.current, (.keys | keys)]' "$keys")" '[5,["3","4","5"]]' "keys file"
wait_for 20 '[ "$(state)" = "5: 3=0 4=0 5=8" ]'
jq '.keys |= {"5": .["5"]}' "$keys" >"$T/less.json"
stop_all
cat "$T/less.json" >"$keys"
start_anvild
expect "$(state)" "5: 5=8" "keys after the restart"
expect "$(deliver four)" 200 "delivery after the restart"
has_ended "$(trigger "$right")" passed

# Another file than that of the start is not built upon.
cp -p "$keys" "$T/good.json"
jq '.keys["5"] |= "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"' "$T/good.json" >"$T/other.json"
cat "$T/other.json" >"$keys"
expect_exit 1 ctl keys rotate
expect_in "$(cat "$T/err")" "$keys: has other keys" "reason"
expect "$(cat "$keys")" "$(cat "$T/other.json")" "keys file"
echo '{"current": 9' >"$keys"
expect_exit 1 ctl keys rotate
expect_match "$(cat "$T/err")" "$keys: .*not JSON" "reason"
rm "$keys"
expect_exit 1 ctl keys rotate
expect_in "$(cat "$T/err")" "$keys" "reason"
cp -p "$T/good.json" "$keys"
expect_exit 2 ctl keys rotate now
expect_exit 0 ctl keys rotate
wait_for 20 '[ "$(state)" = "6: 5=0 6=8" ]'
expect "$(deliver five)" 200 "delivery at the end"
expect "$(find "$T" -maxdepth 1 -name 'keys.json?*')" "" "files beside the keys"
stop_all

for word in $(jq -r '.keys[]' "$T/all.json" "$keys" | sort -u) "$secret" "$GIT_TOKEN"; do
	! grep -rqaF -- "$word" "$DATA" "$LOG" ||
		fail "a key or secret is in $(grep -rlaF -- "$word" "$DATA" "$LOG")"
done
