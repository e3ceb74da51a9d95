/*
 * VACUUM: rows whose tuples are dead leave their leaf, which is packed anew in its place. Rows that compressed well together may take
 * more room when some of them are missing; then the leaf becomes an inner page over several new leaves.
 *
 * An index-only scan believes the visibility map about rows it has read. So a leaf changes only under a cleanup lock, when no
 * scan holds rows of it, and the trees of scans that began before a merge are waited for first.
 */
#include "cairn.h"

#include "commands/vacuum.h"
#include "miscadmin.h"
#include "storage/indexfsm.h"
#include "nodes/pg_list.h"
#include "storage/lmgr.h"

#if PG_VERSION_NUM >= 180000
#define vacuum_delay_point_compat() vacuum_delay_point(false)
#else
#define vacuum_delay_point_compat() vacuum_delay_point()
#endif

typedef struct VacuumState
{
	CairnIndex *index;
	CairnWalk	walk;
	IndexBulkDeleteCallback callback;
	void	   *argument;
	IndexBulkDeleteResult *stats;
	ItemPointerData *tids;		/* of the leaf */
	bool	   *dead;
	MemoryContext context;		/* of the leaf at hand */
} VacuumState;

/*
 * Odd: rows are being removed. An aggregate that saw the same even number before and after has not missed a removal. `rows`: what the tree holds at the
 * end; null to leave the count as it is.
 */
static void
step_sequence(Relation rel, bool begin, const double *rows)
{
	Buffer		buffer = cairn_read(rel, CAIRN_META_BLOCK, BUFFER_LOCK_EXCLUSIVE);
	GenericXLogState *log = GenericXLogStart(rel);
	CairnMetaData *meta = cairn_meta(rel, GenericXLogRegisterBuffer(log, buffer, 0));

	/* A VACUUM that was cut off leaves it odd; the next one goes on from there. */
	if (begin)
		meta->vacuum_seq = (meta->vacuum_seq + 2) | 1;
	else
		meta->vacuum_seq++;
	if (rows != NULL)
		meta->rows = (uint64) *rows;
	GenericXLogFinish(log);
	UnlockReleaseBuffer(buffer);
}

/* Packs the rows that live. The values of a leaf are copied row by row: the packer takes them as a build does. */
static CairnWriter *
repack(VacuumState *state)
{
	CairnIndex *index = state->index;
	CairnWriter *writer = cairn_writer_begin(index, state->walk.generation);
	Datum		values[INDEX_MAX_KEYS];
	bool		nulls[INDEX_MAX_KEYS];
	MemoryContext row = AllocSetContextCreate(CurrentMemoryContext, "cairn vacuum row", ALLOCSET_SMALL_SIZES);

	writer->collects = true;
	for (uint32 at = 0; at < state->walk.rows; at++)
	{
		MemoryContext old;

		if (state->dead[at])
			continue;
		old = MemoryContextSwitchTo(row);
		for (int i = 0; i < index->columns; i++)
			nulls[i] = cairn_leaf_datum(&state->walk, i, at, &values[i]);
		cairn_writer_add(writer, &state->tids[at], values, nulls);
		MemoryContextSwitchTo(old);
		MemoryContextReset(row);
	}
	cairn_writer_flush(writer);
	return writer;
}

