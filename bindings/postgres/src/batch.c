/* Batches: a stretch of a leaf's rows, unpacked column by column, and tuples made from it. */
#include "batch.h"

#include "access/tupmacs.h"
#include "port/pg_bitutils.h"

static void
check(CairnScan *state, int code)
{
	if (code < 0)
		cairn_codec_failed(state->index->rel, BufferGetBlockNumber(state->walk.leaf_buffer), state->leaf, code);
}

/* Room for the columns of an index-only scan. */
void
cairn_batch_prepare(CairnScan *state, bool columns)
{
	MemoryContext context = GetMemoryChunkContext(state);

	if (!columns || state->batch.integers[0] != NULL)
		return;
	for (int i = 0; i < state->index->columns; i++)
	{
		state->batch.integers[i] = MemoryContextAlloc(context, CAIRN_BATCH * sizeof(uint64));
		state->batch.nulls[i] = MemoryContextAlloc(context, CAIRN_BATCH * sizeof(uint64));
	}
}

/* Unpacks the rows that are wanted: all of a stretch, or single ones where few are. */
static void
unpack(CairnScan *state, uint32 at, uint32 count)
{
	CairnBatch *batch = &state->batch;
	uint32		row = at - batch->start;

	check(state, cairn_leaf_tids(state->leaf, at, count, &batch->tid[row]));
	if (batch->integers[0] == NULL)
		return;
	for (int i = 0; i < state->index->columns; i++)
	{
		check(state, cairn_leaf_integers(state->leaf, i, at, count, &batch->integers[i][row]));
		if (batch->has_nulls)
			check(state, cairn_leaf_nulls(state->leaf, i, at, count, &batch->nulls[i][row]));
	}
}

void
cairn_batch_load(CairnScan *state, uint32 start, uint32 count)
{
	CairnBatch *batch = &state->batch;
	uint64		mask[CAIRN_BATCH / 64];

	batch->start = start;
	batch->rows = count;
	batch->count = count;
	batch->all = true;
	batch->has_nulls = false;
	if (batch->integers[0] != NULL)
		for (int i = 0; i < state->index->columns; i++)
		{
			int			has = cairn_leaf_has_nulls(state->leaf, i);

			check(state, has);
			batch->has_nulls |= has > 0;
		}
	if (state->conditions.filter_count == 0)
	{
		unpack(state, start, count);
		return;
	}
	memset(mask, 0xff, sizeof(mask));
	if (count % 64 != 0)
		mask[count / 64] = (UINT64CONST(1) << (count % 64)) - 1;
	for (uint32 word = (count + 63) / 64; word < CAIRN_BATCH / 64; word++)
		mask[word] = 0;
	{
		MemoryContext old = MemoryContextSwitchTo(state->row_context);

		cairn_filter_rows(&state->conditions, &state->walk, start, count, mask);
		MemoryContextSwitchTo(old);
	}
	batch->all = false;
	batch->count = 0;
	for (uint32 word = 0; word * 64 < count; word++)
		for (uint64 bits = mask[word]; bits != 0; bits &= bits - 1)
			batch->selected[batch->count++] = word * 64 + pg_rightmost_one_pos64(bits);
	if (batch->count * 8 > (int) count)
		unpack(state, start, count);
	else
		for (int i = 0; i < batch->count; i++)
			unpack(state, start + batch->selected[i], 1);
}

/* A row of the batch as an index-only scan hands it out. It holds until the next one. */
IndexTuple
cairn_batch_tuple(CairnScan *state, int row)
{
	CairnIndex *index = state->index;
	CairnBatch *batch = &state->batch;
	Datum		values[INDEX_MAX_KEYS];
	bool		nulls[INDEX_MAX_KEYS];
	IndexTuple	tuple;
	MemoryContext old;

	if (index->is_fixed && !batch->has_nulls)
	{
		char	   *data = (char *) state->tuple + MAXALIGN(sizeof(IndexTupleData));

		for (int i = 0; i < index->columns; i++)
		{
			CairnColumn *column = &index->column[i];
			uint64		integer = batch->integers[i][row];

			/* The width is known, so each is one store. */
			if (column->len == 4)
				*(int32 *) (data + column->offset) = (int32) integer;
			else if (column->len == 8)
				*(int64 *) (data + column->offset) = (int64) cairn_from_integer(column, integer);
			else
				store_att_byval(data + column->offset, cairn_from_integer(column, integer), column->len);
		}
		return state->tuple;
	}
	MemoryContextReset(state->row_context);
	old = MemoryContextSwitchTo(state->row_context);
	for (int i = 0; i < index->columns; i++)
	{
		nulls[i] = batch->has_nulls && batch->nulls[i][row] != 0;
		values[i] = (Datum) 0;
		if (nulls[i])
			continue;
		if (index->column[i].byval)
			values[i] = cairn_from_integer(&index->column[i], batch->integers[i][row]);
		else
		{
			const uint8_t *bytes;
			size_t		count;

			check(state, cairn_leaf_string(state->leaf, i, batch->integers[i][row], &bytes, &count));
			values[i] = cairn_from_string(&index->column[i], bytes, count);
		}
	}
	tuple = index_form_tuple(index->desc, values, nulls);
	MemoryContextSwitchTo(old);
	return tuple;
}

/* Any row of the leaf as a tuple with its tid, in the current context. */
IndexTuple
cairn_row_tuple(CairnScan *state, uint32 row)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		nulls[INDEX_MAX_KEYS];
	IndexTuple	tuple;
	ItemPointerData tid;

	for (int i = 0; i < state->index->columns; i++)
		nulls[i] = cairn_leaf_datum(&state->walk, i, row, &values[i]);
	tuple = index_form_tuple(state->index->desc, values, nulls);
	check(state, cairn_leaf_tids(state->leaf, row, 1, &tid));
	tuple->t_tid = tid;
	return tuple;
}

/*
 * Takes the walk to the leaf of the row that `key` was made of, and says where in it the gap is: before that row, or
 * behind it. VACUUM may have taken the row away; the order of keys and tids still says where it was.
 */
uint32
cairn_seek_tuple(CairnScan *state, IndexTuple key, bool behind)
{
	CairnIndex *index = state->index;
	CairnBound	bound;
	uint32		low,
				high;
	bool		more;

	bound.count = index->keys;
	bound.or_equal = false;
	for (int i = 0; i < index->keys; i++)
	{
		CairnBoundColumn *at = &bound.column[i];

		at->datum = index_getattr(key, i + 1, index->desc, &at->is_null);
		at->is_integer = index->column[i].is_integer && !at->is_null;
		if (at->is_integer)
			at->integer = (int64) cairn_to_integer(&index->column[i], at->datum);
		at->compare = index->column[i].compare;
		at->collation = index->column[i].collation;
	}
	if (!cairn_walk_seek(&state->walk, &bound))
		return 0;
	do
	{
		bound.or_equal = false;
		low = cairn_walk_count_before(&state->walk, &bound);
		bound.or_equal = true;
		high = cairn_walk_count_before(&state->walk, &bound);
		more = high == state->walk.rows;
		while (low < high)
		{
			uint32		middle = low + (high - low) / 2;
			ItemPointerData tid;
			int			order;

			check(state, cairn_leaf_tids(state->leaf, middle, 1, &tid));
			order = ItemPointerCompare(&tid, &key->t_tid);
			if (order == 0)
				return behind ? middle + 1 : middle;
			if (order < 0)
				low = middle + 1;
			else
				high = middle;
		}
	} while (more && low == state->walk.rows && cairn_walk_next(&state->walk));
	return low;
}
