#include "lib/webhook/form.h"

#include <string.h>

#include "lib/base/base.h"
#include "lib/base/enc.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

#define NAME     "payload"
#define NAME_LEN (sizeof(NAME) - 1)
#define OUT_MAX  4096

enum state { ST_PLAIN, ST_FIRST_DIGIT, ST_SECOND_DIGIT, ST_BROKEN };

struct webhook_form {
	uint32_t magic;
#define FORM_MAGIC 0x2fb603d8
	webhook_form_fn *fn;
	void *arg;
	uint8_t state;
	uint8_t digit;     /* Value of the first digit of an escape.     */
	uint8_t in_value;  /* Behind the "=" of a field.                 */
	uint8_t is_ours;   /* ... whose decoded text is to be handed on. */
	unsigned npayload; /* Fields of that name; 2: more than one.     */
	size_t nname;      /* Bytes of a name that match so far; NAME_LEN + 1: another name. */
	size_t nout;
	uint8_t out[OUT_MAX]; /* Decoded, not handed out yet. */
};

struct webhook_form *
webhook_form_new(webhook_form_fn *fn, void *arg)
{
	struct webhook_form *f = mem_alloc(sizeof(*f));

	if (f == NULL)
		return NULL;
	memset(f, 0, offsetof(struct webhook_form, out));
	f->magic = FORM_MAGIC;
	f->fn = fn;
	f->arg = arg;
	return f;
}

struct webhook_form *
webhook_form_free(struct webhook_form *f)
{
	if (f == NULL)
		return NULL;
	OBJ_CHECK(f, FORM_MAGIC);
	f->magic = 0;
	return mem_free(f);
}

static void
flush(struct webhook_form *f)
{
	if (f->nout > 0)
		f->fn(f->arg, f->out, f->nout);
	f->nout = 0;
}

static void
take_byte(struct webhook_form *f, uint8_t c)
{
	if (f->is_ours) {
		f->out[f->nout++] = c;
		if (f->nout == OUT_MAX)
			flush(f);
	} else if (!f->in_value) {
		if (f->nname < NAME_LEN && c == (uint8_t)NAME[f->nname])
			f->nname++;
		else
			f->nname = NAME_LEN + 1;
	}
}

/* The name of a field is complete: "=" or the end of the field has come. */
static void
name_ended(struct webhook_form *f)
{
	f->in_value = 1;
	if (f->nname != NAME_LEN)
		return;
	f->is_ours = f->npayload == 0;
	if (f->npayload < 2)
		f->npayload++;
}

static void
field_ended(struct webhook_form *f)
{
	if (!f->in_value)
		name_ended(f);
	f->in_value = f->is_ours = 0;
	f->nname = 0;
}

static void
take_digit(struct webhook_form *f, uint8_t c)
{
	int digit = hex_value((char)c);

	if (digit < 0) {
		f->state = ST_BROKEN;
		return;
	}
	if (f->state == ST_FIRST_DIGIT) {
		f->digit = (uint8_t)digit;
		f->state = ST_SECOND_DIGIT;
		return;
	}
	f->state = ST_PLAIN;
	take_byte(f, (uint8_t)((unsigned)f->digit << 4 | (unsigned)digit));
}

static void
take_plain(struct webhook_form *f, uint8_t c)
{
	if (c == '%')
		f->state = ST_FIRST_DIGIT;
	else if (c == '&')
		field_ended(f);
	else if (c == '=' && !f->in_value)
		name_ended(f);
	else
		take_byte(f, c == '+' ? ' ' : c);
}

void
webhook_form_feed(struct webhook_form *f, const void *data, size_t n)
{
	const uint8_t *p = data;

	OBJ_CHECK(f, FORM_MAGIC);
	for (size_t i = 0; i < n && f->state != ST_BROKEN; i++) {
		if (f->state == ST_PLAIN)
			take_plain(f, p[i]);
		else
			take_digit(f, p[i]);
	}
	flush(f);
}

int
webhook_form_end(struct webhook_form *f, const char **ret_message)
{
	OBJ_CHECK(f, FORM_MAGIC);
	if (f->state != ST_PLAIN) {
		*ret_message = "Each % of the form must be followed by two hexadecimal digits.";
		return E_PARSE;
	}
	field_ended(f);
	if (f->npayload == 1)
		return 0;
	*ret_message = f->npayload == 0 ? "The form must have a field payload."
					: "The form must not have two fields payload.";
	return E_PARSE;
}
