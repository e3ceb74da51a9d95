/* The state of an aggregate over compressed pages, and its totals. */
#ifndef CAIRN_AGGREGATE_STATE_H
#define CAIRN_AGGREGATE_STATE_H

#include "batch.h"

#include "aggregate.h"
#include "visible.h"

#include "access/parallel.h"
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
	int			filter;			/* of the aggregate's FILTER clause, -1 without one */
} Output;

/* Rows that aggregates with this FILTER clause count. */
typedef struct CairnFilter
{
	int			key_count;
	CairnConditions conditions;
	uint64	   *mask;			/* of the leaf's rows from `filter_from` on */
} CairnFilter;

/* What the processes of a parallel aggregate share. */
typedef struct AggregateShared
{
	CairnParallel units;
	bool		careful;		/* as the first of them decided */
	uint64		vacuum_seq;		/* that it saw */
	int64		leaves;
	int64		rows;
	int64		heap_fetches;
} AggregateShared;

typedef struct AggregateState
{
	CustomScanState css;
	bool		is_part;
	PlanState  *parts;			/* the plan that gives the totals of several processes, or null */
	AggregateShared *shared;	/* of a part; null if it runs alone */
	Relation	heap;
	Relation	rel;
	CairnIndex *index;
	CairnLeaf  *leaf;
	int			output_count;
	Output	   *output;
	int			key_count;		/* of WHERE; behind them come those of the filters */
	ScanKey		keys;
	int			filter_count;
	CairnFilter *filters;
	uint32		filter_from;
	List	   *arguments;		/* ExprState */
	bool		grouped;
	Node	   *where;			/* for EXPLAIN; null if there is none */
	List	   *filter_trees;	/* for EXPLAIN: the condition of each FILTER clause */
	MemoryContext context;		/* of one run */
	MemoryContext group_context;	/* of one row of results */
	CairnConditions conditions;
	CairnWalk	walk;
	CairnMetaData meta;
	IndexTuple *tail;
	int			tail_count;
	int			tail_room;
	int			tail_at;
	bool		careful;		/* the map is asked leaf by leaf */
	Buffer		map;
	struct IndexFetchTableData *fetch;
	TupleTableSlot *heap_slot;
	uint64	   *mask;
	uint64	   *part;
	uint64	   *kept;			/* rows of a stretch that an aggregate's FILTER leaves */
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
	bool		ran;			/* itself, not only its parts */
} AggregateState;

/* aggregate_run.c */
extern bool cairn_aggregate_all_visible(AggregateState *state);
extern bool cairn_aggregate_run(AggregateState *state, bool careful);
extern bool cairn_aggregate_holds(AggregateState *state, uint64 vacuum_seq);

/* aggregate_parallel.c */
extern void cairn_aggregate_join(AggregateState *state, bool *rows, bool *tail);
extern void cairn_aggregate_account(AggregateState *state);
extern void cairn_aggregate_shut_down(CustomScanState *node);
extern void cairn_part_put(AggregateState *state);
extern void cairn_aggregate_combine(AggregateState *state);
extern Size cairn_aggregate_estimate_shared(CustomScanState *node, ParallelContext *context);
extern void cairn_aggregate_begin_shared(CustomScanState *node, ParallelContext *context, void *coordinate);
extern void cairn_aggregate_begin_shared_again(CustomScanState *node, ParallelContext *context, void *coordinate);
extern void cairn_aggregate_begin_worker(CustomScanState *node, shm_toc *toc, void *coordinate);

/* aggregate_totals.c */
extern void cairn_filters_set(AggregateState *state);
extern void cairn_aggregate_checked(AggregateState *state, int code);
extern void cairn_totals_begin(AggregateState *state);
extern void cairn_group_put(AggregateState *state);
extern bool cairn_group_is_worth_a_row(AggregateState *state);
extern void cairn_totals_add_rows(AggregateState *state, uint32 from, uint32 to, const uint64 *mask);
extern void cairn_groups_add_rows(AggregateState *state, uint32 from, uint32 to, const uint64 *mask);
extern void cairn_groups_add_tail(AggregateState *state, bool all, Datum key, bool is_null);

#endif							/* CAIRN_AGGREGATE_STATE_H */
