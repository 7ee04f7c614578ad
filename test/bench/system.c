#include "test/bench/system.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/wire/wire.h"
#include "test/bench/probe.h"
#include "test/bench/report.h"

#define START_S  30
#define STOP_S   20
#define PASSWORD "correct horse battery"

static const char *const programs[] = { "anvild", "anvil-ingress", "anvil-project", "anvil-run",
	"anvil-checkout", "anvil-init" };

int
system_run(const char *const *argv, const char *dir)
{
	posix_spawn_file_actions_t acts;
	int status = -1, r;
	pid_t pid;

	must(posix_spawn_file_actions_init(&acts) == 0);
	must(posix_spawn_file_actions_addopen(&acts, 1, "/dev/null", O_WRONLY, 0) == 0);
	if (dir != NULL)
		must(posix_spawn_file_actions_addchdir_np(&acts, dir) == 0);
	r = posix_spawnp(&pid, argv[0], &acts, NULL, (char *const *)(uintptr_t)argv, environ);
	(void)posix_spawn_file_actions_destroy(&acts);
	if (r != 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void
copy_programs(const struct system *s)
{
	const char *build = getenv("ANVIL_BUILD");
	char from[256], to[128];

	(void)snprintf(to, sizeof(to), "%s/bin", s->dir);
	if (mkdir(to, 0755) < 0)
		bench_die("cannot make %s", to);
	for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
		const char *const argv[] = { "cp", from, to, NULL };

		(void)snprintf(from, sizeof(from), "%s/%s",
		    build != NULL ? build : "build/release", programs[i]);
		if (system_run(argv, NULL) != 0)
			bench_die("cannot copy %s", from);
	}
}

/* For good; git and the programs find a home that is theirs. */
static void
become_nobody(const struct system *s)
{
	const struct passwd *pw = geteuid() == 0 ? getpwnam("nobody") : NULL;
	char bin[80];

	(void)snprintf(bin, sizeof(bin), "%s/bin", s->dir);
	if (geteuid() == 0) {
		if (pw == NULL || chown(s->dir, pw->pw_uid, pw->pw_gid) < 0 ||
		    chown(bin, pw->pw_uid, pw->pw_gid) < 0 || setgroups(0, NULL) < 0 ||
		    setresgid(pw->pw_gid, pw->pw_gid, pw->pw_gid) < 0 ||
		    setresuid(pw->pw_uid, pw->pw_uid, pw->pw_uid) < 0)
			bench_die("cannot become nobody");
		(void)setenv("USER", "nobody", 1);
	}
	(void)setenv("HOME", s->dir, 1);
	(void)setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
	if (chdir(s->dir) < 0)
		bench_die("cannot enter %s", s->dir);
}

void
system_prepare(struct system *s)
{
	const char *tmp = getenv("TMPDIR");

	*s = (struct system) { .prober = probe_start() };
	(void)snprintf(
	    s->dir, sizeof(s->dir), "%s/anvil-bench-XXXXXX", tmp != NULL ? tmp : "/tmp");
	if (mkdtemp(s->dir) == NULL || chmod(s->dir, 0755) < 0)
		bench_die("cannot make %s", s->dir);
	copy_programs(s);
	become_nobody(s);
}

/* A port that was free a moment ago. */
static int
free_port(void)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	socklen_t len = sizeof(sin);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)(void *)&sin, len) < 0 ||
	    getsockname(fd, (struct sockaddr *)(void *)&sin, &len) < 0)
		bench_die("no port");
	io_close(&fd);
	return ntohs(sin.sin_port);
}

static void
write_config(struct system *s, const char *sandbox, int slots)
{
	char path[128];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/anvil.yml", s->dir);
	f = fopen(path, "we");
	if (f == NULL)
		bench_die("cannot write %s", path);
	(void)fprintf(f,
	    "version: 1\ndata_dir: %s/data\nruntime_dir: %s/run\nkeys_file: %s/keys.json\n"
	    "listen: [\"127.0.0.1:%d\"]\npublic_url: http://127.0.0.1:%d\nshards: 2\n"
	    "limits: {public_per_minute_per_address: 0}\n"
	    "runs: {max_concurrent: %d, sandbox: %s}\nrepositories: {allow_local: true}\n",
	    s->dir, s->dir, s->dir, s->port, s->port, slots, sandbox);
	(void)fclose(f);
}

