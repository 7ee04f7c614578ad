/*
 * test/soak/soak.h -- what the parts of the soak share.
 */
#ifndef TEST_SOAK_SOAK_H
#define TEST_SOAK_SOAK_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "test/soak/book.h"

struct soak {
	/* What was asked for. */
	uint64_t seed;
	long seconds;
	const char *dir; /* Scratch, absolute: data/ and run/ are below it, or below disk. */
	const char
	    *data_dir; /* Of the configuration.                                          */
	const char *run_dir;
	const char *conf;
	const char *programs;
	const char *git;   /* URL of the server of gitea's and gitlab's repositories.      */
	const char *local; /* Path of the repository.                                       */
	const char *commit;
	const char *disk; /* A small file system that data_dir is on; NULL: it is on none. */
	int port;
	int beacons; /* UDP port.                                                     */
	/* What goes on. */
	struct book book;
	char session[64];
	_Atomic int loading; /* Senders and viewers go on.                          */
	_Atomic int keeping; /* anvild is started again when it ends.               */
	_Atomic int calm;    /* No fault is under way.                              */
	_Atomic pid_t pid;   /* Of anvild; 0: there is none.                        */
};

#endif
