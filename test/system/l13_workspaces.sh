#!/bin/bash
# l13_workspaces.sh -- what a step leaves in its workspace, HOME and TMPDIR goes with the run,
# whatever it is, and nothing that it points at; in both sandboxes.
. "$(dirname "$0")/lib.sh"

mkdir "$T/outside"
chmod 777 "$T/outside"
echo kept >"$T/outside/kept"
chmod 666 "$T/outside/kept"

# shellcheck disable=SC2016 # the step expands it
make_steps_repo "$T/src" leave 'for dir in . "$HOME" "$TMPDIR"; do
	cd "$dir"
	mkdir -p "read only/deeper" "$(printf "a\nb")"
	touch "read only/deeper/file" -- "-rf *" "$(printf "new\nline")" "$(printf "\377")"
	ln -s "'"$T/outside"'" "read only/out"
	ln -s "'"$T/outside/kept"'" file-out
	ln -s / root; ln -s . self; ln -s nowhere broken
	mkfifo "read only/fifo"
	python3 -c "import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")" 2>/dev/null || true
	chmod 000 "read only/deeper"; chmod 555 "read only"
	deep=$PWD
	for i in $(seq 150); do mkdir "a directory whose name is long"; cd "a directory whose name is long"; done
	cd "$deep"
done
cd /
echo "left them"' >/dev/null

look() {
	local run name
	run=$(trigger "$project")
	has_ended "$run" passed
	expect_in "$(log_of "$run")" "left them"
	for name in ws tmp home; do
		wait_for 20 "[ ! -e $DATA/runs/$run/$name ]"
	done
	expect "$(cat "$T/outside/kept")" kept "what the links pointed at"
	expect "$(stat -c %a "$T/outside" "$T/outside/kept" | xargs)" "777 666" "its mode"
	! logged workspace_removal_failed || fail "a removal has failed"
	[ -d "$DATA/runs/$run" ] || fail "the run's store went too"
}

start_all
sign_in
project=$(new_project leaves "file://$T/src")
look
stop_all
configure runs.sandbox=none
start_anvild
look
stop_all
