#include "cmd/anvild/place.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/base.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"

#define LOCK_NAME     "anvild.lock"
#define LOCK_RETRY_MS 50

int
place_user_find(const char *name, struct place_user *ret, char why[PLACE_WHY_SIZE])
{
	int given = name != NULL && name[0] != '\0';
	const struct passwd *pw;

	if (!given && geteuid() == 0) {
		(void)snprintf(why, PLACE_WHY_SIZE,
		    "started as root without `user:`; set it in the "
		    "configuration to the account that anvil shall run as");
		return E_DENIED;
	}
	pw = given ? getpwnam(name) : getpwuid(geteuid());
	if (pw == NULL && !given) {
		/* An account without a name is none the worse for it. */
		*ret = (struct place_user) { .uid = geteuid(), .gid = getegid(), .name = "?" };
		return 0;
	}
	if (pw == NULL) {
		(void)snprintf(why, PLACE_WHY_SIZE,
		    "user: there is no account \"%s\" on this host; make it with: "
		    "adduser --system --group %s",
		    name, name);
		return E_NOENT;
	}
	if (pw->pw_uid == 0) {
		(void)snprintf(why, PLACE_WHY_SIZE,
		    "user: anvil does not run builds as root; "
		    "choose an unprivileged account");
		return E_DENIED;
	}
	if (geteuid() != 0 && pw->pw_uid != geteuid()) {
		(void)snprintf(why, PLACE_WHY_SIZE,
		    "user: only root can become \"%s\"; start anvild as root or as that user",
		    name);
		return E_DENIED;
	}
	*ret = (struct place_user) { .uid = pw->pw_uid, .gid = pw->pw_gid };
	(void)snprintf(ret->name, sizeof(ret->name), "%s", pw->pw_name);
	(void)snprintf(ret->home, sizeof(ret->home), "%s", pw->pw_dir);
	return 0;
}

int
place_user_become(const struct place_user *u, char why[PLACE_WHY_SIZE])
{
	if (geteuid() != 0)
		return 0;
	if (initgroups(u->name, u->gid) == 0 && setresgid(u->gid, u->gid, u->gid) == 0 &&
	    setresuid(u->uid, u->uid, u->uid) == 0 && setuid(0) < 0) {
		(void)setenv("HOME", u->home, 1);
		(void)setenv("USER", u->name, 1);
		return 0;
	}
	(void)snprintf(
	    why, PLACE_WHY_SIZE, "cannot become user \"%s\": %s", u->name, strerror(errno));
	return E_DENIED;
}

/* ---- folders ---- */

/* What is missing above it is nobody's in particular, and everybody may pass. */
static int
make_parents(const char *path)
{
	CLEANUP_FREE char *above = mem_strdup(path);
	char *slash = above != NULL ? strrchr(above, '/') : NULL;

	if (above == NULL)
		return E_NOMEM;
	if (slash == NULL || slash == above)
		return 0;
	*slash = '\0';
	return io_mkdirs(above, 0755);
}

static int
make_dir(const char *path, const struct place_user *u, char why[PLACE_WHY_SIZE])
{
	struct stat st;
	int existed = stat(path, &st) == 0;
	int r = existed ? 0 : make_parents(path);

	if (r == 0)
		r = io_mkdirs(path, 0700);
	if (r < 0) {
		(void)snprintf(why, PLACE_WHY_SIZE,
		    "%s cannot be made: %s; make it and give it to "
		    "\"%s\" with mode 0700",
		    path, strerror(errno), u->name);
		return r == E_FULL ? r : E_SYS;
	}
	if (!existed && geteuid() == 0 && chown(path, u->uid, u->gid) < 0)
		return E_SYS;
	if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode)) {
		(void)snprintf(why, PLACE_WHY_SIZE, "%s is no directory", path);
		return E_SYS;
	}
	if (st.st_uid != u->uid) {
		(void)snprintf(why, PLACE_WHY_SIZE,
		    "%s belongs to uid %u; it has to be \"%s\"'s: "
		    "chown %s %s",
		    path, (unsigned)st.st_uid, u->name, u->name, path);
		return E_DENIED;
	}
	if ((st.st_mode & 077) != 0) {
		(void)snprintf(why, PLACE_WHY_SIZE,
		    "%s has mode %04o; others must not enter it: "
		    "chmod 0700 %s",
		    path, (unsigned)st.st_mode & 07777, path);
		return E_DENIED;
	}
	return 0;
}

