/* The keys file and the descriptors that carry its text to other processes. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/crash.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/vault/keys.h"

static int
say(char why[VAULT_WHY_SIZE], int err, const char *path, const char *what)
{
	(void)snprintf(why, VAULT_WHY_SIZE, "%.250s: %.250s", path, what);
	return err;
}

/* As say(), for the errno of a system call. */
static int
say_errno(char why[VAULT_WHY_SIZE], const char *path, const char *what)
{
	int err = errno == EACCES || errno == EPERM || errno == ELOOP || errno == EROFS
	    ? E_DENIED
	    : err_from_errno(errno);

	(void)snprintf(why, VAULT_WHY_SIZE, "%.300s: %s: %s", path, what, strerror(errno));
	return err;
}

static int
check_owner(int fd, const char *path, uid_t owner, char why[VAULT_WHY_SIZE])
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return say_errno(why, path, "cannot be examined");
	if (!S_ISREG(st.st_mode))
		return say(why, E_DENIED, path, "is not a regular file");
	if (st.st_uid != 0 && st.st_uid != geteuid() && st.st_uid != owner) {
		(void)snprintf(why, VAULT_WHY_SIZE,
		    "%.300s: belongs to uid %u, expected uid %u (chown)", path,
		    (unsigned)st.st_uid, (unsigned)owner);
		return E_DENIED;
	}
	if ((st.st_mode & 07177) != 0) {
		(void)snprintf(why, VAULT_WHY_SIZE,
		    "%.300s: has mode %04o, expected 0600 (chmod)", path,
		    (unsigned)st.st_mode & 07777);
		return E_DENIED;
	}
	return 0;
}

/* ${text} is filled without a growing buffer, which would leave copies behind. */
static int
read_keys(int fd, struct buf *text)
{
	int r = buf_reserve(text, VAULT_KEYS_TEXT_MAX + 65536);

	return r < 0 ? r : io_read_all(fd, VAULT_KEYS_TEXT_MAX, text);
}

int
vault_keys_read_fd(int fd, struct vault_keys **ret, char why[VAULT_WHY_SIZE])
{
	CLEANUP(buf_wipe) struct buf text = BUF_INIT;
	int r = read_keys(fd, &text);

	if (r < 0)
		(void)snprintf(why, VAULT_WHY_SIZE, "keys: %s", err_text(r));
	return r < 0 ? r : vault_keys_parse((const char *)text.data, text.len, ret, why);
}

int
vault_keys_load(
    const char *path, uid_t owner, struct vault_keys **ret, char why[VAULT_WHY_SIZE])
{
	CLEANUP(io_closep)
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char what[VAULT_WHY_SIZE];
	int r;

	if (fd < 0)
		return say_errno(why, path, "cannot be read");
	r = check_owner(fd, path, owner, why);
	if (r < 0)
		return r;
	r = vault_keys_read_fd(fd, ret, what);
	return r < 0 ? say(why, r, path, what) : 0;
}

/* A file that bears no name of its own yet, with the text of ${k}, on disk. */
static int
write_unnamed(const struct vault_keys *k, const char *tmp)
{
	CLEANUP(buf_wipe) struct buf text = BUF_INIT;
	CLEANUP(io_closep) int fd = -1;
	int r = vault_keys_format(k, &text);

	if (r < 0)
		return r;
	fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_from_errno(errno);
	r = io_write_all(fd, text.data, text.len);
	if (r == 0 && fsync(fd) < 0)
		r = err_from_errno(errno);
	return r;
}

static int
sync_parent(const char *path)
{
	CLEANUP(io_closep) int fd = -1;
	const char *slash = strrchr(path, '/');
	char dir[PATH_MAX] = ".";

	if (slash != NULL)
		(void)snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path) + 1, path);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? err_from_errno(errno) : io_sync_dir(fd);
}

int
vault_keys_create(const char *path, struct vault_keys **ret, char why[VAULT_WHY_SIZE])
{
	CLEANUP(vault_keys_freep) struct vault_keys *k = vault_keys_new();
	char tmp[PATH_MAX], tag[ID_HEX32_SIZE];
	int r;

	if (k == NULL)
		return say(why, E_NOMEM, path, "out of memory");
	r = vault_keys_rotate(k);
	must(r == 0);
	id_hex32(tag);
	if (snprintf(tmp, sizeof(tmp), "%s.%.8s", path, tag) >= (int)sizeof(tmp))
		return say(why, E_INVAL, path, "path is too long");
	r = write_unnamed(k, tmp);
	CRASH_POINT("keys_first_written");
	/* link() fails where rename() would replace a file that somebody else has just made. */
	if (r == 0 && link(tmp, path) < 0)
		r = err_from_errno(errno);
	if (r == E_SYS)
		r = say_errno(why, path, "cannot be made");
	else if (r < 0)
		r = say(why, r, path, err_text(r));
	CRASH_POINT("keys_first_linked");
	(void)unlink(tmp);
	if (r == 0 && sync_parent(path) < 0)
		r = say_errno(why, path, "cannot be brought to disk");
	if (r == 0)
		*ret = TAKE_PTR(k);
	return r;
}

