/*
 * lib/actor/trace.h -- what a process tells about itself when asked, as log lines.
 *
 * Off unless the environment variable ANVIL_TRACE names bits: ANVIL_TRACE=wire,turn.
 */
#ifndef LIB_ACTOR_TRACE_H
#define LIB_ACTOR_TRACE_H

#define TRACE_BITS                                                  \
	TRACE(WIRE, "wire", "frames in and out, lengths only")      \
	TRACE(TURN, "turn", "turns: method, microseconds, verdict") \
	TRACE(LINK, "link", "connections that come and go")         \
	TRACE(BATCH, "batch", "commits: turns, what became of them")

enum trace_index {
#define TRACE(sym, name, text) TRACE_INDEX_##sym,
	TRACE_BITS
#undef TRACE
};

enum trace_bit {
#define TRACE(sym, name, text) TRACE_##sym = 1 << TRACE_INDEX_##sym,
	TRACE_BITS
#undef TRACE
};

/* Words of the bits, comma between; unknown words are ignored, NULL is none. */
void trace_set(const char *words);
int trace_on(enum trace_bit bit);

#endif
