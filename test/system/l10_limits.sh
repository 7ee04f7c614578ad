#!/bin/bash
# l10_limits.sh -- memory and processes of a step are bounded, and the log says by what.
#
# Once with what anvil's user has by himself; as root once more in cgroups that are given to
# him.
. "$(dirname "$0")/lib.sh"

MEMORY=67108864
PROCESSES=800	# many, where all of the user's count
made=()		# groups, the innermost first
homes=()	# where this shell was

# give_group HIERARCHY TYPE [CONTROLLER]: a group beneath this shell's own, for the account,
# with this shell in it.
give_group() {
	local root=$1 own
	own=$(sed -n "s/^[0-9]*:\(${3:+[^:]*,}\|\)${3-}\(${3:+,[^:]*}\|\):\//\//p" /proc/self/cgroup | head -n 1)
	[ -n "$own" ] && [ -d "$root$own" ] || return 0
	own=$root${own%/}
	homes+=("$own")
	own=$own/anvil-test-$$
	mkdir "$own" || return 0
	made=("$own" "${made[@]}")
	# Where somebody has enabled them, controllers are passed on to a group beside the one
	# that anvil is in.
	if [ "$2" = cgroup2 ] && echo '+memory +pids' 2>/dev/null >"$own/cgroup.subtree_control"; then
		chown "$ACCOUNT" "$own" "$own/cgroup.procs"
		own=$own/own
		mkdir "$own"
		made=("$own" "${made[@]}")
	fi
	chown "$ACCOUNT" "$own" "$own/cgroup.procs"
	echo $$ >"$own/cgroup.procs"
}

give_groups() {
	local root controller
	for controller in memory pids; do
		root=$(findmnt -n -t cgroup -O "$controller" -o TARGET | head -n 1)
		[ -z "$root" ] || give_group "$root" cgroup "$controller"
	done
	root=$(findmnt -n -t cgroup2 -o TARGET | head -n 1)
	[ -z "$root" ] || give_group "$root" cgroup2
}

undo() {
	local dir
	for dir in "${homes[@]}"; do
		echo $$ >"$dir/cgroup.procs"
	done
	for dir in "${made[@]}"; do
		find "$dir" -depth -type d -exec rmdir {} \;
	done
}

# What has to hold the memory now, as a regular expression.
expected() {
	local dir
	for dir in "${made[@]}"; do
		[ ! -e "$dir/memory.max" ] || { echo '\(cgroup v2\)' && return; }
	done
	for dir in "${made[@]}"; do
		[ ! -e "$dir/memory.limit_in_bytes" ] || { echo '\(cgroup v1\)' && return; }
	done
	echo '.*'
}

left_groups() {
	local dir
	for dir in "${made[@]}"; do
		find "$dir" -mindepth 1 -type d -name 'anvil-[0-9]*'
	done
}

# shellcheck disable=SC2016 # the steps expand it
make_steps_repo "$T/hog" fits 'head -c 1000000 /dev/zero | tail | wc -c' \
	hog 'echo big; head -c 600000000 /dev/zero | tail >/dev/null' >/dev/null
# shellcheck disable=SC2016
make_steps_repo "$T/bomb" bomb 'bomb() { bomb | bomb & }; bomb 2>err & until [ -s err ]; do :; done' \
	next 'echo "all is well"' >/dev/null

look() {	# WHAT [LIMITS]: with LIMITS, the log has to name these
	local run limits text
	run=$(trigger "$hog")
	wait_for 40 "is_over $run"
	limits=$(log_of "$run" | grep '^Limits: ') || fail "no word of limits"
	echo "$1: $limits"
	case $limits in
	*"memory $MEMORY bytes (cgroup "*)
		has_failed "$run" out_of_memory "Step \"hog\" ran out of memory (limit $MEMORY)."
		expect "$(jq -c '[.run.exitCode, .steps[1].exitCode]' <<<"$DETAIL")" '[137,137]' "exit code"
		;;
	*"memory $MEMORY bytes each process (RLIMIT_DATA)"*)
		has_failed "$run" step_failed 'Step "hog" failed with exit code *'
		;;
	*) fail "$limits" ;;
	esac
	expect_match "$limits" "memory $MEMORY bytes ${2-.*}; processes $PROCESSES \((cgroup v[12]|RLIMIT_NPROC)\)\.\$"
	expect_in "$(log_of "$run")" 1000000 "what fits"

	run=$(trigger "$bomb")
	has_ended "$run" passed
	text=$(log_of "$run")
	expect_in "$text" "all is well"
	expect_match "$text" 'Killed [0-9]+ process(es)? left by step "bomb": bash '
	expect "$(left_groups)" "" "groups of runs that are over"
}

start_all runs.step_memory_bytes=$MEMORY runs.step_max_processes=$PROCESSES
sign_in
hog=$(new_project hog "file://$T/hog")
bomb=$(new_project bomb "file://$T/bomb")
look bwrap
stop_all
configure runs.sandbox=none
start_anvild
look none

# A run that is killed leaves neither processes nor groups.
after_kill() {
	local run pid
	run=$(trigger "$held")
	wait_for 20 "log_of $run | grep -q begun"
	kill -KILL "$(pid_of "run/$run")"
	has_failed "$run" runner_lost '*SIGKILL*'
	wait_for 10 "[ -z \"\$(left_groups)\" ]"
	for pid in $(pgrep -f "sleep 31$$"); do
		wait_for 10 "! is_alive $pid"
	done
}

if [ -n "$ACCOUNT" ] && command -v findmnt >/dev/null; then
	stop_all
	give_groups
	if [ ${#made[@]} != 0 ]; then
		make_steps_repo "$T/held" held "(setsid sleep 31$$ &); echo begun; sleep 31$$" >/dev/null
		PROCESSES=100
		configure runs.step_max_processes=$PROCESSES
		start_anvild
		held=$(new_project held "file://$T/held")
		look "none, delegated" "$(expected)"
		# shellcheck disable=SC2034 # lib.sh reads it
		killed_some=yes
		after_kill
		stop_all
		configure runs.sandbox=bwrap
		start_anvild
		look "bwrap, delegated" "$(expected)"
		after_kill
	else
		start_anvild
	fi
fi
stop_all
