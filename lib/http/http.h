/*
 * lib/http/http.h -- the HTTP/1.1 server of the edge (spec http-api 2), without any policy.
 *
 * It reads requests strictly, asks what to do after the headers, takes bodies in the way the
 * handler chose, and writes answers at the pace of each client, on one event loop.  It knows
 * nothing of routes, users, JSON or logs; those come in through hooks.
 *
 * Why a server of our own with a parser of our own.  Both candidates were put before 33 odd
 * requests.
 *  - libmicrohttpd 0.9.75, at its strictest, answers 200 to two Content-Lengths, to
 *    Content-Length with Transfer-Encoding, to bare LF, to two Hosts, to obs-fold, to a space
 *    before the colon and to NUL in a value, and leaves unknown transfer codings hanging.  It
 *    has one idle timer instead of three deadlines, does not watch the client of a suspended
 *    request, keeps a memory pool for each idle connection, and listens on one descriptor.
 *  - http_parser 2.9.4 refuses the doubled lengths, but the library as packaged is built
 *    without its strict mode: it takes bare LF, HTTP/0.9, any HTTP/1.x, missing and several
 *    Hosts, obs-fold, spaces in header names and around chunk sizes, and any two bytes where
 *    the CRLF behind a chunk belongs.  What it leaves out is the grammar itself, so that the
 *    checks around it would be a second parser, and one that must never disagree.
 * Hence head.c and body.c read the grammar of RFC 9112 with its lenient options refused, on
 * sockets and plain events (a bufferevent costs an idle connection more than all the rest).
 * http_parser serves as the oracle of the tests: whatever is accepted here, it must accept
 * and read in the same way.
 */
#ifndef LIB_HTTP_HTTP_H
#define LIB_HTTP_HTTP_H

#include "lib/http/answer.h"
#include "lib/http/request.h"
#include "lib/http/route.h"
#include "lib/http/server.h"
#include "lib/http/ws.h"

#endif
