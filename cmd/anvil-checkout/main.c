/*
 * cmd/anvil-checkout/main.c -- the child of a run that does all git; holds the repository token
 * while it fetches, and nothing else of anvil.
 *
 * A program of its own, because libgit2 and what it needs take long to load and much memory:
 * here that happens while the run still claims, and never in the process that stays.
 *
 *	anvil-checkout REQUEST_FD RESULT_FD
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/base.h"
#include "lib/checkout/checkout.h"

#define EXIT_USAGE 2

/* -1: not the number of an open descriptor behind the standard ones. */
static int
descriptor(const char *text)
{
	char *end;
	long n = strtol(text, &end, 10);

	return *text != '\0' && *end == '\0' && n > 2 && n < 1 << 20 &&
		fcntl((int)n, F_GETFD) >= 0
	    ? (int)n
	    : -1;
}

int
main(int argc, char *argv[])
{
	int request = argc == 3 ? descriptor(argv[1]) : -1;
	int result = argc == 3 ? descriptor(argv[2]) : -1;

	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		(void)printf("anvil-checkout %s\n", base_version());
		return 0;
	}
	if (request < 0 || result < 0 || request == result) {
		(void)fprintf(stderr,
		    "usage: anvil-checkout REQUEST_FD RESULT_FD\n"
		    "The checkout child of a run; anvil-run starts it.\n");
		return EXIT_USAGE;
	}
	return checkout_child_main(request, result);
}
