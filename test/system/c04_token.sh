#!/bin/bash
# c04_token.sh -- a repository that asks for a credential: the right one, a wrong one, none.
. "$(dirname "$0")/lib.sh"

# The step prints the token, which must not come through.
make_steps_repo "$T/src" show 'echo "token: $(printf "glpat-4Kq9xV2%s" mZ7)"
git config --list --show-origin | cat' >/dev/null
https_server
serve_repo "$T/src" private/repo
start_all repositories.ca_file="$CA_FILE" repositories.allow_private_hosts=true log.level=debug
sign_in
url=https://localhost:$HTTPS_PORT/private/repo

right=$(new_project right "$url" "{\"repoToken\":\"$GIT_TOKEN\"}")
pair=$(new_project pair "$url" "{\"repoToken\":\"oauth2:$GIT_TOKEN\"}")
wrong=$(new_project wrong "$url" '{"repoToken":"glpat-wrong-one"}')
none=$(new_project none "$url")

run=$(trigger "$right")
has_ended "$run" passed
has_ended "$(trigger "$pair")" passed
has_failed "$(trigger "$wrong")" credential_refused 'The repository refused the credential.'
has_failed "$(trigger "$none")" credential_refused \
	'The repository needs a credential; the project has none.'

# A token that is put right helps the next run, one that is taken away is gone.
api PATCH "/api/private/projects/$wrong" "{\"repoToken\":\"$GIT_TOKEN\"}" >/dev/null
has_ended "$(trigger "$wrong")" passed
api PATCH "/api/private/projects/$wrong" '{"repoToken":null}' >/dev/null
has_failed "$(trigger "$wrong")" credential_refused \
	'The repository needs a credential; the project has none.'

# Nobody is told the token: no answer, no file of anvil's, no line of its log.
text=$(log_of "$run")
expect_in "$text" "token: [REDACTED]"
expect_not_in "$text" "$GIT_TOKEN" "log of the run"
expect_not_in "$(api GET "/api/private/projects/$right")" "$GIT_TOKEN" "project"
expect_not_in "$(detail_of "$run" | jq 'del(.steps)')" "$GIT_TOKEN" "detail"
expect "$(grep -rlaF "$GIT_TOKEN" "$DATA" "$LOG" || true)" "" "files with the token"
expect "$(grep -rlaF "$(printf 'oauth2:%s' "$GIT_TOKEN" | base64)" "$DATA" "$LOG" || true)" "" \
	"files with the credential"
stop_all
