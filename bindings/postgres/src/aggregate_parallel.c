/*
 * Aggregates by several processes. Each goes through units of the tree that it claims, as parallel scans do, and hands its totals up, a row for
 * each group; the first takes the tail. Whoever is above adds them up, and decides in the end whether rows that were counted unseen may be.
 */
#include "aggregate_state.h"

#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/tuplesort.h"

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

/* Sorts rows of totals by the key of their group, within work_mem or on disk. */
static Tuplesortstate *
begin_sort(AggregateState *state, TupleDesc desc)
{
	const CairnColumn *column = &state->index->column[0];
	Relation	rel = state->rel;
	AttrNumber	key = 1;
	StrategyNumber strategy = column->descends ? BTGreaterStrategyNumber : BTLessStrategyNumber;
	Oid			collation = column->collation;
	bool		nulls_first = column->nulls_first;
	Oid			operator = get_opfamily_member(rel->rd_opfamily[0], rel->rd_opcintype[0], rel->rd_opcintype[0], strategy);

	if (!OidIsValid(operator))
		elog(ERROR, "no operator %d for type %u in the operator family of index \"%s\"",
			 strategy, rel->rd_opcintype[0], RelationGetRelationName(rel));
	return tuplesort_begin_heap(desc, 1, &key, &operator, &collation, &nulls_first, work_mem, NULL, TUPLESORT_NONE);
}

static TupleDesc
sorted_desc(AggregateState *state)
{
	TupleDesc	desc = CreateTemplateTupleDesc(2);

	TupleDescCopyEntry(desc, 1, state->index->desc, 1);
	TupleDescInitEntry(desc, 2, "totals", BYTEAOID, -1, 0);
#if PG_VERSION_NUM >= 190000
	TupleDescFinalize(desc);
#endif
	return desc;
}

/* What a process has handed up; the totals stand in the row behind it, at any place. */
static const char *
read_part(AggregateState *state, TupleTableSlot *slot, int column, Part *part)
{
	bool		is_null;
	Datum		datum = slot_getattr(slot, column, &is_null);
	bytea	   *row = is_null ? NULL : DatumGetByteaPP(datum);

	if (row == NULL || VARSIZE_ANY_EXHDR(row) != sizeof(Part) + state->output_count * sizeof(Total))
		elog(ERROR, "a process of an aggregate has handed up something else than totals");
	memcpy(part, VARDATA_ANY(row), sizeof(Part));
	return VARDATA_ANY(row) + sizeof(Part);
}

/*
 * All groups of all processes, into `sort` by way of `row`. The last of them is in `part`; false if there is none. Runs in the query's memory: what PostgreSQL
 * sets up for the processes has to stay as long as they do.
 */
static bool
gather(AggregateState *state, Tuplesortstate *sort, TupleTableSlot *row, Part *part)
{
	bool		found = false;

	for (;; found = true)
	{
		TupleTableSlot *slot = ExecProcNode(state->parts);

		CHECK_FOR_INTERRUPTS();
		if (TupIsNull(slot))
			return found;
		(void) read_part(state, slot, 1, part);
		ExecClearTuple(row);
		row->tts_isnull[0] = !state->grouped || part->key_null;
		row->tts_values[0] = row->tts_isnull[0] ? (Datum) 0 : cairn_from_integer(&state->index->column[0], (uint64) part->key);
		row->tts_values[1] = slot_getattr(slot, 1, &row->tts_isnull[1]);
		ExecStoreVirtualTuple(row);
		tuplesort_puttupleslot(sort, row);
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

/* Adds up what has been sorted: rows of a group follow on one another. */
static void
add_sorted(AggregateState *state, Tuplesortstate *sort, TupleTableSlot *row)
{
	Size		size = state->output_count * sizeof(Total);
	Total	   *totals = palloc(Max(size, 1));
	Part		part;

	tuplestore_clear(state->results);
	state->open = false;
	cairn_totals_begin(state);
	while (tuplesort_gettupleslot(sort, true, false, row, NULL))
	{
		memcpy(totals, read_part(state, row, 2, &part), size);
		if (state->open && state->grouped && (part.key_null != state->key_null || (!part.key_null && part.key != state->key)))
		{
			cairn_group_put(state);
			cairn_totals_begin(state);
		}
		state->open = true;
		state->key = part.key;
		state->key_null = part.key_null;
		add_totals(state, totals);
	}
	if (cairn_group_is_worth_a_row(state))
		cairn_group_put(state);
}

/* The groups of all processes together. If rows were counted that may not be seen, it is all done again by this one. */
void
cairn_aggregate_combine(AggregateState *state)
{
	MemoryContext old;
	TupleDesc	desc;
	Tuplesortstate *sort;
	TupleTableSlot *in;
	TupleTableSlot *out;
	Part		part;
	bool		sound = true;

	MemoryContextReset(state->context);
	old = MemoryContextSwitchTo(state->context);
	desc = sorted_desc(state);
	sort = begin_sort(state, desc);
	in = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);
	out = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple);
	MemoryContextSwitchTo(old);
	/* All of them were read with care, or none. */
	if (gather(state, sort, in, &part) && !part.careful)
		sound = cairn_aggregate_holds(state, part.vacuum_seq);
	if (sound)
	{
		MemoryContextSwitchTo(state->context);
		tuplesort_performsort(sort);
		add_sorted(state, sort, out);
		MemoryContextSwitchTo(old);
	}
	ExecDropSingleTupleTableSlot(in);
	ExecDropSingleTupleTableSlot(out);
	tuplesort_end(sort);
	if (!sound)
		cairn_aggregate_run(state, true);
}
