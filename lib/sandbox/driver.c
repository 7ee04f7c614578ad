/*
 * The table of drivers, and what both of them need.
 */
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/sandbox/box.h"

const struct sandbox_driver *const sandbox_drivers[] = { &sandbox_driver_bwrap,
	&sandbox_driver_none, NULL };

const struct sandbox_driver *
sandbox_driver_find(const char *name)
{
	for (size_t i = 0; sandbox_drivers[i] != NULL; i++)
		if (strcmp(sandbox_drivers[i]->name, name) == 0)
			return sandbox_drivers[i];
	return NULL;
}

int
sandbox_process_fd(const struct sandbox_process *process)
{
	OBJ_CHECK(process, SANDBOX_PROCESS_MAGIC);
	return process->pidfd;
}

static int
shell_is_there(const char *name)
{
	static const char *const dirs[] = { "/usr/bin", "/bin", "/usr/local/bin" };
	char path[64];

	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", dirs[i], name);
		if (access(path, X_OK) == 0)
			return 1;
	}
	return 0;
}

int
sandbox_shell_argv(const char *command, const char *argv[SANDBOX_SHELL_ARGS])
{
	size_t n = 0;
	int bash = shell_is_there("bash");

	if (!bash && !shell_is_there("sh"))
		return E_NOENT;
	argv[n++] = bash ? "bash" : "sh";
	argv[n++] = "-e";
	if (bash) {
		argv[n++] = "-o";
		argv[n++] = "pipefail";
	}
	argv[n++] = "-c";
	argv[n++] = command;
	argv[n] = NULL;
	return 0;
}

int
sandbox_open_beneath(const char *root, const char *dir)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
	CLEANUP(io_closep) int fd = io_open_dir(AT_FDCWD, root);

	return fd < 0 ? -1 : (int)syscall(SYS_openat2, fd, dir, &how, sizeof(how));
}

void
box_problem(struct sandbox_problem *ret, const char *remedy, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(ret->reason, sizeof(ret->reason), fmt, ap);
	va_end(ap);
	(void)snprintf(ret->remedy, sizeof(ret->remedy), "%s", remedy);
}

struct sandbox_limits
box_rlimits(const struct sandbox_limits *limits, const struct cgroup *groups)
{
	struct sandbox_limits rest = *limits;

	if (cgroup_memory(groups) != CGROUP_NOT)
		rest.memory_bytes = 0;
	if (cgroup_processes(groups) != CGROUP_NOT)
		rest.max_processes = 0;
	return rest;
}

void
box_describe_limits(
    const struct sandbox_limits *limits, const struct cgroup *groups, char *out, size_t size)
{
	static const char *const memory_by[] = { [CGROUP_NOT] = " each process (RLIMIT_DATA)",
		[CGROUP_V1] = " (cgroup v1)",
		[CGROUP_V2] = " (cgroup v2)" };
	static const char *const processes_by[] = { [CGROUP_NOT] = "RLIMIT_NPROC",
		[CGROUP_V1] = "cgroup v1",
		[CGROUP_V2] = "cgroup v2" };
	char memory[64] = "none", processes[64] = "none";

	if (limits->memory_bytes > 0)
		(void)snprintf(memory, sizeof(memory), "%lld bytes%s",
		    (long long)limits->memory_bytes, memory_by[cgroup_memory(groups)]);
	if (limits->max_processes > 0)
		(void)snprintf(processes, sizeof(processes), "%lld (%s)",
		    (long long)limits->max_processes, processes_by[cgroup_processes(groups)]);
	(void)snprintf(out, size, "Limits: memory %s; processes %s.\n", memory, processes);
}