/* Gives ${tmp} to the owner of the file that it is to replace. */
static int
keep_owner(const char *path, const char *tmp, char why[VAULT_WHY_SIZE])
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : say_errno(why, path, "cannot be examined");
	if (st.st_uid == geteuid())
		return 0;
	if (chown(tmp, st.st_uid, st.st_gid) == 0)
		return 0;
	(void)snprintf(why, VAULT_WHY_SIZE,
	    "%.300s: belongs to uid %u, which a new file could not keep; chown it to uid %u",
	    path, (unsigned)st.st_uid, (unsigned)geteuid());
	return E_DENIED;
}

/* The name is always the same, so that what a crash has left goes with the next rotation. */
static int
replace(const struct vault_keys *k, const char *path, const char *tmp, char why[VAULT_WHY_SIZE])
{
	int r;

	(void)unlink(tmp);
	r = write_unnamed(k, tmp);
	if (r < 0)
		return r == E_SYS || r == E_NOENT ? say_errno(why, tmp, "cannot be made")
						  : say(why, r, tmp, err_text(r));
	CRASH_POINT("keys_new_written");
	r = keep_owner(path, tmp, why);
	if (r == 0 && rename(tmp, path) < 0)
		r = say_errno(why, path, "cannot be replaced");
	if (r < 0)
		(void)unlink(tmp);
	return r;
}

int
vault_keys_save(const struct vault_keys *k, const char *path, char why[VAULT_WHY_SIZE])
{
	char real[PATH_MAX], tmp[PATH_MAX];
	int r;

	OBJ_CHECK(k, VAULT_KEYS_MAGIC);
	must(k->project[0] == '\0');
	/* A link stays one. */
	if (realpath(path, real) == NULL &&
	    snprintf(real, sizeof(real), "%s", path) >= (int)sizeof(real))
		return say(why, E_INVAL, path, "path is too long");
	if (snprintf(tmp, sizeof(tmp), "%s.new", real) >= (int)sizeof(tmp))
		return say(why, E_INVAL, path, "path is too long");
	r = replace(k, real, tmp, why);
	CRASH_POINT("keys_new_renamed");
	if (r == 0 && sync_parent(real) < 0)
		r = say_errno(why, path, "cannot be brought to disk");
	return r;
}

/* The text of ${k}, with blanks at its end up to ${size} bytes; *ret_len: without them. */
static int
format_padded(const struct vault_keys *k, size_t size, struct buf *out, size_t *ret_len)
{
	int r = buf_reserve(out, VAULT_KEYS_TEXT_MAX + size);

	if (r == 0)
		r = vault_keys_format(k, out);
	*ret_len = out->len;
	while (r == 0 && out->len < size)
		r = buf_add(out, " ", 1);
	return r;
}

/* One write, so that only a machine that goes down can leave half of it. */
static int
write_over(int fd, const struct buf *text, size_t len)
{
	ssize_t n;

	/* What has no room is not begun.  Some file systems cannot tell. */
	if (fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)text->len) < 0 && errno == ENOSPC)
		return E_FULL;
	n = pwrite(fd, text->data, text->len, 0);
	if (n < 0)
		return err_from_errno(errno);
	if ((size_t)n != text->len)
		return E_FULL;
	CRASH_POINT("keys_written_over");
	return ftruncate(fd, (off_t)len) < 0 || fsync(fd) < 0 ? err_from_errno(errno) : 0;
}

int
vault_keys_overwrite(const struct vault_keys *k, const char *path, char why[VAULT_WHY_SIZE])
{
	CLEANUP(buf_wipe) struct buf text = BUF_INIT;
	CLEANUP(io_closep)
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	size_t len;
	int r;

	OBJ_CHECK(k, VAULT_KEYS_MAGIC);
	must(k->project[0] == '\0');
	if (fd < 0 || fstat(fd, &st) < 0) {
		(void)snprintf(why, VAULT_WHY_SIZE,
		    "%.300s: cannot be written: %s; it has to belong to uid %u (chown)", path,
		    strerror(errno), (unsigned)geteuid());
		return E_DENIED;
	}
	if (!S_ISREG(st.st_mode) || st.st_size > VAULT_KEYS_TEXT_MAX)
		return say(why, E_DENIED, path, "is not a keys file");
	r = format_padded(k, (size_t)st.st_size, &text, &len);
	if (r == 0)
		r = write_over(fd, &text, len);
	return r < 0 ? say(why, r, path, err_text(r)) : 0;
}

int
vault_keys_to_memfd(const struct vault_keys *k, int *ret_fd)
{
	CLEANUP(buf_wipe) struct buf text = BUF_INIT;
	CLEANUP(io_closep) int fd = -1;
	int r = vault_keys_format(k, &text);

	if (r < 0)
		return r;
	fd = memfd_create("keys", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return err_from_errno(errno);
	r = io_write_all(fd, text.data, text.len);
	if (r < 0)
		return r;
	if (lseek(fd, 0, SEEK_SET) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) <
		0)
		return err_from_errno(errno);
	*ret_fd = fd;
	fd = -1;
	return 0;
}
