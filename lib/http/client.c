#include "lib/http/client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"

static const uint8_t v4_prefix[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

static void
addr_set_v4(struct client_addr *a, const void *four)
{
	memcpy(a->ip, v4_prefix, sizeof(v4_prefix));
	memcpy(a->ip + 12, four, 4);
}

void
client_addr_set(struct client_addr *a, const struct sockaddr_storage *ss)
{
	memset(a, 0, sizeof(*a));
	if (ss->ss_family == AF_INET)
		addr_set_v4(a, &((const struct sockaddr_in *)(const void *)ss)->sin_addr);
	else if (ss->ss_family == AF_INET6)
		memcpy(a->ip, &((const struct sockaddr_in6 *)(const void *)ss)->sin6_addr, 16);
	else
		a->is_unix = 1;
}

static int
addr_is_v4(const uint8_t ip[16])
{
	return memcmp(ip, v4_prefix, sizeof(v4_prefix)) == 0;
}

int
client_addr_is_local(const struct client_addr *a)
{
	static const uint8_t loopback[16] = { [15] = 1 };

	return a->is_unix || memcmp(a->ip, loopback, 16) == 0 ||
	    (addr_is_v4(a->ip) && a->ip[12] == 127);
}

void
client_addr_format(const struct client_addr *a, char out[CLIENT_TEXT_SIZE])
{
	if (a->is_unix)
		memcpy(out, "unix", sizeof("unix"));
	else if (addr_is_v4(a->ip))
		inet_ntop(AF_INET, a->ip + 12, out, CLIENT_TEXT_SIZE);
	else
		inet_ntop(AF_INET6, a->ip, out, CLIENT_TEXT_SIZE);
}

/* 0 or E_INVAL; ${ret_bits}: 32 or 128. */
static int
addr_parse(struct client_addr *a, const char *text, int *ret_bits)
{
	uint8_t four[4];

	memset(a, 0, sizeof(*a));
	if (inet_pton(AF_INET, text, four) == 1) {
		addr_set_v4(a, four);
		*ret_bits = 32;
		return 0;
	}
	*ret_bits = 128;
	return inet_pton(AF_INET6, text, a->ip) == 1 ? 0 : E_INVAL;
}

/* ---- trusted proxies ----------------------------------------------------------------- */

/* "/24" and the like; -1: malformed. */
static int
bits_parse(const char *text, int max)
{
	int bits = 0;

	if (*text == '\0')
		return -1;
	for (; *text != '\0'; text++) {
		if (*text < '0' || *text > '9')
			return -1;
		bits = bits * 10 + (*text - '0');
		if (bits > max)
			return -1;
	}
	return bits;
}

int
client_proxies_add(struct client_proxies *p, const char *cidr)
{
	const char *slash = strchr(cidr, '/');
	size_t n = slash != NULL ? (size_t)(slash - cidr) : strlen(cidr);
	char text[CLIENT_TEXT_SIZE];
	struct client_net *nets;
	struct client_addr a;
	int max, bits;

	if (n >= sizeof(text))
		return E_INVAL;
	memcpy(text, cidr, n);
	text[n] = '\0';
	if (addr_parse(&a, text, &max) < 0)
		return E_INVAL;
	bits = slash != NULL ? bits_parse(slash + 1, max) : max;
	if (bits < 0)
		return E_INVAL;
	nets = mem_realloc(p->nets, (p->n + 1) * sizeof(*nets));
	if (nets == NULL)
		return E_NOMEM;
	p->nets = nets;
	memcpy(nets[p->n].ip, a.ip, 16);
	nets[p->n++].bits = (uint8_t)(bits + 128 - max);
	return 0;
}

void
client_proxies_done(struct client_proxies *p)
{
	free(p->nets);
	p->nets = NULL;
	p->n = 0;
}

static int
net_has(const struct client_net *net, const uint8_t ip[16])
{
	size_t whole = net->bits / 8;
	unsigned rest = net->bits % 8;

	if (memcmp(net->ip, ip, whole) != 0)
		return 0;
	return rest == 0 || ((net->ip[whole] ^ ip[whole]) >> (8 - rest)) == 0;
}

static int
is_trusted(const struct client_proxies *p, const struct client_addr *a)
{
	size_t i;

	if (a->is_unix)
		return 1;
	for (i = 0; i < p->n; i++)
		if (net_has(&p->nets[i], a->ip))
			return 1;
	return 0;
}

/* ---- X-Forwarded-For ----------------------------------------------------------------- */

/* One entry: an address, as some proxies write it with a port, IPv6 then in brackets. */
static int
entry_parse(const char *p, size_t n, struct client_addr *ret)
{
	char text[CLIENT_TEXT_SIZE + 8];
	char *at = text, *end;
	int bits;

	if (n == 0 || n >= sizeof(text))
		return E_INVAL;
	memcpy(text, p, n);
	text[n] = '\0';
	if (text[0] == '[') {
		end = strchr(text, ']');
		if (end == NULL || (end[1] != '\0' && end[1] != ':'))
			return E_INVAL;
		*end = '\0';
		at++;
	} else {
		end = strchr(text, ':');
		if (end != NULL && strchr(end + 1, ':') == NULL)
			*end = '\0';
	}
	return addr_parse(ret, at, &bits);
}

/* Reads one header value from the right.  1: ${ret} is decided. */
static int
value_resolve(const struct client_proxies *p, const char *value, struct client_addr *ret)
{
	size_t end = strlen(value);

	for (;;) {
		size_t begin = end, stop = end;
		struct client_addr a;

		while (begin > 0 && value[begin - 1] != ',')
			begin--;
		end = begin;
		while (begin < stop && (value[begin] == ' ' || value[begin] == '\t'))
			begin++;
		while (stop > begin && (value[stop - 1] == ' ' || value[stop - 1] == '\t'))
			stop--;
		if (entry_parse(value + begin, stop - begin, &a) < 0)
			return 1;
		*ret = a;
		if (!is_trusted(p, &a))
			return 1;
		if (end == 0)
			return 0;
		end--;
	}
}

void
client_resolve(const struct client_proxies *p, const struct client_addr *peer,
    const struct head *h, struct client_addr *ret)
{
	uint32_t i;

	*ret = *peer;
	if (!is_trusted(p, peer))
		return;
	for (i = h->nfields; i-- > 0;)
		if (strcasecmp(head_text(h, h->fields[i].name), "X-Forwarded-For") == 0 &&
		    value_resolve(p, head_text(h, h->fields[i].value), ret))
			return;
}
