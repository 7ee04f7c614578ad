#!/bin/bash
# c01_first_run.sh -- a user, a project and a run, by curl alone; then lists, pages and text.
. "$(dirname "$0")/lib.sh"

make_repo "$T/src"
head=$(git_in "$T/src" rev-parse main)
start_all

api GET /api/public/app-config >/dev/null
refused 401 missing_authorization GET /api/private/me >/dev/null
sign_in demo
expect "$(api GET /api/private/me | field user.email)" demo@example.com email
TOKEN='' refused 401 invalid_credentials POST /api/public/auth/login \
	'{"email":"demo@example.com","password":"a wrong password"}' >/dev/null

created=$(api POST /api/private/projects \
	"{\"projectSlug\":\"hello\",\"name\":\"Hello\",\"repoUrl\":\"file://$T/src\",\"defaultBranch\":\"main\"}")
expect "$(cat "$LAST_STATUS")" 201 "status of create"
project=$(field project.id <<<"$created")
expect_match "$project" '^prj_[0-9A-Za-z]{22}$' "project id"
expect "$(field project.configPath <<<"$created")" .anvil.yml configPath
expect "$(field project.ownerSlug <<<"$created")" demo ownerSlug
expect "$(field project.lastRunStatus <<<"$created")" null lastRunStatus
refused 409 project_slug_taken POST /api/private/projects \
	"{\"projectSlug\":\"hello\",\"name\":\"Again\",\"repoUrl\":\"file://$T/src\",\"defaultBranch\":\"main\"}" >/dev/null

accepted=$(api POST "/api/private/projects/$project/runs" '{}')
expect "$(cat "$LAST_STATUS")" 202 "status of trigger"
run=$(field runId <<<"$accepted")
has_ended "$run" passed

detail=$(detail_of "$run")
expect "$(jq -c '.run | [.projectId, .triggerType, .branch, .commitSha, .exitCode, .failureCode]' <<<"$detail")" \
	"[\"$project\",\"manual\",\"main\",\"$head\",0,null]" "run"
expect "$(jq -c '[.steps[] | [.id, .position, .name, .status, .exitCode]]' <<<"$detail")" \
	"[[\"$run:step:1\",1,\"files\",\"passed\",0],[\"$run:step:2\",2,\"commit\",\"passed\",0]]" steps
expect "$(jq '[.recentLogs[].seq] as $s | $s == [range($s[0]; $s[0] + ($s | length))]' \
	<<<"$detail")" true "order of lines"
expect "$(jq -c '[.currentStep, .errorMessage, .firstSeq, .droppedBytes, .detailAvailable]' <<<"$detail")" \
	'[null,null,1,0,true]' detail
expect "$(jq '.run.queuedAt <= .run.startedAt and .run.startedAt <= .run.finishedAt' <<<"$detail")" true times

text=$(log_of "$run")
expect_in "$text" 'größer als 文件'
expect_in "$text" 'hello from a script'
expect_in "$text" "branch main at $head"
expect_in "$text" 'Step 1/2: files'
expect_in "$text" 'Step 2/2: commit'
expect "$text" "$(jq -r '[.recentLogs[].chunk] | join("")' <<<"$detail")" "text log and lines"
expect "$(log_of "$run" | wc -c)" "$(field logBytes <<<"$detail")" logBytes

# Other branches, a merged one and one with a name of several bytes.
one=$(trigger "$project" feature/one)
two=$(trigger "$project" topic/größer)
has_ended "$one" passed
has_ended "$two" passed
expect "$(detail_of "$two" | field run.commitSha)" "$(git_in "$T/src" rev-parse topic/größer)" commit

# Pages: newest first, nothing twice, nothing missing.
for _ in 1 2; do
	last=$(trigger "$project")
done
has_ended "$last" passed
all=$(api GET "/api/private/projects/$project/runs")
expect "$(jq '.runs | length' <<<"$all")" 5 "runs in the list"
expect "$(field nextCursor <<<"$all")" null nextCursor
seen='[]' cursor=
for _ in 1 2 3; do
	page=$(api GET "/api/private/projects/$project/runs?limit=2&cursor=$cursor")
	seen=$(jq -c --argjson seen "$seen" '$seen + [.runs[].id]' <<<"$page")
	cursor=$(field nextCursor <<<"$page")
done
expect "$cursor" null "cursor of the last page"
expect "$seen" "$(jq -c '[.runs[].id]' <<<"$all")" "pages"
refused 400 invalid_request GET "/api/private/projects/$project/runs?limit=101" >/dev/null
refused 400 invalid_cursor GET "/api/private/projects/$project/runs?cursor=no!" >/dev/null

wait_for 10 "[ \"\$(api GET /api/private/projects | field 'projects[0].lastRunStatus')\" = passed ]"
one_project=$(api GET "/api/private/projects/$project")
expect "$(jq -c '[.activeRun, .pendingRuns]' <<<"$one_project")" '[null,[]]' "detail of the project"

# Somebody else sees none of it.
sign_in other
refused 404 project_not_found GET "/api/private/projects/$project" >/dev/null
refused 404 run_not_found GET "/api/private/runs/$run" >/dev/null
expect "$(api GET /api/private/projects)" '{"projects":[]}' "projects of another user"

api POST /api/public/auth/logout >/dev/null
refused 401 invalid_session GET /api/private/me >/dev/null
stop_all
