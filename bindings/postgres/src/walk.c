/*
 * Walks through the tree, leaf by leaf.
 *
 * A walk keeps the root, the inner pages above its leaf and the leaf pinned. Nobody changes an inner page, and a leaf changes only
 * under a cleanup lock, which waits for pins: so pages are read without a lock between two steps. A standby's replay does not wait
 * for pins; there the walk works on copies, and a page of a newer generation means that replay has overtaken it.
 */
#include "cairn.h"

#include "access/xlog.h"
#include "miscadmin.h"

void
cairn_walk_begin(CairnWalk *walk, CairnIndex *index, const CairnMetaData *meta, CairnLeaf *leaf)
{
	memset(walk, 0, sizeof(CairnWalk));
	walk->index = index;
	walk->root = meta->root;
	walk->generation = meta->generation;
	walk->copies = RecoveryInProgress();
	walk->leaf = leaf;
	walk->leaf_buffer = InvalidBuffer;
	walk->root_pin = InvalidBuffer;
	if (BlockNumberIsValid(walk->root))
		walk->root_pin = ReadBuffer(index->rel, walk->root);
}

static void
drop_steps(CairnWalk *walk, int depth)
{
	while (walk->depth > depth)
	{
		CairnStep  *step = &walk->step[--walk->depth];

		ReleaseBuffer(step->buffer);
		step->buffer = InvalidBuffer;
	}
}

static void
drop_leaf(CairnWalk *walk)
{
	if (BufferIsValid(walk->leaf_buffer))
		ReleaseBuffer(walk->leaf_buffer);
	walk->leaf_buffer = InvalidBuffer;
	walk->rows = 0;
}

static void
free_copy(Page *copy)
{
	if (*copy != NULL)
		pfree(*copy);
	*copy = NULL;
}

void
cairn_walk_release(CairnWalk *walk)
{
	drop_leaf(walk);
	drop_steps(walk, 0);
	if (BufferIsValid(walk->root_pin))
		ReleaseBuffer(walk->root_pin);
	walk->root_pin = InvalidBuffer;
	/* A query that begins a walk for each row of another table would keep the copies of all of them. */
	if (walk->copies)
		free_copy(&walk->leaf_copy);
	for (int i = 0; i < CAIRN_MAX_DEPTH && walk->copies; i++)
		free_copy(&walk->step[i].copy);
}

/* Goes down to `block`: it becomes the leaf (true), or the lowest step. */
static bool
enter(CairnWalk *walk, BlockNumber block)
{
	Relation	rel = walk->index->rel;
	Buffer		buffer = walk->root_pin;
	Page		page;
	CairnPageKind kind;

	CHECK_FOR_INTERRUPTS();
	/* ORDER: before the page is read, for visible.c to tell whether VACUUM came in between. */
	if (walk->copies)
		walk->vacuum_seq = cairn_read_meta(rel).vacuum_seq;
	/* The root is pinned already. */
	if (block == walk->root && BufferIsValid(buffer))
		IncrBufferRefCount(buffer);
	else
		buffer = ReadBuffer(rel, block);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	page = BufferGetPage(buffer);
	cairn_check_page(rel, block, page);
	TestForOldSnapshot(walk->snapshot, rel, page);
	if (CairnOpaque(page)->generation > walk->generation)
	{
		UnlockReleaseBuffer(buffer);
		if (walk->copies)
			ereport(ERROR,
					(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
					 errmsg("canceling statement due to conflict with recovery"),
					 errdetail("The index was merged on the primary while this scan was reading it.")));
		cairn_page_damaged(rel, block, "the page is newer than the tree it belongs to");
	}
	kind = CairnOpaque(page)->kind;
	if (kind == CAIRN_LEAF)
	{
		const uint8_t *bytes = (uint8_t *) PageGetContents(page);
		size_t		count = ((PageHeader) page)->pd_lower - (PageGetContents(page) - (char *) page);
		int			code;

		drop_leaf(walk);
		walk->leaf_buffer = buffer;
		if (walk->copies)
		{
			if (walk->leaf_copy == NULL)
				walk->leaf_copy = MemoryContextAlloc(GetMemoryChunkContext(walk->index), BLCKSZ);
			memcpy(walk->leaf_copy, bytes, count);
			bytes = (uint8_t *) walk->leaf_copy;
		}
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		code = cairn_leaf_open(walk->leaf, bytes, count);
		if (code < 0)
			cairn_codec_failed(rel, block, walk->leaf, code);
		if (cairn_leaf_columns(walk->leaf) != (uint32_t) walk->index->columns)
			cairn_page_damaged(rel, block, "the page has another number of columns than the index");
		walk->rows = cairn_leaf_rows(walk->leaf);
		return true;
	}
	if (kind == CAIRN_INNER || kind == CAIRN_SPLIT)
	{
		CairnStep  *step;

		if (walk->depth == CAIRN_MAX_DEPTH)
			cairn_page_damaged(rel, block, "the tree is deeper than any that is built");
		step = &walk->step[walk->depth];
		if (walk->copies)
		{
			if (step->copy == NULL)
				step->copy = MemoryContextAlloc(GetMemoryChunkContext(walk->index), BLCKSZ);
			memcpy(step->copy, page, BLCKSZ);
			page = step->copy;
		}
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		step->buffer = buffer;
		step->page = page;
		step->count = PageGetMaxOffsetNumber(page);
		step->at = 1;
		walk->depth++;
		if (step->count == 0)
			cairn_page_damaged(rel, block, "an inner page without children");
		return false;
	}
	UnlockReleaseBuffer(buffer);
	cairn_page_damaged(rel, block, "the page is neither a leaf nor an inner page");
	return false;
}

