/* anvilctl check without a running anvild: each program looks at the store that it owns. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/anvilctl/check.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/config/config.h"

#define DEFAULT_CONFIG "/etc/anvil/anvil.yml"
#define REPORT_MAX     ((size_t)64 << 20)
#define REPORT_DEPTH   6
#define FD_START       3 /* as lib/actor expects it */
#define FD_REPORT      5 /* of anvil-run --check-all */
#define FD_FREE        8 /* from here on none that a program expects */
#define EXIT_LOCKED    75
#define SHARDS_MAX     64

extern char **environ;

struct down {
	struct ctl *ctl;
	struct findings *found;
	const char *config_path; /* NULL: built-in defaults */
	struct config *config;
	char self[PATH_MAX]; /* folder of this program */
	struct buf looked;   /* who has looked, for people */
};

/* ---- is it down? ---- */

static int
does_answer(struct ctl *ctl, const char *runtime_dir)
{
	CLEANUP(io_closep) int dir = open(runtime_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(client_freep) struct client *c = dir >= 0 ? client_new(dir) : NULL;
	int r = c != NULL ? client_connect(c, "supervisor") : E_NOENT;

	(void)ctl;
	return r != E_NOENT && r != E_LINK;
}

/* Which configuration says where the stores are; with -d alone nobody does. */
static int
find_config(struct down *d)
{
	CLEANUP(buf_done) struct buf problems = BUF_INIT;
	const char *const *globals = d->ctl->globals;

	d->config_path = globals[GLOBAL_CONFIG];
	if (d->config_path == NULL &&
	    (globals[GLOBAL_DIR] != NULL || getenv("ANVIL_RUNTIME_DIR") != NULL))
		return E_NOENT;
	if (d->config_path == NULL && access(DEFAULT_CONFIG, F_OK) == 0)
		d->config_path = DEFAULT_CONFIG;
	return config_load(d->config_path, &problems, &d->config);
}

/* Stores belong to the account that anvil runs as. */
static int
become_owner(const char *data_dir)
{
	struct stat st;

	if (stat(data_dir, &st) < 0)
		return E_NOENT;
	if (geteuid() != 0 || st.st_uid == 0)
		return 0;
	return setgroups(0, NULL) < 0 || setresgid(st.st_gid, st.st_gid, st.st_gid) < 0 ||
		setresuid(st.st_uid, st.st_uid, st.st_uid) < 0
	    ? E_DENIED
	    : 0;
}

/* ---- programs ---- */

/* Beside this one in a build, else where they are installed.  The caller frees. */
static char *
program_path(const struct down *d, const char *name)
{
	char *beside = mem_format("%s/%s", d->self, name);

	if (beside == NULL || access(beside, X_OK) == 0)
		return beside;
	free(beside);
	return mem_format("%s/../libexec/anvil/%s", d->self, name);
}

/* A file in memory whose descriptor is in nobody's way. */
static int
make_file(const char *name)
{
	CLEANUP(io_closep) int fd = memfd_create(name, MFD_CLOEXEC);

	return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, FD_FREE);
}

/* What the supervisor would hand it, without keys. */
static int
start_fd(const struct down *d)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	int fd = make_file("start");

	buf_add_str(&b, "{\"config\":");
	if (fd < 0 || config_to_json(d->config, &b) < 0)
		return fd;
	buf_add_str(&b, ",\"keys\":null,\"supervisorPid\":0,\"bootId\":\"\"}");
	if (b.failed || io_write_all(fd, b.data, b.len) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		io_close(&fd);
	return fd;
}

struct run {
	const char *program;
	char *argv[6];
	int report_to; /* the descriptor that takes its report */
};

