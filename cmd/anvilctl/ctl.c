#include "cmd/anvilctl/ctl.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gen/actor.h"
#include "gen/ingress.h"
#include "gen/project.h"
#include "gen/run.h"
#include "gen/supervisor.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/config/config.h"

#define DEFAULT_CONFIG "/etc/anvil/anvil.yml"

void
ctl_init(struct ctl *ctl, const struct args *args)
{
	const char *term = getenv("TERM");

	*ctl = (struct ctl) {
		.globals = args->globals,
		.json = args->globals[GLOBAL_JSON] != NULL,
		.color = isatty(STDOUT_FILENO) && getenv("NO_COLOR") == NULL && term != NULL &&
		    strcmp(term, "dumb") != 0,
		.deadline_ms = CTL_DEADLINE_MS,
		.dirfd = -1,
	};
}

void
ctl_done(struct ctl *ctl)
{
	ctl->client = client_free(ctl->client);
	io_close(&ctl->dirfd);
	ctl->runtime_dir = mem_free(ctl->runtime_dir);
}

int
ctl_fail(const char *fmt, ...)
{
	va_list ap;

	(void)fflush(stdout);
	(void)fputs("anvilctl: ", stderr);
	va_start(ap, fmt);
	(void)vfprintf(stderr, fmt, ap);
	va_end(ap);
	(void)fputc('\n', stderr);
	return CTL_REFUSED;
}

int
ctl_fail_nomem(void)
{
	return ctl_fail("%s", err_text(E_NOMEM));
}

/* ---- the runtime directory ---- */

/* Copies what the configuration says.  0 or a status. */
static int
from_config(const char *path, char **ret_dir)
{
	CLEANUP(buf_done) struct buf problems = BUF_INIT;
	CLEANUP(config_freep) struct config *config = NULL;
	int r = config_load(path, &problems, &config);

	if (r < 0) {
		(void)ctl_fail("%s\nGive the runtime directory with -d DIR, or another "
			       "configuration with -c FILE.",
		    problems.len > 0 ? buf_cstr(&problems) : err_text(r));
		return CTL_UNREACHABLE;
	}
	*ret_dir = mem_strdup(config->runtime_dir);
	return *ret_dir != NULL ? 0 : ctl_fail_nomem();
}

static int
find_directory(const char *const *globals, char **ret_dir)
{
	const char *dir = globals[GLOBAL_DIR], *config = globals[GLOBAL_CONFIG];

	if (dir == NULL && config == NULL)
		dir = getenv("ANVIL_RUNTIME_DIR");
	if (dir != NULL && dir[0] != '\0') {
		*ret_dir = mem_strdup(dir);
		return *ret_dir != NULL ? 0 : ctl_fail_nomem();
	}
	if (config == NULL && access(DEFAULT_CONFIG, F_OK) == 0)
		config = DEFAULT_CONFIG;
	return from_config(config, ret_dir);
}

/* Root acts as the owner: the actors answer to their own user, and we hear nobody else. */
static int
become_owner(int dirfd, const char *dir)
{
	struct stat st;

	if (geteuid() != 0)
		return 0;
	if (fstat(dirfd, &st) < 0 ||
	    (st.st_uid != 0 &&
		(setgroups(0, NULL) < 0 || setresgid(st.st_gid, st.st_gid, st.st_gid) < 0 ||
		    setresuid(st.st_uid, st.st_uid, st.st_uid) < 0))) {
		(void)ctl_fail("cannot become the owner of %s: %s", dir, strerror(errno));
		return CTL_UNREACHABLE;
	}
	return 0;
}

