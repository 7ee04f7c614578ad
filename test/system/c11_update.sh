#!/bin/bash
# c11_update.sh -- an update while runs are queued: these keep what they were accepted with.
. "$(dirname "$0")/lib.sh"

make_steps_repo "$T/old" say "echo old; $HOLD" >/dev/null
make_steps_repo "$T/new" say "echo new default" >/dev/null
git_in "$T/new" switch -q -c other
mkdir "$T/new/ci"
write_steps "$T/new" say "echo new other"
mv "$T/new/.anvil.yml" "$T/new/ci/build.yml"
commit_all "$T/new" "Move" >/dev/null
start_all
sign_in
project=$(new_project update "file://$T/old")
first=$(trigger "$project")
wait_for 20 "is_status $first running"
second=$(trigger "$project")

refused 400 empty_update PATCH "/api/private/projects/$project" '{}' >/dev/null
refused 400 invalid_request PATCH "/api/private/projects/$project" '{"projectSlug":"x"}' >/dev/null
refused 400 invalid_repo_url PATCH "/api/private/projects/$project" '{"repoUrl":"ftp://x.org/y"}' >/dev/null
before=$(api GET "/api/private/projects/$project" | field project.updatedAt)
updated=$(api PATCH "/api/private/projects/$project" \
	"{\"repoUrl\":\"file://$T/new\",\"defaultBranch\":\"other\",\"configPath\":\"ci/build.yml\",\"name\":\"Renamed\"}")
expect "$(jq -c '.project | [.name, .repoUrl, .defaultBranch, .configPath]' <<<"$updated")" \
	"[\"Renamed\",\"file://$T/new\",\"other\",\"ci/build.yml\"]" "project"
[[ $(field project.updatedAt <<<"$updated") > $before ]] || fail "updatedAt did not grow"
third=$(trigger "$project")

let_go "$first"
has_ended "$first" passed
wait_for 20 "is_status $second running"
let_go "$second"
has_ended "$second" passed
has_ended "$third" passed
expect_in "$(log_of "$second")" old "log of the run before the update"
expect_in "$(log_of "$third")" "new other" "log of the run after the update"
expect "$(api GET "/api/private/projects/$project/runs" | jq -c '[.runs[].branch]')" \
	'["other","main","main"]' branches
wait_for 10 "[ \"\$(api GET /api/private/projects | field 'projects[0].name')\" = Renamed ]"
stop_all
