#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cmd/anvilctl/check.h"
#include "lib/base/err.h"

#define TEXT_MAX 1024

int
findings_init(struct findings *f)
{
	*f = (struct findings) { .arena = arena_new(), .by_key = map_new(), .look = 1 };
	return f->arena != NULL && f->by_key != NULL ? 0 : E_NOMEM;
}

void
findings_done(struct findings *f)
{
	(void)map_free(f->by_key);
	(void)arena_free(f->arena);
}

void
findings_next_look(struct findings *f)
{
	const char *key;
	void *value;

	for (size_t at = 0; map_next(f->by_key, &at, &key, &value);)
		if (((const struct finding *)value)->look != f->look)
			(void)map_remove(f->by_key, key);
	f->look++;
	f->left_out = 0;
}

/* What is found with other words is another finding: something moves. */
static struct finding *
find_or_make(struct findings *f, const struct finding *what)
{
	const char *key = arena_format(
	    f->arena, "%s|%s|%s|%s", what->code, what->place, what->subject, what->text);
	struct finding *x = key != NULL ? map_get(f->by_key, key) : NULL;

	if (key == NULL || x != NULL)
		return x;
	x = arena_alloc(f->arena, sizeof(*x));
	if (x == NULL)
		return NULL;
	*x = *what;
	x->kind = check_code(what->code);
	x->since = clock_mono();
	x->code = arena_strdup(f->arena, what->code);
	x->place = arena_strdup(f->arena, what->place);
	x->subject = arena_strdup(f->arena, what->subject);
	x->text = arena_strdup(f->arena, what->text);
	return x->code != NULL && x->place != NULL && x->subject != NULL && x->text != NULL &&
		map_set(f->by_key, key, x) == 0
	    ? x
	    : NULL;
}

static void
note(struct findings *f, const struct finding *what)
{
	struct finding *x = find_or_make(f, what);

	if (x == NULL) {
		f->failed = 1;
		return;
	}
	x->look = f->look;
	x->mended |= what->mended;
}

void
finding_add(struct findings *f, const char *code, const char *place, const char *subject,
    const char *fmt, ...)
{
	char text[TEXT_MAX];
	struct finding what = { .code = code,
		.place = place,
		.subject = subject,
		.text = text,
		.mendable = check_code(code)->remedy != NULL };
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	note(f, &what);
}

void
finding_add_own(struct findings *f, const char *place, const struct check_problem *p)
{
	note(f,
	    &(struct finding) { .code = p->code,
		.place = place,
		.own = 1,
		.subject = p->subject,
		.text = p->text,
		.mendable = p->mendable,
		.mended = p->mended });
}

void
finding_add_mended(struct findings *f, const struct finding *before)
{
	struct finding what = *before;
	const struct finding *x;

	for (size_t at = 0; (x = findings_next(f, &at)) != NULL;)
		if (strcmp(x->code, what.code) == 0 && strcmp(x->place, what.place) == 0 &&
		    strcmp(x->subject, what.subject) == 0)
			return;
	what.mended = 1;
	note(f, &what);
}

int64_t
findings_wait_ms(const struct findings *f)
{
	const struct finding *x;
	int64_t wait = 0;

	for (size_t at = 0; (x = findings_next(f, &at)) != NULL;)
		wait = max_i64(
		    wait, check_hold_ms(x->kind) - mono_diff_ms(x->since, clock_mono()));
	return wait;
}

int
findings_have(const struct findings *f, const char *code_prefix)
{
	const struct finding *x;

	for (size_t at = 0; (x = findings_next(f, &at)) != NULL;)
		if (strncmp(x->code, code_prefix, strlen(code_prefix)) == 0)
			return 1;
	return 0;
}

const struct finding *
findings_next(const struct findings *f, size_t *at)
{
	void *value;

	while (map_next(f->by_key, at, NULL, &value)) {
		const struct finding *x = value;

		if (x->look == f->look)
			return x;
	}
	return NULL;
}
