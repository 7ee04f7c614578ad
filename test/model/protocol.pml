/*
 * test/model/protocol.pml -- how a shard, the supervisor and the processes of runs agree on who
 * executes what: claim, lease, heartbeat, settlement, takeover, cancel, release, and the death
 * of each at any point.  `make model` has spin try every interleaving within the bounds that
 * scripts/model.sh lists; `scripts/model.sh --help` says what else there is.
 *
 * What is shown (spec project 6 to 12, run 16):
 *   single    at most one process executes steps of the project; those of one run are executed
 *             by one process only, while the ledger says that it holds the run; FIFO
 *   terminal  a run becomes terminal once; what the ledger then says is what the run's own store
 *             says, unless there is none or it could not be read (failed / runner_lost); a run
 *             that ended in the queue was never executed
 *   fenced    nothing is promoted while a process of an earlier run may still execute
 *   cancel    `canceled` only after a request; a run that was canceled in the queue never runs
 *   stale     who does not hold the lease is told `lost` and changes nothing; nobody loses a
 *             lease while he executes
 *   kept      an accepted run has a row; queued runs have a head; there is one at most
 *   clean     when all has come to rest no process, lease, takeover or untold exit is left
 *   ends      when the faults have ended, every accepted run ends (LTL; the others are asserted)
 *
 * What is modelled how:
 * - An actor's turn is one step.  Rows are durable; everything else of an actor dies with it.
 *   A reply leaves in a later step than the commit, so that a crash may come between the two; a
 *   lost reply is repeated by the caller.  A commit may fail: then the row is as it was, but
 *   memory is not.  (When no crash can come any more the two steps are one.)
 * - A call has one slot for each connection; losing the connection empties it, and the caller
 *   sends again.  What a dead process has sent may be read long afterwards.
 * - SIGKILL takes effect in a step of its own; until then steps of the run go on.  A stopped
 *   process is silent: it is continued at some time, or stays so until it is killed.
 * - The supervisor takes its shard along (parent-death signal, recovery by the next one).
 * - Timers of seconds (re-check, expiry of a silent run) fire when nothing else can happen, and
 *   at any moment as often as EARLY says.  So a cycle without an end is a queue that is stuck,
 *   and nothing has to be assumed about fairness.
 * - Not here: the push of a cancel (a heartbeat's answer that comes sooner), recordCommit (one
 *   call more with the lease's guard), slots, the index, moving, abandon, a full disk.
 * - Dispatch ends after 2 failures instead of 6, a takeover's reads after 2 tries instead of 3.
 *
 * lose() is never reached, and need not be: who is fenced is dead before anybody could tell him
 * `lost`.  It is there for what is not modelled, abandon for one.
 *
 * A line "= FILE: functions" names what a part stands for; scripts/model.sh looks them up.
 */

#include "state.pml"
#include "ledger.pml"
#include "leases.pml"
#include "turns.pml"
#include "takeover.pml"
#include "process.pml"
#include "shard.pml"
#include "supervisor.pml"
#include "world.pml"

#ifdef ENDS
ltl ends { [] <> (REST) }
#endif
