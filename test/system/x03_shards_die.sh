#!/bin/bash
# x03_shards_die.sh -- SIGKILL of a shard at each of its crash points, and of each actor around
# commits that ANVIL_SEED chooses; with LONG=1 around every one of them.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/crash.sh"

points_of x03
begin_matrix

# Around its commits from the first on, until no more come; or around one of the first few.
die_around() {	# POINT
	local k few
	case $1 in
	supervisor_*) few=3 ;;
	ingress_*) few=4 ;;
	*) few=7 ;;
	esac
	k=$((RANDOM % few))
	if [ -n "${LONG-}" ]; then
		for ((k = 0; k < 40; k++)); do
			die_at "$1" $k 1 || break
		done
		[ $k -ge $few ] || missed+=" $1"
	elif ! die_at "$1" $k 1; then
		die_at_each "$1"
	fi
}

for point in "${points[@]}"; do
	case $point in
	*_before_commit | *_after_commit | *_after_replies) die_around "$point" ;;
	*) die_at_each "$point" ;;
	esac
done
end_matrix
all_came_by
