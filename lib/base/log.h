/*
 * lib/base/log.h -- log lines: one JSON object each, on standard error (spec operations 5).
 *
 * Only cmd/ and lib/actor log; libraries return errors.  A line is written with one write()
 * and only when the descriptor takes it at once (texts are cut where 4 KiB would not hold the
 * line), else it is dropped and counted: no loop
 * ever waits for its log.  On a terminal lines are made for people.
 */
#ifndef LIB_BASE_LOG_H
#define LIB_BASE_LOG_H

#include <stdint.h>

#include "lib/base/base.h"

enum log_level { LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARN, LOG_LEVEL_ERROR };

/* One member of a line.  Rows with a NULL string value are left out. */
struct log_field {
	const char *name;
	const char *text; /* NULL: the number counts */
	int64_t number;
	int is_number;
};

#define LOG_STR(n, v)          \
	{                      \
		(n), (v), 0, 0 \
	}
#define LOG_INT(n, v)                      \
	{                                  \
		(n), NULL, (int64_t)(v), 1 \
	}

/* log_event(LOG_LEVEL_INFO, "run_accepted", LOG_STR("runId", id), LOG_INT("position", 3)); */
#define log_event(level, event, ...)                                            \
	log_write((level), (event), (const struct log_field[]) { __VA_ARGS__ }, \
	    sizeof((const struct log_field[]) { __VA_ARGS__ }) / sizeof(struct log_field))
#define log_plain(level, event) log_write((level), (event), NULL, 0)

void log_write(
    enum log_level level, const char *event, const struct log_field *fields, size_t nfields);

/* Address of this actor, the `component` of every line; copied. */
void log_set_component(const char *address);
void log_set_level(enum log_level level);
enum log_level log_get_level(void);
/* "debug", "info", "warn", "error".  0 or E_INVAL. */
int log_level_parse(const char *word, enum log_level *ret_level);
const char *log_level_name(enum log_level level);

/* Request id of the turn that runs now, "" when none: stands in every line until changed. */
void log_set_request(const char *request_id);

/* Lines that could not be written since the start. */
uint64_t log_dropped(void);

#endif
