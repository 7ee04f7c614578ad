#!/bin/bash
# repo.sh -- git repositories for the system tests; sourced by lib.sh.

git_in() {	# DIR ARGUMENT...: git without anybody's configuration
	GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null HOME=$T \
		GIT_AUTHOR_NAME='anvil test' GIT_AUTHOR_EMAIL=test@localhost \
		GIT_COMMITTER_NAME='anvil test' GIT_COMMITTER_EMAIL=test@localhost \
		git -C "$1" -c advice.detachedHead=false "${@:2}"
}

# make_empty_repo DIR: with the branch main, nothing committed.
make_empty_repo() {
	mkdir -p "$1"
	git_in "$1" init -q -b main .
	git_in "$1" config core.quotePath false
}

# commit_all DIR MESSAGE: prints the commit.
commit_all() {
	git_in "$1" add -A
	git_in "$1" commit -q --allow-empty -m "$2"
	git_in "$1" rev-parse HEAD
}

# make_steps_repo DIR NAME COMMAND [NAME COMMAND]...: with an .anvil.yml of these steps; the
# commands may have several lines.  Prints the commit.
make_steps_repo() {
	make_empty_repo "$1"
	write_steps "$@"
	commit_all "$1" "Steps"
}

# write_steps DIR NAME COMMAND [NAME COMMAND]...: the .anvil.yml alone.  Strings of JSON are
# strings of YAML.
write_steps() {
	local dir=$1
	shift
	{
		echo "version: 1"
		echo "run:"
		[ -z "${TIMEOUT_SECONDS-}" ] || echo "  timeoutSeconds: $TIMEOUT_SECONDS"
		echo "  steps:"
		while [ $# -gt 1 ]; do
			jq -rn --arg name "$1" --arg run "$2" \
				'"    - {name: \($name | tojson), run: \($run | tojson)}"'
			shift 2
		done
	} >"$dir/.anvil.yml"
}

# Lines of a step that hold it until let_go, for half a minute at most.
# shellcheck disable=SC2016,SC2034 # the step expands it
HOLD='for i in $(seq 600); do [ ! -e "$HOME/go" ] || break; sleep 0.05; done; [ -e "$HOME/go" ]'

let_go() {	# RUN
	touch "$DATA/runs/$1/home/go"
}

UNICODE_FILE='dir with space/naïve-文件-🔨.txt'

# make_repo DIR: what real ones have: branches, merges, tags, unicode names, executable files,
# symlinks, and an .anvil.yml that looks whether all of it has arrived.
make_repo() {
	local dir=$1 i
	make_empty_repo "$dir"
	mkdir "$dir/bin" "$dir/dir with space"
	printf '#!/bin/sh\necho "hello from a script"\n' >"$dir/bin/hello.sh"
	chmod 755 "$dir/bin/hello.sh"
	echo 'größer als 文件' >"$dir/$UNICODE_FILE"
	ln -s "../bin/hello.sh" "$dir/dir with space/link"
	printf 'one\r\ntwo\n' >"$dir/crlf.txt"
	write_steps "$dir" \
		files 'test -x bin/hello.sh; test ! -x crlf.txt; test -L "dir with space/link"
cat "'"$UNICODE_FILE"'"
test "$(wc -c <crlf.txt)" = 9
"dir with space/link"' \
		commit 'test "$(cat number)" -ge 1; echo "branch $ANVIL_BRANCH at $ANVIL_COMMIT_SHA"'
	echo 1 >"$dir/number"
	commit_all "$dir" "Begin" >/dev/null
	git_in "$dir" tag v1
	for i in 2 3 4; do
		echo $i >"$dir/number"
		commit_all "$dir" "Count to $i" >/dev/null
	done
	git_in "$dir" switch -q -c feature/one HEAD~2
	echo feature >"$dir/feature.txt"
	commit_all "$dir" "Add a feature" >/dev/null
	git_in "$dir" switch -q main
	git_in "$dir" merge -q --no-ff -m "Merge the feature" feature/one
	git_in "$dir" tag -a -m "The second" v2
	git_in "$dir" switch -q -c 'topic/größer' HEAD~1
	echo 99 >"$dir/number"
	commit_all "$dir" "Count further on a side branch" >/dev/null
	git_in "$dir" switch -q main
	echo 5 >"$dir/number"
	commit_all "$dir" "Count to 5" >/dev/null
}