static IndexTuple
child(CairnWalk *walk, CairnStep *step, OffsetNumber at)
{
	return cairn_item(walk->index->rel, BufferGetBlockNumber(step->buffer), step->page, at);
}

/* Whether the first key of a child is before the boundary. */
static bool
is_before(CairnWalk *walk, IndexTuple tuple, const CairnBound *bound)
{
	for (int i = 0; i < bound->count; i++)
	{
		bool		is_null;
		Datum		datum = index_getattr(tuple, i + 1, walk->index->key_desc, &is_null);
		int			order = cairn_compare_bound_column(walk->index, bound, i, datum, is_null);

		if (order != 0)
			return order < 0;
	}
	return bound->or_equal;
}

/* The last child that may hold rows before the boundary, and with it the first that may hold rows behind. */
static OffsetNumber
choose_child(CairnWalk *walk, CairnStep *step, const CairnBound *bound)
{
	OffsetNumber low = 1,
				high = step->count + 1;

	while (low < high)
	{
		OffsetNumber middle = low + (high - low) / 2;

		if (is_before(walk, child(walk, step, middle), bound))
			low = middle + 1;
		else
			high = middle;
	}
	return Max(low - 1, 1);
}

/* The boundary before the rows that have the key columns of a tuple of the index. */
void
cairn_bound_of(CairnIndex *index, IndexTuple key, CairnBound *bound)
{
	bound->count = index->keys;
	bound->or_equal = false;
	for (int i = 0; i < index->keys; i++)
	{
		CairnBoundColumn *at = &bound->column[i];

		at->datum = index_getattr(key, i + 1, index->desc, &at->is_null);
		at->is_integer = index->column[i].is_integer && !at->is_null;
		if (at->is_integer)
			at->integer = (int64) cairn_to_integer(&index->column[i], at->datum);
		at->compare = index->column[i].compare;
		at->collation = index->column[i].collation;
	}
}

/* From the root, or from the lowest step, down to a leaf. */
static void
descend(CairnWalk *walk, const CairnBound *bound, bool last)
{
	for (;;)
	{
		CairnStep  *step = &walk->step[walk->depth - 1];

		if (bound != NULL)
			step->at = choose_child(walk, step, bound);
		else
			step->at = last ? step->count : 1;
		if (enter(walk, ItemPointerGetBlockNumberNoCheck(&child(walk, step, step->at)->t_tid)))
			return;
	}
}

/* To the leaf in which the boundary lies. False when there are no rows at all. */
bool
cairn_walk_seek(CairnWalk *walk, const CairnBound *bound)
{
	drop_steps(walk, 0);
	if (!BlockNumberIsValid(walk->root))
		return false;
	if (!enter(walk, walk->root))
		descend(walk, bound, false);
	return true;
}