/* Puts what was packed in place of the leaf, whose buffer is locked for cleanup. */
static void
replace_leaf(VacuumState *state, CairnWriter *writer, Buffer buffer)
{
	Relation	rel = state->index->rel;
	GenericXLogState *log;

	if (list_length(writer->images) <= 1)
	{
		CairnImage *image = writer->images == NIL ? NULL : linitial(writer->images);
		CairnImage	none = {0};

		if (image == NULL)
		{
			/* A leaf of no rows stays until the next merge. */
			const uint8_t *bytes;
			int			code = cairn_packer_empty(writer->packer, &bytes, &none.count);

			if (code < 0)
				cairn_codec_failed(rel, BufferGetBlockNumber(buffer), writer->leaf, code);
			none.bytes = (uint8_t *) bytes;
			image = &none;
		}
		log = GenericXLogStart(rel);
		cairn_write_leaf(GenericXLogRegisterBuffer(log, buffer, GENERIC_XLOG_FULL_IMAGE), state->walk.generation,
						 image->bytes, image->count);
		GenericXLogFinish(log);
		return;
	}
	{
		ListCell   *cell;
		PGAlignedBlock top;
		int			to;

		foreach(cell, writer->images)
		{
			CairnImage *image = lfirst(cell);

			cairn_writer_put(writer, image->bytes, image->count);
		}
		/* Long keys of many parts take more than the page: then it is the top of a tree of its own. */
		for (;;)
		{
			to = writer->child_count;
			cairn_page_init((Page) top.data, CAIRN_SPLIT, state->walk.generation);
			cairn_fill_inner(state->index, (Page) top.data, writer->children, 0, &to);
			if (to == writer->child_count)
				break;
			cairn_writer_level(writer, CAIRN_SPLIT);
		}
		log = GenericXLogStart(rel);
		memcpy(GenericXLogRegisterBuffer(log, buffer, GENERIC_XLOG_FULL_IMAGE), top.data, BLCKSZ);
		GenericXLogFinish(log);
	}
}

static void
vacuum_leaf(VacuumState *state)
{
	CairnWalk  *walk = &state->walk;
	uint32		dead = 0;
	int			code = cairn_leaf_tids(walk->leaf, 0, walk->rows, state->tids);

	if (code < 0)
		cairn_codec_failed(state->index->rel, BufferGetBlockNumber(walk->leaf_buffer), walk->leaf, code);
	for (uint32 at = 0; at < walk->rows; at++)
	{
		state->dead[at] = state->callback(&state->tids[at], state->argument);
		dead += state->dead[at];
	}
	state->stats->num_index_tuples += walk->rows - dead;
	if (dead > 0)
	{
		MemoryContext old = MemoryContextSwitchTo(state->context);
		CairnWriter *writer;

		/* Only VACUUM changes leaves, so what was packed before the lock is what is there under it. */
		writer = repack(state);
		LockBufferForCleanup(walk->leaf_buffer);
		replace_leaf(state, writer, walk->leaf_buffer);
		LockBuffer(walk->leaf_buffer, BUFFER_LOCK_UNLOCK);
		MemoryContextSwitchTo(old);
		MemoryContextReset(state->context);
		state->stats->tuples_removed += dead;
	}
}

static void
vacuum_tail(VacuumState *state, BlockNumber head)
{
	Relation	rel = state->index->rel;

	while (BlockNumberIsValid(head))
	{
		Buffer		buffer = cairn_read(rel, head, BUFFER_LOCK_EXCLUSIVE);
		Page		page = BufferGetPage(buffer);
		OffsetNumber count = PageGetMaxOffsetNumber(page);
		OffsetNumber dead[MaxIndexTuplesPerPage];
		int			dead_count = 0;

		if (CairnOpaque(page)->kind != CAIRN_TAIL)
			cairn_page_damaged(rel, head, "the page is not a tail page");
		/* More than fit are tuples that lie on one another. */
		if (count > MaxIndexTuplesPerPage)
			cairn_page_damaged(rel, head, "the page has more tuples than a page holds");
		for (OffsetNumber at = FirstOffsetNumber; at <= count; at++)
		{
			IndexTuple	tuple = cairn_tail_row(rel, head, page, at);

			if (state->callback(&tuple->t_tid, state->argument))
				dead[dead_count++] = at;
			else
				state->stats->num_index_tuples++;
		}
		if (dead_count > 0)
		{
			GenericXLogState *log = GenericXLogStart(rel);

			PageIndexMultiDelete(GenericXLogRegisterBuffer(log, buffer, 0), dead, dead_count);
			GenericXLogFinish(log);
			state->stats->tuples_removed += dead_count;
		}
		head = CairnOpaque(BufferGetPage(buffer))->next;
		UnlockReleaseBuffer(buffer);
		vacuum_delay_point_compat();
	}
}

