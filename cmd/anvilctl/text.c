#include "cmd/anvilctl/text.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/utf8.h"

#define SECOND_MS 1000
#define MINUTE_MS (60 * SECOND_MS)
#define HOUR_MS   (60 * MINUTE_MS)
#define DAY_MS    (24 * (int64_t)HOUR_MS)

void
text_duration(int64_t ms, char out[TEXT_SIZE])
{
	long long t = max_i64(ms, 0);

	if (t < SECOND_MS)
		(void)snprintf(out, TEXT_SIZE, "%lldms", t);
	else if (t < MINUTE_MS)
		(void)snprintf(
		    out, TEXT_SIZE, "%lld.%llds", t / SECOND_MS, t % SECOND_MS / 100);
	else if (t < HOUR_MS)
		(void)snprintf(
		    out, TEXT_SIZE, "%lldm%02llds", t / MINUTE_MS, t % MINUTE_MS / SECOND_MS);
	else if (t < DAY_MS)
		(void)snprintf(
		    out, TEXT_SIZE, "%lldh%02lldm", t / HOUR_MS, t % HOUR_MS / MINUTE_MS);
	else
		(void)snprintf(out, TEXT_SIZE, "%lldd%lldh", (long long)(t / DAY_MS),
		    t % DAY_MS / HOUR_MS);
}

void
text_bytes(int64_t n, char out[TEXT_SIZE])
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double size = (double)max_i64(n, 0) / 1024;
	size_t unit = 0;

	if (n < 1024) {
		(void)snprintf(out, TEXT_SIZE, "%lld B", (long long)max_i64(n, 0));
		return;
	}
	/* 1023.95 and more would be printed as 1024.0. */
	for (; size >= 1023.95 && unit + 1 < ARRAY_LEN(units); unit++)
		size /= 1024;
	(void)snprintf(out, TEXT_SIZE, "%.1f %s", size, units[unit]);
}

void
text_time(int64_t wall_ms, char out[TEXT_SIZE])
{
	char text[CLOCK_TEXT_SIZE];

	clock_format(wall_ms, text);
	text[10] = ' ';
	text[19] = '\0';
	(void)snprintf(out, TEXT_SIZE, "%s", text);
}

enum tone
text_tone(const char *word)
{
	static const struct {
		const char *word;
		enum tone tone;
	} tones[] = {
		{ "passed", TONE_GOOD },
		{ "up", TONE_GOOD },
		{ "ok", TONE_GOOD },
		{ "failed", TONE_BAD },
		{ "failing", TONE_BAD },
		{ "down", TONE_BAD },
		{ "degraded", TONE_BAD },
		{ "exited", TONE_BAD },
		{ "queued", TONE_WAITS },
		{ "pending", TONE_WAITS },
		{ "executable", TONE_WAITS },
		{ "starting", TONE_WAITS },
		{ "stopping", TONE_WAITS },
		{ "running", TONE_STRONG },
		{ "active", TONE_STRONG },
		{ "cancel_requested", TONE_WAITS },
		{ "canceling", TONE_WAITS },
		{ "canceled", TONE_DIM },
		{ "serve", TONE_DIM },
	};

	for (size_t i = 0; i < ARRAY_LEN(tones); i++)
		if (strcmp(tones[i].word, word) == 0)
			return tones[i].tone;
	return TONE_PLAIN;
}

const char *
text_tone_begin(enum tone tone, int color)
{
	static const char *const begins[TONE_COUNT] = {
		[TONE_PLAIN] = "",
		[TONE_GOOD] = "\033[32m",
		[TONE_BAD] = "\033[31m",
		[TONE_WAITS] = "\033[33m",
		[TONE_DIM] = "\033[2m",
		[TONE_STRONG] = "\033[1m",
	};

	return color ? begins[tone] : "";
}

const char *
text_tone_end(enum tone tone, int color)
{
	return color && tone != TONE_PLAIN ? "\033[0m" : "";
}

int
text_add_clean(struct buf *out, const char *s)
{
	size_t n = strlen(s);

	while (n > 0) {
		uint32_t cp;
		size_t len = utf8_decode(s, n, &cp);

		if (len == 0 || utf8_is_control(cp))
			buf_add_str(out, len == 0 ? UTF8_REPLACEMENT : " ");
		else
			buf_add(out, s, len);
		s += len == 0 ? 1 : len;
		n -= len == 0 ? 1 : len;
	}
	return out->failed ? E_NOMEM : 0;
}
