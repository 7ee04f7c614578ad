#include <errno.h>
#include <string.h>

#include <sodium.h>

#include "lib/base/err.h"
#include "lib/vault/keys.h"

_Static_assert(crypto_pwhash_STRBYTES == VAULT_PASSWORD_SIZE, "size of a stored hash");

/* Checked when there is no hash to check.  Its password was random and is known to nobody. */
static const char dummy_hash[VAULT_PASSWORD_SIZE] =
    "$argon2id$v=19$m=65536,t=2,p=1$QUD5TZAB0TUZZHfPpQnSaQ"
    "$V59XQEIYRr55QeJVpz7x5fVF4QCv+/17odrJasvNhwk";

const char *
vault_password_dummy(void)
{
	return dummy_hash;
}

int
vault_password_hash(const char *password, size_t n, char out[VAULT_PASSWORD_SIZE])
{
	if (n > VAULT_PASSWORD_MAX)
		return E_RANGE;
	vault_ready();
	return crypto_pwhash_str(out, password, n, crypto_pwhash_OPSLIMIT_INTERACTIVE,
		   crypto_pwhash_MEMLIMIT_INTERACTIVE) == 0
	    ? 0
	    : E_NOMEM;
}

int
vault_password_verify(const char *stored, const char *password, size_t n)
{
	char hash[VAULT_PASSWORD_SIZE] = { 0 };
	int usable = stored != NULL && strnlen(stored, sizeof(hash)) < sizeof(hash) &&
	    n <= VAULT_PASSWORD_MAX;

	vault_ready();
	strncpy(hash, usable ? stored : dummy_hash, sizeof(hash) - 1);
	errno = 0;
	if (crypto_pwhash_str_verify(hash, password, min_size(n, VAULT_PASSWORD_MAX)) == 0)
		return usable;
	return errno == ENOMEM ? E_NOMEM : 0;
}
