/*
 * cmd/anvil-init/main.c -- PID 1 of a sandbox; holds nothing and knows nothing of anvil.
 *
 * A program of its own, linked statically, because each step pays for its start.
 */
#include "lib/sandbox/sandbox.h"

int
main(int argc, char *argv[])
{
	return sandbox_init_main(argc, argv);
}
