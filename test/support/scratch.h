/*
 * test/support/scratch.h -- places of a test: a directory of its own, the built programs.
 */
#ifndef TEST_SUPPORT_SCRATCH_H
#define TEST_SUPPORT_SCRATCH_H

/* A new directory below TMPDIR; the caller frees the path.  Failure ends the test. */
char *scratch_new(void);
/* Removes the directory with all that is in it and frees ${path}.  NULL is fine. */
void scratch_free(char *path);

/* Path of a program of this build, such as "anvild": below ANVIL_BUILD, else beside the test.
 * The caller frees. */
char *scratch_program(const char *name);

/* Descriptors that this process has open, to see that none is left. */
int scratch_open_fds(void);

#endif
