/*
 * Merges: the tail's rows into the tree, without stopping anybody.
 *
 * The tail freezes, and inserts begin a new one. Leaves that rows fall into are written anew in other places, the rest stay; new
 * inner pages go over all. Then one record of the meta page makes the new tree the tree and forgets the frozen tail. Scans that
 * began before go on in the old tree, whose root they keep pinned, with their copy of the tail. When that pin is gone the old tree's
 * pages, which stand in a list, become free. VACUUM and merges exclude each other by the lock of the table.
 */
#include "cairn.h"

#include "miscadmin.h"
#include "storage/indexfsm.h"
#include "storage/lmgr.h"

typedef struct MergeState
{
	CairnIndex *index;
	CairnWalk	walk;
	CairnSort  *sort;
	CairnWriter *writer;
	bool		has_row;		/* a row of the tail waits */
	ItemPointerData tid;
	Datum	   *values;
	bool	   *nulls;
	BlockNumber *retired;
	int			retired_count;
	int			retired_room;
	MemoryContext row;
} MergeState;

static void
retire(MergeState *state, BlockNumber block)
{
	if (state->retired_count == state->retired_room)
	{
		state->retired_room = Max(state->retired_room * 2, 256);
		state->retired = state->retired == NULL ? palloc(state->retired_room * sizeof(BlockNumber))
			: repalloc_huge(state->retired, state->retired_room * sizeof(BlockNumber));
	}
	state->retired[state->retired_count++] = block;
}

static void
sort_tail_row(IndexTuple tuple, void *argument)
{
	MergeState *state = argument;
	Datum		values[INDEX_MAX_KEYS];
	bool		nulls[INDEX_MAX_KEYS];

	index_deform_tuple(tuple, state->index->desc, values, nulls);
	cairn_sort_add(state->sort, &tuple->t_tid, values, nulls, false);
}

/* Inserts go to a new tail from here on. Says which tail is to be moved. */
static CairnMetaData
freeze(Relation rel)
{
	Buffer		buffer = cairn_read(rel, CAIRN_META_BLOCK, BUFFER_LOCK_EXCLUSIVE);
	GenericXLogState *log = GenericXLogStart(rel);
	CairnMetaData *meta = cairn_meta(rel, GenericXLogRegisterBuffer(log, buffer, 0));
	CairnMetaData now;

	/* One that a merge before us froze and did not finish comes first. */
	if (!BlockNumberIsValid(meta->frozen_head))
	{
		meta->frozen_head = meta->tail_head;
		meta->tail_head = meta->tail_last = InvalidBlockNumber;
	}
	now = *meta;
	GenericXLogFinish(log);
	UnlockReleaseBuffer(buffer);
	return now;
}

static void
next_row(MergeState *state)
{
	bool		dead;

	state->has_row = cairn_sort_next(state->sort, &state->tid, &state->values, &state->nulls, &dead);
}

static void
add_waiting(MergeState *state)
{
	cairn_writer_add(state->writer, &state->tid, state->values, state->nulls);
	next_row(state);
}

/* Whether the row that waits comes before the first key of a leaf, which the inner pages hold without its tid. */
static bool
waits_before(MergeState *state, IndexTuple first, bool or_equal)
{
	CairnIndex *index = state->index;

	for (int i = 0; i < index->keys; i++)
	{
		bool		is_null;
		Datum		datum = index_getattr(first, i + 1, index->key_desc, &is_null);
		int			order = cairn_compare_datums(index, i, state->values[i], state->nulls[i], datum, is_null);

		if (order != 0)
			return order < 0;
	}
	/* Equal: it belongs to this leaf or to the one before, and only the tids could tell. */
	return or_equal;
}

/* Rows of the leaf and rows that wait, in order. */
static void
merge_leaf(MergeState *state)
{
	CairnWalk  *walk = &state->walk;
	CairnIndex *index = state->index;
	Datum		values[INDEX_MAX_KEYS];
	bool		nulls[INDEX_MAX_KEYS];
	ItemPointerData tid;

	for (uint32 at = 0; at < walk->rows; at++)
	{
		MemoryContext old = MemoryContextSwitchTo(state->row);
		int			code = cairn_leaf_tids(walk->leaf, at, 1, &tid);

		if (code < 0)
			cairn_codec_failed(index->rel, BufferGetBlockNumber(walk->leaf_buffer), walk->leaf, code);
		for (int i = 0; i < index->columns; i++)
			nulls[i] = cairn_leaf_datum(walk, i, at, &values[i]);
		while (state->has_row &&
			   cairn_compare_keys(index, state->values, state->nulls, &state->tid, values, nulls, &tid) < 0)
			add_waiting(state);
		cairn_writer_add(state->writer, &tid, values, nulls);
		MemoryContextSwitchTo(old);
		MemoryContextReset(state->row);
	}
	retire(state, BufferGetBlockNumber(walk->leaf_buffer));
}

