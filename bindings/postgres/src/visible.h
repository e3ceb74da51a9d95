/* Which rows of a leaf the visibility map vouches for. */
#ifndef CAIRN_VISIBLE_H
#define CAIRN_VISIBLE_H

#include "cairn.h"

/* Words of a mask with a bit for each of `count` rows. */
#define CAIRN_MASK_WORDS(count) (((count) + 63) / 64)

extern bool cairn_leaf_visible(CairnWalk *walk, uint32 from, uint32 to, Relation heap, Buffer *map);
extern void cairn_rows_visible(CairnWalk *walk, const ItemPointerData *tids, int count, Relation heap, Buffer *map, uint64 *mask);

#endif							/* CAIRN_VISIBLE_H */