/* To the first leaf, or to the last. */
bool
cairn_walk_edge(CairnWalk *walk, bool last)
{
	drop_steps(walk, 0);
	if (!BlockNumberIsValid(walk->root))
		return false;
	if (!enter(walk, walk->root))
		descend(walk, NULL, last);
	return true;
}

/* To the next leaf. False, and nothing moves, behind the last. */
bool
cairn_walk_next(CairnWalk *walk)
{
	int			depth = walk->depth;

	while (depth > 0 && walk->step[depth - 1].at == walk->step[depth - 1].count)
		depth--;
	if (depth == 0)
		return false;
	drop_steps(walk, depth);
	walk->step[depth - 1].at++;
	if (!enter(walk, ItemPointerGetBlockNumberNoCheck(&child(walk, &walk->step[depth - 1], walk->step[depth - 1].at)->t_tid)))
		descend(walk, NULL, false);
	return true;
}

bool
cairn_walk_previous(CairnWalk *walk)
{
	int			depth = walk->depth;

	while (depth > 0 && walk->step[depth - 1].at == 1)
		depth--;
	if (depth == 0)
		return false;
	drop_steps(walk, depth);
	walk->step[depth - 1].at--;
	if (!enter(walk, ItemPointerGetBlockNumberNoCheck(&child(walk, &walk->step[depth - 1], walk->step[depth - 1].at)->t_tid)))
		descend(walk, NULL, true);
	return true;
}

/* The inner pages that a build or a merge wrote come first in a walk; leaves that VACUUM divided, if any, after them. */
static int
unit_depth(CairnWalk *walk)
{
	int			depth = 0;

	while (depth < walk->depth && CairnOpaque(walk->step[depth].page)->kind == CAIRN_INNER)
		depth++;
	return depth;
}

/*
 * To the next leaf of the same unit, which is what one entry of the lowest inner pages stands for: a leaf, or what VACUUM made of
 * it. Units are the same to all who walk one tree, whatever VACUUM does meanwhile.
 */
bool
cairn_walk_next_in_unit(CairnWalk *walk)
{
	int			depth = walk->depth;
	int			least = unit_depth(walk);

	while (depth > least && walk->step[depth - 1].at == walk->step[depth - 1].count)
		depth--;
	return depth > least && cairn_walk_next(walk);
}

/* To the first leaf of the unit that is `count` further. False if there are not so many. Leaves in between are not read. */
bool
cairn_walk_skip_units(CairnWalk *walk, uint32 count)
{
	int			depth = unit_depth(walk);

	if (depth == 0)
		return false;
	for (;;)
	{
		CairnStep  *step = &walk->step[depth - 1];
		uint32		left = step->count - step->at;
		int			up = depth - 1;

		drop_steps(walk, depth);
		if (count <= left)
		{
			step->at += count;
			if (!enter(walk, ItemPointerGetBlockNumberNoCheck(&child(walk, step, step->at)->t_tid)))
				descend(walk, NULL, false);
			return true;
		}
		while (up > 0 && walk->step[up - 1].at == walk->step[up - 1].count)
			up--;
		if (up == 0)
			return false;
		/* To the first unit of the next inner page, which is one further than the last of this. */
		count -= left + 1;
		drop_steps(walk, up);
		walk->step[up - 1].at++;
		while (walk->depth < depth)
			if (enter(walk, ItemPointerGetBlockNumberNoCheck(&child(walk, &walk->step[walk->depth - 1],
																	walk->step[walk->depth - 1].at)->t_tid)))
				cairn_page_damaged(walk->index->rel, BufferGetBlockNumber(walk->leaf_buffer), "a leaf among inner pages");
	}
}

/* The first key of the current leaf as the inner pages have it; false for a root that is a leaf. */
bool
cairn_walk_key_tuple(CairnWalk *walk, IndexTuple *out)
{
	if (walk->depth == 0)
		return false;
	*out = child(walk, &walk->step[walk->depth - 1], walk->step[walk->depth - 1].at);
	return true;
}

