#include "cmd/anvilctl/manifest.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "lib/base/base.h"
#include "lib/base/clock.h"
#include "lib/base/enc.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/json_text.h"
#include "lib/base/mem.h"
#include "lib/wire/wire.h"

#define MANIFEST_MAX_BYTES ((size_t)256 << 20)
#define MANIFEST_DEPTH     4

struct manifest *
manifest_new(void)
{
	struct manifest *m = mem_calloc(1, sizeof(*m));

	if (m == NULL)
		return NULL;
	m->arena = arena_new();
	m->version = base_version();
	m->created_at_ms = clock_wall_ms();
	return m->arena != NULL ? m : manifest_free(m);
}

struct manifest *
manifest_free(struct manifest *m)
{
	if (m == NULL)
		return NULL;
	(void)arena_free(m->arena);
	return mem_free(m);
}

int
manifest_add(struct manifest *m, const char *path, const struct file_facts *facts)
{
	void *rows = m->files;
	char *copy = arena_strdup(m->arena, path);
	int r = copy != NULL
	    ? arena_list_grow(m->arena, &rows, m->nfiles, &m->files_cap, sizeof(*m->files))
	    : E_NOMEM;

	if (r < 0)
		return r;
	m->files = rows;
	m->files[m->nfiles++] = (struct manifest_file) { copy, *facts };
	return 0;
}

int
manifest_add_gap(struct manifest *m, const char *run_id, const char *message)
{
	void *rows = m->gaps;
	struct manifest_gap gap = { arena_strdup(m->arena, run_id),
		arena_strdup(m->arena, message) };
	int r = gap.run_id != NULL && gap.message != NULL
	    ? arena_list_grow(m->arena, &rows, m->ngaps, &m->gaps_cap, sizeof(*m->gaps))
	    : E_NOMEM;

	if (r < 0)
		return r;
	m->gaps = rows;
	m->gaps[m->ngaps++] = gap;
	return 0;
}

int
manifest_add_key(struct manifest *m, int64_t version)
{
	void *rows = m->keys;
	int r = arena_list_grow(m->arena, &rows, m->nkeys, &m->keys_cap, sizeof(*m->keys));

	if (r < 0)
		return r;
	m->keys = rows;
	m->keys[m->nkeys++] = version;
	return 0;
}

int64_t
manifest_bytes(const struct manifest *m)
{
	int64_t n = 0;

	for (size_t i = 0; i < m->nfiles; i++)
		n += m->files[i].facts.bytes;
	return n;
}

size_t
manifest_count(const struct manifest *m, enum file_role role)
{
	size_t n = 0;

	for (size_t i = 0; i < m->nfiles; i++)
		n += file_role_of(m->files[i].path) == role;
	return n;
}

int64_t
manifest_schema(const struct manifest *m, enum file_role role)
{
	int64_t newest = 0;

	for (size_t i = 0; i < m->nfiles; i++)
		if (file_role_of(m->files[i].path) == role)
			newest = max_i64(newest, m->files[i].facts.version);
	return newest;
}

/* ---- writing ---- */

static void
put_files(const struct manifest *m, struct buf *b)
{
	for (size_t i = 0; i < m->nfiles; i++) {
		const struct manifest_file *f = &m->files[i];
		enum file_role role = file_role_of(f->path);

		/* A path of a role has no character that JSON would escape. */
		buf_printf(b, "%s\n    {\"path\": \"%s\", \"role\": \"%s\", \"bytes\": %lld, ",
		    i > 0 ? "," : "", f->path, file_role_name(role), (long long)f->facts.bytes);
		if (role != FILE_LOG)
			buf_printf(b, "\"schema\": %lld, ", (long long)f->facts.version);
		buf_printf(b, "\"sha256\": \"%s\"}", f->facts.sha256);
	}
}

static void
put_gaps(const struct manifest *m, struct buf *b)
{
	for (size_t i = 0; i < m->ngaps; i++) {
		const struct manifest_gap *g = &m->gaps[i];

		buf_printf(
		    b, "%s\n    {\"runId\": \"%s\", \"why\": ", i > 0 ? "," : "", g->run_id);
		(void)json_text_string(b, g->message, strlen(g->message));
		(void)buf_add_byte(b, '}');
	}
}

int
manifest_write(const struct manifest *m, int dirfd)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	char at[CLOCK_TEXT_SIZE];

	clock_format(m->created_at_ms, at);
	buf_printf(&b, "{\n  \"format\": %d,\n  \"anvil\": \"%s\",\n  \"createdAt\": \"%s\",\n",
	    MANIFEST_FORMAT, m->version, at);
	buf_add_str(&b, "  \"schemas\": {");
	for (enum file_role role = 0; role < FILE_LOG; role++)
		buf_printf(&b, "%s\"%s\": %lld", role > 0 ? ", " : "", file_role_name(role),
		    (long long)manifest_schema(m, role));
	buf_add_str(&b, "},\n  \"keys\": [");
	for (size_t i = 0; i < m->nkeys; i++)
		buf_printf(&b, "%s%lld", i > 0 ? ", " : "", (long long)m->keys[i]);
	buf_add_str(&b, "],\n  \"leftOut\": [");
	put_gaps(m, &b);
	buf_add_str(&b, "],\n  \"files\": [");
	put_files(m, &b);
	buf_add_str(&b, "\n  ]\n}\n");
	return b.failed ? E_NOMEM : io_write_file(dirfd, MANIFEST_NAME, b.data, b.len, 0600);
}

