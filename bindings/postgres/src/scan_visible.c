/*
 * Rows that the access method has to look up in the heap itself, before an index-only scan asks the visibility map about them. The map is right
 * about a row that VACUUM cannot have removed since it was read: a row of a leaf, while the leaf is pinned. Others are those of a scan's copy of the
 * tail, and on a standby all, for replay does not wait for pins. A row that the snapshot sees stays where it is for as long as the snapshot.
 */
#include "scan.h"

#include "access/tableam.h"
#include "executor/tuptable.h"

#include "batch.h"
#include "visible.h"

/* Whether PostgreSQL's node above is going to trust the map. */
static bool
is_index_only(IndexScanDesc scan)
{
	return scan->xs_want_itup && scan->heapRelation != NULL && scan->xs_heapfetch != NULL;
}

static bool
in_heap(IndexScanDesc scan, const ItemPointerData *place)
{
	CairnScan  *state = (CairnScan *) scan->opaque;
	ItemPointerData tid = *place;
	bool		again = false;
	bool		visible;

	if (state->slot == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(GetMemoryChunkContext(state));

		state->slot = table_slot_create(scan->heapRelation, NULL);
		MemoryContextSwitchTo(old);
	}
	visible = table_index_fetch_tuple(scan->xs_heapfetch, &tid, scan->xs_snapshot, state->slot, &again, NULL);
	ExecClearTuple(state->slot);
	return visible;
}

bool
cairn_scan_tail_row_visible(IndexScanDesc scan, IndexTuple tuple)
{
	return !is_index_only(scan) || in_heap(scan, &tuple->t_tid);
}

/* Whether row `at` of the batch may be handed out. */
bool
cairn_scan_tree_row_visible(IndexScanDesc scan, int at)
{
	CairnScan  *state = (CairnScan *) scan->opaque;
	CairnBatch *batch = &state->batch;

	if (!state->walk.copies || !is_index_only(scan))
		return true;
	if (state->vouched == NULL)
		state->vouched = MemoryContextAlloc(GetMemoryChunkContext(state), CAIRN_MASK_WORDS(CAIRN_BATCH) * sizeof(uint64));
	if (!state->vouched_known)
		cairn_rows_visible(&state->walk, batch->tid, batch->count, scan->heapRelation, &state->map, state->vouched);
	state->vouched_known = true;
	return (state->vouched[at / 64] & (UINT64CONST(1) << (at % 64))) != 0 || in_heap(scan, &batch->tid[at]);
}

void
cairn_scan_visible_end(CairnScan *state)
{
	if (state->slot != NULL)
		ExecDropSingleTupleTableSlot(state->slot);
	state->slot = NULL;
	if (BufferIsValid(state->map))
		ReleaseBuffer(state->map);
	state->map = InvalidBuffer;
}
