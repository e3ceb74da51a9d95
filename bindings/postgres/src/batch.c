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

static bool
is_wanted(const CairnBatch *batch, int column)
{
	return batch->wanted == NULL || batch->wanted[column];
}

/* Fewer rows than this are asked for one by one whether they are visible. */
#define LOOK_LEAST 64
/* A range of so many rows is unpacked at once, into room of its size. */
#define SMALL_RANGE (4 * CAIRN_FIRST_BATCH)

/* What a batch of `room` rows takes. Few first: a scan for one row is over before it could use more. */
static void
make_room(CairnScan *state, int room)
{
	MemoryContext old = MemoryContextSwitchTo(GetMemoryChunkContext(state));
	CairnBatch *batch = &state->batch;
	CairnIndex *index = state->index;
	bool		grows = batch->room > 0;

#define MAKE_ROOM(array, bytes) (array) = grows ? repalloc((array), (bytes)) : palloc(bytes)
	MAKE_ROOM(batch->tid, room * sizeof(ItemPointerData));
	for (int i = 0; i < index->columns && batch->with_columns; i++)
	{
		if (!is_wanted(batch, i))
			continue;
		MAKE_ROOM(batch->integers[i], room * sizeof(uint64));
	}
	if (index->is_fixed && batch->with_tuples)
		MAKE_ROOM(batch->tuples, (Size) room * index->tuple_bytes);
	if (state->conditions.filter_count > 0 || batch->selected != NULL)
	{
		grows &= batch->selected != NULL;
		MAKE_ROOM(batch->selected, room * sizeof(uint16));
		MAKE_ROOM(batch->scratch_tid, CAIRN_BATCH * sizeof(ItemPointerData));
		MAKE_ROOM(batch->scratch, CAIRN_BATCH * sizeof(uint64));
	}
#undef MAKE_ROOM
	batch->room = room;
	MemoryContextSwitchTo(old);
}

/* Most leaves have no NULLs: room for them is made when one has. */
static void
make_room_for_nulls(CairnScan *state)
{
	CairnBatch *batch = &state->batch;

	for (int i = 0; i < state->index->columns; i++)
		if (is_wanted(batch, i) && batch->nulls[i] == NULL)
			batch->nulls[i] = MemoryContextAlloc(GetMemoryChunkContext(state), CAIRN_BATCH * sizeof(uint64));
}

/* Gives the arrays back, for a scan that turns to another kind of rows. */
void
cairn_batch_free(CairnBatch *batch)
{
	void	   *parts[] = {batch->tid, batch->tuples, batch->selected, batch->mask, batch->scratch_tid, batch->scratch};

	for (int i = 0; i < (int) lengthof(parts); i++)
		if (parts[i] != NULL)
			pfree(parts[i]);
	for (int i = 0; i < INDEX_MAX_KEYS; i++)
	{
		if (batch->integers[i] != NULL)
			pfree(batch->integers[i]);
		if (batch->nulls[i] != NULL)
			pfree(batch->nulls[i]);
	}
	memset(batch, 0, sizeof(CairnBatch));
}

/* Whether rows are to be handed out with their columns. A scan is one or the other for as long as it lives. */
void
cairn_batch_prepare(CairnScan *state, bool columns)
{
	CairnBatch *batch = &state->batch;

	if (batch->room == 0)
		batch->with_columns = batch->with_tuples = columns;
}

/* Unpacks rows `at..at + count` of the leaf into places `place..` of the arrays. */
static void
unpack(CairnScan *state, uint32 at, uint32 count, int place)
{
	CairnBatch *batch = &state->batch;

	if (!batch->without_tids)
		check(state, cairn_leaf_tids(state->leaf, at, count, &batch->tid[place]));
	if (!batch->with_columns)
		return;
	for (int i = 0; i < state->index->columns; i++)
	{
		if (!is_wanted(batch, i))
			continue;
		if (i < state->conditions.pinned)
			for (uint32 row = 0; row < count; row++)
				batch->integers[i][place + row] = (uint64) state->conditions.lower.column[i].integer;
		else
			check(state, cairn_leaf_integers(state->leaf, i, at, count, &batch->integers[i][place]));
		if (batch->has_nulls)
			check(state, cairn_leaf_nulls(state->leaf, i, at, count, &batch->nulls[i][place]));
	}
}

