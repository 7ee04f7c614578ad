/* test/model/state.pml -- rows, memory and messages; what is what. */

#define MOST 3	/* runs */
#define DISPATCH_TRIES 2
#define TAKEOVER_TRIES 2

/* Rows of the ledger; the terminal ones are also what a run's store may say. */
#define NONE 0
#define PENDING 1
#define EXECUTABLE 2
#define ACTIVE 3
#define CANCEL_REQUESTED 4
#define PASSED 5
#define FAILED 6
#define CANCELED 7
/* The store of a run, before it is terminal. */
#define NO_STORE 0
#define STARTING 1
#define RUNNING 2
/* How a row became terminal. */
#define BY_SETTLEMENT 1
#define BY_STORE 2	/* takeover, the store's word */
#define BY_ABSENCE 3	/* takeover, there is no store */
#define BY_LEDGER 4	/* takeover, the store could not be read */
#define BY_CANCEL 5	/* in the queue */
#define BY_DISPATCH 6	/* too many failures */
/* Where the process of a run is. */
#define GONE 0
#define CLAIM 1
#define STORE 2
#define PREPARE 3
#define STEPS 4
#define FINISH 5
#define SETTLE 6
#define LOSE 7
#define RELEASE 8
/* What it asks for and what it is told. */
#define ASK_CLAIM 1
#define ASK_FINALIZE 2
#define ASK_RELEASE 3
#define IS_CLAIMED 1
#define IS_STALE 2
#define IS_SETTLED 3
#define IS_CONFLICT 4
#define IS_RELEASED 5
#define IS_REFUSED 6
#define IS_LOST 7
/* The channel of a lease. */
#define CHANNEL_UP 1
#define CHANNEL_GONE 2		/* in 250 ms the supervisor is asked */
#define CHANNEL_ASKED 3
/* Questions of a shard about a process, and their answers. */
#define STATUS 1
#define KILL 2
#define IS_LIVE 1
#define IS_GONE 2
#define IS_PARKED 3		/* killed, not reaped yet */
/* Answers to spawnRun. */
#define SP_QUEUED 1		/* `spawned` as well: the supervisor has it */
#define SP_LIVE 2
#define SP_FAILED 3
/* A takeover, and what came back. */
#define TK_AGAIN 1
#define TK_SERVE 2
#define TK_KILL 3
#define TK_CONCLUDE 4
#define TK_LAST 5
#define TK_LIVE 1
#define TK_SERVING 2
#define TK_ABSENT 3
#define TK_FAILED 4
#define TK_GONE 5
#define TK_PARKED 6
#define TK_TERMINAL 7

typedef Row {
	/* Row of the shard. */
	unsigned st : 3;
	unsigned queued : 1;	/* dispatch: the supervisor has it */
	unsigned attempts : 2;
	unsigned lease : 3;
	unsigned spawn : 3;
	unsigned requested : 1;	/* a cancel */
	unsigned started : 1;	/* public status `running` */
	/* run.db */
	unsigned store : 3;
	unsigned epoch : 3;
	/* Rows of the supervisor: a process, ends not told yet, attempts by spawn. */
	unsigned process : 3;
	unsigned ends : 8;
	unsigned attempt_of : 8;
	/* The process; the newest spawn is the only one that may live. */
	unsigned pc : 4;
	unsigned newest : 3;
	unsigned executes : 1;
	unsigned killed : 1;	/* SIGKILL is on its way */
	unsigned stopped : 2;	/* 1: for good, 2: for a while */
	unsigned told_cancel : 1;
	unsigned told_lost : 1;
	unsigned sees_cancel : 1;
	unsigned outcome : 3;
	/* Memory of the shard. */
	unsigned in_flight : 1;
	unsigned held : 1;
	unsigned spawned : 2;	/* answer to spawnRun on its way here */
	unsigned spawned_live : 3;
	unsigned m_lease : 3;
	unsigned m_spawn : 3;
	unsigned channel : 2;
	unsigned asking : 1;
	unsigned ask : 2;
	unsigned ask_lease : 3;
	unsigned ask_spawn : 3;
	unsigned ask_answer : 2;
	unsigned takeover : 3;
	unsigned t_lease : 3;
	unsigned t_spawn : 3;
	unsigned t_failed : 2;
	unsigned t_answer : 3;
	unsigned exit_answer : 3;
	/* Memory of the supervisor. */
	unsigned wants : 1;	/* a spawnRun to be read */
	unsigned wants_attempt : 2;
	unsigned by_run : 3;
	unsigned waits : 1;	/* in the slot queue */
	unsigned waits_attempt : 2;
	unsigned exits : 8;
	/* The serving process. */
	unsigned serve : 1;
	/* Of the model alone. */
	unsigned nleases : 3;
	unsigned by : 3;
	unsigned executed_by : 3;
};
Row rw[MOST];

