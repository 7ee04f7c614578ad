/* The keys file and the descriptors that carry its text to other processes. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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
	/* link() fails where rename() would replace a file that somebody else has just made. */
	if (r == 0 && link(tmp, path) < 0)
		r = err_from_errno(errno);
	if (r == E_SYS)
		r = say_errno(why, path, "cannot be made");
	else if (r < 0)
		r = say(why, r, path, err_text(r));
	(void)unlink(tmp);
	if (r == 0 && sync_parent(path) < 0)
		r = say_errno(why, path, "cannot be brought to disk");
	if (r == 0)
		*ret = TAKE_PTR(k);
	return r;
}

int
vault_keys_save(const struct vault_keys *k, const char *path)
{
	CLEANUP(buf_wipe) struct buf text = BUF_INIT;
	int r;

	OBJ_CHECK(k, VAULT_KEYS_MAGIC);
	must(k->project[0] == '\0');
	r = vault_keys_format(k, &text);
	if (r < 0)
		return r;
	r = io_write_file(AT_FDCWD, path, text.data, text.len, 0600);
	return r == E_SYS && (errno == EACCES || errno == EPERM || errno == EROFS) ? E_DENIED
										   : r;
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
