#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cmd/anvil-protogen/gen.h"
#include "lib/base/mem.h"

void
gen_fail(const struct gen *g, const char *fmt, ...)
{
	va_list ap;

	(void)fprintf(stderr, "anvil-protogen: %s: ", g->at);
	va_start(ap, fmt);
	(void)vfprintf(stderr, fmt, ap);
	va_end(ap);
	(void)fputc('\n', stderr);
	exit(1);
}

static void *
need(void *p)
{
	if (p == NULL) {
		(void)fputs("anvil-protogen: out of memory\n", stderr);
		exit(1);
	}
	return p;
}

void *
gen_alloc(size_t n, size_t size)
{
	return need(mem_calloc(n, size));
}

void *
gen_grow(void *items, size_t n, size_t size)
{
	unsigned char *grown = need(mem_realloc(items, (n + 1) * size));

	memset(grown + n * size, 0, size);
	return grown;
}

char *
gen_format(const char *fmt, ...)
{
	va_list ap;
	char *text = NULL;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	return need(text);
}

size_t
gen_down(struct gen *g, const char *fmt, ...)
{
	size_t len = strlen(g->at);
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(g->at + len, sizeof(g->at) - len, fmt, ap);
	va_end(ap);
	return len;
}

void
gen_up(struct gen *g, size_t len)
{
	g->at[len] = '\0';
}

static void
save(const struct gen *g, const char *suffix, struct buf *b)
{
	char *path = gen_format("%s/%s%s", g->out, g->name, suffix);
	FILE *f = fopen(path, "w");

	if (b->failed)
		need(NULL);
	if (f == NULL || fwrite(b->data, 1, b->len, f) != b->len || fclose(f) != 0) {
		perror(path);
		exit(1);
	}
	free(path);
	buf_done(b);
}

static void
banner(const struct gen *g, const char *suffix, struct buf *b)
{
	buf_printf(b, "/* build/gen/%s%s, made from proto/%s.json: never edited. */\n", g->name,
	    suffix, g->name);
}

static void
write_all(const struct gen *g)
{
	struct buf b = BUF_INIT;

	banner(g, ".h", &b);
	header_write(g, &b);
	save(g, ".h", &b);
	banner(g, ".c", &b);
	tables_write(g, &b);
	stubs_code(g, &b);
	http_code_table(g, &b);
	document_write(g, &b);
	save(g, ".c", &b);
	if (g->context != NULL) {
		banner(g, "_methods.h", &b);
		stubs_methods(g, &b);
		save(g, "_methods.h", &b);
	}
	if (g->noperations != 0) {
		banner(g, "_routes.h", &b);
		http_routes(g, &b);
		save(g, "_routes.h", &b);
	}
}

int
main(int argc, char *argv[])
{
	struct gen g = { .prefix = "" };

	if (argc != 4) {
		(void)fputs("usage: anvil-protogen DIR NAME OUT\n", stderr);
		return 2;
	}
	g.dir = argv[1];
	g.name = argv[2];
	g.out = argv[3];
	g.named = need(map_new());
	g.types = load_file(g.dir, "types");
	g.doc = strcmp(g.name, "types") == 0 ? g.types : load_file(g.dir, g.name);
	(void)gen_down(&g, "%s/%s.json: ", g.dir, g.name);
	load_all(&g);
	write_all(&g);
	return 0;
}
