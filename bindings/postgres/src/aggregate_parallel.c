/*
 * Aggregates by several processes. Each goes through units of the tree that it claims, as parallel scans do, and hands its totals up, a row for
 * each group; the first takes the tail. Whoever is above adds them up, and decides in the end whether rows that were counted unseen may be.
 */
#include "aggregate_state.h"

#include "executor/executor.h"
#include "miscadmin.h"

/* A group as one process has it. Copied to and from bytes that lie anywhere. */
typedef struct Part
{
	bool		careful;
	bool		key_null;
	int64		key;
	uint64		vacuum_seq;
} Part;

Size
cairn_aggregate_estimate_shared(CustomScanState *node, ParallelContext *context)
{
	return sizeof(AggregateShared);
}

void
cairn_aggregate_begin_shared(CustomScanState *node, ParallelContext *context, void *coordinate)
{
	AggregateShared *shared = coordinate;

	memset(shared, 0, sizeof(AggregateShared));
	SpinLockInit(&shared->units.lock);
	((AggregateState *) node)->shared = shared;
}

void
cairn_aggregate_begin_shared_again(CustomScanState *node, ParallelContext *context, void *coordinate)
{
	AggregateShared *shared = coordinate;

	shared->units.started = false;
	shared->units.next_unit = 0;
	shared->leaves = shared->rows = shared->heap_fetches = 0;
}

void
cairn_aggregate_begin_worker(CustomScanState *node, shm_toc *toc, void *coordinate)
{
	((AggregateState *) node)->shared = coordinate;
}

/* The first process decides which tree it is, and how it is read. Says what this one reads. */
void
cairn_aggregate_join(AggregateState *state, bool *rows, bool *tail)
{
	AggregateShared *shared = state->shared;

	SpinLockAcquire(&shared->units.lock);
	*tail = !shared->units.started;
	if (!shared->units.started)
	{
		shared->units.started = true;
		shared->units.generation = state->meta.generation;
		shared->careful = state->careful;
		shared->vacuum_seq = state->meta.vacuum_seq;
	}
	*rows = shared->units.generation == state->meta.generation;
	state->careful = state->was_careful = shared->careful;
	state->meta.vacuum_seq = shared->vacuum_seq;
	SpinLockRelease(&shared->units.lock);
}

/* Adds what this process has done to what all have. */
void
cairn_aggregate_account(AggregateState *state)
{
	AggregateShared *shared = state->shared;

	SpinLockAcquire(&shared->units.lock);
	shared->leaves += state->leaves;
	shared->rows += state->rows;
	shared->heap_fetches += state->heap_fetches;
	SpinLockRelease(&shared->units.lock);
}

/* Keeps that for EXPLAIN: the memory in common goes away. */
void
cairn_aggregate_shut_down(CustomScanState *node)
{
	AggregateState *state = (AggregateState *) node;
	AggregateShared *shared = state->shared;

	if (shared == NULL)
		return;
	state->leaves = shared->leaves;
	state->rows = shared->rows;
	state->heap_fetches = shared->heap_fetches;
	state->was_careful = shared->careful;
	state->ran = shared->units.started;
	state->shared = NULL;
}

/* Hands up the group at hand. */
void
cairn_part_put(AggregateState *state)
{
	TupleTableSlot *slot = state->css.ss.ss_ScanTupleSlot;
	MemoryContext old = MemoryContextSwitchTo(state->context);
	Size		totals = state->output_count * sizeof(Total);
	Part		part = {.careful = state->careful, .key_null = state->key_null, .key = state->key,
		.vacuum_seq = state->meta.vacuum_seq};
	bytea	   *row = palloc(VARHDRSZ + sizeof(Part) + totals);

	SET_VARSIZE(row, VARHDRSZ + sizeof(Part) + totals);
	memcpy(VARDATA(row), &part, sizeof(Part));
	memcpy(VARDATA(row) + sizeof(Part), state->totals, totals);
	ExecClearTuple(slot);
	slot->tts_values[0] = PointerGetDatum(row);
	slot->tts_isnull[0] = false;
	ExecStoreVirtualTuple(slot);
	tuplestore_puttupleslot(state->results, slot);
	ExecClearTuple(slot);
	pfree(row);
	MemoryContextSwitchTo(old);
}

