#!/bin/bash
# l01_follow.sh -- anvilctl logs -f prints all of a log once: begun before the run, in its midst
# or behind it; beside output that the hot tail does not hold; when a process dies in between.
. "$(dirname "$0")/lib.sh"

# 6 MB at once, then lines that come slowly, on both streams.
make_steps_repo "$T/src" \
	bulk "head -c 6000000 /dev/zero | tr '\\0' x; echo; echo 'bulk is over'; $HOLD" \
	lines 'for i in $(seq 200); do echo "out $i"; echo "err $i" >&2; sleep 0.005; done' \
	last 'printf "no newline at the end"' >/dev/null
make_steps_repo "$T/killed" say "echo begun; $HOLD" >/dev/null
start_all runs.max_concurrent=1
sign_in
project=$(new_project hello "file://$T/src")
killed=$(new_project killed "file://$T/killed")

declare -A follower=()	# pid by name
follow() {	# NAME RUN [OPTION...]
	ctl logs "$2" -f "${@:3}" >"$T/$1.text" 2>"$T/$1.err" &
	follower[$1]=$!
}
# has_followed NAME RUN [STATUS]: it is through, and has the text that the edge serves.
has_followed() {
	local rc=0
	wait_for 30 "! is_alive ${follower[$1]}"
	wait "${follower[$1]}" || rc=$?
	expect $rc "${3:-0}" "exit status of $1: $(cat "$T/$1.err")"
	log_of "$2" >"$T/whole"
	cmp "$T/$1.text" "$T/whole" || fail "$1: not the log of $2"
}

first=$(trigger "$project")
follow start "$first"
second=$(trigger "$project")
follow queued "$second"
wait_for 20 "is_status $first running"
wait_for 20 "grep -qs 'bulk is over' '$T/start.text'"
follow middle "$first"
follow gone "$first"
wait_for 20 "grep -qs 'bulk is over' '$T/gone.text'"
kill -KILL "${follower[gone]}"
wait "${follower[gone]}" 2>/dev/null || true
wait_for 20 "grep -qs '$second is' '$T/queued.err'"
let_go "$first"
has_ended "$first" passed
has_followed start "$first"
has_followed middle "$first"
follow behind "$first"
has_followed behind "$first"

wait_for 20 "is_status $second running"
let_go "$second"
has_ended "$second" passed
has_followed queued "$second"

# The run's process is killed: the log ends with what became of the run.
third=$(trigger "$killed")
follow lost "$third"
wait_for 20 "grep -qs begun '$T/lost.text'"
kill -KILL "$(pid_of "run/$third")"
has_failed "$third" runner_lost '*SIGKILL*'
has_followed lost "$third"
expect_in "$(cat "$T/lost.text")" "ended unexpectedly" "end of a lost run's log"
killed_some=yes
stop_all
