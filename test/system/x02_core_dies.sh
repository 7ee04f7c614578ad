#!/bin/bash
# x02_core_dies.sh -- SIGKILL of the supervisor and of ingress at each of their crash points, of a
# first start too.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/crash.sh"

points_of x02
configure "${matrix[@]}"
first=() later=() patient=()
for point in "${points[@]}"; do
	case $(scenario_of "$point") in
	*" begin") first+=("$point") ;;
	*" doubt") patient+=("$point") ;;
	*) later+=("$point") ;;
	esac
done
die_at_each "${first[@]}"
do_begin
revive
begin_matrix
die_at_each "${later[@]}"
[ -z "${LONG-}" ] || die_at_each "${patient[@]}"
end_matrix
all_came_by
