#!/bin/bash
# p05_badge.sh -- the status badge: for whom it is there, what it shows, and that it stays.
. "$(dirname "$0")/lib.sh"

make_steps_repo "$T/src" say "$HOLD; test -e \$HOME/good" >/dev/null
git_in "$T/src" branch topic
start_all shards=2
sign_in
project=$(new_project app "file://$T/src")

# badge [PATH [CURL OPTION...]]: as somebody without a session sees it; headers in $T/headers
badge() {
	TOKEN='' request GET "${1-/badge/demo/app.svg}" '' -D "$T/headers" "${@:2}"
}

header() {	# NAME
	sed -n "s/^$1: \(.*\)\r$/\1/Ip" "$T/headers"
}

shows() {	# WORD
	local picture
	picture=$(badge) && [[ $picture == *"<title>anvil: $1</title>"* ]]
}

no_badge() {	# PATH
	TOKEN='' refused 404 not_found GET "$1" >/dev/null
}

update() {	# MEMBERS
	api PATCH "/api/private/projects/$project" "$1"
}


# ---- for whom it is there ----

no_badge /badge/demo/app.svg
expect "$(api GET "/api/private/projects/$project" | field project.badgePublic)" false "new project"
refused 400 invalid_request PATCH "/api/private/projects/$project" '{"badgePublic":null}' >/dev/null
refused 400 invalid_request PATCH "/api/private/projects/$project" '{"badgePublic":"yes"}' >/dev/null
before=$(api GET "/api/private/projects/$project" | field project.updatedAt)
changed=$(update '{"badgePublic":true}')
expect "$(field project.badgePublic <<<"$changed")" true "answer"
[[ $(field project.updatedAt <<<"$changed") > $before ]] || fail "updatedAt did not grow"
expect "$(api GET /api/private/projects | field 'projects[0].badgePublic')" true "list"
expect_in "$(ctl project show demo/app 2>&1)" "badge: public" "anvilctl"
shows Idle || fail "no run yet: $(badge)"
for path in /badge /badge/ /badge/demo /badge/demo/app /badge/demo/app.png /badge/demo/.svg \
	/badge/demo/app.svg/ /badge/demo/app.svg/x /badge//app.svg /badge/demo/app.SVG \
	/badge/Demo/app.svg /badge/demo/App.svg /badge/other/app.svg /badge/demo/none.svg \
	/badge/demo/app%00.svg /badge/demo/%zz.svg; do
	# The first is the path of a page.
	[ "$path" = /badge ] || no_badge "$path"
done
shows Idle || fail "after other paths"

# ---- how it is answered ----

badge >"$T/picture"
expect "$(cat "$LAST_STATUS")" 200 "status"
expect "$(header Content-Type)" image/svg+xml "type"
expect "$(header Cache-Control)" no-cache "caching"
etag=$(header ETag)
expect "$(badge /badge/demo/app.svg -H "If-None-Match: W/$etag")" "" "body of a 304"
expect "$(cat "$LAST_STATUS") $(header ETag)" "304 $etag" "the same again"
badge '/badge/demo/app.svg?x=1' -H 'If-None-Match: "other"' >"$T/again"
expect "$(cat "$LAST_STATUS")" 200 "another tag"
cmp "$T/picture" "$T/again" || fail "it changes"
curl -sS -I -m 30 "http://127.0.0.1:$PORT/badge/demo/app.svg" >"$T/headers"
expect "$(header Content-Length)" "$(wc -c <"$T/picture")" "length of a HEAD"
expect "$(header ETag)" "$etag" "tag of a HEAD"
for method in POST PUT DELETE PATCH OPTIONS; do
	TOKEN='' request "$method" /badge/demo/app.svg '' -D "$T/headers" >/dev/null
	expect "$(cat "$LAST_STATUS") $(header Allow)" "405 GET, HEAD" "$method"
done

# ---- what it shows ----

first=$(trigger "$project")
wait_for 20 "shows Running"
[ "$(header ETag)" != "$etag" ] || fail "the tag of another picture"
second=$(trigger "$project")
wait_for 10 "shows Queued"
api POST "/api/private/runs/$second/cancel" '{}' >/dev/null
wait_for 10 "shows Canceled"
touch "$DATA/runs/$first/home/good"
let_go "$first"
has_ended "$first" passed
# The newest is what counts, and that of the default branch.
shows Canceled || fail "the older run: $(badge)"
third=$(trigger "$project")
wait_for 20 "is_status $third running"
touch "$DATA/runs/$third/home/good"
let_go "$third"
has_ended "$third" passed
wait_for 10 "shows Passed"
fourth=$(trigger "$project" topic)
wait_for 20 "is_status $fourth running"
let_go "$fourth"
has_ended "$fourth" failed
shows Passed || fail "another branch: $(badge)"
update '{"defaultBranch":"topic"}' >/dev/null
wait_for 10 "shows Failed"
update '{"defaultBranch":"main"}' >/dev/null
wait_for 10 "shows Passed"

# ---- whose it is ----

sign_in other
theirs=$(new_project app "file://$T/src" '{"badgePublic":true}')
expect "$(api GET "/api/private/projects/$theirs" | field project.badgePublic)" true "made with it"
expect_in "$(badge /badge/other/app.svg)" "anvil: Idle" "another user's project"
log_in demo
shows Passed || fail "beside another user's"

# ---- it stays ----

badge >"$T/picture"
expect_exit 0 ctl reindex
badge | cmp - "$T/picture" || fail "another after a reindex"
from=$(ctl project list --json | jq --arg id "$project" '.[] | select(.project.projectId == $id) | .shard')
expect_exit 0 ctl project move demo/app $((1 - from))
badge | cmp - "$T/picture" || fail "another after a move"
expect "$(api GET "/api/private/projects/$project" | field project.badgePublic)" true "after a move"
ctl check >"$T/out" 2>&1 || fail "check: $(cat "$T/out")"
update '{"badgePublic":false}' >/dev/null
no_badge /badge/demo/app.svg
expect_in "$(ctl project show demo/app 2>&1)" "badge: off" "anvilctl"
stop_all