/* Every inner page of the old tree, once. */
static void
retire_inner(MergeState *state, BlockNumber block, int depth)
{
	Relation	rel = state->index->rel;
	Buffer		buffer = cairn_read(rel, block, BUFFER_LOCK_SHARE);
	Page		page = BufferGetPage(buffer);
	CairnPageKind kind = CairnOpaque(page)->kind;
	OffsetNumber count = PageGetMaxOffsetNumber(page);
	BlockNumber *children;

	/* BOUND: as deep as any walk goes. */
	if (depth > CAIRN_MAX_DEPTH)
		cairn_page_damaged(rel, block, "the tree is deeper than any that is built");
	if (kind != CAIRN_INNER && kind != CAIRN_SPLIT)
	{
		UnlockReleaseBuffer(buffer);
		return;
	}
	children = palloc(Max(count, 1) * sizeof(BlockNumber));
	for (OffsetNumber at = 1; at <= count; at++)
		children[at - 1] = ItemPointerGetBlockNumberNoCheck(&cairn_item(rel, block, page, at)->t_tid);
	UnlockReleaseBuffer(buffer);
	retire(state, block);
	for (int at = 0; at < count; at++)
		retire_inner(state, children[at], depth + 1);
	pfree(children);
}

/* Goes through the leaves: those without a row that waits are kept as they are. */
static void
merge_leaves(MergeState *state)
{
	IndexTuple	first = NULL;
	bool		more = cairn_walk_edge(&state->walk, false);
	bool		open = false;	/* rows of a leaf wait in the writer */

	while (more)
	{
		BlockNumber block = BufferGetBlockNumber(state->walk.leaf_buffer);
		IndexTuple	next = NULL;
		bool		has_key = cairn_walk_key_tuple(&state->walk, &first);
		bool		touched = state->walk.rows == 0 || !has_key;

		if (has_key)
			first = CopyIndexTuple(first);
		/* A row that waits lies before this leaf only at the very beginning; then this leaf takes it. */
		if (cairn_walk_next_key(&state->walk, &next))
			touched |= state->has_row && waits_before(state, next, true);
		else
			touched |= state->has_row;
		if (touched)
		{
			merge_leaf(state);
			/* Rows between this leaf and the next need not touch the next. */
			while (next != NULL && state->has_row && waits_before(state, next, false))
				add_waiting(state);
			open = true;
		}
		else
		{
			if (open)
				cairn_writer_flush(state->writer);
			open = false;
			cairn_writer_keep(state->writer, block, first);
			state->writer->rows += state->walk.rows;
		}
		if (first != NULL)
			pfree(first);
		first = NULL;
		more = cairn_walk_next(&state->walk);
	}
	while (state->has_row)
		add_waiting(state);
}

/* The list of retired pages, written before the meta page names it. Its head is returned. */
static BlockNumber
write_retired(MergeState *state, uint32 generation)
{
	Relation	rel = state->index->rel;
	BlockNumber head = InvalidBlockNumber;
	int			per_page = CAIRN_LEAF_CAPACITY / sizeof(BlockNumber);

	for (int from = 0; from < state->retired_count; from += per_page)
	{
		int			count = Min(per_page, state->retired_count - from);
		Buffer		buffer = cairn_allocate(rel);
		GenericXLogState *log = GenericXLogStart(rel);
		Page		page = GenericXLogRegisterBuffer(log, buffer, GENERIC_XLOG_FULL_IMAGE);

		cairn_page_init(page, CAIRN_RETIRED, generation);
		CairnOpaque(page)->next = head;
		memcpy(PageGetContents(page), state->retired + from, count * sizeof(BlockNumber));
		((PageHeader) page)->pd_lower = (PageGetContents(page) - (char *) page) + count * sizeof(BlockNumber);
		GenericXLogFinish(log);
		head = BufferGetBlockNumber(buffer);
		UnlockReleaseBuffer(buffer);
	}
	return head;
}

