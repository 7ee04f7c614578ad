/*
 * cmd/anvilctl/forge.h -- what a person has to enter in a forge to have it deliver here.
 */
#ifndef CMD_ANVILCTL_FORGE_H
#define CMD_ANVILCTL_FORGE_H

#include <stdio.h>

#include "gen/types.h"

/* "GitHub" */
const char *forge_name(enum provider p);
/* The word that `anvilctl webhook` takes.  0; or CTL_USAGE, explained. */
int forge_parse(const char *word, enum provider *ret);

/* The form of a new webhook, field by field; ${secret} NULL: the one that was given. */
void forge_tell_form(FILE *out, enum provider p, const char *delivery_url, const char *secret);
/* The one field that changes when the secret does. */
void forge_tell_secret(FILE *out, enum provider p, const char *secret);

#endif
