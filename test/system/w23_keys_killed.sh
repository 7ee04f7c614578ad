#!/bin/bash
# w23_keys_killed.sh -- SIGKILL of the supervisor around rotations of the key: the keys file is
# always whole, and every secret ends under the version that is current in it.
. "$(dirname "$0")/lib.sh"

start_all runs.sandbox=none
sign_in
secret='correct horse battery staple'
keys=$T/keys.json

deliver() {	# ID: a ping of github; prints the status
	local body='{"zen":"x"}' signature
	signature=$(printf %s "$body" | openssl dgst -sha256 -hmac "$secret" -r | cut -d' ' -f1)
	curl -sS -m 30 -o "$T/got" -w '%{http_code}' -H 'Content-Type: application/json' \
		-H "X-GitHub-Event: ping" -H "X-GitHub-Delivery: $1" \
		-H "X-Hub-Signature-256: sha256=$signature" --data-binary "$body" \
		"http://127.0.0.1:$PORT/api/public/hooks/github/demo/p1"
}
need openssl
for n in 1 2 3 4 5 6 7 8; do
	project=$(new_project "p$n" https://github.com/example/hello '{"repoToken":"ghp_a4Kq9xV2mZ7"}')
	api PUT "/api/private/projects/$project/webhooks/github" \
		"{\"enabled\":true,\"secret\":\"$secret\"}" >/dev/null
done
killed_some=yes
allowed_errors='actor_exited|request_failed|index_sync_failed'

# converged: everything is under the version that the file says.
converged() {
	ctl keys status --json | jq -e --argjson want "$(jq .current "$keys")" '.current == $want and
		.failed == 0 and .shardsSilent == 0 and all(.versions[];
			.secrets == (if .version == $want then 16 else 0 end))' >/dev/null
}
kill_anvild() {
	local pids
	pids=$(descendants "$ANVILD")
	kill -KILL "$ANVILD"
	wait "$ANVILD" 2>/dev/null || true
	for pid in $pids; do
		wait_for 10 "! is_alive $pid"
	done
}

# A little later each time, from before the file is written to after the hand-over.
for after in 0 0.004 0.01 0.02 0.04 0.1; do
	ctl keys rotate >"$T/rotated" 2>&1 </dev/null &
	asking=$!
	sleep $after
	kill_anvild
	wait $asking || true
	expect "$(jq '.current == (.keys | keys | map(tonumber) | max)' "$keys")" true "keys file"
	if grep -q current "$T/rotated"; then
		expect_in "$(cat "$T/rotated")" "version $(jq .current "$keys") " "what was answered"
	fi
	start_anvild
	wait_for 20 converged
	expect "$(deliver "after $after")" 200 "delivery"
done
expect_exit 0 ctl keys rotate
wait_for 20 converged
stop_all

# The machine went down while the file was written over: what was to be in it is in a file of
# anvil's own, which then goes.
next=$DATA/keys.next.json
cp -p "$keys" "$next"
[ -z "$ACCOUNT" ] || chown "$ACCOUNT" "$next"
whole=$(jq -cS . "$keys")
printf '%.60s' "$(cat "$next")" >"$T/half"
cat "$T/half" >"$keys"
start_anvild
expect "$(jq -cS . "$keys")" "$whole" "mended keys file"
[ ! -e "$next" ] || fail "$next is still there"
expect "$(stat -c %a "$keys")" 600 "mode of the keys file"
wait_for 20 converged
stop_all

# Before it was begun: the rotation counts.  But what is not a rotation of these keys does not.
cp -p "$keys" "$next"
[ -z "$ACCOUNT" ] || chown "$ACCOUNT" "$next"
jq '.current as $c | del(.keys[$c | tostring]) | .current = (.keys | keys | map(tonumber) | max)' \
	"$next" >"$T/before"
cat "$T/before" >"$keys"
start_anvild
expect "$(jq -cS . "$keys")" "$whole" "keys file after the rotation"
wait_for 20 converged
stop_all
printf '{"current":1,"keys":{"1":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"}}' >"$next"
chmod 600 "$next"
[ -z "$ACCOUNT" ] || chown "$ACCOUNT" "$next"
start_anvild
expect "$(jq -cS . "$keys")" "$whole" "keys file beside a strange one"
wait_for 20 converged
expect "$(deliver last)" 200 "delivery"
stop_all