static void
retire_tail(MergeState *state, BlockNumber head)
{
	while (BlockNumberIsValid(head))
	{
		Buffer		buffer = cairn_read(state->index->rel, head, BUFFER_LOCK_SHARE);

		retire(state, head);
		head = CairnOpaque(BufferGetPage(buffer))->next;
		UnlockReleaseBuffer(buffer);
	}
}

/* The new tree is the tree. */
static void
publish(MergeState *state, BlockNumber root, BlockNumber old_root, uint32 tail_pages)
{
	Relation	rel = state->index->rel;
	BlockNumber list = write_retired(state, state->writer->generation);
	Buffer		buffer = cairn_read(rel, CAIRN_META_BLOCK, BUFFER_LOCK_EXCLUSIVE);
	GenericXLogState *log = GenericXLogStart(rel);
	CairnMetaData *meta = cairn_meta(rel, GenericXLogRegisterBuffer(log, buffer, 0));

	meta->generation = state->writer->generation;
	meta->root = root;
	meta->frozen_head = InvalidBlockNumber;
	meta->tail_pages -= Min(meta->tail_pages, tail_pages);
	meta->retired_head = list;
	meta->retired_root = old_root;
	meta->rows = (uint64) state->writer->rows;
	GenericXLogFinish(log);
	UnlockReleaseBuffer(buffer);
}

/* One merge. False if scans still read the tree before this one, which has to go first; with `wait` it waits for them. */
static bool
merge_once(CairnIndex *index, int kilobytes, bool wait)
{
	MergeState	state = {0};
	CairnMetaData meta;
	BlockNumber root;
	int			tail_from;
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "cairn merge", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old;

	if (!cairn_free_retired(index, wait))
		return false;
	old = MemoryContextSwitchTo(context);
	meta = freeze(index->rel);
	state.index = index;
	state.row = AllocSetContextCreate(context, "cairn merge row", ALLOCSET_DEFAULT_SIZES);
	state.sort = cairn_sort_begin(index, kilobytes, NULL);
	cairn_visit_tail(index->rel, meta.frozen_head, sort_tail_row, &state);
	cairn_sort_perform(state.sort);
	state.writer = cairn_writer_begin(index, meta.generation + 1);
	next_row(&state);
	cairn_walk_begin(&state.walk, index, &meta, cairn_new_leaf(context));
	merge_leaves(&state);
	cairn_walk_release(&state.walk);
	root = cairn_writer_finish(state.writer);
	if (BlockNumberIsValid(meta.root))
		retire_inner(&state, meta.root, 0);
	tail_from = state.retired_count;
	retire_tail(&state, meta.frozen_head);
	publish(&state, root, meta.root, state.retired_count - tail_from);
	cairn_writer_free(state.writer);
	cairn_sort_end(state.sort);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	cairn_free_retired(index, false);
	return true;
}

/*
 * Moves the tail into the tree, all that there is of it when this begins. False if some of it waits for scans, which happens without `wait` only. The caller
 * has the table locked against VACUUM and other merges.
 */
bool
cairn_merge_tail(CairnIndex *index, int kilobytes, bool wait)
{
	/* A tail that a merge before us froze goes alone; what has come since is the next one. */
	bool		is_left = BlockNumberIsValid(cairn_read_meta(index->rel).frozen_head);

	if (!merge_once(index, kilobytes, wait))
		return false;
	return !is_left || !BlockNumberIsValid(cairn_read_meta(index->rel).tail_head) || merge_once(index, kilobytes, wait);
}

/* The longest tail, in kB: one that is longer is merged by the insert that makes it so. 0: by VACUUM and cairn_merge() alone. */
int			cairn_tail_limit = 4096;

/* A merge reads the whole tree, so a tail of a large index may be this part of it. */
#define TAIL_SHARE 32

/*
 * Merges the tail if it is too long, and VACUUM and other merges are not at work. For an insert that has added a page, at its end: it holds no pins, and scans of
 * its own statement go on in the old tree, as all others do.
 */
