#!/bin/bash
# c03_https.sh -- public repositories over real HTTPS, and what is wrong with some.
. "$(dirname "$0")/lib.sh"

make_repo "$T/src"
https_server
serve_repo "$T/src" repo
start_all repositories.ca_file="$CA_FILE" repositories.allow_private_hosts=true
allowed_errors=none
sign_in
at=https://localhost:$HTTPS_PORT

project=$(new_project good "$at/repo.git/")
expect "$(api GET "/api/private/projects/$project" | field project.repoUrl)" "$at/repo" repoUrl
run=$(trigger "$project")
has_ended "$run" passed
expect "$(detail_of "$run" | field run.commitSha)" "$(git_in "$T/src" rev-parse main)" commit
has_ended "$(trigger "$project" feature/one)" passed

# What is new is fetched; what is gone is not found any more.
echo 6 >"$T/src/number"
new=$(commit_all "$T/src" "Count to 6")
git_in "$T/src" push -q "$T/served/repo" main
git_in "$T/served/repo" branch -D feature/one >/dev/null
run=$(trigger "$project")
has_ended "$run" passed
expect "$(detail_of "$run" | field run.commitSha)" "$new" "commit after a push"
has_failed "$(trigger "$project" feature/one)" checkout_failed \
	'Checkout failed: branch "feature/one" does not exist'

has_failed "$(trigger "$(new_project missing "$at/nothing-here")")" checkout_failed 'Checkout failed: ?*'
has_failed "$(trigger "$(new_project moved "$at/moved")")" checkout_failed 'Checkout failed: ?*'
has_failed "$(trigger "$(new_project strange "https://localhost:$STRANGE_PORT/repo")")" \
	checkout_failed 'Checkout failed: *certificate*'
free_port
has_failed "$(trigger "$(new_project closed "https://localhost:$FREE_PORT/repo")")" \
	checkout_failed 'Checkout failed: ?*'

# The others are none the worse for it.
has_ended "$(trigger "$project")" passed
stop_all
