#!/bin/bash
# w10_webhook_admin.sh -- webhooks by anvilctl and over HTTP, and what a delivery comes to.
. "$(dirname "$0")/lib.sh"

commit=$(make_steps_repo "$T/src" build 'echo built' try 'exit 4')
https_server
serve_repo "$T/src" repo
start_all repositories.ca_file="$CA_FILE" repositories.allow_private_hosts=true
sign_in
at=https://localhost:$HTTPS_PORT
project=$(new_project hello "$at/repo")
hooks=/api/private/projects/$project/webhooks
public=/api/public/hooks/gitea/demo/hello
secrets=()

# deliver SECRET EVENT ID BODY: signed as gitea does; the status is printed, the answer in $T/got.
deliver() {
	local signature
	signature=$(printf %s "$4" | openssl dgst -sha256 -hmac "$1" -r | cut -d' ' -f1)
	curl -sS -m 30 -o "$T/got" -w '%{http_code}' -X POST --data-binary "$4" \
		-H 'Content-Type: application/json' -H "X-Gitea-Event: $2" \
		-H "X-Gitea-Delivery: $3" -H "X-Gitea-Signature: $signature" \
		"http://127.0.0.1:$PORT$public"
}
secret_of() {	# FILE: the secret that anvilctl has told
	local secret
	secret=$(sed -n 's/^ *Secret: *//p' "$1")
	expect_match "$secret" '^[A-Za-z0-9_-]{43}$' "secret"
	printf '%s\n' "$secret"
}
push_body() {	# COMMIT
	jq -cn --arg after "$1" --arg url "$at/repo.git" '{ref: "refs/heads/main",
		before: "0000000000000000000000000000000000000000", after: $after,
		commits: null, repository: {clone_url: $url}}'
}
ping='{"repository":null}'

# What is wrong is told, and nothing is made.
expect_exit 0 ctl webhook list demo/hello
expect "$(cat "$T/out")" "" "list of none"
expect_exit 2 ctl webhook set demo/hello svn
expect_exit 2 ctl webhook set demo/hello
expect_exit 2 ctl webhook set demo/hello gitea --enable --disable
expect_exit 1 ctl webhook set demo/no-such-project gitea
expect_exit 1 ctl webhook set demo/hello gitea
expect_match "$(cat "$T/err")" 'webhook of demo/hello, gitea: .+' "why"
expect_exit 1 ctl webhook set demo/hello github
expect_exit 1 ctl webhook set demo/hello gitea --instance-url nonsense
expect_in "$(cat "$T/err")" instanceUrl "why"
expect_exit 1 ctl webhook rotate demo/hello gitea
expect_exit 1 ctl webhook rm demo/hello gitea
expect "$(api GET "$hooks" | jq -c .webhooks)" "[]" "webhooks"
expect "$(deliver x ping early "$ping")" 404 "delivery before there is a webhook"

# A new one: what to enter in the forge is told, the secret once.
expect_exit 0 ctl webhook set demo/hello gitea --instance-url "$at/"
expect_match "$(cat "$T/out")" "Target URL: +http://127.0.0.1:$PORT$public" "form"
expect_match "$(cat "$T/out")" "POST content type: +application/json" "form"
secret=$(secret_of "$T/out")
secrets+=("$secret")
expect_exit 0 ctl webhook list demo/hello
expect_match "$(cat "$T/out")" "gitea +on +$at " "list"
expect_not_in "$(cat "$T/out")" "$secret" "list"
expect_not_in "$(api GET "$hooks")" "$secret" "webhooks over HTTP"

# Deliveries: a ping, a wrong secret, a push that makes a run.
expect "$(deliver "$secret" ping one "$ping")" 200 "ping"
expect "$(deliver wrong push two "$(push_body "$commit")")" 401 "wrong secret"
expect "$(deliver "$secret" push three "$(push_body "$commit")")" 202 "push"
run=$(field runId <"$T/got")
expect "$(deliver "$secret" push three "$(push_body "$commit")")" 200 "push again"
expect "$(field duplicate <"$T/got") $(field runId <"$T/got")" "true $run" "push again"
has_failed "$run" step_failed '*exit code 4.'
expect "$(field run.commitSha <<<"$DETAIL")" "$commit" "commit"
expect "$(field run.triggerType <<<"$DETAIL")" webhook "trigger"

