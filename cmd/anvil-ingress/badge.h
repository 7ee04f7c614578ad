/*
 * cmd/anvil-ingress/badge.h -- the status badge of a project, for those who read its README.
 *
 * GET /badge/{ownerSlug}/{projectSlug}.svg shows everybody how the newest run of the default
 * branch went, as far as the index knows, when the project's `badgePublic` is on.
 */
#ifndef CMD_ANVIL_INGRESS_BADGE_H
#define CMD_ANVIL_INGRESS_BADGE_H

struct buf;
struct exchange;

int badge_is_path(const char *path);

/* Answers a GET or HEAD of such a path: the picture, 304, or `not_found`, which does not tell a
 * project without a badge from none. */
void badge_answer(struct exchange *x);

/* Adds the picture of a status, NULL: there was no run, as SVG.  Failure shows in ${out}. */
void badge_draw(struct buf *out, const char *status);

#endif
