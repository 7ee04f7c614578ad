#include "test/bench/speak.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "test/bench/report.h"
#include "test/bench/system.h"

#define PIECE_US   10000
#define PIECE_MAX  ((size_t)1 << 20)
#define COPY_BYTES ((size_t)1 << 20)
#define DRIP_US    60000
#define JITTER_US  80000

void
speak_install(const struct system *s, char ret[96])
{
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), to;

	(void)snprintf(ret, 96, "%s/bin/speak", s->dir);
	to = open(ret, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	if (from < 0 || to < 0)
		bench_die("cannot make %s", ret);
	while (sendfile(to, from, NULL, COPY_BYTES) > 0)
		;
	io_close(&from);
	io_close(&to);
}

static void
sleep_until(double us)
{
	struct timespec t = { .tv_sec = (time_t)(us / 1e6) };

	t.tv_nsec = (long)((us - (double)t.tv_sec * 1e6) * 1e3);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
		;
}

/* ${n} lines that are written now. */
static void
say(size_t n)
{
	static char text[PIECE_MAX];
	char line[SPEAK_LINE + 1];

	(void)snprintf(line, sizeof(line), "%c%0*.0f %0*d\n", SPEAK_MARK, SPEAK_DIGITS,
	    bench_now_us(), SPEAK_LINE - SPEAK_DIGITS - 3, 7);
	for (size_t i = 0; i < n; i++)
		memcpy(text + i * SPEAK_LINE, line, SPEAK_LINE);
	if (io_write_all(STDOUT_FILENO, text, n * SPEAK_LINE) < 0)
		exit(1);
}

static int
pour(long bytes_s, long seconds)
{
	size_t lines = (size_t)bytes_s / SPEAK_LINE / (size_t)(1000000 / PIECE_US);
	long pieces = seconds * (1000000 / PIECE_US);
	double begin = bench_now_us();

	if (lines == 0 || lines > PIECE_MAX / SPEAK_LINE)
		return 1;
	for (long i = 0; i < pieces; i++) {
		sleep_until(begin + (double)i * PIECE_US);
		say(lines);
	}
	return 0;
}

/* Pauses that keep no step with anybody's timer. */
static int
drip(long lines)
{
	unsigned int seed = (unsigned int)bench_now_us();
	double next = bench_now_us();

	for (long i = 0; i < lines; i++) {
		next += DRIP_US + rand_r(&seed) % JITTER_US;
		sleep_until(next);
		say(1);
	}
	return 0;
}

int
speak_main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "pour") == 0)
		return pour(strtol(argv[2], NULL, 10), strtol(argv[3], NULL, 10));
	if (argc == 3 && strcmp(argv[1], "drip") == 0)
		return drip(strtol(argv[2], NULL, 10));
	return -1;
}

double
speak_find_us(const char *text, size_t n)
{
	const char *at = memchr(text, SPEAK_MARK, n);
	double us = 0;

	if (at == NULL || (size_t)(text + n - at) < SPEAK_DIGITS + 1)
		return 0;
	for (size_t i = 1; i <= SPEAK_DIGITS; i++) {
		if (at[i] < '0' || at[i] > '9')
			return 0;
		us = us * 10 + (at[i] - '0');
	}
	return us;
}
