/*
 * Where this process's cgroups are.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/sandbox/cgroup.h"

#define LINE_SIZE 8192
#define TEXT_MAX  (1 << 20)

/* Copies the line at ${text} without its end; one that is too long is empty.  Returns the
 * next one, NULL: there is none. */
static const char *
take_line(const char *text, char line[LINE_SIZE])
{
	size_t n = strcspn(text, "\n");

	line[0] = '\0';
	if (n < LINE_SIZE) {
		memcpy(line, text, n);
		line[n] = '\0';
	}
	return text[n] == '\0' || text[n + 1] == '\0' ? NULL : text + n + 1;
}

/* The kernel writes blanks and backslashes of a path as \ooo. */
static void
unescape(char *s)
{
	char *to = s;

	while (*s != '\0') {
		int octal = s[0] == '\\';

		for (int i = 1; i <= 3 && octal; i++)
			octal = s[i] >= '0' && s[i] <= '7';
		if (octal) {
			*to++ = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
			s += 4;
		} else {
			*to++ = *s++;
		}
	}
	*to = '\0';
}

static int
has_word(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = list; at != NULL; at = strchr(at, ',')) {
		at += *at == ',';
		if (strncmp(at, word, n) == 0 && (at[n] == ',' || at[n] == '\0'))
			return 1;
	}
	return 0;
}

struct mount {
	char *root, *at, *type, *options;
};

/* id parent major:minor root at options [optional...] - type source options */
static int
split_mount(char *line, struct mount *m)
{
	char *save = NULL, *word = strtok_r(line, " ", &save);

	*m = (struct mount) { NULL, NULL, NULL, NULL };
	for (int n = 0; word != NULL; word = strtok_r(NULL, " ", &save), n++) {
		if (n == 3)
			m->root = word;
		if (n == 4)
			m->at = word;
		if (n >= 6 && strcmp(word, "-") == 0)
			break;
	}
	m->type = strtok_r(NULL, " ", &save);
	(void)strtok_r(NULL, " ", &save);
	m->options = strtok_r(NULL, " ", &save);
	if (m->options == NULL || m->root == NULL || m->at == NULL)
		return -1;
	unescape(m->root);
	unescape(m->at);
	return 0;
}

static int
is_wanted(const struct mount *m, const char *controller)
{
	if (controller == NULL)
		return strcmp(m->type, "cgroup2") == 0;
	return strcmp(m->type, "cgroup") == 0 && has_word(m->options, controller);
}

/* The path in a line `id:controllers:path`; NULL: it is another hierarchy's. */
static const char *
own_path(char *line, const char *controller)
{
	char *list = strchr(line, ':'), *path = list != NULL ? strchr(list + 1, ':') : NULL;

	if (path == NULL)
		return NULL;
	*path++ = '\0';
	list++;
	if (controller == NULL ? *list != '\0' : !has_word(list, controller))
		return NULL;
	return path;
}

/* ${path} as seen at a mount of ${root}.  NULL: it is not within. */
static const char *
beneath(const char *path, const char *root)
{
	size_t n = strcmp(root, "/") == 0 ? 0 : strlen(root);

	/* A process outside of its cgroup namespace: "/../x". */
	if (strncmp(path, "/..", 3) == 0 || strncmp(path, root, n) != 0)
		return NULL;
	if (path[n] != '/' && path[n] != '\0')
		return NULL;
	return strcmp(path + n, "/") == 0 ? "" : path + n;
}

int
cgroup_path(
    const char *mountinfo, const char *self, const char *controller, char *out, size_t size)
{
	char line[LINE_SIZE], mount_line[LINE_SIZE];
	const char *path = NULL;
	struct mount m;

	while (self != NULL && path == NULL) {
		self = take_line(self, line);
		path = own_path(line, controller);
	}
	while (path != NULL && mountinfo != NULL) {
		const char *rest;

		mountinfo = take_line(mountinfo, mount_line);
		if (split_mount(mount_line, &m) < 0 || !is_wanted(&m, controller) ||
		    (rest = beneath(path, m.root)) == NULL)
			continue;
		return snprintf(out, size, "%s%s", m.at, rest) < (int)size ? 0 : E_NOENT;
	}
	return E_NOENT;
}

int
cgroup_place_read(struct cgroup_place *p)
{
	int r = io_read_file(AT_FDCWD, "/proc/self/mountinfo", TEXT_MAX, &p->mountinfo);

	if (r == 0)
		r = io_read_file(AT_FDCWD, "/proc/self/cgroup", TEXT_MAX, &p->self);
	if (r == 0 && (buf_cstr(&p->mountinfo) == NULL || buf_cstr(&p->self) == NULL))
		r = E_NOMEM;
	return r == 0 || r == E_NOMEM ? r : E_NOENT;
}

void
cgroup_place_done(struct cgroup_place *p)
{
	buf_done(&p->mountinfo);
	buf_done(&p->self);
}

int
cgroup_find(struct cgroup_place *p, const char *controller, char *out, size_t size)
{
	const char *mountinfo = buf_cstr(&p->mountinfo), *self = buf_cstr(&p->self);

	return mountinfo == NULL || self == NULL
	    ? E_NOENT
	    : cgroup_path(mountinfo, self, controller, out, size);
}
