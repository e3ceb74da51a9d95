/* Rows of a leaf, unpacked and filtered together. */
#ifndef CAIRN_BATCH_H
#define CAIRN_BATCH_H

#include "scan.h"

/* Few at first: a query with a LIMIT, or for one row, wants no more. */
#define CAIRN_FIRST_BATCH 32

extern void cairn_batch_free(CairnBatch *batch);
extern void cairn_batch_prepare(CairnScan *state, bool columns);
extern void cairn_batch_load(CairnScan *state, uint32 from, uint32 to, bool backward);
extern IndexTuple cairn_batch_tuple(CairnScan *state, int row);
extern IndexTuple cairn_row_tuple(CairnScan *state, uint32 row);
extern uint32 cairn_seek_tuple(CairnScan *state, IndexTuple key, bool behind);
extern bool cairn_filter_rows(CairnConditions *conditions, CairnWalk *walk, uint32 start, uint32 count, uint64 *mask);

/* Where row `index` of those that meet the conditions stands in the batch. */
static inline int
cairn_batch_row(const CairnBatch *batch, int index)
{
	return batch->all ? index : batch->selected[index];
}

#endif							/* CAIRN_BATCH_H */
