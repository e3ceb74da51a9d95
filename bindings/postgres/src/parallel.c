/*
 * Parallel scans: each process claims the next unit of the tree by number, and walks there on its own through the inner pages. The first
 * one fixes which tree that is and takes the tail. Its pin keeps the tree; whoever comes after a merge does not join, and the first
 * one claims what is left.
 */
#include "scan.h"

#include "access/relscan.h"

/* Units that are all claimed. */
#define CAIRN_ALL_UNITS PG_UINT32_MAX

Size
#if PG_VERSION_NUM >= 180000
cairn_estimate_parallel(Relation rel, int keys, int order_bys)
#elif PG_VERSION_NUM >= 170000
cairn_estimate_parallel(int keys, int order_bys)
#else
cairn_estimate_parallel(void)
#endif
{
	return sizeof(CairnParallel);
}

void
cairn_init_parallel(void *target)
{
	CairnParallel *parallel = target;

	SpinLockInit(&parallel->lock);
	parallel->started = false;
	parallel->generation = 0;
	parallel->next_unit = 0;
}

static CairnParallel *
shared(IndexScanDesc scan)
{
	if (scan->parallel_scan == NULL)
		return NULL;
#if PG_VERSION_NUM >= 180000
	return (CairnParallel *) OffsetToPointer(scan->parallel_scan, scan->parallel_scan->ps_offset_am);
#else
	return (CairnParallel *) OffsetToPointer(scan->parallel_scan, scan->parallel_scan->ps_offset);
#endif
}

void
cairn_rescan_parallel(IndexScanDesc scan)
{
	CairnParallel *parallel = shared(scan);

	SpinLockAcquire(&parallel->lock);
	parallel->started = false;
	parallel->next_unit = 0;
	SpinLockRelease(&parallel->lock);
}

/* Says whether this process reads rows of the tree, and the tail. */
void
cairn_parallel_join(IndexScanDesc scan, const CairnMetaData *meta, bool backward, bool *rows, bool *tail)
{
	CairnScan  *state = (CairnScan *) scan->opaque;
	CairnParallel *parallel = shared(scan);

	state->parallel = parallel;
	*rows = *tail = true;
	if (parallel == NULL)
		return;
	SpinLockAcquire(&parallel->lock);
	if (!parallel->started)
	{
		parallel->started = true;
		parallel->generation = meta->generation;
		/* Backward, one process does it all. */
		if (backward)
		{
			parallel->next_unit = CAIRN_ALL_UNITS;
			state->parallel = NULL;
		}
	}
	else
	{
		*tail = false;
		*rows = parallel->generation == meta->generation && parallel->next_unit != CAIRN_ALL_UNITS;
	}
	SpinLockRelease(&parallel->lock);
}

static uint32
claim(CairnParallel *parallel)
{
	uint32		unit;

	SpinLockAcquire(&parallel->lock);
	unit = parallel->next_unit;
	if (unit != CAIRN_ALL_UNITS)
		parallel->next_unit++;
	SpinLockRelease(&parallel->lock);
	return unit;
}

/* To the first unit of ours. Unit 0 is where the range begins, at `lower`. */
bool
cairn_parallel_seek(CairnParallel *parallel, CairnWalk *walk, const CairnBound *lower, uint32 *unit)
{
	uint32		claimed = claim(parallel);

	*unit = 0;
	if (!cairn_walk_seek(walk, lower))
		return false;
	if (claimed > 0 && !cairn_walk_skip_units(walk, claimed))
		return false;
	*unit = claimed;
	return true;
}

/* To the next leaf of ours: of the same unit, or of the next one that nobody has claimed. */
bool
cairn_parallel_next(CairnParallel *parallel, CairnWalk *walk, uint32 *unit)
{
	uint32		claimed;

	if (cairn_walk_next_in_unit(walk))
		return true;
	claimed = claim(parallel);
	if (!cairn_walk_skip_units(walk, claimed - *unit))
		return false;
	*unit = claimed;
	return true;
}
