/*
 * Rows into the order of the index, within the memory that is allowed.
 *
 * Rows whose columns are all integers without NULLs, in the order of integers, are kept as such and sorted in memory. Others, and more
 * than fit, go through PostgreSQL's own sort, which spills to its temporary files.
 *
 * The sort for btrees refuses the relations of other access methods before PostgreSQL 18, so rows go through the sort for
 * tuples, by the "<" and ">" operators of the columns and last by the row's place in the heap.
 */
#include "cairn.h"

#include "access/stratnum.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#define INT8_LESS_OPERATOR 412

struct CairnSort
{
	CairnIndex *index;
	/* Rows of numbers: the key columns made ascending, then tid, then the other columns. */
	uint64	   *rows;
	int			width;			/* numbers in a row; 0 once rows go through the tuple sort */
	size_t		count;
	size_t		room;
	size_t		most;
	size_t		at;
	int			kilobytes;
	Datum		values[INDEX_MAX_KEYS];
	bool		nulls[INDEX_MAX_KEYS];
	Tuplesortstate *state;
	TupleTableSlot *in;
	TupleTableSlot *out;
	MemoryContext scratch;
};

typedef struct RowOrder
{
	int			numbers;		/* that decide */
} RowOrder;

static inline int
compare_rows(const void *a, const void *b, RowOrder *order)
{
	const uint64 *x = a;
	const uint64 *y = b;

	for (int i = 0; i < order->numbers; i++)
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
	return 0;
}

#define ST_SORT sort_rows
#define ST_ELEMENT_TYPE_VOID
#define ST_COMPARE_ARG_TYPE RowOrder
#define ST_COMPARE(a, b, order) compare_rows(a, b, order)
#define ST_CHECK_FOR_INTERRUPTS
#define ST_SCOPE static
#define ST_DECLARE
#define ST_DEFINE
#include "lib/sort_template.h"

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
	TupleDescInitEntry(desc, index->columns + 1, "tid", INT8OID, -1, 0);
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
	return true;
}

static void
begin_tuples(CairnSort *sort)
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
	sort->state = tuplesort_begin_heap(desc, index->keys + 1, columns, operators, collations, nulls_first, sort->kilobytes,
									   NULL, TUPLESORT_NONE);
	sort->in = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);
	sort->out = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple);
	sort->scratch = AllocSetContextCreate(CurrentMemoryContext, "cairn sort", ALLOCSET_DEFAULT_SIZES);
}

CairnSort *
cairn_sort_begin(CairnIndex *index, int kilobytes)
{
	CairnSort  *sort = palloc0(sizeof(CairnSort));

	sort->index = index;
	sort->kilobytes = kilobytes;
	if (!is_all_integers(index))
	{
		begin_tuples(sort);
		return sort;
	}
	sort->width = index->columns + 1;
	sort->most = Max((size_t) kilobytes * 1024 / (sort->width * sizeof(uint64)), 1024);
	sort->room = Min(sort->most, 8192);
	sort->rows = palloc(sort->room * sort->width * sizeof(uint64));
	return sort;
}

/* The values of a row of numbers. */
static void
unfold(CairnSort *sort, const uint64 *row, ItemPointer tid)
{
	CairnIndex *index = sort->index;

	for (int i = 0; i < index->columns; i++)
		sort->values[i] = i < index->keys ? cairn_from_integer(&index->column[i], from_ascending(&index->column[i], row[i]))
			: cairn_from_integer(&index->column[i], row[i + 1]);
	ItemPointerSet(tid, (BlockNumber) (row[index->keys] >> 16), (OffsetNumber) (row[index->keys] & 0xffff));
}

static void add_tuple(CairnSort *sort, ItemPointer tid, Datum *values, bool *nulls);

/* From here on through the tuple sort, with the rows that are here already. */
static void
change_over(CairnSort *sort)
{
	uint64	   *rows = sort->rows;
	int			width = sort->width;
	ItemPointerData tid;

	begin_tuples(sort);
	sort->width = 0;
	for (size_t i = 0; i < sort->count; i++)
	{
		unfold(sort, rows + i * width, &tid);
		add_tuple(sort, &tid, sort->values, sort->nulls);
	}
	pfree(rows);
	sort->rows = NULL;
}

void
cairn_sort_add(CairnSort *sort, ItemPointer tid, Datum *values, bool *nulls)
{
	CairnIndex *index = sort->index;
	bool		has_null = false;
	uint64	   *row;

	for (int i = 0; i < index->columns && sort->width > 0; i++)
		has_null |= nulls[i];
	if (sort->width > 0 && (has_null || sort->count == sort->most))
		change_over(sort);
	if (sort->width == 0)
	{
		add_tuple(sort, tid, values, nulls);
		return;
	}
	if (sort->count == sort->room)
	{
		sort->room = Min(sort->room * 2, sort->most);
		sort->rows = repalloc_huge(sort->rows, sort->room * sort->width * sizeof(uint64));
	}
	row = sort->rows + sort->count++ * sort->width;
	for (int i = 0; i < index->columns; i++)
	{
		uint64		value = cairn_to_integer(&index->column[i], values[i]);

		if (i < index->keys)
			row[i] = ascending(&index->column[i], value);
		else
			row[i + 1] = value;
	}
	row[index->keys] = ((uint64) ItemPointerGetBlockNumberNoCheck(tid) << 16) | ItemPointerGetOffsetNumberNoCheck(tid);
}

static void
add_tuple(CairnSort *sort, ItemPointer tid, Datum *values, bool *nulls)
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
	slot->tts_values[index->columns] = Int64GetDatum(((int64) ItemPointerGetBlockNumberNoCheck(tid) << 16) |
													 ItemPointerGetOffsetNumberNoCheck(tid));
	slot->tts_isnull[index->columns] = false;
	ExecStoreVirtualTuple(slot);
	tuplesort_puttupleslot(sort->state, slot);
	if (detoasted)
		MemoryContextReset(sort->scratch);
}

void
cairn_sort_perform(CairnSort *sort)
{
	RowOrder	order = {sort->index->keys + 1};

	if (sort->width == 0)
		tuplesort_performsort(sort->state);
	else
		sort_rows(sort->rows, sort->count, sort->width * sizeof(uint64), &order);
}

/* The next row in order; the values hold until the next call. */
bool
cairn_sort_next(CairnSort *sort, ItemPointer tid, Datum **values, bool **nulls)
{
	int64		place;

	if (sort->width > 0)
	{
		if (sort->at == sort->count)
			return false;
		unfold(sort, sort->rows + sort->at++ * sort->width, tid);
		*values = sort->values;
		*nulls = sort->nulls;
		return true;
	}
	if (!tuplesort_gettupleslot(sort->state, true, false, sort->out, NULL))
		return false;
	slot_getallattrs(sort->out);
	place = DatumGetInt64(sort->out->tts_values[sort->index->columns]);
	ItemPointerSet(tid, (BlockNumber) (place >> 16), (OffsetNumber) (place & 0xffff));
	*values = sort->out->tts_values;
	*nulls = sort->out->tts_isnull;
	return true;
}

void
cairn_sort_end(CairnSort *sort)
{
	if (sort->width > 0)
	{
		pfree(sort->rows);
		pfree(sort);
		return;
	}
	ExecDropSingleTupleTableSlot(sort->in);
	ExecDropSingleTupleTableSlot(sort->out);
	tuplesort_end(sort->state);
	MemoryContextDelete(sort->scratch);
	pfree(sort);
}
