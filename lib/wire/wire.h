/*
 * lib/wire/wire.h -- what anvil's processes say to one another, and how.
 *
 * JSON texts in and out, codecs for generated code, frames, JSON-RPC peers, links, clients.
 */
#ifndef LIB_WIRE_WIRE_H
#define LIB_WIRE_WIRE_H

#include "lib/wire/client.h"
#include "lib/wire/codec.h"
#include "lib/wire/frame.h"
#include "lib/wire/json.h"
#include "lib/wire/link.h"
#include "lib/wire/rpc.h"
#include "lib/wire/stub.h"

#endif
