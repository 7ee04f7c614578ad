#include "cmd/anvilctl/secret.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "cmd/anvilctl/ctl.h"
#include "lib/base/err.h"
#include "lib/base/utf8.h"

/* One line without its end, byte by byte: what follows belongs to the next reader.  An empty
 * one is as good as none. */
static int
read_line(struct buf *out)
{
	char c;
	ssize_t n;

	while ((n = read(STDIN_FILENO, &c, 1)) != 0 && (n < 0 || c != '\n')) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return E_SYS;
		if (out->len >= SECRET_BYTES_MAX)
			return E_TOO_BIG;
		if (buf_add_byte(out, (uint8_t)c) < 0)
			return E_NOMEM;
	}
	if (out->len > 0 && out->data[out->len - 1] == '\r')
		out->len--;
	return out->len == 0 ? E_EOF : 0;
}

/* Echo is back on whatever happens but a signal; the shell sees to that one. */
static int
ask(const char *what, const char *again, struct buf *out)
{
	struct termios before, silent;
	int r;

	if (tcgetattr(STDIN_FILENO, &before) < 0)
		return E_SYS;
	silent = before;
	silent.c_lflag &= (tcflag_t)~ECHO;
	silent.c_lflag |= ECHONL;
	(void)fprintf(stderr, "%s%s: ", what, again);
	if (tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent) < 0)
		return E_SYS;
	r = read_line(out);
	(void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
	return r;
}

static int
read_from_terminal(const char *what, int twice, struct buf *out)
{
	CLEANUP(buf_wipe) struct buf second = BUF_INIT;
	int r = ask(what, "", out);

	if (r < 0 || !twice)
		return r;
	r = ask(what, " again", &second);
	if (r == 0 && (second.len != out->len || memcmp(second.data, out->data, out->len) != 0))
		r = E_INVAL;
	return r;
}

int
secret_read(const char *what, int twice, struct buf *out)
{
	int r = isatty(STDIN_FILENO) ? read_from_terminal(what, twice, out) : read_line(out);

	switch (r) {
	case 0: break;
	case E_INVAL: return ctl_fail("the two differ; nothing was changed");
	case E_EOF:
		return ctl_fail(
		    "%s: nothing on standard input; give it there as one line", what);
	case E_TOO_BIG: return ctl_fail("%s: over %d bytes", what, SECRET_BYTES_MAX);
	default: return ctl_fail("%s: %s", what, err_text(r));
	}
	if (memchr(out->data, '\0', out->len) != NULL)
		return ctl_fail("%s: holds a NUL", what);
	/* A message would carry other bytes than these, and nobody would be told. */
	if (!utf8_valid((const char *)out->data, out->len))
		return ctl_fail("%s: is not UTF-8", what);
	return buf_cstr(out) != NULL ? 0 : ctl_fail_nomem();
}

int
secret_confirm(const char *question, const char *word)
{
	CLEANUP(buf_done) struct buf line = BUF_INIT;

	(void)fprintf(stderr, "%s\nType %s to go on: ", question, word);
	return read_line(&line) == 0 && buf_cstr(&line) != NULL &&
	    strcmp((const char *)line.data, word) == 0;
}
