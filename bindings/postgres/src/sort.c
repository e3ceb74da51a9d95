/*
 * Rows into the order of the index, within the memory that is allowed, by one process or by several.
 *
 * Rows whose columns are all integers, in the order of integers, are sorted as numbers. Others go through PostgreSQL's own sort. The one for
 * btrees refuses the relations of other access methods before PostgreSQL 18, so rows go through the sort for tuples, by the "<" and ">"
 * operators of the columns and last by the row's place in the heap.
 */
#include "cairn.h"

#include "access/stratnum.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "executor/tuptable.h"
#include "utils/lsyscache.h"

#include "numbers.h"

#define INT8_LESS_OPERATOR 412

struct CairnSort
{
	CairnIndex *index;
	const CairnSortPart *part;	/* of a sort by several processes; null of one by itself */
	CairnNumbers *numbers;		/* null: rows are sorted as tuples */
	Datum		values[INDEX_MAX_KEYS];
	bool		nulls[INDEX_MAX_KEYS];
	Tuplesortstate *state;
	SortCoordinateData coordinate;
	TupleTableSlot *in;
	TupleTableSlot *out;
	MemoryContext scratch;
};

/* A key as an unsigned number that ascends in the order of the index; its own inverse. */
static inline uint64
ascending(const CairnColumn *column, uint64 value)
{
	return column->descends ? ~(value ^ (UINT64CONST(1) << 63)) : value ^ (UINT64CONST(1) << 63);
}

static inline uint64
from_ascending(const CairnColumn *column, uint64 number)
{
	return (column->descends ? ~number : number) ^ (UINT64CONST(1) << 63);
}

static TupleDesc
row_desc(CairnIndex *index)
{
	TupleDesc	desc = CreateTemplateTupleDesc(index->columns + 1);

	for (int i = 0; i < index->columns; i++)
		TupleDescCopyEntry(desc, i + 1, index->desc, i + 1);
	TupleDescInitEntry(desc, index->columns + 1, "place", INT8OID, -1, 0);
#if PG_VERSION_NUM >= 190000
	TupleDescFinalize(desc);
#endif
	return desc;
}

static bool
is_all_integers(CairnIndex *index)
{
	for (int i = 0; i < index->columns; i++)
		if (!index->column[i].byval || (i < index->keys && !index->column[i].is_integer))
			return false;
	return index->columns <= CAIRN_NUMBERS_MOST_COLUMNS;
}

static bool
reads_all(const CairnSort *sort)
{
	return sort->part != NULL && sort->part->number < 0;
}

static void
begin_tuples(CairnSort *sort, int kilobytes)
{
	CairnIndex *index = sort->index;
	TupleDesc	desc = row_desc(index);
	AttrNumber	columns[INDEX_MAX_KEYS + 1];
	Oid			operators[INDEX_MAX_KEYS + 1];
	Oid			collations[INDEX_MAX_KEYS + 1];
	bool		nulls_first[INDEX_MAX_KEYS + 1];

	for (int i = 0; i < index->keys; i++)
	{
		StrategyNumber strategy = index->column[i].descends ? BTGreaterStrategyNumber : BTLessStrategyNumber;
		Oid			type = index->rel->rd_opcintype[i];

		columns[i] = i + 1;
		operators[i] = get_opfamily_member(index->rel->rd_opfamily[i], type, type, strategy);
		if (!OidIsValid(operators[i]))
			elog(ERROR, "no operator %d for type %u in the operator family of index \"%s\"",
				 strategy, type, RelationGetRelationName(index->rel));
		collations[i] = index->column[i].collation;
		nulls_first[i] = index->column[i].nulls_first;
	}
	columns[index->keys] = index->columns + 1;
	operators[index->keys] = INT8_LESS_OPERATOR;
	collations[index->keys] = InvalidOid;
	nulls_first[index->keys] = false;
	if (sort->part != NULL)
	{
		sort->coordinate.isWorker = !reads_all(sort);
		sort->coordinate.nParticipants = reads_all(sort) ? sort->part->participants : -1;
		sort->coordinate.sharedsort = sort->part->tuples;
	}
	sort->state = tuplesort_begin_heap(desc, index->keys + 1, columns, operators, collations, nulls_first, kilobytes,
									   sort->part != NULL ? &sort->coordinate : NULL, TUPLESORT_NONE);
	sort->in = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);
	sort->out = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple);
	sort->scratch = AllocSetContextCreate(CurrentMemoryContext, "cairn sort", ALLOCSET_DEFAULT_SIZES);
}

CairnSort *
cairn_sort_begin(CairnIndex *index, int kilobytes, const CairnSortPart *part)
{
	CairnSort  *sort = palloc0(sizeof(CairnSort));

	sort->index = index;
	sort->part = part;
	if (!is_all_integers(index))
		begin_tuples(sort, kilobytes);
	else
		sort->numbers = cairn_numbers_begin(index, kilobytes, part != NULL ? part->files : NULL, part != NULL ? part->number : 0);
	return sort;
}

