/*
 * cmd/anvil-ingress/ui.h -- the web interface, embedded in the program (spec ui 1).
 *
 * Its files lie in ui/; gen/ui_files.c holds them.  Every path that is no file's is the one
 * document, whose scripts know what belongs there.
 */
#ifndef CMD_ANVIL_INGRESS_UI_H
#define CMD_ANVIL_INGRESS_UI_H

#include <stddef.h>

struct exchange;
struct http_blob;

struct ui_file {
	const char *path; /* "/assets/main.js" */
	const char *type;
	const char *etag; /* In its quotes. */
	const char *begin, *end;
};

extern const struct ui_file ui_files[];
extern const size_t ui_nfiles;

/* The document, with the path of ${public_url} as the base of its addresses and ${version} in its
 * head.  NULL: out of memory. */
struct http_blob *ui_document(const char *public_url, const char *version);

/* Answers a GET or HEAD of anything outside of the API: the file, 304, the document, or 404 for
 * what should be a file. */
void ui_answer(struct exchange *x);

#endif