/* Rows that stand closely are unpacked with those between them, which are thrown away. */
static void
gather(CairnScan *state, int from, int to)
{
	CairnBatch *batch = &state->batch;
	uint32		first = batch->start + batch->selected[from];
	uint32		span = batch->selected[to - 1] - batch->selected[from] + 1;
	const uint16 *at = &batch->selected[from];

	if (!batch->without_tids)
	{
		check(state, cairn_leaf_tids(state->leaf, first, span, batch->scratch_tid));
		for (int i = 0; i < to - from; i++)
			batch->tid[from + i] = batch->scratch_tid[at[i] - at[0]];
	}
	if (!batch->with_columns)
		return;
	for (int column = 0; column < state->index->columns; column++)
	{
		if (!is_wanted(batch, column))
			continue;
		check(state, cairn_leaf_integers(state->leaf, column, first, span, batch->scratch));
		for (int i = 0; i < to - from; i++)
			batch->integers[column][from + i] = batch->scratch[at[i] - at[0]];
		if (!batch->has_nulls)
			continue;
		check(state, cairn_leaf_nulls(state->leaf, column, first, span, batch->scratch));
		for (int i = 0; i < to - from; i++)
			batch->nulls[column][from + i] = batch->scratch[at[i] - at[0]];
	}
}

/* Unpacks the rows that were selected: those that stand closely together, others one by one. */
static void
unpack_selected(CairnScan *state)
{
	CairnBatch *batch = &state->batch;

	for (int from = 0; from < batch->count;)
	{
		int			to = from + 1;

		while (to < batch->count && batch->selected[to] - batch->selected[to - 1] <= 8 &&
			   batch->selected[to] - batch->selected[from] < CAIRN_BATCH)
			to++;
		if (to - from == 1)
			unpack(state, batch->start + batch->selected[from], 1, from);
		else
			gather(state, from, to);
		from = to;
	}
}

/* Tuples of a fixed layout, column by column. */
static void
fill_tuples(CairnScan *state)
{
	CairnIndex *index = state->index;
	CairnBatch *batch = &state->batch;
	int			bytes = index->tuple_bytes;

	batch->has_tuples = index->is_fixed && batch->with_tuples && !batch->has_nulls;
	if (!batch->has_tuples)
		return;
	/* Heads, and zeros between the columns, stay as they are from batch to batch. */
	if (batch->begun < batch->count)
	{
		memset(batch->tuples + batch->begun * bytes, 0, (Size) (batch->count - batch->begun) * bytes);
		for (; batch->begun < batch->count; batch->begun++)
			((IndexTuple) (batch->tuples + batch->begun * bytes))->t_info = bytes;
	}
	for (int i = 0; i < index->columns; i++)
	{
		CairnColumn *column = &index->column[i];
		uint64	   *integers = batch->integers[i];
		char	   *at = batch->tuples + MAXALIGN(sizeof(IndexTupleData)) + column->offset;

		if (column->len == 4)
			for (int row = 0; row < batch->count; row++)
				*(int32 *) (at + row * bytes) = (int32) integers[row];
		else if (column->len == 8 && !column->is_unsigned64)
			for (int row = 0; row < batch->count; row++)
				*(int64 *) (at + row * bytes) = (int64) integers[row];
		else
			for (int row = 0; row < batch->count; row++)
				store_att_byval(at + row * bytes, cairn_from_integer(column, integers[row]), column->len);
	}
}

