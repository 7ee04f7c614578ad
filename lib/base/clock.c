#include "lib/base/clock.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "lib/base/err.h"
#include "lib/base/io.h"

#define LAST_MS 253402300799999 /* 9999-12-31T23:59:59.999Z */

static _Atomic int64_t wall_shift;
static _Atomic int64_t mono_shift;

#ifdef ANVIL_FAULTS

static const _Atomic int64_t *stepped; /* NULL: no file of steps. */

static void
map_steps(void)
{
	const char *path = getenv("ANVIL_CLOCK_FILE");
	CLEANUP(io_closep) int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *p = fd < 0 ? MAP_FAILED
			 : mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);

	stepped = p != MAP_FAILED ? p : NULL;
}

static int64_t
step_ms(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	must(pthread_once(&once, map_steps) == 0);
	return stepped != NULL ? atomic_load(stepped) : 0;
}

#else

static int64_t
step_ms(void)
{
	return 0;
}

#endif

int64_t
clock_wall_ms(void)
{
	struct timespec ts;

	must(clock_gettime(CLOCK_REALTIME, &ts) == 0);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000 + atomic_load(&wall_shift) +
	    step_ms();
}

struct mono_time
clock_mono(void)
{
	struct timespec ts;

	must(clock_gettime(CLOCK_MONOTONIC, &ts) == 0);
	return (struct mono_time) { (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000 +
		atomic_load(&mono_shift) * 1000 };
}

void
clock_shift_for_test(int64_t wall_shift_ms, int64_t mono_shift_ms)
{
	atomic_store(&wall_shift, wall_shift_ms);
	atomic_store(&mono_shift, mono_shift_ms);
}

void
clock_format(int64_t wall_ms, char out[CLOCK_TEXT_SIZE])
{
	char text[64];
	struct tm tm;
	time_t sec;

	wall_ms = max_i64(0, min_i64(wall_ms, LAST_MS));
	sec = (time_t)(wall_ms / 1000);
	must(gmtime_r(&sec, &tm) != NULL);
	(void)snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ",
	    tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
	    (int)(wall_ms % 1000));
	memcpy(out, text, CLOCK_TEXT_SIZE - 1);
	out[CLOCK_TEXT_SIZE - 1] = '\0';
}

/* Reads ${n} digits; -1 when one of them is none. */
static int
digits(const char *p, int n)
{
	int v = 0;

	for (int i = 0; i < n; i++) {
		if (p[i] < '0' || p[i] > '9')
			return -1;
		v = v * 10 + (p[i] - '0');
	}
	return v;
}

int
clock_parse(const char *text, int64_t *ret_wall_ms)
{
	static const char form[] = "dddd-dd-ddTdd:dd:dd.dddZ";
	char again[CLOCK_TEXT_SIZE];
	struct tm tm = { 0 };
	int64_t ms;

	if (strlen(text) != sizeof(form) - 1)
		return E_INVAL;
	for (size_t i = 0; i < sizeof(form) - 1; i++)
		if (form[i] == 'd' ? digits(text + i, 1) < 0 : text[i] != form[i])
			return E_INVAL;
	tm.tm_year = digits(text, 4) - 1900;
	tm.tm_mon = digits(text + 5, 2) - 1;
	tm.tm_mday = digits(text + 8, 2);
	tm.tm_hour = digits(text + 11, 2);
	tm.tm_min = digits(text + 14, 2);
	tm.tm_sec = digits(text + 17, 2);
	ms = (int64_t)timegm(&tm) * 1000 + digits(text + 20, 3);
	if (ms < 0)
		return E_INVAL;
	clock_format(ms, again); /* refuses 31 February, which timegm() would move on */
	if (strcmp(again, text) != 0)
		return E_INVAL;
	*ret_wall_ms = ms;
	return 0;
}
