#include "lib/store/batch.h"

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/store/priv.h"

struct batch {
	uint32_t magic;
#define BATCH_MAGIC 0x6a9b1d42
	struct store *store;
	int open;         /* a transaction was begun and is not yet answered for   */
	int lost;         /* SQLite rolled it back behind our back                 */
	int in_turn;      /* between begin and end of a turn                       */
	int must_restart; /* the outcome of a commit is unknown: no more writes    */
	size_t nturns;
};

struct batch *
batch_new(struct store *s)
{
	struct batch *b = mem_calloc(1, sizeof(*b));

	if (b != NULL)
		*b = (struct batch) { .magic = BATCH_MAGIC, .store = s };
	return b;
}

struct batch *
batch_free(struct batch *b)
{
	if (b == NULL)
		return NULL;
	store_rollback(b->store);
	b->magic = 0;
	free(b);
	return NULL;
}

/* An error inside a savepoint (disk full, I/O) may have undone the whole transaction; the
 * only sign of it is that SQLite is back in autocommit mode. */
static int
look(struct batch *b)
{
	if (b->open && !store_in_txn(b->store))
		b->lost = 1;
	return b->lost ? E_STORAGE : 0;
}

int
batch_turn_begin(struct batch *b)
{
	int r;

	OBJ_CHECK(b, BATCH_MAGIC);
	must(!b->in_turn);
	if (b->must_restart || look(b) < 0)
		return E_STORAGE;
	if (!b->open) {
		r = store_begin(b->store);
		if (r < 0)
			return r;
		b->open = 1;
		b->nturns = 0;
	}
	r = store_do(b->store, WORD_SAVEPOINT);
	if (r < 0) {
		(void)look(b);
		return r;
	}
	b->in_turn = 1;
	b->nturns++;
	return 0;
}

int
batch_turn_end(struct batch *b, int keep)
{
	OBJ_CHECK(b, BATCH_MAGIC);
	must(b->in_turn);
	b->in_turn = 0;
	if (look(b) < 0)
		return E_STORAGE;
	/* ROLLBACK TO leaves the savepoint standing: RELEASE follows in either case. */
	if ((!keep && store_exec(b->store, "ROLLBACK TO turn") < 0) ||
	    store_do(b->store, WORD_RELEASE) < 0) {
		store_rollback(b->store);
		b->lost = 1;
	}
	return look(b);
}

int
batch_is_open(const struct batch *b)
{
	return b->open;
}

int
batch_is_lost(const struct batch *b)
{
	return b->lost;
}

size_t
batch_nturns(const struct batch *b)
{
	return b->open ? b->nturns : 0;
}

int
batch_commit(struct batch *b)
{
	int r;

	OBJ_CHECK(b, BATCH_MAGIC);
	must(!b->in_turn);
	if (!b->open)
		return 0;
	r = look(b);
	if (r == 0) {
		r = store_commit(b->store);
		/* A failed write or sync at the commit may come true when the log is recovered;
		 * a full disk and missing memory are known before anything is marked. */
		if (r < 0 && r != E_FULL && r != E_NOMEM)
			b->must_restart = 1;
	}
	b->open = 0;
	b->lost = 0;
	b->nturns = 0;
	return r;
}

int
batch_must_restart(const struct batch *b)
{
	return b->must_restart;
}
