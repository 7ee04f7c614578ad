#include "lib/base/fault.h"

#ifdef ANVIL_FAULTS

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/base.h"
#include "lib/base/clock.h"
#include "lib/base/io.h"

#define PATTERN_SIZE   48
#define RULES_MAX      16
#define RULES_MAX_SIZE 4096
#define LOOK_US        5000 /* between looks at the file of rules                       */
#define LAST_BYTES     4096 /* A write of more finds room for a half on a disk that fills. */

struct line {
	char pattern[PATTERN_SIZE];
	struct fault_rule rule;
};

/* What was read of it, shared by the threads. */
static struct {
	pthread_once_t once;
	const char *path; /* NULL: there is none. */
	pthread_mutex_t lock;
	struct mono_time looked;
	struct stat seen;
	struct line lines[RULES_MAX];
	size_t n;
} file = { .once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- the file of rules ---- */

static void
add_word(struct fault_rule *r, const char *word)
{
	static const struct {
		const char *name;
		unsigned what;
	} words[] = { { "full", FAULT_FULL }, { "io", FAULT_WRITE | FAULT_SYNC | FAULT_READ },
		{ "write", FAULT_WRITE }, { "sync", FAULT_SYNC }, { "read", FAULT_READ },
		{ "readonly", FAULT_READONLY }, { "corrupt", FAULT_CORRUPT },
		{ "short", FAULT_SHORT } };

	if (strncmp(word, "slow_us=", 8) == 0)
		r->slow_us = strtol(word + 8, NULL, 10);
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcmp(word, words[i].name) == 0)
			r->what |= words[i].what;
}

/* Without an allocation, of which a test may have ordered that it fails. */
static void
read_rules(void)
{
	CLEANUP(io_closep) int fd = open(file.path, O_RDONLY | O_CLOEXEC);
	char text[RULES_MAX_SIZE], *rest = text, *line, *word, *within;
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;

	file.n = 0;
	text[n > 0 ? n : 0] = '\0';
	while ((line = strsep(&rest, "\n")) != NULL && file.n < RULES_MAX) {
		struct line *l = &file.lines[file.n];

		word = strtok_r(line, " \t", &within);
		if (word == NULL || *word == '#')
			continue;
		*l = (struct line) { .rule = { .what = 0 } };
		(void)snprintf(l->pattern, sizeof(l->pattern), "%s", word);
		while ((word = strtok_r(NULL, " \t", &within)) != NULL)
			add_word(&l->rule, word);
		file.n++;
	}
}

static void
look_at_rules(void)
{
	struct mono_time now = clock_mono();
	struct stat st = { .st_ino = 0 };

	if (file.looked.us != 0 && mono_diff_us(file.looked, now) < LOOK_US)
		return;
	file.looked = now;
	if (stat(file.path, &st) == 0 && st.st_ino == file.seen.st_ino &&
	    st.st_size == file.seen.st_size && st.st_mtim.tv_sec == file.seen.st_mtim.tv_sec &&
	    st.st_mtim.tv_nsec == file.seen.st_mtim.tv_nsec)
		return;
	file.seen = st;
	read_rules();
}

static void
find_rules(void)
{
	file.path = getenv("ANVIL_FAULT_FILE");
}

static int
there_are_rules(void)
{
	must(pthread_once(&file.once, find_rules) == 0);
	return file.path != NULL;
}

struct fault_rule
fault_rule_of(const char *target)
{
	struct fault_rule all = { .what = 0 };

	if (!there_are_rules())
		return all;
	must(pthread_mutex_lock(&file.lock) == 0);
	look_at_rules();
	for (size_t i = 0; i < file.n; i++) {
		if (fnmatch(file.lines[i].pattern, target, 0) != 0)
			continue;
		all.what |= file.lines[i].rule.what;
		all.slow_us += file.lines[i].rule.slow_us;
	}
	must(pthread_mutex_unlock(&file.lock) == 0);
	return all;
}

void
fault_dawdle(long us)
{
	struct timespec ts = { us / 1000000, us % 1000000 * 1000 };

	if (us > 0)
		(void)nanosleep(&ts, NULL);
}

/* ---- calls of the kernel ---- */

static struct fault_rule
rule_of_file(int fd)
{
	char link[32], path[PATH_MAX], *slash;
	ssize_t n;

	if (!there_are_rules())
		return (struct fault_rule) { .what = 0 };
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	slash = strrchr(path, '/');
	if (slash != NULL)
		slash = memrchr(path, '/', (size_t)(slash - path));
	return fault_rule_of(slash != NULL ? slash + 1 : path);
}

static int
fail(int code)
{
	errno = code;
	return -1;
}

ssize_t
fault_file_write(int fd, const void *p, size_t n, off_t at)
{
	unsigned what = rule_of_file(fd).what;

	if ((what & FAULT_READONLY) != 0)
		return fail(EROFS);
	if ((what & FAULT_WRITE) != 0)
		return fail(EIO);
	if ((what & FAULT_FULL) != 0 && n <= LAST_BYTES)
		return fail(ENOSPC);
	if ((what & (FAULT_FULL | FAULT_SHORT)) != 0 && n > 1)
		n /= 2;
	return pwrite(fd, p, n, at);
}

int
fault_file_cut(int fd, off_t size)
{
	unsigned what = rule_of_file(fd).what;

	if ((what & FAULT_READONLY) != 0)
		return fail(EROFS);
	return (what & FAULT_WRITE) != 0 ? fail(EIO) : ftruncate(fd, size);
}

int
fault_file_sync(int fd)
{
	struct fault_rule rule = rule_of_file(fd);

	if ((rule.what & FAULT_SYNC) != 0)
		return fail(EIO);
	fault_dawdle(rule.slow_us);
	return fdatasync(fd);
}

#endif