/* Selects rows of the window by the conditions: the first ones, or, backward, the last ones. */
static void
select_rows(CairnScan *state, uint32 from, uint32 to, bool backward)
{
	CairnBatch *batch = &state->batch;
	uint32		count = to - from;
	uint32		words = (count + 63) / 64;
	int			met = 0;
	int			skip;
	bool		left;
	MemoryContext old;

	if (batch->mask == NULL)
		batch->mask = MemoryContextAlloc(GetMemoryChunkContext(state), (CAIRN_MAX_ROWS / 64 + 1) * sizeof(uint64));
	memset(batch->mask, 0xff, words * sizeof(uint64));
	if (count % 64 != 0)
		batch->mask[words - 1] = (UINT64CONST(1) << (count % 64)) - 1;
	old = MemoryContextSwitchTo(state->row_context);
	left = cairn_filter_rows(&state->conditions, &state->walk, from, count, batch->mask);
	MemoryContextSwitchTo(old);
	for (uint32 word = 0; word < words && left; word++)
		met += pg_popcount64(batch->mask[word]);
	batch->all = false;
	batch->start = from;
	batch->rows = count;
	batch->count = 0;
	/* What does not fit is left to the next batch: the window ends, or begins, at the last row that does. */
	skip = backward ? Max(met - CAIRN_BATCH, 0) : 0;
	for (uint32 word = 0; word < words && met > 0 && batch->count < CAIRN_BATCH; word++)
		for (uint64 bits = batch->mask[word]; bits != 0 && batch->count < CAIRN_BATCH; bits &= bits - 1)
			if (--skip < 0)
				batch->selected[batch->count++] = word * 64 + pg_rightmost_one_pos64(bits);
	if (met > CAIRN_BATCH && backward)
	{
		uint16		first = batch->selected[0];

		batch->start += first;
		batch->rows -= first;
		for (int i = 0; i < batch->count; i++)
			batch->selected[i] -= first;
	}
	else if (met > CAIRN_BATCH)
		batch->rows = batch->selected[CAIRN_BATCH - 1] + 1;
	/* About as many rows next time as give a full batch. */
	if (met > CAIRN_BATCH)
		state->batch_rows = Max(CAIRN_BATCH, (uint32) ((uint64) count * CAIRN_BATCH / met));
	else if (met < CAIRN_BATCH / 2)
		state->batch_rows = Min(state->batch_rows * 4, CAIRN_MAX_ROWS);
}

/* Whether the row ids of the leaf can be left where they are. */
static void
ask_for_leaf(CairnScan *state, bool many)
{
	if (state->look == NULL || state->looked)
		return;
	state->batch.without_tids = many && state->look(state, state->look_argument);
	state->looked = many;
}

/* Unpacks the next rows of `from..to` that meet the conditions, from its start or, backward, from its end. */
void
cairn_batch_load(CairnScan *state, uint32 from, uint32 to, bool backward)
{
	CairnBatch *batch = &state->batch;
	uint32		count = to - from <= SMALL_RANGE ? to - from : Min(state->batch_rows, to - from);
	bool		filters = state->conditions.filter_count > 0;

	if (batch->room < CAIRN_BATCH && (filters || count > (uint32) batch->room))
		make_room(state, filters || count > SMALL_RANGE ? CAIRN_BATCH : Max(count, CAIRN_FIRST_BATCH));
	else if (filters && batch->selected == NULL)
		make_room(state, CAIRN_BATCH);
	if (backward)
		from = to - count;
	state->vouched_known = false;
	batch->has_nulls = false;
	if (batch->with_columns)
		for (int i = 0; i < state->index->columns; i++)
		{
			if (!is_wanted(batch, i))
				continue;
			int			has = cairn_leaf_has_nulls(state->leaf, i);

			check(state, has);
			batch->has_nulls |= has > 0;
		}
	if (batch->has_nulls)
		make_room_for_nulls(state);
	if (state->conditions.filter_count > 0)
	{
		select_rows(state, from, from + count, backward);
		ask_for_leaf(state, batch->count >= CAIRN_BATCH / 2);
		unpack_selected(state);
	}
	else
	{
		count = Min(count, CAIRN_BATCH);
		if (backward)
			from = to - count;
		batch->start = from;
		batch->rows = batch->count = count;
		batch->all = true;
		ask_for_leaf(state, state->to - state->from >= LOOK_LEAST);
		unpack(state, from, count, 0);
		state->batch_rows = Min(state->batch_rows * 4, CAIRN_BATCH);
	}
	fill_tuples(state);
}

/* A row of the batch as an index-only scan hands it out, where the layout is not fixed. It holds until the next one. */
IndexTuple
cairn_batch_tuple(CairnScan *state, int row)
{
	CairnIndex *index = state->index;
	CairnBatch *batch = &state->batch;
	Datum		values[INDEX_MAX_KEYS];
	bool		nulls[INDEX_MAX_KEYS];
	IndexTuple	tuple;
	MemoryContext old;

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
	/* A merge join marks a row for each row of its other side, in a context that lives as long as the scan. */
	for (int i = 0; i < state->index->columns; i++)
		if (!nulls[i] && !state->index->column[i].byval)
			pfree(DatumGetPointer(values[i]));
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

	cairn_bound_of(index, key, &bound);
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
