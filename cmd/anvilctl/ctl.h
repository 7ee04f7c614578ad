/*
 * cmd/anvilctl/ctl.h -- what every command stands on: the runtime directory, calls, output.
 *
 * Functions that can fail for the user's eyes print why and return the exit status.
 */
#ifndef CMD_ANVILCTL_CTL_H
#define CMD_ANVILCTL_CTL_H

#include <jansson.h>

#include "cmd/anvilctl/args.h"
#include "cmd/anvilctl/table.h"
#include "lib/wire/wire.h"

enum ctl_status { CTL_OK = 0, CTL_REFUSED = 1, CTL_USAGE = 2, CTL_UNREACHABLE = 3 };

#define CTL_DEADLINE_MS       15000
#define CTL_QUICK_DEADLINE_MS 2000 /* For one of many, that the others do not wait for. */

struct ctl {
	const char *const *globals; /* Of the command line, by enum global.   */
	int json;                   /* --json was given.                      */
	int color;                  /* Standard output is a terminal.         */
	int64_t deadline_ms;        /* Of a call.                             */
	char *runtime_dir;          /* Owned; NULL before ctl_open().         */
	int dirfd;                  /* Of it; -1 before.                      */
	struct client *client;      /* Owned; NULL before.                    */
	struct client_reply reply;  /* Of the last call.                      */
};

void ctl_init(struct ctl *ctl, const struct args *args);
void ctl_done(struct ctl *ctl);

/* Finds the runtime directory and becomes its owner; every call does it by itself.  0 or a
 * status. */
int ctl_open(struct ctl *ctl);
/* The first half: ctl->dirfd, for what has to be done by whom we still are. */
int ctl_find(struct ctl *ctl);

/*
 * CTL_TRY(ctl, "project/0", project_queue, &params, &result) calls project.queue, typed by the
 * generated structs.  0, or the error, unexplained; ctl->reply has the rest.  The result lives
 * until client_forget().
 */
#define CTL_TRY(ctl, to, method, params, result)                                \
	__extension__({                                                         \
		const struct method##_params *params_ = (params);               \
		struct method##_result *result_ = (result);                     \
		ctl_try((ctl), (to), &method##_params_codec, params_, result_); \
	})
/* The same, explained: 0, CTL_REFUSED or CTL_UNREACHABLE. */
#define CTL_CALL(ctl, to, method, params, result) \
	ctl_explain((ctl), (to), CTL_TRY(ctl, to, method, params, result))

/* A notification to an actor that is connected: 0 or an error. */
#define CTL_NOTIFY(ctl, to, method, params)                               \
	__extension__({                                                   \
		const struct method##_params *params_ = (params);         \
		ctl_notify((ctl), (to), &method##_params_codec, params_); \
	})

int ctl_try(struct ctl *ctl, const char *to, const struct codec_type *params_type,
    const void *params, void *ret_result);
int ctl_notify(
    struct ctl *ctl, const char *to, const struct codec_type *params_type, const void *params);
/* Prints why the last call, to ${to}, ended with ${err}; 0 for 0. */
int ctl_explain(struct ctl *ctl, const char *to, int err);

/* Prints "anvilctl: ..." on standard error.  CTL_REFUSED. */
int ctl_fail(const char *fmt, ...) PRINTF_LIKE(1, 2);
int ctl_fail_nomem(void);

/* Prints ${j} as one line; NULL: the last result.  A status. */
int ctl_print_json(const struct ctl *ctl, const json_t *j);
/* Prints that member of the last result as one line.  A status. */
int ctl_print_member(const struct ctl *ctl, const char *name);
/* Prints the table, or ${empty} on standard error when it has no rows.  A status. */
int ctl_print_table(const struct ctl *ctl, const struct table *t, const char *empty);
/* Prints ${text} in its tone, without a newline. */
void ctl_print_tone(const struct ctl *ctl, enum tone tone, const char *text);

#endif