typedef struct Gathered
{
	Part		part;
	Total	   *totals;
} Gathered;

static int
compare_parts(const void *a, const void *b, void *argument)
{
	AggregateState *state = argument;
	const Part *x = &((const Gathered *) a)->part;
	const Part *y = &((const Gathered *) b)->part;
	const CairnColumn *column = &state->index->column[0];

	if (!state->grouped)
		return 0;
	return cairn_compare_datums(state->index, 0, x->key_null ? (Datum) 0 : cairn_from_integer(column, (uint64) x->key), x->key_null,
								y->key_null ? (Datum) 0 : cairn_from_integer(column, (uint64) y->key), y->key_null);
}

/* All groups of all processes, in the current context. */
static Gathered *
gather(AggregateState *state, int *count)
{
	int			room = 64;
	Gathered   *gathered = palloc(room * sizeof(Gathered));
	Size		totals = state->output_count * sizeof(Total);

	for (*count = 0;; ++*count)
	{
		TupleTableSlot *slot = ExecProcNode(state->parts);
		Gathered   *next;
		bool		is_null;
		bytea	   *row;

		CHECK_FOR_INTERRUPTS();
		if (TupIsNull(slot))
			return gathered;
		if (*count == room)
		{
			room *= 2;
			gathered = repalloc_huge(gathered, room * sizeof(Gathered));
		}
		row = DatumGetByteaPP(slot_getattr(slot, 1, &is_null));
		if (is_null || VARSIZE_ANY_EXHDR(row) != sizeof(Part) + totals)
			elog(ERROR, "a process of an aggregate has handed up something else than totals");
		next = &gathered[*count];
		memcpy(&next->part, VARDATA_ANY(row), sizeof(Part));
		next->totals = palloc(Max(totals, 1));
		memcpy(next->totals, VARDATA_ANY(row) + sizeof(Part), totals);
	}
}

static void
add_totals(AggregateState *state, const Total *other)
{
	for (int i = 0; i < state->output_count; i++)
	{
		Total	   *total = &state->totals[i];

		total->count += other[i].count;
		total->sum += other[i].sum;
		total->least = Min(total->least, other[i].least);
		total->most = Max(total->most, other[i].most);
	}
}

/* The groups of all processes together. If rows were counted that may not be seen, it is all done again by this one. */
void
cairn_aggregate_combine(AggregateState *state)
{
	MemoryContext old;
	Gathered   *gathered;
	int			count;
	bool		sound = true;

	MemoryContextReset(state->context);
	old = MemoryContextSwitchTo(state->context);
	gathered = gather(state, &count);
	if (count > 0 && !gathered[0].part.careful)
		sound = cairn_aggregate_holds(state, gathered[0].part.vacuum_seq);
	if (!sound)
	{
		MemoryContextSwitchTo(old);
		cairn_aggregate_run(state, true);
		return;
	}
	qsort_arg(gathered, count, sizeof(Gathered), compare_parts, state);
	tuplestore_clear(state->results);
	state->open = false;
	cairn_totals_begin(state);
	for (int i = 0; i < count; i++)
	{
		if (state->open && compare_parts(&gathered[i - 1], &gathered[i], state) != 0)
		{
			cairn_group_put(state);
			cairn_totals_begin(state);
		}
		state->open = true;
		state->key = gathered[i].part.key;
		state->key_null = gathered[i].part.key_null;
		add_totals(state, gathered[i].totals);
	}
	if (cairn_group_is_worth_a_row(state))
		cairn_group_put(state);
	MemoryContextSwitchTo(old);
}
