#include "cmd/anvil-run/token.h"

#include <stdio.h>

#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/base/mem.h"
#include "lib/vault/vault.h"
#include "lib/wire/wire.h"

static int
read_keys(struct proc *p, struct vault_keys **ret)
{
	CLEANUP(buf_wipe) struct buf text = BUF_INIT;
	const json_t *keys = proc_keys(p);
	int err = keys != NULL ? json_text_dump(&text, keys) : E_NOKEY;

	if (err == 0)
		err = vault_keys_parse((const char *)text.data, text.len, ret, NULL);
	return err == E_PARSE ? E_INVAL : err;
}

int
token_unseal(
    struct proc *p, const char *project_id, const struct sealed_value *sealed, struct buf *out)
{
	CLEANUP(vault_keys_freep) struct vault_keys *keys = NULL;
	CLEANUP(vault_sealed_done) struct vault_sealed s = { .key_version = 0 };
	char bound[sizeof("project_config||repo_token") + ID_SIZE];
	int err;

	if (sealed == NULL)
		return 0;
	err = read_keys(p, &keys);
	if (err < 0)
		return err;
	s.ciphertext = mem_strdup(sealed->ciphertext);
	if (s.ciphertext == NULL)
		return E_NOMEM;
	(void)snprintf(s.nonce, sizeof(s.nonce), "%s", sealed->nonce);
	s.key_version = sealed->key_version;
	(void)snprintf(bound, sizeof(bound), "project_config|%s|repo_token", project_id);
	return vault_open(keys, VAULT_REPO_TOKEN, project_id, bound, &s, out);
}
