/*
 * Whether bubblewrap works here, and if not, what somebody can do about it.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/sandbox/box.h"

#define PROBE_MS 5000

const char *
bwrap_find(void)
{
	static const char *const places[] = { "/usr/bin/bwrap", "/usr/local/bin/bwrap",
		"/bin/bwrap" };

	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (access(places[i], X_OK) == 0)
			return places[i];
	return NULL;
}

int
bwrap_check(struct sandbox_problem *ret)
{
	if (geteuid() == 0) {
		box_problem(ret,
		    "Set `user:` in anvil.yml, or start anvild as an unprivileged user.",
		    "anvil runs as root, and steps of a root would not be confined");
		return E_SANDBOX;
	}
	if (bwrap_find() == NULL) {
		box_problem(ret, "Install it: apt install bubblewrap",
		    "bubblewrap (bwrap) is not installed");
		return E_SANDBOX;
	}
	return 0;
}

/* A setting of the kernel that forbids namespaces, and the value that does. */
struct setting {
	const char *path;
	long forbids;
	const char *reason;
	const char *remedy;
};

static const struct setting settings[] = {
	{ "/proc/sys/user/max_user_namespaces", 0,
	    "user namespaces are disabled (user.max_user_namespaces is 0)",
	    "Allow them: sysctl -w user.max_user_namespaces=15000" },
	{ "/proc/sys/kernel/unprivileged_userns_clone", 0,
	    "unprivileged user namespaces are disabled (kernel.unprivileged_userns_clone is 0)",
	    "Allow them: sysctl -w kernel.unprivileged_userns_clone=1" },
	{ "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 1,
	    "AppArmor restricts unprivileged user namespaces "
	    "(kernel.apparmor_restrict_unprivileged_userns is 1)",
	    "Give /usr/bin/bwrap an AppArmor profile with `userns,`, or: "
	    "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0" },
};

/* What bwrap says, and what it means. */
struct saying {
	const char *text;
	const char *reason;
	const char *remedy;
};

static const struct saying sayings[] = {
	{ "proc", "bubblewrap cannot mount its own /proc",
	    "The host's /proc is covered in parts, as in a container or by a systemd unit with "
	    "ProtectKernelTunables, ProtectKernelLogs or ProcSubset: remove those." },
	{ "namespace", "bubblewrap cannot make namespaces",
	    "Remove RestrictNamespaces from the systemd unit, or allow unshare(2) in the "
	    "container's seccomp profile." },
	{ "uid map", "bubblewrap cannot set up its user namespace",
	    "Allow unprivileged user namespaces for /usr/bin/bwrap (AppArmor, SELinux)." },
};

static int
setting_is(const struct setting *s)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	const char *text;

	if (io_read_file(AT_FDCWD, s->path, 64, &b) < 0 || (text = buf_cstr(&b)) == NULL)
		return 0;
	return strtol(text, NULL, 10) == s->forbids;
}

void
bwrap_explain(const struct sandbox_process *p, struct sandbox_problem *ret)
{
	char said[256];

	box_said(p, said, sizeof(said));
	for (size_t i = 0; i < ARRAY_LEN(settings); i++)
		if (setting_is(&settings[i])) {
			box_problem(ret, settings[i].remedy, "%s", settings[i].reason);
			return;
		}
	for (size_t i = 0; i < ARRAY_LEN(sayings); i++)
		if (strstr(said, sayings[i].text) != NULL) {
			box_problem(ret, sayings[i].remedy, "%s (%s)", sayings[i].reason, said);
			return;
		}
	box_problem(ret, "", "%s", said[0] != '\0' ? said : "bubblewrap ended without a word");
}

int
bwrap_probe(struct sandbox_problem *ret)
{
	static const char *const trial[] = { "--unshare-user", "--unshare-pid", "--unshare-ipc",
		"--unshare-uts", "--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc",
		"--dev", "/dev", "--", "/bin/true", NULL };
	CLEANUP(box_process_freep) struct sandbox_process *p = NULL;
	CLEANUP(io_closep) int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	const char *argv[ARRAY_LEN(trial) + 1];
	struct pollfd fd;
	int r = bwrap_check(ret);

	if (r < 0)
		return r;
	argv[0] = bwrap_find();
	memcpy(argv + 1, trial, sizeof(trial));
	p = box_process_new();
	if (p == NULL || box_start(p, argv, null_fd, NULL) < 0) {
		box_problem(ret, "", "no process or memory to try bubblewrap with");
		return E_SANDBOX;
	}
	fd = (struct pollfd) { .fd = p->pidfd, .events = POLLIN };
	(void)poll(&fd, 1, PROBE_MS);
	if (!box_reap(p)) {
		(void)io_pidfd_signal(p->pidfd, SIGKILL);
		(void)waitpid(p->pid, NULL, 0);
		box_problem(ret, "", "bubblewrap did not end within 5 s");
		return E_SANDBOX;
	}
	if (p->status == 0)
		return 0;
	bwrap_explain(p, ret);
	return E_SANDBOX;
}
