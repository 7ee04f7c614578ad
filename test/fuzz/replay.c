/*
 * test/fuzz/replay.c -- runs a fuzz target over files, without a fuzzing engine.
 *
 * Arguments are files, or folders whose files are taken.  The empty input always comes first.
 * An input is handed over in a block of exactly its size, so that a sanitizer sees a read past
 * its end.  Ends with 1 when there was no file at all: a lost corpus must not pass.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int
replay_file(const char *path, const struct stat *st)
{
	size_t size = (size_t)st->st_size;
	uint8_t *data = malloc(size > 0 ? size : 1);
	FILE *f = fopen(path, "rb");
	int r = -1;

	if (f != NULL && data != NULL && fread(data, 1, size, f) == size) {
		/* The name is on record before the input can end the process. */
		printf("%s\n", path);
		fflush(stdout);
		LLVMFuzzerTestOneInput(data, size);
		r = 0;
	} else {
		perror(path);
	}
	if (f != NULL)
		fclose(f);
	free(data);
	return r;
}

/* Number of files replayed, or -1 when one cannot be read. */
static long
replay(const char *path)
{
	struct dirent **entries;
	struct stat st;
	char *child;
	long done = 0, r;
	int n, i;

	if (stat(path, &st) < 0) {
		perror(path);
		return -1;
	}
	if (!S_ISDIR(st.st_mode))
		return replay_file(path, &st) < 0 ? -1 : 1;
	n = scandir(path, &entries, NULL, alphasort);
	if (n < 0) {
		perror(path);
		return -1;
	}
	for (i = 0; i < n; i++) {
		if (entries[i]->d_name[0] != '.' && done >= 0 &&
		    asprintf(&child, "%s/%s", path, entries[i]->d_name) > 0) {
			r = replay(child);
			done = r < 0 ? -1 : done + r;
			free(child);
		}
		free(entries[i]);
	}
	free(entries);
	return done;
}

int
main(int argc, char *argv[])
{
	uint8_t *none = calloc(1, 1);
	long done = 0, r;
	int i;

	LLVMFuzzerTestOneInput(none, 0);
	free(none);
	for (i = 1; i < argc; i++) {
		r = replay(argv[i]);
		if (r < 0)
			return 1;
		done += r;
	}
	printf("%ld inputs replayed\n", done);
	return done > 0 ? 0 : 1;
}