# why: the chain from the delivery to the step that ended it.
expect_exit 0 ctl why "$run"
expect_in "$(cat "$T/out")" "started by gitea delivery three" "why"
expect_in "$(cat "$T/out")" 'ended by its step 2, "try": step_failed' "why"
links=$(sed '1,/^TIME/d' "$T/out" | awk '{ print $4 }' | tr '\n' ' ')
expect_match "$links" '^delivered accepted .*claimed .*step_begun step_ended step_begun step_ended .*settled' \
	"links of the chain"
expect_match "$(cat "$T/out")" "delivered +Gitea push three, refs/heads/main at ${commit:0:12}" "why"
expect_exit 0 ctl why "$run" --json
expect "$(jq -r '[.delivery.payload.deliveryId, .run.runId, (.steps | length)] | join(" ")' "$T/out")" \
	"three $run 2" "why --json"
manual=$(trigger "$project")
has_failed "$manual" step_failed '?*'
expect_exit 0 ctl why "$manual"
expect_in "$(cat "$T/out")" "started by usr_" "why of a run by hand"
expect_not_in "$(cat "$T/out")" delivered "why of a run by hand"

# deliveries: the newest first, refused ones among them with what to do.
refused_is_there() {
	ctl deliveries demo/hello | grep -q signature_mismatch
}
wait_for 20 refused_is_there
expect_exit 0 ctl deliveries demo/hello
expect_match "$(cat "$T/out")" "gitea +push +main +${commit:0:12} +accepted +$run +three +run created" \
	"deliveries"
expect_match "$(cat "$T/out")" 'gitea +push .*refused .*two +signature_mismatch \(from .*\): .+' \
	"deliveries"
expect "$(sed 1d "$T/out" | grep -oE ' (accepted|refused|ignored_ping) ' | tr -d ' ' | head -n 1)" \
	accepted "newest delivery"
expect "$(tail -n 1 "$T/out" | grep -c ignored_ping)" 1 "oldest delivery"
expect_exit 0 ctl deliveries demo/hello -n 1
expect "$(wc -l <"$T/out")" 2 "lines of one delivery"
expect_exit 2 ctl deliveries demo/hello -n 0
expect_exit 0 ctl deliveries "$project" --json
expect "$(jq -r '[(.deliveries | length), (.refusals | length)] | join(" ")' "$T/out")" "2 1" \
	"deliveries --json"
summary=$(api GET "$hooks" | jq -c '.webhooks[0]')
expect "$(field deliveryUrl <<<"$summary")" "http://127.0.0.1:$PORT$public" "deliveryUrl"
expect "$(jq -r '[.recentDeliveries[].deliveryId] | join(" ")' <<<"$summary")" "three one" \
	"recentDeliveries"
expect "$(field 'recentRefusals[0].reason' <<<"$summary")" signature_mismatch "recentRefusals"

# Off and on again, by either way; without an option it stays as it is.
expect "$(api PUT "$hooks/gitea" '{"enabled":false}' | field generatedSecret)" null "secret"
expect "$(deliver "$secret" ping four "$ping")" 404 "delivery to one that is off"
expect_exit 0 ctl webhook set demo/hello gitea
expect_in "$(cat "$T/out")" "changed, disabled, $at" "webhook set"
expect_exit 0 ctl webhook set demo/hello gitea --enable --json
expect "$(field kind <"$T/out")" updated "webhook set --json"
expect "$(deliver "$secret" ping five "$ping")" 200 "delivery to one that is on again"

# A new secret; the old one is good no more.
expect_exit 0 ctl webhook rotate demo/hello gitea
new=$(secret_of "$T/out")
secrets+=("$new")
expect "$(deliver "$secret" ping six "$ping")" 401 "old secret"
expect "$(deliver "$new" ping seven "$ping")" 200 "new secret"
secret=$(api POST "$hooks/gitea/rotate-secret" | field secret)
secrets+=("$secret")
expect "$(deliver "$new" ping eight "$ping")" 401 "secret before the last"
expect "$(deliver "$secret" ping nine "$ping")" 200 "last secret"

