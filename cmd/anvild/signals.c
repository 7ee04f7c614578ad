#include "cmd/anvild/signals.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cmd/anvild/reload.h"
#include "cmd/anvild/stop.h"
#include "cmd/anvild/supervisor.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"

struct signals {
	struct supervisor *sup;
	int fd;
	struct actor_watch *watch;
};

static void
on_signal(void *arg, int fd, enum watch_what what)
{
	struct signals *g = arg;
	struct signalfd_siginfo info;

	(void)what;
	while (read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGHUP)
			reload(g->sup);
		else
			stop_asked(g->sup->stop);
	}
}

struct signals *
signals_new(struct supervisor *s)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct signals *g = mem_calloc(1, sizeof(*g));
	sigset_t set;

	if (g == NULL)
		return NULL;
	g->sup = s;
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGHUP);
	(void)sigaction(SIGPIPE, &ignore, NULL);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	g->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (g->fd >= 0)
		g->watch = actor_watch_new(s->actor, g->fd, WATCH_READ, on_signal, g);
	return g->watch != NULL ? g : signals_free(g);
}

struct signals *
signals_free(struct signals *g)
{
	if (g == NULL)
		return NULL;
	actor_watch_free(g->watch);
	io_close(&g->fd);
	free(g);
	return NULL;
}
