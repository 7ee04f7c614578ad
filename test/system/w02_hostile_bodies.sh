#!/bin/bash
# w02_hostile_bodies.sh -- bodies that are too long, too slow, too deep or no JSON, at once with
# good ones; and secrets that do not open.
. "$(dirname "$0")/lib.sh"

start_all shards=1 limits.public_per_minute_per_address=0
sign_in
ctl drain >/dev/null
secret='correct horse battery staple'
project=$(new_project hello https://github.com/example/hello)
hooks=/api/private/projects/$project/webhooks
api PUT "$hooks/github" "{\"enabled\":true,\"secret\":\"$secret\"}" >/dev/null
url=http://127.0.0.1:$PORT/api/public/hooks/github/demo/hello
topic='"ref":"refs/heads/topic","after":"0123456789abcdef0123456789abcdef01234567","repository":{"full_name":"example/hello"}'

# deliver FILE [CURL OPTION...]: signed; the status is printed, the answer in $T/got.
deliver() {
	local file=$1 signature
	shift
	signature=$(openssl dgst -sha256 -hmac "$secret" -r <"$file" | cut -d' ' -f1)
	curl -sS -m 60 -o "$T/got" -w '%{http_code}' -H 'Content-Type: application/json' \
		-H 'X-GitHub-Event: push' -H "X-GitHub-Delivery: $RANDOM-$RANDOM-$RANDOM" \
		-H "X-Hub-Signature-256: sha256=$signature" -H 'Expect:' \
		--data-binary "@$file" "$@" "$url" 2>"$T/err" || true
}

# wants STATUS WORD TEXT...: a body that printf makes of TEXT comes to that.
wants() {
	local status=$1 word=$2
	shift 2
	# shellcheck disable=SC2059 # a format it is
	printf "$@" >"$T/body"
	expect "$(deliver "$T/body")" "$status" "status of $(head -c 60 "$T/body")"
	expect_in "$(cat "$T/got")" "$word" "answer to $(head -c 60 "$T/body")"
}
times() {	# COUNT TEXT
	awk -v n="$1" -v text="$2" 'BEGIN { while (n-- > 0) printf "%s", text }'
}

# One who begins and falls silent, while all the rest goes on.
exec {silent}<>"/dev/tcp/127.0.0.1/$PORT"
printf 'POST /api/public/hooks/github/demo/hello HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\nContent-Type: application/json\r\nX-GitHub-Event: push\r\nX-GitHub-Delivery: silent\r\nX-Hub-Signature-256: sha256=0\r\n\r\n{' >&"$silent"

# What must be taken.
wants 200 ignored_branch '{%s}' "$topic"
wants 200 ignored_branch ' \n{%s} \r\n' "$topic"
wants 200 ignored_branch '{"a":"\\ud800 \\u0000",%s,"b":[1e999999,-0.0E-7]}' "$topic"
wants 200 ignored_branch '{"commits":[{"message":"\377\300\200"}],%s}' "$topic"
wants 200 ignored_branch '{"commits":1,"commits":null,"pusher":"x",%s}' "$topic"
wants 200 ignored_branch '{"a":%s%s,%s}' "$(times 63 '[')" "$(times 63 ']')" "$topic"

# What must not.
wants 400 invalid_json '{"a":%s%s,%s}' "$(times 64 '[')" "$(times 64 ']')" "$topic"
wants 400 invalid_json '%s' "$(times 100000 '[')"
wants 400 invalid_json '%s' "$(times 100000 '{"a":')"
wants 400 invalid_json '[{%s}]' "$topic"
wants 400 invalid_json '{%s}{}' "$topic"
wants 400 invalid_json '{%s' "$topic"
wants 400 invalid_json '{%s,}' "$topic"
wants 400 invalid_json '\357\273\277{%s}' "$topic"
wants 400 invalid_json '{%s,"ref":"refs/heads/main"}' "$topic"
wants 400 invalid_json '{"ref":"refs/heads/\377"}'
wants 400 invalid_request '{"ref":"%s"}' "$(times 300 x)"
wants 400 invalid_repo_url '{"repository":{"full_name":"%s"}}' "$(times 50000 a/)"
wants 400 invalid_json ''

# As long as may be, and longer, declared or not.
{
	printf '{%s,"pad":"' "$topic"
	head -c $((25 * 1024 * 1024 - ${#topic} - 11)) /dev/zero | tr '\0' x
	printf '"}'
} >"$T/largest"
expect "$(stat -c %s "$T/largest")" $((25 * 1024 * 1024)) "bytes of the largest"
(cat "$T/largest" && head -c 1048576 /dev/zero) >"$T/larger"
for _ in 1 2 3; do
	expect "$(deliver "$T/largest")" 200 "largest body"
	expect_in "$(cat "$T/got")" ignored_branch "answer to the largest"
	expect "$(deliver "$T/largest" -H 'Transfer-Encoding: chunked')" 200 "largest in chunks"
	expect "$(deliver "$T/larger")" 413 "a larger one"
	expect "$(deliver "$T/larger" -H 'Transfer-Encoding: chunked')" 413 "a larger one in chunks"
done

# The silent one is told, and so is the owner.
IFS= read -r -t 60 -u "$silent" line || fail "no answer to a silent sender"
expect_in "$line" "408" "answer to a silent sender"
exec {silent}>&-
shows() {	# REASON
	api GET "$hooks" | jq -e --arg reason "$1" \
		'.webhooks[0].recentRefusals | any(.reason == $reason)' >/dev/null
}
wait_for 20 "shows timeout"
wait_for 20 "shows too_large"
wait_for 20 "shows bad_json"
expect "$(ctl inspect ingress --json | jq '[.. | objects | select(has("webhookBodyBytes"))][0].webhookBodyBytes')" \
	0 "bytes of bodies that are kept"

# Keys that are not those with which it was sealed: this webhook is out of order until they are
# back; it can still be removed.
stop_all
cp -p "$T/keys.json" "$T/keys.good"
printf '{%s}' "$topic" >"$T/body"
for keys in \
	'{"current":1,"keys":{"1":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"}}' \
	'{"current":2,"keys":{"2":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"}}'; do
	allowed_errors='request_failed|webhook_secret_unreadable|secret_not_opened'
	cat <<<"$keys" >"$T/keys.json"
	start_anvild
	expect "$(deliver "$T/body") $(field error.code <"$T/got")" "500 encryption_not_configured" \
		"delivery with $keys"
	logged webhook_secret_unreadable "\"projectId\":\"$project\"" || fail "no word of the secret"
	stop_all
done
cat "$T/keys.good" >"$T/keys.json"
start_anvild
expect "$(deliver "$T/body")" 200 "delivery with the good keys"
stop_all
! grep -rqaF -- "$secret" "$DATA" "$LOG" || fail "the secret is in $(grep -rlaF -- "$secret" "$DATA" "$LOG")"
