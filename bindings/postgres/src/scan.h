/* The state of a scan. */
#ifndef CAIRN_SCAN_H
#define CAIRN_SCAN_H

#include "cairn.h"

#include "storage/spin.h"

/* A condition on a column that rows have to meet. */
typedef enum CairnConditionKind
{
	CAIRN_COMPARE,				/* with a value; `< ANY (array)` is one with the greatest element */
	CAIRN_IN,					/* = ANY (array) */
	CAIRN_IS_NULL,
	CAIRN_IS_NOT_NULL
} CairnConditionKind;

typedef struct CairnCondition
{
	CairnConditionKind kind;
	int			column;
	StrategyNumber strategy;
	ScanKey		key;
	Oid			type;			/* of the argument, or of its elements, as they are compared */
	Datum		argument;		/* of CAIRN_COMPARE */
	bool		never;			/* a comparison with NULL, or with an empty array */
	bool		in_bounds;		/* the range of rows sees to it */
	bool		is_integer;		/* met by rows within least and most */
	int64		least;
	int64		most;
	int			element_count;	/* of CAIRN_IN: sorted, without duplicates and NULLs */
	Datum	   *elements;
	FmgrInfo	compare;		/* of the column's type with the argument's */
	bool		integer_elements;
	int			chosen;			/* the element that the bounds stand for */
} CairnCondition;

typedef struct CairnConditions
{
	CairnIndex *index;
	int			count;
	CairnCondition *list;
	bool		never;
	int			array_count;	/* conditions whose elements the bounds go through, in the order of columns */
	CairnCondition *arrays[INDEX_MAX_KEYS];
	int			filter_count;
	int			pinned;			/* so many of the first columns have one integer in all rows between the bounds */
	CairnBound	lower;
	CairnBound	upper;
} CairnConditions;

extern void cairn_conditions_set(CairnConditions *conditions, CairnIndex *index, ScanKey keys, int count,
								 bool arrays_in_bounds, MemoryContext context);
extern void cairn_conditions_bound(CairnConditions *conditions);
extern void cairn_conditions_first(CairnConditions *conditions, bool last);
extern bool cairn_conditions_step(CairnConditions *conditions, bool backward);
extern bool cairn_condition_met(CairnConditions *conditions, CairnCondition *condition, Datum datum, bool is_null);
extern bool cairn_conditions_tuple(CairnConditions *conditions, IndexTuple tuple);

/* Rows of a leaf unpacked at a time. */
#define CAIRN_BATCH 512

typedef struct CairnBatch
{
	uint32		start;			/* of the rows in the leaf that were looked at */
	uint32		rows;
	int			count;			/* of those that meet the conditions: the arrays hold these */
	bool		all;			/* every row does */
	bool		with_columns;	/* for an index-only scan */
	bool		with_tuples;	/* its rows are index tuples */
	bool		without_tids;	/* nobody asks for those of this leaf */
	const bool *wanted;			/* which columns; null: all */
	bool		has_nulls;
	bool		has_tuples;
	int			room;			/* of the arrays, which are small at first */
	uint16	   *selected;		/* where they stand, counted from `start` */
	ItemPointerData *tid;
	uint64	   *integers[INDEX_MAX_KEYS];
	uint64	   *nulls[INDEX_MAX_KEYS];
	char	   *tuples;			/* one behind the other, where the layout is fixed */
	int			begun;			/* of these, how many have their heads */
	uint64	   *mask;			/* of the rows looked at */
	ItemPointerData *scratch_tid;
	uint64	   *scratch;
} CairnBatch;

typedef enum CairnSource
{
	CAIRN_FROM_NONE,
	CAIRN_FROM_TREE,
	CAIRN_FROM_TAIL
} CairnSource;

/* What the processes of a parallel scan share. */
typedef struct CairnParallel
{
	slock_t		lock;
	bool		started;		/* somebody has fixed the tree, and reads the tail */
	uint32		generation;		/* of that tree; who comes when it has been replaced leaves the rest to the others */
	uint32		next_unit;
} CairnParallel;

