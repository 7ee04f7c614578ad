#!/bin/bash
# u02_upgrade.sh -- another release of anvil is put in place and started in the middle of a build,
# and the one before again: nothing of it shows in the build's result and log.
. "$(dirname "$0")/lib.sh"
HOLD=${HOLD/600/2400}	# a busy machine takes long to start anvild again and again

make_steps_repo "$T/src" say "echo begun; $HOLD; echo ended" next 'echo "and the next"' >/dev/null

# A newer release: the same programs, but for what they call themselves.
old=$BUILD new=$T/newer
version=$("$BUILD/anvild" --version | sed 's/.* //')
mkdir "$new"
cp "$BUILD"/anvil* "$new" 2>/dev/null || true
newer=$(tr '0-9' '1-90' <<<"$version")
for program in "$new"/anvil*; do
	LC_ALL=C sed -i "s/${version//./\\.}/$newer/g" "$program"
done
expect "$("$new/anvild" --version)" "anvild $newer" "version of the newer release"

start_all
sign_in
project=$(new_project hello "file://$T/src")
for _ in 1 2; do
	run=$(trigger "$project")
	wait_for 20 "log_of $run | grep -q begun"
	let_go "$run"
	has_ended "$run" passed
done
log_of "$run" >"$T/log"

version_of() {	# ACTOR
	ctl inspect "$1" --json | jq -r '.. | .version? // empty' | head -n 1
}
run=$(trigger "$project")
next=$(trigger "$project")
wait_for 20 "log_of $run | grep -q begun"
pid=$(pid_of "run/$run")
for BUILD in "$new" "$old" "$new"; do
	stop_anvild
	start_anvild
	expect "$(pid_of "run/$run")" "$pid" "pid of the run"
	is_status "$run" running || fail "the run is $(status_of "$run")"
	is_status "$next" queued || fail "the next is $(status_of "$next")"
done
wait_for 20 "[ \"\$(version_of supervisor)\" = $newer ]"
wait_for 20 "[ \"\$(version_of run/$run)\" = $version ]"

# The one that is older than everybody else ends as it should, the next one is new.
let_go "$run"
has_ended "$run" passed
log_of "$run" | cmp - "$T/log" || fail "the log is another: $(log_of "$run")"
wait_for 20 "is_status $next running"
wait_for 20 "[ \"\$(version_of run/$next)\" = $newer ]"
let_go "$next"
has_ended "$next" passed
log_of "$next" | cmp - "$T/log" || fail "the log is another: $(log_of "$next")"
stop_all