int
place_make_dirs(const char *data_dir, const char *runtime_dir, const struct place_user *u,
    char why[PLACE_WHY_SIZE])
{
	static const char *const parts[] = { "runs", "cache", "crash" };
	int r = make_dir(data_dir, u, why);

	for (size_t i = 0; i < ARRAY_LEN(parts) && r == 0; i++) {
		CLEANUP_FREE char *path = mem_format("%s/%s", data_dir, parts[i]);

		r = path != NULL ? make_dir(path, u, why) : E_NOMEM;
	}
	return r < 0 ? r : make_dir(runtime_dir, u, why);
}

/* ---- the lock ---- */

static void
say_locked(int dir, const char *runtime_dir, char why[PLACE_WHY_SIZE])
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	int pid = 0;

	if (io_read_file(dir, LOCK_NAME, 64, &b) == 0 && buf_cstr(&b) != NULL)
		pid = (int)strtol((const char *)b.data, NULL, 10);
	(void)snprintf(why, PLACE_WHY_SIZE,
	    "another supervisor (pid %d) uses %s; stop it first, or "
	    "choose another runtime_dir",
	    pid, runtime_dir);
}

int
place_lock(
    const char *runtime_dir, const struct place_user *u, int *ret_fd, char why[PLACE_WHY_SIZE])
{
	CLEANUP(io_closep) int dir = open(runtime_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct mono_time end = mono_add_ms(clock_mono(), PLACE_LOCK_MS);
	char pid[16];
	int fd, r;

	if (dir < 0) {
		(void)snprintf(why, PLACE_WHY_SIZE, "%s: %s", runtime_dir, strerror(errno));
		return E_SYS;
	}
	while ((r = io_lock_file(dir, LOCK_NAME, &fd)) == E_LOCKED && clock_mono().us < end.us)
		(void)poll(NULL, 0, LOCK_RETRY_MS); /* flock has no event to wait on */
	if (r == E_LOCKED) {
		say_locked(dir, runtime_dir, why);
		return r;
	}
	if (r < 0) {
		(void)snprintf(
		    why, PLACE_WHY_SIZE, "%s/%s: %s", runtime_dir, LOCK_NAME, err_text(r));
		return r;
	}
	(void)snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
	/* The next one may be started as that user. */
	if ((geteuid() == 0 && fchown(fd, u->uid, u->gid) < 0) || ftruncate(fd, 0) < 0 ||
	    pwrite(fd, pid, strlen(pid), 0) < 0)
		(void)snprintf(why, PLACE_WHY_SIZE, "%s/%s: %s", runtime_dir, LOCK_NAME,
		    strerror(errno)); /* only the text of the next one's error suffers */
	*ret_fd = fd;
	return 0;
}

/* ---- programs ---- */

char *
place_libexec(void)
{
	static const char *const beside[] = { "", "/../libexec/anvil" };
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (n <= 0)
		return NULL;
	self[n] = '\0';
	slash = strrchr(self, '/');
	if (slash == NULL)
		return NULL;
	*slash = '\0';
	for (size_t i = 0; i < ARRAY_LEN(beside); i++) {
		CLEANUP_FREE char *program = mem_format("%s%s/anvil-ingress", self, beside[i]);

		if (program != NULL && access(program, X_OK) == 0)
			return mem_format("%s%s", self, beside[i]);
	}
	return NULL;
}