typedef struct CairnPosition
{
	bool		is_set;
	bool		at_end;			/* the tree has no more rows in this direction, and nothing else is known of the place */
	uint32		row;			/* behind the gap, in its leaf */
	bool		behind;			/* the gap is the leaf's end, and `key` is of the row before it */
	BlockNumber block;
	int			tail_gap;
	int		   *chosen;			/* of the arrays */
	CairnSource last;
	ScanDirection direction;
	IndexTuple	key;			/* of the row */
} CairnPosition;

/*
 * Asks whether all rows of the leaf within the range are visible, once for each leaf while it is pinned. Their row ids are not unpacked if so.
 */
struct CairnScan;
typedef bool (*CairnLook) (struct CairnScan *scan, void *argument);

typedef struct CairnScan
{
	CairnIndex *index;
	MemoryContext context;		/* of the conditions: reset with each rescan */
	MemoryContext row_context;	/* of the row handed out last */
	bool		started;		/* the meta page has been read, the tail too */
	bool		placed;			/* the walk is at a leaf of the current range */
	bool		ended;			/* behind the last row, or before the first, with nothing pinned */
	bool		no_rows;
	CairnConditions conditions;
	CairnWalk	walk;
	CairnLeaf  *leaf;
	uint32		from;			/* rows of the leaf within the range */
	uint32		to;
	CairnBatch	batch;
	int			gap;			/* between rows of the batch: the next is batch[gap], the one before batch[gap - 1] */
	uint32		batch_rows;		/* how many to look at next */
	int			tail_count;
	int			tail_room;
	IndexTuple *tail;			/* rows of the tail that meet the conditions, in order */
	int			tail_gap;
	TupleTableSlot *slot;		/* to look whether a row is visible */
	Buffer		map;			/* page of the visibility map asked last, on a standby */
	bool		vouched_known;	/* the map has been asked about the batch */
	uint64	   *vouched;		/* which rows of it the map vouches for; null before it is asked for the first time */
	CairnSource last;
	ScanDirection direction;
	CairnPosition mark;
	CairnLook	look;			/* of a scan by batches */
	void	   *look_argument;
	bool		looked;			/* `look` has seen this leaf's rows */
	CairnParallel *parallel;	/* null if the scan is all ours */
	uint32		unit;			/* of a parallel scan: where the walk is */
} CairnScan;

/* What a lookup of one row needs fits into the first block of the scan's memory context, which PostgreSQL keeps from scan to scan. */
StaticAssertDecl(sizeof(CairnScan) <= 4096, "a scan's state fits into half of the first block");

/* scan.c: whole batches, for who needs no tuples. */
extern bool cairn_scan_by_batches(IndexScanDesc scan, bool backward, const bool *wanted, CairnLook look, void *argument);
extern CairnBatch *cairn_scan_next_batch(IndexScanDesc scan, bool backward);

extern void cairn_scan_enter_leaf(CairnScan *state, bool backward, CairnArrival arrival);

/* scan_tail.c */
extern void cairn_scan_copy_tail(CairnScan *state, const CairnMetaData *meta);
extern void cairn_scan_sort_tail(CairnScan *state);
extern int	cairn_scan_compare_tail(CairnScan *state, int at, IndexTuple tuple);

/* scan_visible.c */
extern bool cairn_scan_tail_row_visible(IndexScanDesc scan, IndexTuple tuple);
extern bool cairn_scan_tree_row_visible(IndexScanDesc scan, int at);
extern void cairn_scan_visible_end(CairnScan *state);

/* parallel.c */
extern void cairn_parallel_join(IndexScanDesc scan, const CairnMetaData *meta, bool backward, bool *rows, bool *tail);
extern bool cairn_parallel_seek(CairnParallel *parallel, CairnWalk *walk, const CairnBound *lower, uint32 *unit);
extern bool cairn_parallel_next(CairnParallel *parallel, CairnWalk *walk, uint32 *unit);

#endif							/* CAIRN_SCAN_H */
