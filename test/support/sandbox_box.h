/*
 * test/support/sandbox_box.h -- a run's place with a sandbox in it, and steps in that.
 */
#ifndef TEST_SUPPORT_SANDBOX_BOX_H
#define TEST_SUPPORT_SANDBOX_BOX_H

#include "lib/base/buf.h"
#include "lib/sandbox/sandbox.h"

/* One run's place and its sandbox. */
struct box {
	const struct sandbox_driver *driver;
	struct sandbox *sb;
	char base[64], ws[80], tmp[80], home[80], objects[80], init[512];
	struct sandbox_limits limits;
	const char *hide[4];
	struct sandbox_paths paths;
	/* The last step. */
	struct sandbox_process *process;
	struct sandbox_problem problem;
	struct sandbox_result result;
	int out_fd; /* Its stdout and stderr. */
	struct buf out;
};

/* Environment of every step. */
extern const char *const box_env[];

/* Set-up and tear-down of a cmocka test; the state is a struct box with its sandbox open. */
int box_make_bwrap(void **state);
int box_make_none(void **state);
int box_remove(void **state);

int box_is_bwrap(const struct box *b);
void box_open(struct box *b);
void box_close(struct box *b);
void box_make_file(const char *dir, const char *name, const char *text);

/* As the driver's spawn; the output goes to b->out_fd. */
int box_spawn(struct box *b, const char *const argv[], const char *dir);
int box_spawn_shell(struct box *b, const char *command);
/* Waits for the step; b->result. */
void box_await(struct box *b);
/* Reads until every holder of the pipe is gone, which is the proof that they are. */
const char *box_drain(struct box *b);
/* Reads until the step has said ${text}. */
void box_await_text(struct box *b, const char *text);
/* The three in one: what the step has said. */
const char *box_run_argv(struct box *b, const char *const argv[], const char *dir);
const char *box_run_shell(struct box *b, const char *command);

#endif
