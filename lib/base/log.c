#include "lib/base/log.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/json_text.h"
#include "lib/base/utf8.h"

static const char *const level_names[] = { "debug", "info", "warn", "error" };

/* The log is the one thing of a process that every function may use; its state is here. */
static struct {
	_Atomic int level;
	_Atomic uint64_t dropped;
	char component[64];
} log_state = { .level = LOG_LEVEL_INFO };

/* Each thread works for one request at a time. */
static _Thread_local char log_request[32];

void
log_set_component(const char *address)
{
	(void)snprintf(log_state.component, sizeof(log_state.component), "%s", address);
}

void
log_set_level(enum log_level level)
{
	atomic_store(&log_state.level, (int)level);
}

enum log_level
log_get_level(void)
{
	return (enum log_level)atomic_load(&log_state.level);
}

int
log_level_parse(const char *word, enum log_level *ret_level)
{
	for (size_t i = 0; i < ARRAY_LEN(level_names); i++) {
		if (strcmp(word, level_names[i]) == 0) {
			*ret_level = (enum log_level)i;
			return 0;
		}
	}
	return E_INVAL;
}

const char *
log_level_name(enum log_level level)
{
	return level_names[level];
}

void
log_set_request(const char *request_id)
{
	(void)snprintf(log_request, sizeof(log_request), "%s", request_id);
}

uint64_t
log_dropped(void)
{
	return atomic_load(&log_state.dropped);
}

/* Length of a field's text in a line. */
static size_t
text_len(const struct log_field *f, size_t max)
{
	return utf8_cut(f->text, strlen(f->text), max);
}

static void
line_json(struct buf *b, enum log_level level, const char *event,
    const struct log_field *fields, size_t nfields, size_t max)
{
	char now[CLOCK_TEXT_SIZE];

	clock_format(clock_wall_ms(), now);
	buf_printf(b, "{\"ts\":\"%s\",\"level\":\"%s\",\"event\":\"%s\",\"component\":", now,
	    level_names[level], event);
	json_text_string(b, log_state.component, strlen(log_state.component));
	buf_printf(b, ",\"pid\":%d", (int)getpid());
	if (log_request[0] != '\0')
		buf_printf(b, ",\"requestId\":\"%s\"", log_request);
	for (size_t i = 0; i < nfields; i++) {
		const struct log_field *f = &fields[i];

		if (!f->is_number && f->text == NULL)
			continue;
		buf_printf(b, ",\"%s\":", f->name);
		if (f->is_number)
			buf_add_int(b, f->number);
		else
			json_text_string(b, f->text, text_len(f, max));
	}
	buf_add_str(b, "}\n");
}

static void
line_human(struct buf *b, enum log_level level, const char *event,
    const struct log_field *fields, size_t nfields, size_t max)
{
	static const char *const colours[] = { "\033[2m", "\033[32m", "\033[33m", "\033[31m" };
	char now[CLOCK_TEXT_SIZE];

	clock_format(clock_wall_ms(), now);
	buf_printf(b, "\033[2m%.12s\033[0m %s%-5s\033[0m %-12s %s", now + 11, colours[level],
	    level_names[level], log_state.component, event);
	for (size_t i = 0; i < nfields; i++) {
		const struct log_field *f = &fields[i];

		if (f->is_number) {
			buf_printf(b, " \033[2m%s=\033[0m%lld", f->name, (long long)f->number);
		} else if (f->text != NULL) {
			buf_printf(b, " \033[2m%s=\033[0m", f->name);
			json_text_string(b, f->text, text_len(f, max));
		}
	}
	buf_add_byte(b, '\n');
}

static int
writable_now(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	return poll(&p, 1, 0) == 1 && (p.revents & POLLOUT) != 0;
}

void
log_write(
    enum log_level level, const char *event, const struct log_field *fields, size_t nfields)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	int saved = errno;

	if ((int)level < atomic_load(&log_state.level))
		return;
	/* A pipe that is writable takes PIPE_BUF bytes at once; more of them could block. */
	for (size_t max = PIPE_BUF; max != 0; max /= 4) {
		buf_reset(&b);
		if (isatty(STDERR_FILENO))
			line_human(&b, level, event, fields, nfields, max);
		else
			line_json(&b, level, event, fields, nfields, max);
		if (b.len <= PIPE_BUF)
			break;
	}
	if (b.failed || b.len > PIPE_BUF || !writable_now(STDERR_FILENO) ||
	    write(STDERR_FILENO, b.data, b.len) != (ssize_t)b.len)
		atomic_fetch_add(&log_state.dropped, 1);
	errno = saved;
}