static void
add_numbers(CairnSort *sort, ItemPointer tid, Datum *values, bool *nulls, bool dead)
{
	CairnIndex *index = sort->index;
	uint64	   *row = cairn_numbers_add(sort->numbers);
	uint64		place = ((uint64) ItemPointerGetBlockNumberNoCheck(tid) << 32) |
		((uint64) ItemPointerGetOffsetNumberNoCheck(tid) << 16) | (dead ? CAIRN_PLACE_DEAD : 0);

	for (int i = 0; i < index->columns; i++)
	{
		CairnColumn *column = &index->column[i];
		uint64	   *number = i < index->keys ? &row[i] : &row[i + 1];

		if (nulls[i])
		{
			place |= UINT64CONST(1) << i;
			*number = column->nulls_first || i >= index->keys ? 0 : PG_UINT64_MAX;
			continue;
		}
		*number = cairn_to_integer(column, values[i]);
		if (i < index->keys)
			*number = ascending(column, *number);
	}
	row[index->keys] = place;
}

static void
add_tuple(CairnSort *sort, ItemPointer tid, Datum *values, bool *nulls, bool dead)
{
	CairnIndex *index = sort->index;
	TupleTableSlot *slot = sort->in;
	bool		detoasted = false;

	ExecClearTuple(slot);
	for (int i = 0; i < index->columns; i++)
	{
		slot->tts_values[i] = values[i];
		slot->tts_isnull[i] = nulls[i];
		if (!nulls[i] && index->column[i].len == -1 && VARATT_IS_EXTENDED(DatumGetPointer(values[i])) &&
			!VARATT_IS_SHORT(DatumGetPointer(values[i])))
		{
			/* Once here instead of in each comparison. */
			MemoryContext old = MemoryContextSwitchTo(sort->scratch);

			slot->tts_values[i] = PointerGetDatum(PG_DETOAST_DATUM(values[i]));
			MemoryContextSwitchTo(old);
			detoasted = true;
		}
	}
	slot->tts_values[index->columns] = Int64GetDatum(((int64) ItemPointerGetBlockNumberNoCheck(tid) << 17) |
													 (ItemPointerGetOffsetNumberNoCheck(tid) << 1) | dead);
	slot->tts_isnull[index->columns] = false;
	ExecStoreVirtualTuple(slot);
	tuplesort_puttupleslot(sort->state, slot);
	if (detoasted)
		MemoryContextReset(sort->scratch);
}

/* `dead`: no snapshot that comes will see the row, so it may have the key of another. */
void
cairn_sort_add(CairnSort *sort, ItemPointer tid, Datum *values, bool *nulls, bool dead)
{
	if (sort->numbers != NULL)
		add_numbers(sort, tid, values, nulls, dead);
	else
		add_tuple(sort, tid, values, nulls, dead);
}

/* Sorts this process's rows, for itself or for the one that reads all. */
void
cairn_sort_perform(CairnSort *sort)
{
	const CairnSortPart *part = sort->part;

	if (sort->numbers == NULL)
		tuplesort_performsort(sort->state);
	else if (reads_all(sort))
		for (int i = 0; i < part->participants; i++)
			cairn_numbers_open(sort->numbers, i, part->runs[i]);
	else if (part != NULL)
		part->runs[part->number] = cairn_numbers_share(sort->numbers);
	else
		cairn_numbers_sort(sort->numbers);
}

static bool
next_numbers(CairnSort *sort, ItemPointer tid, bool *dead)
{
	CairnIndex *index = sort->index;
	const uint64 *row = cairn_numbers_next(sort->numbers);
	uint64		place;

	if (row == NULL)
		return false;
	place = row[index->keys];
	for (int i = 0; i < index->columns; i++)
	{
		CairnColumn *column = &index->column[i];

		sort->nulls[i] = (place >> i) & 1;
		sort->values[i] = (Datum) 0;
		if (!sort->nulls[i])
			sort->values[i] = cairn_from_integer(column, i < index->keys ? from_ascending(column, row[i]) : row[i + 1]);
	}
	ItemPointerSet(tid, (BlockNumber) (place >> 32), (OffsetNumber) (place >> 16));
	*dead = (place & CAIRN_PLACE_DEAD) != 0;
	return true;
}

/* The next row in order; the values hold until the next call. */
bool
cairn_sort_next(CairnSort *sort, ItemPointer tid, Datum **values, bool **nulls, bool *dead)
{
	int64		place;

	if (sort->numbers != NULL)
	{
		*values = sort->values;
		*nulls = sort->nulls;
		return next_numbers(sort, tid, dead);
	}
	if (!tuplesort_gettupleslot(sort->state, true, false, sort->out, NULL))
		return false;
	slot_getallattrs(sort->out);
	place = DatumGetInt64(sort->out->tts_values[sort->index->columns]);
	ItemPointerSet(tid, (BlockNumber) (place >> 17), (OffsetNumber) (place >> 1));
	*dead = place & 1;
	*values = sort->out->tts_values;
	*nulls = sort->out->tts_isnull;
	return true;
}

void
cairn_sort_end(CairnSort *sort)
{
	if (sort->numbers != NULL)
		cairn_numbers_end(sort->numbers);
	else
	{
		ExecDropSingleTupleTableSlot(sort->in);
		ExecDropSingleTupleTableSlot(sort->out);
		tuplesort_end(sort->state);
		MemoryContextDelete(sort->scratch);
	}
	pfree(sort);
}