/* The first key of what comes behind the current leaf; false behind the last. */
bool
cairn_walk_next_key(CairnWalk *walk, IndexTuple *out)
{
	for (int depth = walk->depth - 1; depth >= 0; depth--)
		if (walk->step[depth].at < walk->step[depth].count)
		{
			*out = child(walk, &walk->step[depth], walk->step[depth].at + 1);
			return true;
		}
	return false;
}

/* Narrows integer columns one after the other with the codec's own search. */
static bool
count_integers(CairnWalk *walk, const CairnBound *bound, uint32 *count)
{
	uint32		from = 0,
				to = walk->rows;

	for (int i = 0; i < bound->count; i++)
	{
		const CairnBoundColumn *at = &bound->column[i];
		bool		descends = walk->index->column[i].descends;
		uint32_t	before,
					through;
		int			code;

		if (cairn_leaf_has_nulls(walk->leaf, i) != 0)
			return false;
		if (at->is_null)
		{
			/* All of a leaf without NULLs is on one side of them. */
			*count = walk->index->column[i].nulls_first ? from : to;
			return true;
		}
		if (!at->is_integer)
			return false;
		code = cairn_leaf_count_before(walk->leaf, i, from, to, at->integer, bound->or_equal && i == bound->count - 1,
									   descends, &before);
		if (code == CAIRN_OK && i < bound->count - 1)
			code = cairn_leaf_count_before(walk->leaf, i, from + before, to, at->integer, true, descends, &through);
		if (code < 0)
			cairn_codec_failed(walk->index->rel, BufferGetBlockNumber(walk->leaf_buffer), walk->leaf, code);
		from += before;
		if (i < bound->count - 1)
			to = from + through;
	}
	*count = from;
	return true;
}

/* Whether a row of the leaf is before the boundary. */
static bool
row_is_before(CairnWalk *walk, uint32 row, const CairnBound *bound)
{
	for (int i = 0; i < bound->count; i++)
	{
		Datum		datum = (Datum) 0;
		/* Where there are no NULLs, the boundary before or behind them needs no value. */
		bool		known = bound->column[i].is_null && cairn_leaf_has_nulls(walk->leaf, i) == 0;
		bool		is_null = !known && cairn_leaf_datum(walk, i, row, &datum);
		int			order = cairn_compare_bound_column(walk->index, bound, i, datum, is_null);

		if (!known && !is_null && !walk->index->column[i].byval)
			pfree(DatumGetPointer(datum));
		if (order != 0)
			return order < 0;
	}
	return bound->or_equal;
}

/* Whether all rows of the leaf are before the boundary: if the first key of what comes next is, or else its own last one. */
static bool
all_are_before(CairnWalk *walk, const CairnBound *bound)
{
	IndexTuple	next;

	if (cairn_walk_next_key(walk, &next) && is_before(walk, next, bound))
		return true;
	return row_is_before(walk, walk->rows - 1, bound);
}

/*
 * The rows of the leaf between two boundaries. A walk that came from the leaf before knows that the lower one lies behind, and in most leaves
 * the upper one lies ahead: then one row is looked at instead of sixteen.
 */
void
cairn_walk_range(CairnWalk *walk, const CairnBound *lower, const CairnBound *upper, CairnArrival arrival, uint32 *from, uint32 *to)
{
	*from = *to = 0;
	if (walk->rows == 0)
		return;
	if (arrival == CAIRN_FROM_BEFORE || (arrival == CAIRN_FROM_BEHIND && !row_is_before(walk, 0, lower)))
		*from = 0;
	else
		*from = cairn_walk_count_before(walk, lower);
	if (arrival == CAIRN_FROM_BEHIND || (arrival == CAIRN_FROM_BEFORE && all_are_before(walk, upper)))
		*to = walk->rows;
	else
		*to = Max(*from, cairn_walk_count_before(walk, upper));
}

/* How many rows of the leaf are before the boundary. */
uint32
cairn_walk_count_before(CairnWalk *walk, const CairnBound *bound)
{
	uint32		low = 0,
				high = walk->rows;

	if (bound->count == 0)
		return bound->or_equal ? walk->rows : 0;
	if (count_integers(walk, bound, &low))
		return low;
	low = 0;
	while (low < high)
	{
		uint32		middle = low + (high - low) / 2;

		if (row_is_before(walk, middle, bound))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}