/* ---- reading ---- */

static int PRINTF_LIKE(2, 3) bad(char why[FILES_WHY_SIZE], const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(why, FILES_WHY_SIZE, fmt, ap);
	va_end(ap);
	return E_INVAL;
}

static int
read_file(struct manifest *m, const json_t *row, size_t i, char why[FILES_WHY_SIZE])
{
	const char *path = json_string_value(json_object_get(row, "path"));
	const char *role_name = json_string_value(json_object_get(row, "role"));
	const char *sha = json_string_value(json_object_get(row, "sha256"));
	const json_t *bytes = json_object_get(row, "bytes");
	enum file_role role = path != NULL ? file_role_of(path) : FILE_ROLE_COUNT;
	struct file_facts facts = { .bytes = json_integer_value(bytes),
		.version = json_integer_value(json_object_get(row, "schema")) };

	if (role == FILE_ROLE_COUNT || role_name == NULL ||
	    strcmp(role_name, file_role_name(role)) != 0 || !json_is_integer(bytes) ||
	    facts.bytes < 0 || facts.version < 0 || sha == NULL ||
	    !hex_is_lower(sha, SHA256_HEX_SIZE - 1))
		return bad(why, "entry %zu of \"files\" is no file of a backup", i + 1);
	memcpy(facts.sha256, sha, sizeof(facts.sha256));
	return manifest_add(m, path, &facts);
}

static int
read_lists(struct manifest *m, const json_t *j, char why[FILES_WHY_SIZE])
{
	const json_t *files = json_object_get(j, "files"), *keys = json_object_get(j, "keys");
	const json_t *gaps = json_object_get(j, "leftOut"), *row;
	size_t i;
	int r = 0;

	if (!json_is_array(files) || !json_is_array(keys) || !json_is_array(gaps))
		return bad(why, "\"files\", \"keys\" or \"leftOut\" is missing");
	for (i = 0; r == 0 && (row = json_array_get(files, i)) != NULL; i++)
		r = read_file(m, row, i, why);
	for (i = 0; r == 0 && (row = json_array_get(keys, i)) != NULL; i++)
		r = json_is_integer(row) ? manifest_add_key(m, json_integer_value(row))
					 : bad(why, "a version of \"keys\" is no number");
	for (i = 0; r == 0 && (row = json_array_get(gaps, i)) != NULL; i++) {
		const char *run_id = json_string_value(json_object_get(row, "runId"));
		const char *message = json_string_value(json_object_get(row, "why"));

		r = run_id != NULL && message != NULL
		    ? manifest_add_gap(m, run_id, message)
		    : bad(why, "an entry of \"leftOut\" names no run");
	}
	return r;
}

static int
read_head(struct manifest *m, const json_t *j, char why[FILES_WHY_SIZE])
{
	const json_t *format = json_object_get(j, "format");
	const char *version = json_string_value(json_object_get(j, "anvil"));
	const char *at = json_string_value(json_object_get(j, "createdAt"));

	if (!json_is_integer(format) || json_integer_value(format) < 1)
		return bad(why, "\"format\" is missing");
	if (json_integer_value(format) > MANIFEST_FORMAT) {
		(void)bad(why, "its format %lld is that of a newer anvil (%s)",
		    (long long)json_integer_value(format), version != NULL ? version : "?");
		return E_NEWER;
	}
	if (version == NULL || at == NULL || clock_parse(at, &m->created_at_ms) < 0)
		return bad(why, "\"anvil\" or \"createdAt\" is missing");
	m->version = arena_strdup(m->arena, version);
	return m->version != NULL ? 0 : E_NOMEM;
}

int
manifest_read(int dirfd, struct manifest **ret, char why[FILES_WHY_SIZE])
{
	CLEANUP(manifest_freep) struct manifest *m = manifest_new();
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	CLEANUP(json_unrefp) json_t *j = NULL;
	int r = m != NULL ? io_read_file(dirfd, MANIFEST_NAME, MANIFEST_MAX_BYTES, &text)
			  : E_NOMEM;

	(void)snprintf(why, FILES_WHY_SIZE, "%s", r == 0 ? "out of memory" : err_text(r));
	if (r == 0)
		r = json_text_parse(text.data != NULL ? (const char *)text.data : "", text.len,
		    MANIFEST_DEPTH, &j);
	if (r == E_PARSE || r == E_DEEP || (r == 0 && !json_is_object(j)))
		return bad(why, "it is no JSON object of a manifest");
	if (r == 0)
		r = read_head(m, j, why);
	if (r == 0)
		r = read_lists(m, j, why);
	if (r == 0)
		*ret = TAKE_PTR(m);
	return r;
}