# A secret of one's own is for a new webhook, and not repeated.
own='correct horse battery staple'
secrets+=("$own")
rc=0
ctl webhook set demo/hello gitea --secret-stdin <<<"$own" >"$T/out" 2>&1 || rc=$?
expect $rc 1 "exit status of a secret for one that is there"
expect_in "$(cat "$T/out")" rotation "why"
expect_exit 0 ctl webhook rm demo/hello gitea
expect "$(deliver "$secret" ping ten "$ping")" 404 "delivery after the removal"
expect_exit 1 ctl webhook rm demo/hello gitea
for text in '' '\n' '\r\n' 'a\0b\n' '\377\376\n'; do
	rc=0
	# shellcheck disable=SC2059 # a format it is
	printf "$text" | ctl webhook set demo/hello gitea --instance-url "$at" --secret-stdin \
		>"$T/out" 2>&1 || rc=$?
	expect $rc 1 "exit status of the secret \"$text\""
	expect_in "$(cat "$T/out")" "Secret of the webhook: " "answer to the secret \"$text\""
done
ctl webhook set demo/hello gitea --instance-url "$at" --secret-stdin <<<"$own" >"$T/out" 2>&1 ||
	fail "webhook set --secret-stdin: $(cat "$T/out")"
expect_in "$(cat "$T/out")" "the one that you gave" "form"
expect_not_in "$(cat "$T/out")" "$own" "form"
expect "$(deliver "$own" push three "$(push_body "$commit")")" 200 "push to one that is made anew"
expect "$(field runId <"$T/got")" "$run" "run of a push that is known"
refused 400 invalid_webhook_secret PUT "$hooks/gitea" '{"enabled":true,"secret":"x"}' >/dev/null

# More than a page of them.
signed=$(printf %s "$ping" | openssl dgst -sha256 -hmac "$own" -r | cut -d' ' -f1)
for ((i = 100; i < 205; i++)); do
	printf 'next\nurl = "http://127.0.0.1:%s%s"\ndata = "%s"\nheader = "X-Gitea-Delivery: more-%s"\n' \
		"$PORT" "$public" "${ping//\"/\\\"}" "$i"
	printf 'header = "Content-Type: application/json"\nheader = "X-Gitea-Event: ping"\n'
	printf 'header = "X-Gitea-Signature: %s"\noutput = "%s"\n' "$signed" "$T/got"
	printf 'write-out = "%%{http_code}\\n"\n'
done | sed 1d >"$T/many"
expect "$(curl -sS -m 60 -K "$T/many" | sort -u)" 200 "many deliveries"
expect_exit 0 ctl deliveries demo/hello -n 104 --json
expect "$(jq -c '[.deliveries[].payload.deliveryId]' "$T/out")" \
	"$(jq -cn '[range(204; 100; -1) | "more-\(.)"]')" "deliveries of two pages"
expect_exit 0 ctl deliveries demo/hello -n 500
expect_in "$(tail -n 1 "$T/out")" ignored_ping "oldest of all deliveries"
expect "$(grep -c ' more-' "$T/out")" 105 "deliveries of all pages"
request DELETE "$hooks/gitea" >/dev/null
expect "$(cat "$LAST_STATUS")" 204 "DELETE"
refused 404 webhook_not_found DELETE "$hooks/gitea" >/dev/null
refused 404 webhook_not_found PUT "$hooks/svn" '{"enabled":true}' >/dev/null
expect_exit 0 ctl webhook list demo/hello --json
expect "$(cat "$T/out")" "[]" "webhook list --json"

# Help and completion know them all.
expect_exit 0 ctl webhook --help
for word in set rotate list rm; do
	grep -qF "webhook $word " "$T/out" || fail "no webhook $word in $(cat "$T/out")"
done
complete_line() {	# WORD...: what completion offers for the last of them
	bash -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _anvilctl
		printf "%s\n" "${COMPREPLY[@]}"' - "$ROOT/cmd/anvilctl/anvilctl.bash" "$BUILD/anvilctl" "$@"
}
expect "$(complete_line webhook r | tr '\n' ' ')" "rotate rm " "completion of a command"
expect "$(complete_line -c "$CONF" webhook set demo/hello git | tr '\n' ' ')" \
	"github gitlab gitea " "completion of a forge"
expect "$(complete_line -c "$CONF" deliveries dem)" demo/hello "completion of a project"
for event in created updated rotated deleted; do
	logged "webhook_$event" "\"projectId\":\"$project\",\"provider\":\"gitea\",\"userId\":\"usr_" ||
		fail "no webhook_$event in the log"
done
stop_all

for text in "${secrets[@]}"; do
	! grep -rqaF -- "$text" "$DATA" "$LOG" || fail "a secret is in $(grep -rlaF -- "$text" "$DATA" "$LOG")"
done
