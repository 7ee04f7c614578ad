/*
 * lib/store/mark.h -- the mark of a copy, by which a store that came from one is known, however
 * it was put where it is.
 *
 * It is the application id in the file's head; a store that never was a copy has 0.  SQLite
 * itself makes nothing of it, every way to copy the file keeps it, it changes with a transaction,
 * and it needs no table: a store of any age and schema can bear it.
 *
 * A copy is complete in its one file.  Until its owner opens it, any log that lies beside it is
 * another store's, such as the one whose place it was put into by hand; SQLite, which sees
 * only that a log is whole, would play it into the copy.  So the mark has two states.  Opening
 * puts such a log aside, and then changes the mark, in the file itself and on disk, before
 * anything is written to a log of the copy's own.
 */
#ifndef LIB_STORE_MARK_H
#define LIB_STORE_MARK_H

struct store;

/* Nobody has opened it yet ("anvC"); and it has been opened since ("anvR"), or it was copied by
 * a release that knew no other mark. */
#define STORE_COPY_MARK     0x616e7643
#define STORE_RESTORED_MARK 0x616e7652

/* *ret_restored is 1 when the store came from a copy and nobody has cleared the mark since. */
int store_is_restored(struct store *s, int *ret_restored);
/* Part of the transaction when one is open; else on disk when this returns. */
int store_clear_restored(struct store *s);

/* Where the log (or rollback journal) of another store is now that store_open() found beside a
 * copy; NULL: there was none.  Somebody who can say why it was there should be told.  As long as
 * the store. */
const char *store_set_aside(const struct store *s);

#endif
