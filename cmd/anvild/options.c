#include "cmd/anvild/options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/base.h"

#define EXIT_USAGE 2

static void
help(FILE *out)
{
	(void)fprintf(out,
	    "usage: anvild [-c FILE] [-t] [--stop-runs]\n"
	    "\n"
	    "The supervisor of anvil, a self-hosted CI runner: starts and watches the HTTP edge,\n"
	    "the project shards and a process for each run.\n"
	    "\n"
	    "  -c, --config FILE  configuration (default: /etc/anvil/anvil.yml when it exists,\n"
	    "                     else built-in defaults under ~/.local/state/anvil)\n"
	    "  -t, --test         check the configuration, print what is in force, and exit\n"
	    "      --stop-runs    on SIGTERM end running builds too (default: they go on, and\n"
	    "                     the next anvild takes them over)\n"
	    "      --check        check supervisor.db, print version and integrity, and exit\n"
	    "  -h, --help         this text\n"
	    "  -V, --version      the version\n"
	    "\n"
	    "SIGHUP re-reads the configuration; SIGTERM and SIGINT stop in an orderly way, a\n"
	    "second one ends running builds too, a third one waits for nobody.\n"
	    "Exit status: 0 stopped in order, 1 could not start or failed, 2 usage.\n"
	    "See anvild(8), anvil.yml(5), anvilctl(1).\n");
}

void
options_read(struct options *o, int argc, char *argv[])
{
	static const struct option longs[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "test", no_argument, NULL, 't' },
		{ "stop-runs", no_argument, NULL, 's' },
		{ "check", no_argument, NULL, 'C' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	*o = (struct options) { 0 };
	while ((c = getopt_long(argc, argv, "c:thV", longs, NULL)) != -1) {
		switch (c) {
		case 'c': o->config_path = optarg; break;
		case 't': o->test_only = 1; break;
		case 's': o->stop_runs = 1; break;
		case 'C': o->check = 1; break;
		case 'h': help(stdout); exit(0);
		case 'V': (void)printf("anvild %s\n", base_version()); exit(0);
		default: (void)fprintf(stderr, "try: anvild --help\n"); exit(EXIT_USAGE);
		}
	}
	if (optind < argc) {
		(void)fprintf(stderr, "anvild: unexpected word \"%s\"; try: anvild --help\n",
		    argv[optind]);
		exit(EXIT_USAGE);
	}
}