static void
spawn_anvild(struct system *s)
{
	char path[128];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/log", s->dir);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	(void)snprintf(path, sizeof(path), "%s/bin/anvild", s->dir);
	s->pid = fork();
	if (s->pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
		(void)dup2(fd, 2);
		(void)dup2(fd, 1);
		(void)execl(path, path, "-c", "anvil.yml", "--stop-runs", (char *)NULL);
		_exit(127);
	}
	io_close(&fd);
}

static void
show_log(const struct system *s)
{
	char path[128];
	const char *const argv[] = { "sh", "-c", "tail -n 20 \"$0\" >&2", path, NULL };

	(void)snprintf(path, sizeof(path), "%s/log", s->dir);
	(void)system_run(argv, NULL);
}

static void
await_health(struct system *s)
{
	double until = bench_now_us() + START_S * 1e6;

	(void)web_open(&s->web, s->port);
	while (web_call(&s->web, "GET", "/healthz", NULL, NULL) != 200 ||
	    strstr((const char *)s->web.body.data, "\"status\":\"ok\"") == NULL) {
		if (bench_now_us() > until || waitpid(s->pid, NULL, WNOHANG) == s->pid) {
			show_log(s);
			bench_die("anvild did not come up");
		}
		(void)usleep(5000);
	}
}

static void
log_in(struct system *s)
{
	json_t *made = system_rpc(s, "ingress", "user.bootstrap",
	    "{\"email\":\"bench@example.org\",\"slug\":\"bench\",\"displayName\":\"Bench\","
	    "\"password\":\"" PASSWORD "\"}");

	if (made == NULL ||
	    web_call(&s->web, "POST", "/api/public/auth/login", NULL,
		"{\"email\":\"bench@example.org\",\"password\":\"" PASSWORD "\"}") != 200 ||
	    web_member(&s->web, "sessionId", s->session, sizeof(s->session)) < 0)
		bench_die("cannot log in");
	json_decref(made);
}

void
system_start(struct system *s, const char *sandbox, int slots)
{
	char path[128];
	int dirfd;

	s->port = free_port();
	write_config(s, sandbox, slots);
	spawn_anvild(s);
	await_health(s);
	(void)snprintf(path, sizeof(path), "%s/run", s->dir);
	dirfd = io_open_dir(AT_FDCWD, path);
	s->ctl = client_new(dirfd);
	if (dirfd < 0 || s->ctl == NULL)
		bench_die("cannot open %s", path);
	log_in(s);
}

void
system_cut(struct system *s)
{
	static const char *const actors[] = { "ingress", "project/0", "project/1" };
	pid_t pids[ARRAY_LEN(actors)];

	for (size_t i = 0; i < ARRAY_LEN(actors); i++) {
		/* The first call may find that the connection is from before the last cut. */
		json_decref(system_rpc_try(s, actors[i], "actor.info", NULL));
		pids[i] = system_pid(s, actors[i]);
	}
	(void)kill(s->pid, SIGKILL);
	for (size_t i = 0; i < ARRAY_LEN(actors); i++)
		if (pids[i] > 0)
			(void)kill(pids[i], SIGKILL);
	(void)waitpid(s->pid, NULL, 0);
	web_close(&s->web);
}

void
system_again(struct system *s)
{
	spawn_anvild(s);
	(void)web_open(&s->web, s->port);
}

static void
remove_tree(const char *dir, const char *name)
{
	char path[160];
	const char *const argv[] = { "rm", "-rf", path, NULL };

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	(void)system_run(argv, NULL);
}

void
system_stop(struct system *s)
{
	double until = bench_now_us() + STOP_S * 1e6;

	s->ctl = client_free(s->ctl);
	web_close(&s->web);
	if (s->pid > 0)
		(void)kill(s->pid, SIGTERM);
	while (s->pid > 0 && waitpid(s->pid, NULL, WNOHANG) == 0) {
		if (bench_now_us() > until)
			(void)kill(s->pid, SIGKILL);
		(void)usleep(5000);
	}
	s->pid = 0;
	remove_tree(s->dir, "data");
	remove_tree(s->dir, "run");
	remove_tree(s->dir, "keys.json");
}

void
system_done(struct system *s)
{
	if (s->pid > 0)
		system_stop(s);
	if (getenv("BENCH_KEEP") == NULL)
		remove_tree(s->dir, "");
	io_close(&s->prober);
}

