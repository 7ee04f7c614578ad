#!/bin/bash
# w01_deliveries.sh -- a signed push of each forge becomes a run of the very commit; what it came
# to is in the log, and no secret is.
. "$(dirname "$0")/lib.sh"

# shellcheck disable=SC2016 # the step expands it
commit=$(make_steps_repo "$T/src" say 'echo "this is $ANVIL_COMMIT_SHA"')
https_server
serve_repo "$T/src" repo
# A later one, which no delivery speaks of.
echo later >"$T/src/later"
commit_all "$T/src" "Go on" >/dev/null
git_in "$T/src" push -q "$T/served/repo" main
start_all repositories.ca_file="$CA_FILE" repositories.allow_private_hosts=true
sign_in
at=https://localhost:$HTTPS_PORT
secret='correct horse battery staple'

# webhook PROVIDER URL [CONFIG]: a project of that name with its webhook; prints the project.
webhook() {
	local project
	project=$(new_project "$1" "$2")
	api PUT "/api/private/projects/$project/webhooks/$1" "$(jq -cn --arg secret "$secret" \
		--argjson config "${3-null}" '{enabled: true, secret: $secret, config: $config}')" >/dev/null
	printf '%s\n' "$project"
}

# deliver PROVIDER ID BODY [CURL OPTION...]: signed as that forge does it; the answer is in
# $T/got, its status printed.
deliver() {
	local provider=$1 id=$2 body=$3 signature
	local -a headers
	shift 3
	signature=$(printf %s "$body" | openssl dgst -sha256 -hmac "$secret" -r | cut -d' ' -f1)
	case $provider in
	github) headers=(-H "X-GitHub-Event: push" -H "X-GitHub-Delivery: $id"
		-H "X-Hub-Signature-256: sha256=$signature") ;;
	gitlab) headers=(-H "X-Gitlab-Event: Push Hook" -H "Idempotency-Key: $id"
		-H "X-Gitlab-Token: $secret") ;;
	gitea) headers=(-H "X-Gitea-Event: push" -H "X-Gitea-Delivery: $id" -H "X-GitHub-Event: push"
		-H "X-Gitea-Signature: $signature") ;;
	esac
	curl -sS -m 30 -o "$T/got" -w '%{http_code}' -H 'Content-Type: application/json' \
		"${headers[@]}" --data-binary "$body" "$@" \
		"http://127.0.0.1:$PORT/api/public/hooks/$provider/demo/$provider"
}

push() {	# MEMBERS: of the repository, as JSON
	jq -cn --arg after "$commit" --argjson more "$1" '{ref: "refs/heads/main", before: ("0" * 40),
		after: $after, commits: [{message: "x"}], pusher: null} + $more'
}

github=$(webhook github https://github.com/example/hello)
gitlab=$(webhook gitlab https://gitlab.com/group/sub/hello)
gitea=$(webhook gitea "$at/repo" "{\"instanceUrl\":\"$at\"}")

body=$(push "{\"repository\":{\"clone_url\":\"$at/repo.git\"}}")
expect "$(deliver gitea one "$body")" 202 "gitea"
run=$(field runId <"$T/got")
has_ended "$run" passed
expect "$(field run.commitSha <<<"$DETAIL")" "$commit" "commit"
expect "$(jq -c '.run | [.triggerType, .triggeredByUserId, .branch]' <<<"$DETAIL")" \
	'["webhook",null,"main"]' "run"
expect_in "$(log_of "$run")" "this is $commit"

# The others are on hosts that are not here: it is enough that their runs wait.
ctl drain >/dev/null
expect "$(deliver github one "$(push '{"repository":{"full_name":"Example/Hello"}}')")" 202 "github"
waiting=$(field runId <"$T/got")
expect "$(detail_of "$waiting" | jq -c '.run | [.projectId, .status, .commitSha]')" \
	"[\"$github\",\"queued\",\"$commit\"]" "run of github"
body=$(push '{"object_kind": "push", "project": {"git_http_url": "https://gitlab.com/Group/Sub/Hello.git"}}')
expect "$(deliver gitlab one "$body")" 202 "gitlab"
expect "$(detail_of "$(field runId <"$T/got")" | jq -c '.run | [.projectId, .status]')" \
	"[\"$gitlab\",\"queued\"]" "run of gitlab"

# Delivered again, and once more after a restart of everything.
expect "$(deliver gitlab one "$body") $(field duplicate <"$T/got")" "200 true" "again"
run=$(field runId <"$T/got")
stop_all
start_anvild
expect "$(deliver gitlab one "$body") $(field runId <"$T/got")" "200 $run" "after a restart"
expect "$(deliver gitlab two "$body" -H 'Content-Encoding: gzip')" 415 "gzip"
expect "$(deliver gitlab two "$body" -H 'X-Gitlab-Token: wrong')" 401 "a token twice"

logged webhook_delivery_processed "\"runId\":\"$waiting\"" || fail "nothing about $waiting"
logged webhook_delivery_processed '"duplicate":1' || fail "nothing about the second delivery"
wait_for 10 "[ \"\$(api GET /api/private/projects/$gitlab/webhooks | jq '.webhooks[0].recentRefusals | length')\" = 2 ]"
logged webhook_delivery_refused '"reason":"missing_header","status":401' || fail "nothing about a refusal"
expect "$(api GET "/api/private/projects/$gitea/webhooks" | field 'webhooks[0].recentDeliveries[0].runId')" \
	"$(api GET "/api/private/projects/$gitea/runs" | field 'runs[0].id')" "delivery of the run"
stop_all
! grep -rqaF -- "$secret" "$DATA" "$LOG" || fail "the secret is in $(grep -rlaF -- "$secret" "$DATA" "$LOG")"