/* A connection of a process to the shard; a run's spawns have two in turn. */
typedef Conn {
	unsigned spawn : 3;
	unsigned lease : 3;
	unsigned ask : 2;
	unsigned outcome : 3;
	unsigned answer : 3;
	unsigned sent : 1;	/* the answer has left the shard */
	unsigned with_lease : 3;
	unsigned with_cancel : 1;
	unsigned beat : 2;	/* a heartbeat to be read; 2: it says `running` */
};
Conn conn[MOST * 2];

bit shard_up = 1, super_up = 1, linked;
bit accept_answer;	/* to the one that asked for a run; on its way */
byte naccepted;		/* runs whose acceptance was answered */

/* Faults that are left, the number of runs and what is wrong on purpose.  The checker takes them
 * from its environment, so that it is compiled once for all configurations; spin, which replays
 * what the checker has found, from -D. */
#ifdef REPLAY
#define BOUND(x) x
#else
#define BOUND(x) 0
#endif
byte crashes_shard = BOUND(CRASHES_SHARD), crashes_super = BOUND(CRASHES_SUPER);
byte kills = BOUND(KILLS), stops = BOUND(STOPS), cancels = BOUND(CANCELS);
byte releases = BOUND(RELEASES), failures = BOUND(FAILURES), errors = BOUND(ERRORS);
byte lost_commits = BOUND(LOST_COMMITS), give_ups = BOUND(GIVE_UPS), early = BOUND(EARLY);
hidden byte n = BOUND(RUNS), mutant = BOUND(MUTANT_IS);
hidden byte any_order = BOUND(ANY_ORDER);	/* see IS_LEAVING */

hidden byte i, j, found;

#define CLAIMED(r) (rw[r].st == ACTIVE || rw[r].st == CANCEL_REQUESTED)
#define TERMINAL(r) (rw[r].st >= PASSED)
#define IS_HEAD(r) (rw[r].st >= EXECUTABLE && rw[r].st <= CANCEL_REQUESTED)
#define QUEUED(r) (rw[r].st == PENDING || rw[r].st == EXECUTABLE)
#define ALIVE(r) (rw[r].pc != GONE && !rw[r].killed && !rw[r].stopped)
#define HOLDS(r, l) (CLAIMED(r) && rw[r].lease == (l))
#define MINE(r) conn[(r) * 2 + (rw[r].newest & 1)]
#define CONN_DEAD(r, c) (rw[r].pc == GONE || rw[r].newest != conn[c].spawn)
#define NOTHING_OUT(r) (MINE(r).ask == 0 && MINE(r).answer == 0)
/* A process that holds a lease and whose store is not terminal may yet execute. */
#define MAY_EXECUTE(r) (rw[r].executes || (rw[r].pc >= STORE && rw[r].pc <= STEPS))
/* It has ended, and nothing of it is left but a process that is stopped for good. */
#define IS_CLEAN(r) (TERMINAL(r) && (rw[r].stopped == 1 || \
	(rw[r].pc == GONE && rw[r].process == 0 && rw[r].by_run == 0)) && \
	rw[r].exits == 0 && rw[r].ends == 0 && rw[r].takeover == 0 && rw[r].m_lease == 0)
#define REST (IS_CLEAN(0) && (n < 2 || IS_CLEAN(1)) && (n < 3 || IS_CLEAN(2)))
/* Nothing can come between a commit and what leaves after it. */
#define NO_CRASH (crashes_shard == 0 && crashes_super == 0 && super_up)
#define NEWEST_CONN(r) ((r) * 2 + (rw[r].newest & 1))

/* Faults of the protocol, made for the checker to find (scripts/model.sh --teeth). */
#define MUTANT(m) (mutant == m)
#define M_UNFENCED 1		/* a silent run is taken over without being killed */
#define M_CLAIM_BY_ANY 2	/* a claim does not look at the spawn id */
#define M_TAKEOVER_UNGUARDED 3	/* a takeover does not look at the lease */
#define M_LOST_IS_CURRENT 4	/* a heartbeat does not */
#define M_FINALIZE_UNGUARDED 5	/* a settlement does not */
#define M_REPLY_FIRST 6		/* a claim is answered before its commit */
#define M_FORGETS_ACTIVE 7	/* a starting shard does not look at active rows */
#define M_NO_ASK_AGAIN 8	/* a re-check leaves rows alone that the supervisor had */
#define M_HELD_FOR_EVER 9	/* a released run is not dispatched when its process ended */
#define M_FORGOTTEN_EARLY 10	/* killRun forgets a runner that has still to end */
#define M_SERVE_BESIDE 11	/* serveRun does not look for a living process */
#define M_FORK_BESIDE 12	/* spawnRun does not either */
#define M_NO_ADOPTION 13	/* a new supervisor takes living runs for gone */
#define M_CANCEL_AT_ONCE 14	/* an active run is canceled by the ledger alone */
#define M_RELEASE_STARTED 15	/* a run is given back after its first step began */
#define M_STORE_UNREAD 16	/* a takeover does not ask the run's store */
#define M_ASKED_ONCE 17		/* a question about an earlier lease silences the next one */
#define M_UNCLAIMED_LEFT 18	/* nobody ends a process that does not claim */
