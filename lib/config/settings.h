/*
 * lib/config/settings.h -- the one table of settings; private to the folder.
 *
 * Reading, printing, JSON and comparing all walk it, so that a new setting is a row here and
 * a member of struct config.
 */
#ifndef LIB_CONFIG_SETTINGS_H
#define LIB_CONFIG_SETTINGS_H

#include "lib/config/config.h"

enum setting_type {
	SETTING_INT,  /* int64_t                               */
	SETTING_BOOL, /* int                                   */
	SETTING_TEXT, /* const char *                          */
	SETTING_LIST  /* struct config_list of checked strings */
};

/* Judges ${n} bytes and hands them out as they are kept, in ${arena} or in place.
 * 0, E_INVAL, E_NOMEM. */
typedef int setting_check(struct arena *arena, const char *in, size_t n, const char **ret);

struct setting {
	const char *section; /* "": at the top.                                  */
	const char *key;
	enum setting_type type;
	size_t offset;             /* In struct config.                                     */
	int64_t min, max, initial; /* Int and bool; of a list: how many; a whole number. */
	const char *initial_text;  /* Text, and the one string of a list; NULL: none.  */
	setting_check *check;      /* Text and list.                                   */
	const char *expected;      /* What would be right, for people.                 */
	int live;                  /* A running system takes it over.                  */
	int secret;                /* Never printed.                                   */
};

extern const struct setting settings[];
extern const size_t nsettings;

/* A config of nothing but defaults; NULL: out of memory. */
struct config *settings_new(void);

/* Where the value of ${s} lives in ${c}. */
int64_t *setting_int(struct config *c, const struct setting *s);
int *setting_bool(struct config *c, const struct setting *s);
const char **setting_text(struct config *c, const struct setting *s);
struct config_list *setting_list(struct config *c, const struct setting *s);

int64_t setting_get_int(const struct config *c, const struct setting *s);
int setting_get_bool(const struct config *c, const struct setting *s);
const char *setting_get_text(const struct config *c, const struct setting *s);
const struct config_list *setting_get_list(const struct config *c, const struct setting *s);

/* values.c: what a text may be. */
setting_check value_user, value_path, value_optional_path, value_listen, value_url,
    value_address, value_level, value_sandbox, value_token;

#endif
