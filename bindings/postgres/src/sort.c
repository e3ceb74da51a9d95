/*
 * Rows into the order of the index, with PostgreSQL's own sort: within its memory, spilling to its temporary files.
 *
 * The sort for btrees refuses the relations of other access methods before PostgreSQL 18, so rows go through the sort for
 * tuples, by the "<" and ">" operators of the columns and last by the row's place in the heap.
 */
#include "cairn.h"

#include "access/stratnum.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "executor/tuptable.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#define INT8_LESS_OPERATOR 412

struct CairnSort
{
	CairnIndex *index;
	Tuplesortstate *state;
	TupleTableSlot *in;
	TupleTableSlot *out;
	MemoryContext scratch;
};

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

CairnSort *
cairn_sort_begin(CairnIndex *index, int kilobytes)
{
	CairnSort  *sort = palloc0(sizeof(CairnSort));
	TupleDesc	desc = row_desc(index);
	AttrNumber	columns[INDEX_MAX_KEYS + 1];
	Oid			operators[INDEX_MAX_KEYS + 1];
	Oid			collations[INDEX_MAX_KEYS + 1];
	bool		nulls_first[INDEX_MAX_KEYS + 1];

	sort->index = index;
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
	sort->state = tuplesort_begin_heap(desc, index->keys + 1, columns, operators, collations, nulls_first, kilobytes,
									   NULL, TUPLESORT_NONE);
	sort->in = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);
	sort->out = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple);
	sort->scratch = AllocSetContextCreate(CurrentMemoryContext, "cairn sort", ALLOCSET_DEFAULT_SIZES);
	return sort;
}

void
cairn_sort_add(CairnSort *sort, ItemPointer tid, Datum *values, bool *nulls)
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
	tuplesort_performsort(sort->state);
}

/* The next row in order; the values hold until the next call. */
bool
cairn_sort_next(CairnSort *sort, ItemPointer tid, Datum **values, bool **nulls)
{
	int64		place;

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
	ExecDropSingleTupleTableSlot(sort->in);
	ExecDropSingleTupleTableSlot(sort->out);
	tuplesort_end(sort->state);
	MemoryContextDelete(sort->scratch);
	pfree(sort);
}
