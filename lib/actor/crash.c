#include "lib/actor/crash.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/base.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/json_text.h"

#define NAME_SIZE       96
#define ID_SIZE_IN_RING 32

/* A signal handler has no argument, so what it prints is here. */
static struct {
	struct {
		const char *method;
		char request_id[ID_SIZE_IN_RING];
		int verdict;
		uint32_t us;
	} turns[CRASH_TURNS];
	unsigned next;
	const char *now;
	int dirfd;
	char name[NAME_SIZE];
	volatile sig_atomic_t written;
} crash = { .dirfd = -1 };

void
crash_note_turn(const char *method, const char *request_id, int verdict, uint32_t us)
{
	unsigned at = crash.next++ % CRASH_TURNS;
	size_t n = strnlen(request_id, ID_SIZE_IN_RING - 1);

	crash.turns[at].method = method;
	memcpy(crash.turns[at].request_id, request_id, n);
	crash.turns[at].request_id[n] = '\0';
	crash.turns[at].verdict = verdict;
	crash.turns[at].us = us;
}

void
crash_note_now(const char *method)
{
	crash.now = method;
}

/* ---- nothing below allocates, locks or formats with stdio ---- */

static void
put(int fd, const char *text)
{
	ssize_t n = write(fd, text, strlen(text));

	(void)n;
}

static void
put_number(int fd, long long v, unsigned base)
{
	static const char digits[] = "0123456789abcdef";
	unsigned long long u = v < 0 ? 0ull - (unsigned long long)v : (unsigned long long)v;
	char text[70];
	size_t at = sizeof(text) - 1;

	text[at] = '\0';
	do {
		text[--at] = digits[u % base];
		u /= base;
	} while (u != 0);
	if (v < 0)
		text[--at] = '-';
	put(fd, text + at);
}

static void
put_turns(int fd)
{
	put(fd, "now: ");
	put(fd, crash.now != NULL ? crash.now : "(between turns)");
	put(fd, "\nlast turns, oldest first: method request verdict microseconds\n");
	for (unsigned i = 0; i < CRASH_TURNS; i++) {
		unsigned at = (crash.next + i) % CRASH_TURNS;

		if (crash.turns[at].method == NULL)
			continue;
		put(fd, crash.turns[at].method);
		put(fd, " ");
		put(fd,
		    crash.turns[at].request_id[0] != '\0' ? crash.turns[at].request_id : "-");
		put(fd, " ");
		put_number(fd, crash.turns[at].verdict, 10);
		put(fd, " ");
		put_number(fd, crash.turns[at].us, 10);
		put(fd, "\n");
	}
}

static int
note_open(void)
{
	if (crash.dirfd < 0 || crash.written)
		return -1;
	crash.written = 1;
	return openat(crash.dirfd, crash.name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

static void
on_bug(const char *what)
{
	int fd = note_open();

	if (fd < 0)
		return;
	put(fd, "bug: ");
	put(fd, what);
	put_turns(fd);
	(void)close(fd);
}

static void
on_signal(int sig, siginfo_t *info, void *context)
{
	int fd = note_open();

	(void)context;
	if (fd >= 0) {
		put(fd, "signal ");
		put_number(fd, sig, 10);
		put(fd, " (");
		put(fd, sigabbrev_np(sig) != NULL ? sigabbrev_np(sig) : "?");
		put(fd, ") at 0x");
		put_number(fd, (long long)(intptr_t)info->si_addr, 16);
		put(fd, "\n");
		put_turns(fd);
		(void)close(fd);
	}
	/* The handler was for one time: now the default, which ends the process. */
	(void)raise(sig);
}

/* ---- set-up ---- */

static int
catch_signals(void)
{
	/* The sanitizers say more about a bad address than we can. */
#ifdef ANVIL_SANITIZED
	static const int fatal[] = { SIGABRT };
#else
	static const int fatal[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
#endif
	struct sigaction sa = { .sa_sigaction = on_signal,
		.sa_flags = (int)(SA_SIGINFO | SA_RESETHAND | SA_ONSTACK) };
	stack_t stack = { .ss_size = 16384 };

	/* A stack of its own: the fault may be the end of the other one. */
	stack.ss_sp = mmap(
	    NULL, stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stack.ss_sp == MAP_FAILED || sigaltstack(&stack, NULL) < 0)
		return E_SYS;
	for (size_t i = 0; i < ARRAY_LEN(fatal); i++)
		if (sigaction(fatal[i], &sa, NULL) < 0)
			return E_SYS;
	return 0;
}

int
crash_catch(const char *dir, const char *address)
{
	int n, r = io_mkdirs(dir, 0700);

	if (r < 0)
		return r;
	n = snprintf(crash.name, sizeof(crash.name), "%s.txt", address);
	if (n < 0 || (size_t)n >= sizeof(crash.name))
		return E_INVAL;
	for (char *slash = crash.name; (slash = strchr(slash, '/')) != NULL;)
		*slash = '-';
	io_close(&crash.dirfd);
	crash.dirfd = io_open_dir(AT_FDCWD, dir);
	if (crash.dirfd < 0)
		return err_from_errno(errno);
	crash.written = 0;
	base_on_bug(on_bug);
	return catch_signals();
}

int
crash_turns_json(struct buf *out)
{
	int first = 1;

	buf_add_byte(out, '[');
	for (unsigned i = 0; i < CRASH_TURNS; i++) {
		unsigned at = (crash.next + i) % CRASH_TURNS;

		if (crash.turns[at].method == NULL)
			continue;
		buf_add_str(out, first ? "{\"method\":" : ",{\"method\":");
		first = 0;
		json_text_string(out, crash.turns[at].method, strlen(crash.turns[at].method));
		buf_add_str(out, ",\"requestId\":");
		json_text_string(
		    out, crash.turns[at].request_id, strlen(crash.turns[at].request_id));
		buf_printf(out, ",\"verdict\":%d,\"us\":%u}", crash.turns[at].verdict,
		    crash.turns[at].us);
	}
	buf_add_byte(out, ']');
	return out->failed ? E_NOMEM : 0;
}