int
ctl_find(struct ctl *ctl)
{
	int r;

	if (ctl->dirfd >= 0)
		return 0;
	r = find_directory(ctl->globals, &ctl->runtime_dir);
	if (r != 0)
		return r;
	ctl->dirfd = open(ctl->runtime_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (ctl->dirfd < 0) {
		(void)ctl_fail("runtime directory %s: %s\nIs anvild running?  Name its runtime "
			       "directory with -d DIR, or its configuration with -c FILE.",
		    ctl->runtime_dir, strerror(errno));
		return CTL_UNREACHABLE;
	}
	return 0;
}

int
ctl_open(struct ctl *ctl)
{
	int r;

	if (ctl->client != NULL)
		return 0;
	r = ctl_find(ctl);
	if (r == 0)
		r = become_owner(ctl->dirfd, ctl->runtime_dir);
	if (r != 0)
		return r;
	ctl->client = client_new(ctl->dirfd);
	return ctl->client != NULL ? 0 : ctl_fail_nomem();
}

/* ---- calls ---- */

/* The method whose parameters have that type: no two share one. */
static const struct rpc_contract *
find_contract(const struct codec_type *params_type)
{
	const struct {
		const struct rpc_contract *rows;
		size_t n;
	} tables[] = {
		{ actor_contract, actor_contract_count },
		{ ingress_contract, ingress_contract_count },
		{ project_contract, project_contract_count },
		{ run_contract, run_contract_count },
		{ supervisor_contract, supervisor_contract_count },
	};

	for (size_t i = 0; i < ARRAY_LEN(tables); i++)
		for (size_t k = 0; k < tables[i].n; k++)
			if (tables[i].rows[k].params == params_type)
				return &tables[i].rows[k];
	base_bug(__FILE__, __LINE__, "a method that no contract has");
	return NULL;
}

int
ctl_try(struct ctl *ctl, const char *to, const struct codec_type *params_type,
    const void *params, void *ret_result)
{
	const struct rpc_contract *m = find_contract(params_type);

	must(ctl->client != NULL);
	return client_call_as(
	    ctl->client, to, m, params, ctl->deadline_ms, &ctl->reply, ret_result);
}

int
ctl_notify(
    struct ctl *ctl, const char *to, const struct codec_type *params_type, const void *params)
{
	return client_notify_as(ctl->client, to, find_contract(params_type), params);
}

static void
print_issues(const json_t *data)
{
	const json_t *issues = json_object_get(data, "issues"), *issue;
	size_t i;

	json_array_foreach (issues, i, issue) {
		const char *path = json_string_value(json_object_get(issue, "path"));
		const char *expected = json_string_value(json_object_get(issue, "expected"));
		const char *message = json_string_value(json_object_get(issue, "message"));

		(void)fprintf(stderr, "  %s: expected %s%s%s\n",
		    path != NULL && path[0] != '\0' ? path : "parameters",
		    expected != NULL ? expected : "something else", message != NULL ? ": " : "",
		    message != NULL ? message : "");
	}
}

/* A supervisor holds this for its whole life, whatever sockets one that was killed has left. */
static int
anvild_runs(const struct ctl *ctl)
{
	CLEANUP(io_closep)
	int fd = openat(ctl->dirfd, "anvild.lock", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return errno != ENOENT;
	return flock(fd, LOCK_SH | LOCK_NB) < 0;
}

/* ${err} is E_NOENT or E_LINK. */
static void
explain_silence(const struct ctl *ctl, const char *to, const char *socket, int err)
{
	if (!anvild_runs(ctl))
		(void)ctl_fail(
		    "anvild does not run: %s %s/%s\nStart it: `anvild -c FILE`, or `systemctl "
		    "start anvild` where it is a service.  Another runtime directory: -d DIR.",
		    err == E_NOENT ? "there is no" : "nobody listens on", ctl->runtime_dir,
		    socket);
	else if (err == E_NOENT)
		(void)ctl_fail("%s is not running: no socket %s in %s\n`anvilctl ps` lists who "
			       "is.  Another runtime directory: -d DIR.",
		    to, socket, ctl->runtime_dir);
	else
		(void)ctl_fail(
		    "%s does not answer on %s/%s; it is being restarted: try again\nWhen that "
		    "lasts: `anvilctl health`.",
		    to, ctl->runtime_dir, socket);
}

static int
explain_unreachable(const struct ctl *ctl, const char *to, int err)
{
	char socket[RPC_ADDRESS_SIZE + 8] = "?";

	(void)link_socket_name(to, socket);
	switch (err) {
	case E_INVAL:
		(void)ctl_fail(
		    "\"%s\" is no address of an actor; `anvilctl ps` lists them", to);
		return CTL_REFUSED;
	case E_NOENT:
	case E_LINK: explain_silence(ctl, to, socket, err); break;
	case E_DENIED:
		(void)ctl_fail("%s belongs to another user; use that user, or root", to);
		break;
	case E_PROTOCOL:
		(void)ctl_fail("%s speaks another protocol than anvilctl %s; use the anvilctl "
			       "that was installed with it",
		    to, base_version());
		break;
	default: (void)ctl_fail("cannot reach %s: %s", to, err_text(err)); break;
	}
	return CTL_UNREACHABLE;
}

/* A store may be out for longer than anybody tries. */
static const char *
what_helps(int err)
{
	if (err == E_STORAGE || err == E_CORRUPT || err == E_FULL)
		return "; `anvilctl health` names the cause and the remedy";
	return err_retryable(err) ? "; try again" : "";
}

int
ctl_explain(struct ctl *ctl, const char *to, int err)
{
	const struct client_reply *reply = &ctl->reply;

	if (err == 0)
		return 0;
	if (!reply->reached)
		return explain_unreachable(ctl, to, err);
	if (err == E_LINK || err == E_DEADLINE) {
		(void)ctl_fail("%s: %s; whether it was done is not known", to,
		    reply->message != NULL ? reply->message : err_text(err));
		return CTL_UNREACHABLE;
	}
	(void)ctl_fail("%s: %s%s", to, reply->message != NULL ? reply->message : err_text(err),
	    what_helps(err));
	print_issues(reply->data);
	return CTL_REFUSED;
}

/* ---- output ---- */

static int
print_buf(const struct buf *b)
{
	if (b->failed)
		return ctl_fail_nomem();
	if (b->len > 0 && fwrite(b->data, 1, b->len, stdout) != b->len)
		return ctl_fail("standard output: %s", strerror(errno));
	return CTL_OK;
}

int
ctl_print_json(const struct ctl *ctl, const json_t *j)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;

	(void)json_text_dump(&text, j != NULL ? j : ctl->reply.result);
	(void)buf_add_byte(&text, '\n');
	return print_buf(&text);
}

int
ctl_print_member(const struct ctl *ctl, const char *name)
{
	return ctl_print_json(ctl, json_object_get(ctl->reply.result, name));
}

int
ctl_print_table(const struct ctl *ctl, const struct table *t, const char *empty)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;

	if (t == NULL || table_render(t, ctl->color, &text) < 0)
		return ctl_fail_nomem();
	if (table_nrows(t) == 0)
		(void)fprintf(stderr, "%s\n", empty);
	return print_buf(&text);
}

void
ctl_print_tone(const struct ctl *ctl, enum tone tone, const char *text)
{
	CLEANUP(buf_done) struct buf clean = BUF_INIT;

	(void)text_add_clean(&clean, text);
	(void)printf("%s%s%s", text_tone_begin(tone, ctl->color),
	    clean.len > 0 ? buf_cstr(&clean) : "", text_tone_end(tone, ctl->color));
}