IndexBulkDeleteResult *
cairn_bulk_delete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats, IndexBulkDeleteCallback callback, void *argument)
{
	VacuumState state = {0};
	CairnMetaData meta;
	double		rows;

	if (stats == NULL)
		stats = palloc0(sizeof(IndexBulkDeleteResult));
	stats->num_index_tuples = 0;
	state.index = cairn_index_open(info->index);
	state.callback = callback;
	state.argument = argument;
	state.stats = stats;
	state.tids = MemoryContextAllocHuge(CurrentMemoryContext, CAIRN_MAX_ROWS * sizeof(ItemPointerData));
	state.dead = palloc(CAIRN_MAX_ROWS * sizeof(bool));
	state.context = AllocSetContextCreate(CurrentMemoryContext, "cairn vacuum", ALLOCSET_DEFAULT_SIZES);
	cairn_free_retired(state.index, true);
	step_sequence(info->index, true, NULL);
	meta = cairn_read_meta(info->index);
	cairn_walk_begin(&state.walk, state.index, &meta, cairn_new_leaf(CurrentMemoryContext));
	/* The root may be the leaf that has to be free of pins. Nobody but us replaces it meanwhile. */
	if (BufferIsValid(state.walk.root_pin))
		ReleaseBuffer(state.walk.root_pin);
	state.walk.root_pin = InvalidBuffer;
	if (cairn_walk_edge(&state.walk, false))
		do
		{
			vacuum_leaf(&state);
			vacuum_delay_point_compat();
		} while (cairn_walk_next(&state.walk));
	cairn_walk_release(&state.walk);
	rows = stats->num_index_tuples;
	vacuum_tail(&state, meta.frozen_head);
	vacuum_tail(&state, cairn_read_meta(info->index).tail_head);
	step_sequence(info->index, false, &rows);
	MemoryContextDelete(state.context);
	pfree(state.tids);
	pfree(state.dead);
	return stats;
}

static void
count_tuple(IndexTuple tuple, void *count)
{
	++*(double *) count;
}

IndexBulkDeleteResult *
cairn_vacuum_cleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats)
{
	CairnMetaData meta;
	CairnIndex *index;
	bool		works;

	if (info->analyze_only)
		return stats;
	if (stats == NULL)
		stats = palloc0(sizeof(IndexBulkDeleteResult));
	index = cairn_index_open(info->index);
	meta = cairn_read_meta(info->index);
	/* VACUUM without work to do is to be quick; whatever was left is found by one that has some. */
	works = meta.tail_pages > 0 || stats->tuples_removed > 0 || meta.vacuum_seq % 2 != 0;
	/* One that was cut off removes no more rows: we have the lock of the table that it had. */
	if (meta.vacuum_seq % 2 != 0)
		step_sequence(info->index, false, NULL);
	if (meta.tail_pages > 0)
		cairn_merge_tail(index, maintenance_work_mem, false);
	else
		cairn_free_retired(index, false);
	if (works)
		stats->pages_newly_deleted += cairn_sweep(index);
	IndexFreeSpaceMapVacuum(info->index);
	meta = cairn_read_meta(info->index);
	stats->num_pages = RelationGetNumberOfBlocks(info->index);
	if (stats->tuples_removed == 0)
	{
		stats->num_index_tuples = (double) meta.rows;
		cairn_visit_tail(info->index, meta.frozen_head, count_tuple, &stats->num_index_tuples);
		cairn_visit_tail(info->index, meta.tail_head, count_tuple, &stats->num_index_tuples);
	}
	stats->estimated_count = info->estimated_count;
	return stats;
}
