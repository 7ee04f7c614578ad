#!/bin/bash
# x01_runs_die.sh -- SIGKILL of a run, its checkout or its server at each of their crash points.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/crash.sh"

points_of x01
begin_matrix
die_at_each "${points[@]}"
! sandbox_works || die_boxed_at run_step_spawned run_step_drained run_torn_down
end_matrix
all_came_by