void
system_repository(
    struct system *s, const char *name, int nfiles, const char *yml, char url[160])
{
	static const char script[] =
	    "set -e; git init -q -b main \"$0\"; cd \"$0\"; git config user.name bench; "
	    "git config user.email bench@example.org; printf '%s' \"$2\" > .anvil.yml; i=1; "
	    "while [ $i -lt \"$1\" ]; do mkdir -p src/$((i % 7)); "
	    "seq $i $((i + 300)) > src/$((i % 7))/file$i.txt; i=$((i + 1)); done; "
	    "git add -A; git commit -q -m 'All of it'";
	char path[128], count[16];
	const char *const argv[] = { "sh", "-c", script, path, count, yml, NULL };

	(void)snprintf(path, sizeof(path), "%s/%s", s->dir, name);
	(void)snprintf(count, sizeof(count), "%d", nfiles);
	if (system_run(argv, NULL) != 0)
		bench_die("cannot make a repository");
	(void)snprintf(url, 160, "file://%s", path);
}

void
system_project(struct system *s, const char *slug, const char *url, char id[32])
{
	char body[512];

	(void)snprintf(body, sizeof(body),
	    "{\"projectSlug\":\"%s\",\"name\":\"%s\",\"repoUrl\":\"%s\",\"defaultBranch\":\"main\"}",
	    slug, slug, url);
	if (web_call(&s->web, "POST", "/api/private/projects", s->session, body) != 201 ||
	    web_member(&s->web, "id", id, 32) < 0)
		bench_die("no project: %s", (const char *)s->web.body.data);
}

void
system_trigger(struct system *s, const char *project_id, char run_id[32])
{
	char path[128];

	(void)snprintf(path, sizeof(path), "/api/private/projects/%s/runs", project_id);
	if (web_call(&s->web, "POST", path, s->session, "{}") != 202 ||
	    web_member(&s->web, "runId", run_id, 32) < 0)
		bench_die("not accepted: %s", (const char *)s->web.body.data);
}

int
system_await(
    struct system *s, const char *project_id, const char *run_id, int pause_us, int limit_s)
{
	double until = bench_now_us() + limit_s * 1e6;
	char path[128], newest[32], status[32];

	(void)snprintf(path, sizeof(path), "/api/private/projects/%s/runs?limit=1", project_id);
	do {
		if (web_call(&s->web, "GET", path, s->session, NULL) == 200 &&
		    web_member(&s->web, "id", newest, sizeof(newest)) == 0 &&
		    strcmp(newest, run_id) == 0 &&
		    web_member(&s->web, "status", status, sizeof(status)) == 0) {
			if (strcmp(status, "passed") == 0)
				return 0;
			if (strcmp(status, "failed") == 0 || strcmp(status, "canceled") == 0)
				break;
		}
		(void)usleep((useconds_t)pause_us);
	} while (bench_now_us() < until);
	return -1;
}

static json_t *
call(struct system *s, const char *address, const char *method, const char *params, int tell)
{
	struct buf text = BUF_INIT;
	struct client_reply reply;
	json_t *result = NULL;

	buf_add_str(&text, params != NULL ? params : "{}");
	if (client_call(s->ctl, address, method, &text, 10000, &reply) == 0)
		result = json_deep_copy(reply.result);
	else if (tell)
		(void)fprintf(stderr, "bench: %s %s: %s\n", address, method,
		    reply.message != NULL ? reply.message : err_text(reply.err));
	client_forget(s->ctl);
	buf_done(&text);
	return result;
}

json_t *
system_rpc_try(struct system *s, const char *address, const char *method, const char *params)
{
	return call(s, address, method, params, 0);
}

json_t *
system_rpc(struct system *s, const char *address, const char *method, const char *params)
{
	return call(s, address, method, params, 1);
}

int
system_memory(struct system *s, pid_t pid, struct memory *ret)
{
	struct probe_answer a;

	if (probe_ask(s->prober, pid, &a) < 0)
		return -1;
	*ret = (struct memory) { a.pss_kb, a.peak_kb };
	return 0;
}

pid_t
system_pid(struct system *s, const char *address)
{
	json_t *info = system_rpc(s, address, "actor.info", NULL);
	pid_t pid = (pid_t)json_integer_value(json_object_get(info, "pid"));

	json_decref(info);
	return pid;
}

pid_t
system_run_pid(struct system *s, const char *run)
{
	json_t *list = system_rpc(s, "supervisor", "supervisor.listRuns", NULL), *row;
	const char *id;
	pid_t pid = 0;
	size_t i;

	json_array_foreach (json_object_get(list, "runs"), i, row) {
		id = json_string_value(json_object_get(row, "runId"));
		if (id != NULL && strcmp(id, run) == 0)
			pid = (pid_t)json_integer_value(json_object_get(row, "pid"));
	}
	json_decref(list);
	return pid;
}
