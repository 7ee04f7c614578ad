/*
 * The checkout child: one request, the phases of checkout.h in their order, one last word.
 *
 * The process holds the project's repository token from the request until no fetch can
 * follow, and nothing else that is secret: it was forked before there were keys.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/crash.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/checkout/co.h"

#define SYSTEM_CERTIFICATES "/etc/ssl/certs/ca-certificates.crt"

/* ---- phases ------------------------------------------------------------------------- */

static int
phase_commit(struct co *co)
{
	int r = co_mirror_open(co);

	if (r == 0)
		r = co_fetch(co);
	return r < 0 ? r : co_commit_resolve(co);
}

/* Runs ${phase}; when it meets damaged objects, once more with a new mirror. */
static int
once_anew(struct co *co, int (*phase)(struct co *co))
{
	int r = phase(co);

	if (r != E_CORRUPT || co->anew || co->fresh)
		return r;
	co->anew = 1;
	co_line(co, "The mirror is damaged; fetching everything.");
	r = co_mirror_discard(co);
	if (r == 0)
		r = phase_commit(co);
	if (r == 0 && phase != phase_commit)
		r = phase(co);
	return r;
}

static void
wipe_token(struct co *co)
{
	/* The request is ours, the const is for its readers. */
	if (co->req.token != NULL)
		mem_wipe((char *)(uintptr_t)co->req.token, strlen(co->req.token));
	co->req.token = NULL;
}

static int
receive_depth(struct co *co)
{
	CLEANUP(buf_done) struct buf body = BUF_INIT;
	int r = co_receive(co, CO_WORKSPACE, &body);

	if (r == 0 && body.len != 5)
		r = E_FRAME;
	if (r < 0)
		return r;
	co->depth = (uint32_t)body.data[1] << 24 | (uint32_t)body.data[2] << 16 |
	    (uint32_t)body.data[3] << 8 | (uint32_t)body.data[4];
	return 0;
}

static int
receive_go_on(struct co *co)
{
	CLEANUP(buf_done) struct buf body = BUF_INIT;

	return co_receive(co, CO_GO_ON, &body);
}

static int
set_certificates(struct co *co)
{
	const char *file = co->req.ca_file;

	if (strcmp(co->origin.scheme, "https") != 0)
		return 0;
	if (file == NULL || *file == '\0')
		file = SYSTEM_CERTIFICATES;
	return git_libgit2_opts(GIT_OPT_SET_SSL_CERT_LOCATIONS, file, NULL) < 0
	    ? co_fail_reason(co, "certificates of %s cannot be read", file)
	    : 0;
}

static int
run_phases(struct co *co)
{
	int r = co_origin_check(co);

	if (r == 0 && co_stream_confine(&co->origin) < 0)
		r = co_fail_git(co);
	if (r == 0)
		r = set_certificates(co);
	if (r == 0)
		r = co_mirror_lock(co);
	CRASH_POINT("checkout_locked");
	if (r == 0)
		r = once_anew(co, phase_commit);
	CRASH_POINT("checkout_fetched");
	if (r == 0)
		r = co_send_commit(co);
	if (r == 0)
		r = receive_go_on(co);
	if (r == 0)
		r = once_anew(co, co_config_send);
	if (r == 0)
		r = receive_depth(co);
	if (r < 0)
		return r;
	CRASH_POINT("checkout_before_workspace");
	(void)umask(022); /* What steps see; the mirror is nobody else's. */
	r = once_anew(co, co_workspace_write);
	wipe_token(co);
	CRASH_POINT("checkout_workspace_made");
	return r < 0 ? r : co_send_done(co);
}

/* ---- process ------------------------------------------------------------------------ */

static int
keep_only(int a, int b)
{
	int low = a < b ? a : b, high = a < b ? b : a;

	if (low < 3 || low == high)
		return E_INVAL;
	if (low > 3 && close_range(3, (unsigned int)low - 1, 0) < 0)
		return E_SYS;
	if (high - low > 1 && close_range((unsigned int)low + 1, (unsigned int)high - 1, 0) < 0)
		return E_SYS;
	return close_range((unsigned int)high + 1, ~0U, 0) < 0 ? E_SYS : 0;
}

static int
confine_process(void)
{
	sigset_t none;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0)
		return E_SYS;
	for (int sig = 1; sig < NSIG; sig++)
		(void)signal(sig, SIG_DFL);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)sigemptyset(&none);
	return sigprocmask(SIG_SETMASK, &none, NULL) < 0 ? E_SYS : 0;
}

/* libgit2's start reads the system's 140 certificates, 5 ms that only https needs.  With no
 * descriptor to be had it goes without them; set_certificates() loads what the URL needs. */
static int
init_without_files(void)
{
	struct rlimit was, none;
	int r;

	if (getrlimit(RLIMIT_NOFILE, &was) < 0)
		return E_SYS;
	none = was;
	none.rlim_cur = 0;
	if (setrlimit(RLIMIT_NOFILE, &none) < 0)
		return E_SYS;
	r = git_libgit2_init();
	if (setrlimit(RLIMIT_NOFILE, &was) < 0)
		return E_SYS;
	return r < 0 ? E_NOMEM : 0;
}

/* Nothing of the machine's or a user's git configuration counts here. */
static int
library_start(void)
{
	static const int levels[] = { GIT_CONFIG_LEVEL_SYSTEM, GIT_CONFIG_LEVEL_XDG,
		GIT_CONFIG_LEVEL_GLOBAL, GIT_CONFIG_LEVEL_PROGRAMDATA };

	int r = init_without_files();

	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_LEN(levels); i++)
		if (git_libgit2_opts(GIT_OPT_SET_SEARCH_PATH, levels[i], "") < 0)
			return E_NOMEM;
	(void)git_libgit2_opts(GIT_OPT_SET_TEMPLATE_PATH, "");
	(void)git_libgit2_opts(GIT_OPT_SET_OWNER_VALIDATION, 0);
	(void)git_libgit2_opts(GIT_OPT_ENABLE_FSYNC_GITDIR, 0);
	/* Every object is read once: a cache of them would only grow. */
	(void)git_libgit2_opts(GIT_OPT_ENABLE_CACHING, 0);
	return 0;
}

static int
serve(struct co *co)
{
	int r = co_receive(co, CO_REQUEST, &co->request);

	if (r == 0)
		r = checkout_get_request(co->request.data, co->request.len, &co->req);
	if (r == 0) {
		co->pinned = co->req.commit != NULL;
		r = run_phases(co);
	}
	wipe_token(co);
	if (r < 0 && co->text[0] == '\0')
		(void)co_fail(co, CHECKOUT_INTERNAL, "checkout: %s", err_text(r));
	/* A parent that has closed its end does not want to hear it. */
	if (r < 0)
		(void)co_send_failed(co);
	return r;
}

int
checkout_child_main(int request_fd, int result_fd)
{
	struct co co = { .in_fd = request_fd, .out_fd = result_fd, .lock_fd = -1 };
	int r = keep_only(request_fd, result_fd);

	co.line_at = clock_mono();
	if (r == 0)
		r = confine_process();
	(void)umask(077);
	if (r == 0)
		r = library_start();
	if (r == 0)
		r = serve(&co);
	co_mirror_close(&co);
	co_refs_clear(&co);
	buf_wipe(&co.request);
	io_close(&co.lock_fd);
	io_close(&co.in_fd);
	io_close(&co.out_fd);
	(void)git_libgit2_shutdown();
	return r == 0 ? 0 : 1;
}
