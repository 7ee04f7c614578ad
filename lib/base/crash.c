#include "lib/base/crash.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/base.h"
#include "lib/base/io.h"

#ifdef ANVIL_FAULTS

#define VARIABLE    "ANVIL_CRASH_FILE"
#define ORDER_BYTES 128

/* What the environment orders; static, since points have no argument.  `seen` tells one order
 * from the next, `ncame` counts how often its point was passed.  Atomic instead of locked: a
 * child between fork and exec may hold no lock of a thread that it does not have. */
static char order_path[PATH_MAX], hit_path[PATH_MAX];
static _Atomic uint64_t seen;
static _Atomic long ncame;

static void
read_environment(void)
{
	const char *path = getenv(VARIABLE);
	int n = path == NULL ? 0 : snprintf(hit_path, sizeof(hit_path), "%s.hit", path);

	if (n > 0 && (size_t)n < sizeof(hit_path))
		memcpy(order_path, path, (size_t)n - strlen(".hit"));
}

/* The text of the order, and what tells it from another; 0 when there is none. */
static uint64_t
read_order(char *ret_text)
{
	CLEANUP(io_closep) int fd = open(order_path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0 || (n = read(fd, ret_text, ORDER_BYTES - 1)) <= 0)
		return 0;
	ret_text[n] = '\0';
	return ((uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec) ^
	    (uint64_t)st.st_ino << 48 ^ 1;
}

/* What follows ${word} in ${text}; NULL when it does not begin so. */
static const char *
after(const char *text, const char *word, size_t n)
{
	return text != NULL && strncmp(text, word, n) == 0 ? text + n : NULL;
}

/* How often the ordered point is to be passed before it kills; -1: this is not the point. */
static long
order_skip(const char *text, const char *actor, const char *name)
{
	size_t n = strcspn(actor, "/");
	const char *rest = after(text, actor, n);
	long skip = 0;

	if (n != 0)
		rest = after(rest, "_", 1);
	rest = after(rest, name, strlen(name));
	if (rest == NULL || (*rest != ' ' && *rest != '\n' && *rest != '\0'))
		return -1;
	for (rest += *rest == ' '; *rest >= '0' && *rest <= '9' && skip < INT_MAX; rest++)
		skip = skip * 10 + (*rest - '0');
	return skip;
}

/* Adds a line with our pid to what the order has become, for who waits for our end. */
static void
sign(void)
{
	CLEANUP(io_closep) int fd = open(hit_path, O_WRONLY | O_APPEND | O_CLOEXEC);
	char text[24], *at = text + sizeof(text);
	pid_t pid = getpid();

	*--at = '\n';
	for (*--at = (char)('0' + pid % 10); (pid /= 10) != 0;)
		*--at = (char)('0' + pid % 10);
	*--at = '\n';
	if (fd >= 0)
		(void)io_write_all(fd, at, (size_t)(text + sizeof(text) - at));
}

void
crash_point(const char *actor, const char *name)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	char text[ORDER_BYTES];
	uint64_t id;
	long skip;

	must(pthread_once(&once, read_environment) == 0);
	if (order_path[0] == '\0' || (id = read_order(text)) == 0)
		return;
	if (atomic_exchange(&seen, id) != id)
		atomic_store(&ncame, 0);
	skip = order_skip(text, actor, name);
	if (skip < 0 || atomic_fetch_add(&ncame, 1) < skip || rename(order_path, hit_path) < 0)
		return;
	sign();
	(void)kill(getpid(), SIGKILL);
}

char *
crash_variable(void)
{
	static const char name[] = VARIABLE "=";

	for (char **each = environ; each != NULL && *each != NULL; each++)
		if (strncmp(*each, name, sizeof(name) - 1) == 0)
			return *each;
	return NULL;
}

#endif
