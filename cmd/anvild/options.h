/*
 * cmd/anvild/options.h -- the command line of anvild.
 */
#ifndef CMD_ANVILD_OPTIONS_H
#define CMD_ANVILD_OPTIONS_H

struct options {
	const char *config_path; /* -c; NULL: /etc/anvil/anvil.yml when it is there      */
	int test_only;           /* -t: print the effective configuration                */
	int stop_runs;           /* --stop-runs: SIGTERM ends running builds as well     */
	int check;               /* --check: version and integrity of supervisor.db      */
};

/* Ends the process for --help, --version (0) and mistakes (2). */
void options_read(struct options *o, int argc, char *argv[]);

#endif