void
cairn_bound_tail(Relation rel, Relation heap)
{
	CairnOptions *options = (CairnOptions *) rel->rd_options;
	int			limit = options != NULL && options->tail_limit >= 0 ? options->tail_limit : cairn_tail_limit;
	CairnMetaData meta = cairn_read_meta(rel);
	MemoryContext context;
	MemoryContext old;

	if (limit == 0 || (uint64) meta.tail_pages * (BLCKSZ / 1024) <= limit ||
		meta.tail_pages < RelationGetNumberOfBlocks(rel) / TAIL_SHARE)
		return;
	/* Who has it merges already, or is a VACUUM that merges in the end. */
	if (!ConditionalLockRelation(heap, ShareUpdateExclusiveLock))
		return;
	context = AllocSetContextCreate(CurrentMemoryContext, "cairn bound tail", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	cairn_merge_tail(cairn_index_open(rel), work_mem, false);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	UnlockRelation(heap, ShareUpdateExclusiveLock);
}

/* Makes one page free, unless it has been written since it was retired. */
static void
free_page(Relation rel, BlockNumber block, uint32 generation)
{
	Buffer		buffer = cairn_read(rel, block, BUFFER_LOCK_EXCLUSIVE);

	if (CairnOpaque(BufferGetPage(buffer))->generation < generation)
	{
		GenericXLogState *log = GenericXLogStart(rel);

		cairn_page_init(GenericXLogRegisterBuffer(log, buffer, GENERIC_XLOG_FULL_IMAGE), CAIRN_FREE, generation);
		GenericXLogFinish(log);
	}
	UnlockReleaseBuffer(buffer);
}

/*
 * Frees the pages of the tree before, if no scan reads it any more. A crash in between is harmless: pages are free for others only
 * after the list is forgotten, and until then freeing them again changes nothing.
 */
bool
cairn_free_retired(CairnIndex *index, bool wait)
{
	Relation	rel = index->rel;
	CairnMetaData meta = cairn_read_meta(rel);
	List	   *lists = NIL;
	ListCell   *cell;
	BlockNumber *all = NULL;
	int			count = 0;
	Buffer		buffer;
	GenericXLogState *log;

	if (!BlockNumberIsValid(meta.retired_head))
		return true;
	if (BlockNumberIsValid(meta.retired_root))
	{
		bool		free = true;

		buffer = ReadBuffer(rel, meta.retired_root);
		/* The old root gets no new pins, so this waits for scans that there are, not for those that come. */
		if (wait)
			LockBufferForCleanup(buffer);
		else
			free = ConditionalLockBufferForCleanup(buffer);
		if (free)
			LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		ReleaseBuffer(buffer);
		if (!free)
			return false;
	}
	for (BlockNumber list = meta.retired_head; BlockNumberIsValid(list);)
	{
		Page		page;
		int			here;

		CHECK_FOR_INTERRUPTS();
		buffer = cairn_read(rel, list, BUFFER_LOCK_SHARE);
		page = BufferGetPage(buffer);
		if (CairnOpaque(page)->kind != CAIRN_RETIRED || list_length(lists) > (int) RelationGetNumberOfBlocks(rel))
			cairn_page_damaged(rel, list, "the page is not a list of retired pages");
		here = (((PageHeader) page)->pd_lower - (PageGetContents(page) - (char *) page)) / sizeof(BlockNumber);
		all = all == NULL ? palloc((here + 1) * sizeof(BlockNumber)) : repalloc_huge(all, (count + here + 1) * sizeof(BlockNumber));
		memcpy(all + count, PageGetContents(page), here * sizeof(BlockNumber));
		count += here;
		lists = lappend_oid(lists, list);
		list = CairnOpaque(page)->next;
		UnlockReleaseBuffer(buffer);
	}
	for (int i = 0; i < count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		free_page(rel, all[i], meta.generation);
	}
	buffer = cairn_read(rel, CAIRN_META_BLOCK, BUFFER_LOCK_EXCLUSIVE);
	log = GenericXLogStart(rel);
	cairn_meta(rel, GenericXLogRegisterBuffer(log, buffer, 0))->retired_head = InvalidBlockNumber;
	GenericXLogFinish(log);
	UnlockReleaseBuffer(buffer);
	/* Nobody names the list's own pages now. */
	foreach(cell, lists)
	{
		free_page(rel, lfirst_oid(cell), meta.generation + 1);
		RecordFreeIndexPage(rel, lfirst_oid(cell));
	}
	for (int i = 0; i < count; i++)
		RecordFreeIndexPage(rel, all[i]);
	IndexFreeSpaceMapVacuum(rel);
	if (all != NULL)
		pfree(all);
	list_free(lists);
	return true;
}
