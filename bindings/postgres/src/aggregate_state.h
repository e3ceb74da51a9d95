/* The state of an aggregate over compressed pages, and its totals. */
#ifndef CAIRN_AGGREGATE_STATE_H
#define CAIRN_AGGREGATE_STATE_H

#include "batch.h"

#include "aggregate.h"

#include "utils/tuplestore.h"

/* Bits for the rows of a leaf, and a word to shift into. */
#define MASK_WORDS (CAIRN_MAX_ROWS / 64 + 2)

typedef struct Total
{
	int64		count;
	int128		sum;
	int64		least;
	int64		most;
} Total;

typedef struct Output
{
	CairnAggregateKind kind;
	int			column;
	Oid			type;
} Output;

typedef struct AggregateState
{
	CustomScanState css;
	Relation	heap;
	Relation	rel;
	CairnIndex *index;
	CairnLeaf  *leaf;
	int			output_count;
	Output	   *output;
	int			key_count;
	ScanKey		keys;
	List	   *arguments;		/* ExprState */
	bool		grouped;
	Node	   *condition;		/* for EXPLAIN; null if there is none */
	MemoryContext context;		/* of one run */
	CairnConditions conditions;
	CairnWalk	walk;
	CairnMetaData meta;
	IndexTuple *tail;
	int			tail_count;
	int			tail_room;
	int			tail_at;
	bool		careful;		/* rows are looked up one by one */
	Buffer		map;
	struct IndexFetchTableData *fetch;
	TupleTableSlot *heap_slot;
	uint64	   *mask;
	uint64	   *part;
	/* the group at hand */
	bool		open;
	bool		key_null;
	int64		key;
	Total	   *totals;
	/* results */
	bool		done;
	Tuplestorestate *results;
	TupleTableSlot *stored;
	/* for EXPLAIN */
	int64		leaves;
	int64		rows;
	int64		heap_fetches;
	bool		was_careful;
} AggregateState;

/* aggregate_totals.c */
extern void cairn_aggregate_checked(AggregateState *state, int code);
extern void cairn_totals_begin(AggregateState *state);
extern void cairn_group_put(AggregateState *state);
extern bool cairn_group_is_worth_a_row(AggregateState *state);
extern void cairn_totals_add_rows(AggregateState *state, uint32 from, uint32 to, const uint64 *mask);
extern void cairn_groups_add_rows(AggregateState *state, uint32 from, uint32 to, const uint64 *mask);
extern void cairn_groups_add_tail(AggregateState *state, bool all, Datum key, bool is_null);

#endif							/* CAIRN_AGGREGATE_STATE_H */