/* Runs it to its end; what it reports goes to ${out}.  Its exit status, or an error. */
static int
run_program(const struct down *d, const struct run *r, struct buf *out)
{
	CLEANUP_FREE char *path = program_path(d, r->program);
	CLEANUP(io_closep) int start = start_fd(d);
	CLEANUP(io_closep) int report = make_file("report");
	posix_spawn_file_actions_t acts;
	int err, status = -1;
	pid_t pid;

	if (path == NULL || start < 0 || report < 0)
		return E_NOMEM;
	(void)posix_spawn_file_actions_init(&acts);
	(void)posix_spawn_file_actions_addopen(&acts, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	(void)posix_spawn_file_actions_addopen(&acts, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	(void)posix_spawn_file_actions_adddup2(&acts, report, r->report_to);
	(void)posix_spawn_file_actions_adddup2(&acts, start, FD_START);
	err = posix_spawn(&pid, path, &acts, NULL, r->argv, environ);
	(void)posix_spawn_file_actions_destroy(&acts);
	if (err != 0)
		return E_SYS;
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ||
	    lseek(report, 0, SEEK_SET) < 0)
		return E_SYS;
	err = io_read_all(report, REPORT_MAX, out);
	return err < 0 ? err : WEXITSTATUS(status);
}

static void
add_problems(struct down *d, const char *place, const json_t *list)
{
	const json_t *p;
	size_t i;

	json_array_foreach (list, i, p) {
		struct check_problem what = {
			.code = json_string_value(json_object_get(p, "code")),
			.subject = json_string_value(json_object_get(p, "subject")),
			.text = json_string_value(json_object_get(p, "text")),
			.mendable = json_is_true(json_object_get(p, "mendable")),
		};

		if (what.code != NULL && what.subject != NULL && what.text != NULL)
			finding_add_own(d->found, place, &what);
	}
}

static void
not_looked(struct down *d, const char *place, const char *why)
{
	finding_add(
	    d->found, "actor_unreachable", place, place, "could not be looked at: %s", why);
}

/* A line of a report; of runs each has its place. */
static void
read_line(struct down *d, const char *place, const char *line, size_t n)
{
	CLEANUP(json_unrefp) json_t *j = NULL;
	const char *run_id, *why;
	char of_run[64];

	if (json_text_parse(line, n, REPORT_DEPTH, &j) < 0) {
		not_looked(d, place, "its report is none");
		return;
	}
	run_id = json_string_value(json_object_get(j, "runId"));
	if (run_id != NULL)
		(void)snprintf(of_run, sizeof(of_run), "run/%s", run_id);
	why = json_string_value(json_object_get(j, "failed"));
	if (why != NULL)
		not_looked(d, place, why);
	add_problems(d, run_id != NULL ? of_run : place, json_object_get(j, "problems"));
}

static void
look(struct down *d, const char *place, const struct run *r)
{
	CLEANUP(buf_done) struct buf report = BUF_INIT;
	int status = run_program(d, r, &report);
	const char *at;

	if (status == EXIT_LOCKED) {
		not_looked(d, place, "a process has it open, although anvild does not run");
		return;
	}
	if (status < 0 || report.len == 0 || buf_cstr(&report) == NULL) {
		not_looked(d, place, status < 0 ? err_text(status) : "its program fails");
		return;
	}
	buf_printf(&d->looked, "%s%s", d->looked.len > 0 ? ", " : "", place);
	for (at = (const char *)report.data; *at != '\0';) {
		size_t n = strcspn(at, "\n");

		read_line(d, place, at, n);
		at += n + (at[n] == '\n');
	}
}

/* ---- all of them ---- */

static char flag_check[] = "--check", flag_all[] = "--check-all", flag_config[] = "-c";

static void
look_at_shards(struct down *d)
{
	char name[] = "anvil-project";

	for (int shard = 0; shard < SHARDS_MAX; shard++) {
		CLEANUP_FREE char *path = mem_format(
		    "%s/project-%d.db", d->config->data_dir, shard);
		char number[16], place[32];
		struct run r = { .program = name,
			.argv = { name, number, flag_check },
			.report_to = STDOUT_FILENO };

		(void)snprintf(number, sizeof(number), "%d", shard);
		(void)snprintf(place, sizeof(place), "project/%d", shard);
		if (path != NULL && access(path, F_OK) == 0)
			look(d, place, &r);
	}
}

static void
look_at_all(struct down *d)
{
	char anvild[] = "anvild", ingress[] = "anvil-ingress", run[] = "anvil-run";
	CLEANUP_FREE char *config = mem_strdup(d->config_path != NULL ? d->config_path : "");
	struct run supervisor = {
		.program = anvild, .argv = { anvild, flag_check }, .report_to = STDOUT_FILENO
	};

	if (d->config_path != NULL) {
		supervisor.argv[2] = flag_config;
		supervisor.argv[3] = config;
	}
	look(d, "supervisor", &supervisor);
	look_at_shards(d);
	look(d, "ingress",
	    &(struct run) { .program = ingress,
		.argv = { ingress, flag_check },
		.report_to = STDOUT_FILENO });
	look(d, "runs",
	    &(struct run) {
		.program = run, .argv = { run, flag_all }, .report_to = FD_REPORT });
}

static int
begin(struct down *d)
{
	ssize_t n = readlink("/proc/self/exe", d->self, sizeof(d->self) - 1);
	char *slash;

	if (n <= 0)
		return E_SYS;
	d->self[n] = '\0';
	slash = strrchr(d->self, '/');
	if (slash == NULL)
		return E_SYS;
	*slash = '\0';
	return become_owner(d->config->data_dir);
}

int
check_down(struct ctl *ctl, struct findings *f, int *ret_down)
{
	struct down d = { .ctl = ctl, .found = f, .looked = BUF_INIT };
	int r = find_config(&d);

	*ret_down = 0;
	if (r == 0 && !does_answer(ctl, d.config->runtime_dir)) {
		*ret_down = 1;
		r = begin(&d);
		if (r == 0)
			look_at_all(&d);
		else
			r = ctl_fail("%s: %s", d.config->data_dir, err_text(r));
		if (d.looked.len > 0 && buf_cstr(&d.looked) != NULL)
			(void)fprintf(stderr,
			    "anvild does not run: %s looked at, each by its own program, and\n"
			    "not compared with each other\n",
			    (const char *)d.looked.data);
	} else {
		r = 0; /* those who answer know better than the configuration */
	}
	(void)config_free(d.config);
	buf_done(&d.looked);
	return r;
}
