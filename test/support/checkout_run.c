#include "test/support/checkout_run.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/io.h"

#define CONFINE                                                   \
	"export HOME=%s GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=n " \
	"GIT_AUTHOR_EMAIL=n@example.com GIT_COMMITTER_NAME=n "    \
	"GIT_COMMITTER_EMAIL=n@example.com GIT_CONFIG_COUNT=2 "   \
	"GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*' " \
	"GIT_CONFIG_KEY_1=core.safecrlf GIT_CONFIG_VALUE_1=false; cd %s; set -e; "

static char *__attribute__((format(printf, 2, 0)))
command_format(const struct checkout_place *p, const char *fmt, va_list ap)
{
	struct buf b = BUF_INIT;
	char text[4096];

	(void)vsnprintf(text, sizeof(text), fmt, ap);
	(void)buf_printf(&b, CONFINE, p->base, p->src);
	(void)buf_add_str(&b, text);
	return buf_take_cstr(&b);
}

void
checkout_sh(const struct checkout_place *p, const char *fmt, ...)
{
	va_list ap;
	char *command;
	int r;

	va_start(ap, fmt);
	command = command_format(p, fmt, ap);
	va_end(ap);
	must(command != NULL);
	r = system(command);
	if (r != 0)
		(void)fprintf(stderr, "failed: %s\n", command);
	must(r == 0);
	free(command);
}

const char *
checkout_sh_line(const struct checkout_place *p, const char *fmt, ...)
{
	static char line[1024];
	va_list ap;
	char *command;
	FILE *f;

	va_start(ap, fmt);
	command = command_format(p, fmt, ap);
	va_end(ap);
	must(command != NULL);
	f = popen(command, "r");
	must(f != NULL);
	line[0] = '\0';
	if (fgets(line, sizeof(line), f) == NULL)
		line[0] = '\0';
	line[strcspn(line, "\n")] = '\0';
	while (fgetc(f) != EOF)
		continue;
	(void)pclose(f);
	free(command);
	return line;
}

void
checkout_place_make(struct checkout_place *p)
{
	(void)snprintf(p->base, sizeof(p->base), "/tmp/anvil-checkout-XXXXXX");
	must(mkdtemp(p->base) != NULL);
	(void)snprintf(p->src, sizeof(p->src), "%s/src", p->base);
	(void)snprintf(p->url, sizeof(p->url), "file://%s", p->src);
	(void)snprintf(p->mirror, sizeof(p->mirror), "%s/cache/p.git", p->base);
	(void)snprintf(p->lock, sizeof(p->lock), "%s/cache/p.lock", p->base);
	(void)snprintf(p->workspace, sizeof(p->workspace), "%s/ws", p->base);
	must(mkdir(p->src, 0755) == 0);
	checkout_sh(p, "git init -q -b main .");
}

void
checkout_place_remove(struct checkout_place *p)
{
	char command[256];

	(void)snprintf(
	    command, sizeof(command), "chmod -R u+rwx %s; rm -rf %s", p->base, p->base);
	must(system(command) == 0);
}

void
checkout_run_init(struct checkout_run *r, const struct checkout_place *p)
{
	checkout_run_done(r);
	memset(r, 0, sizeof(*r));
	r->req.mirror = p->mirror;
	r->req.lock = p->lock;
	r->req.workspace = p->workspace;
	r->req.url = p->url;
	r->req.branch = "main";
	r->req.config = ".anvil.yml";
	r->req.allow_local = 1;
	r->depth = 1;
	r->leave_after = -1;
}

void
checkout_run_done(struct checkout_run *r)
{
	buf_done(&r->lines);
	buf_done(&r->text);
}

static void
keep_text(struct checkout_run *r, const struct checkout_message *m)
{
	buf_reset(&r->text);
	must(buf_add(&r->text, m->text, m->text_len + 1) == 0);
	r->text.len--;
}

/* Takes one message in and puts the answer to it into ${out}. */
static void
on_message(struct checkout_run *r, const struct checkout_message *m, struct buf *out)
{
	switch (m->kind) {
	case CHECKOUT_LINE:
		must(
		    buf_printf(&r->lines, "%s\n", m->text) == 0 && buf_cstr(&r->lines) != NULL);
		break;
	case CHECKOUT_COMMIT:
		r->committed++;
		memcpy(r->sha, m->sha, sizeof(r->sha));
		must(checkout_put_go_on(out) == 0);
		break;
	case CHECKOUT_CONFIG:
		r->configured++;
		r->config = m->config;
		r->size = m->size;
		keep_text(r, m);
		must(checkout_put_workspace(out, r->depth) == 0);
		break;
	case CHECKOUT_DONE:
		r->done++;
		r->received = m->size;
		r->nfiles = m->nfiles;
		break;
	case CHECKOUT_FAILED:
		r->failed++;
		r->failure = m->failure;
		keep_text(r, m);
		break;
	}
}

static void
converse(struct checkout_run *r, int to, int from)
{
	struct checkout_decoder d;
	struct checkout_message m;
	struct buf out = BUF_INIT;
	char bytes[4096];
	ssize_t n;

	checkout_decoder_init(&d);
	must(checkout_put_request(&out, &r->req) == 0);
	/* A child that is gone has said why, or its status does. */
	(void)io_write_all(to, out.data, out.len);
	while (to >= 0 && (n = read(from, bytes, sizeof(bytes))) > 0) {
		must(checkout_decoder_feed(&d, bytes, (size_t)n) == 0);
		while (to >= 0 && checkout_decoder_next(&d, &m) == 1) {
			buf_reset(&out);
			on_message(r, &m, &out);
			if ((int)m.kind == r->leave_after)
				io_close(&to);
			else if (out.len != 0)
				(void)io_write_all(to, out.data, out.len);
		}
	}
	io_close(&to);
	buf_done(&out);
	checkout_decoder_done(&d);
}

void
checkout_run_go(struct checkout_run *r, const struct checkout_place *p)
{
	int request[2], result[2], status;
	pid_t pid;

	checkout_sh(
	    p, "chmod -R u+rwx %s 2>/dev/null || true; rm -rf %s", p->workspace, p->workspace);
	must(pipe(request) == 0 && pipe(result) == 0);
	pid = fork();
	if (pid == 0) {
		(void)close(request[1]);
		(void)close(result[0]);
		status = checkout_child_main(request[0], result[1]);
		if (r->ends_at_once)
			_exit(status);
		exit(status);
	}
	(void)close(request[0]);
	(void)close(result[1]);
	converse(r, request[1], result[0]);
	(void)close(result[0]);
	must(waitpid(pid, &r->status, 0) == pid);
}
