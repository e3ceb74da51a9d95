/*
 * Conditions of a scan: which range of the index they leave, and which are left to be checked row by row.
 *
 * Equal on the first columns and a range on the one behind them become two boundaries. The rest are filters. `= ANY` on one of those
 * first columns is a list of ranges, gone through in the order of the index.
 */
#include "scan.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

static int
compare_elements(const void *a, const void *b, void *state)
{
	CairnCondition *condition = state;
	Datum		x = *(const Datum *) a;
	Datum		y = *(const Datum *) b;

	return DatumGetInt32(FunctionCall2Coll(&condition->compare, condition->key->sk_collation, x, y));
}

/* An argument of one of the integer types that compare with a column's by value. */
static bool
argument_integer(const CairnColumn *column, Oid type, Datum datum, int64 *out)
{
	if (!column->is_integer)
		return false;
	if (column->type == INT2OID || column->type == INT4OID || column->type == INT8OID)
	{
		switch (type)
		{
			case INT2OID:
				*out = DatumGetInt16(datum);
				return true;
			case INT4OID:
				*out = DatumGetInt32(datum);
				return true;
			case INT8OID:
				*out = DatumGetInt64(datum);
				return true;
			default:
				return false;
		}
	}
	if (type != column->type)
		return false;
	*out = (int64) cairn_to_integer(column, datum);
	return true;
}

/* The family of operators that a column is compared by, and the type that it takes. Columns carried along have their type's own. */
Oid
cairn_column_family(CairnIndex *index, int column, Oid *input)
{
	TypeCacheEntry *type;

	if (column < index->keys)
	{
		*input = index->rel->rd_opcintype[column];
		return index->rel->rd_opfamily[column];
	}
	type = lookup_type_cache(index->column[column].type, TYPECACHE_BTREE_OPFAMILY);
	*input = type->btree_opintype;
	return type->btree_opf;
}

static Oid
argument_type(CairnIndex *index, int column, ScanKey key)
{
	Oid			input;

	if (OidIsValid(key->sk_subtype))
		return key->sk_subtype;
	(void) cairn_column_family(index, column, &input);
	return input;
}

/* The comparison of the column's type with another of its family, or with its own. */
static void
find_compare(CairnIndex *index, int column, Oid left, Oid right, FmgrInfo *out)
{
	Oid			input;
	Oid			family = cairn_column_family(index, column, &input);
	Oid			function = get_opfamily_proc(family, left, right, BTORDER_PROC);

	if (!OidIsValid(function))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FUNCTION),
				 errmsg("operator family %u of index \"%s\" has no comparison of types %u and %u",
						family, RelationGetRelationName(index->rel), left, right)));
	fmgr_info(function, out);
}

/* A comparison with `condition->argument`, which is of `condition->type`. */
static void
set_comparison(CairnConditions *conditions, CairnCondition *condition)
{
	CairnIndex *index = conditions->index;
	int64		integer;

	if (!argument_integer(&index->column[condition->column], condition->type, condition->argument, &integer))
	{
		Oid			own;

		(void) cairn_column_family(index, condition->column, &own);
		find_compare(index, condition->column, own, condition->type, &condition->compare);
		return;
	}
	condition->is_integer = true;
	condition->least = PG_INT64_MIN;
	condition->most = PG_INT64_MAX;
	switch (condition->strategy)
	{
		case BTLessStrategyNumber:
			condition->never = integer == PG_INT64_MIN;
			condition->most = condition->never ? integer : integer - 1;
			break;
		case BTLessEqualStrategyNumber:
			condition->most = integer;
			break;
		case BTEqualStrategyNumber:
			condition->least = condition->most = integer;
			break;
		case BTGreaterEqualStrategyNumber:
			condition->least = integer;
			break;
		case BTGreaterStrategyNumber:
			condition->never = integer == PG_INT64_MAX;
			condition->least = condition->never ? integer : integer + 1;
			break;
		default:
			elog(ERROR, "unexpected strategy %d", condition->strategy);
	}
}

static void
set_array(CairnConditions *conditions, CairnCondition *condition)
{
	CairnIndex *index = conditions->index;
	ArrayType  *array = DatumGetArrayTypeP(condition->key->sk_argument);
	Oid			type = ARR_ELEMTYPE(array);
	int16		len;
	bool		byval;
	char		align;
	bool	   *nulls;
	int			count;
	int			kept = 0;
	Oid			own;
	Oid			family = cairn_column_family(index, condition->column, &own);

	/* Arrays of a polymorphic or binary-compatible type are compared as the column's. */
	if (!OidIsValid(condition->key->sk_subtype) || !OidIsValid(get_opfamily_proc(family, type, type, BTORDER_PROC)))
		type = argument_type(index, condition->column, condition->key);
	condition->type = type;
	get_typlenbyvalalign(ARR_ELEMTYPE(array), &len, &byval, &align);
	deconstruct_array(array, ARR_ELEMTYPE(array), len, byval, align, &condition->elements, &nulls, &count);
	for (int i = 0; i < count; i++)
		if (!nulls[i])
			condition->elements[kept++] = condition->elements[i];
	condition->element_count = kept;
	if (kept == 0)
	{
		condition->never = true;
		return;
	}
	find_compare(index, condition->column, type, type, &condition->compare);
	qsort_arg(condition->elements, kept, sizeof(Datum), compare_elements, condition);
	count = 1;
	for (int i = 1; i < kept; i++)
		if (compare_elements(&condition->elements[count - 1], &condition->elements[i], condition) != 0)
			condition->elements[count++] = condition->elements[i];
	condition->element_count = count;
	/* Some element is greater than the column if the greatest is; some is less if the least is. */
	if (condition->strategy != BTEqualStrategyNumber)
	{
		condition->kind = CAIRN_COMPARE;
		condition->argument = condition->elements[condition->strategy < BTEqualStrategyNumber ? count - 1 : 0];
		set_comparison(conditions, condition);
		return;
	}
	/* From here on elements are compared with the column. */
	find_compare(index, condition->column, own, type, &condition->compare);
	condition->integer_elements = true;
	for (int i = 0; i < count && condition->integer_elements; i++)
	{
		int64		integer;

		condition->integer_elements =
			argument_integer(&index->column[condition->column], type, condition->elements[i], &integer);
		if (condition->integer_elements)
			condition->least = i == 0 ? integer : condition->least;
		if (condition->integer_elements)
			condition->most = integer;
	}
}

void
cairn_conditions_set(CairnConditions *conditions, CairnIndex *index, ScanKey keys, int count, bool arrays_in_bounds,
					 MemoryContext context)
{
	MemoryContext old = MemoryContextSwitchTo(context);

	memset(conditions, 0, sizeof(CairnConditions));
	conditions->index = index;
	conditions->count = count;
	conditions->list = palloc0(Max(count, 1) * sizeof(CairnCondition));
	for (int i = 0; i < count; i++)
	{
		CairnCondition *condition = &conditions->list[i];
		ScanKey		key = &keys[i];

		condition->key = key;
		condition->column = key->sk_attno - 1;
		condition->strategy = key->sk_strategy;
		if (key->sk_flags & SK_SEARCHNULL)
			condition->kind = CAIRN_IS_NULL;
		else if (key->sk_flags & SK_SEARCHNOTNULL)
			condition->kind = CAIRN_IS_NOT_NULL;
		else if (key->sk_flags & SK_ISNULL)
			condition->never = true;
		else if (key->sk_flags & SK_SEARCHARRAY)
		{
			condition->kind = CAIRN_IN;
			set_array(conditions, condition);
		}
		else
		{
			condition->type = argument_type(index, condition->column, key);
			condition->argument = key->sk_argument;
			set_comparison(conditions, condition);
		}
		conditions->never |= condition->never;
	}
	/* An array may stand for a list of ranges if all columns before it have one value. */
	if (!conditions->never)
		for (int column = 0; column < index->keys; column++)
		{
			CairnCondition *found = NULL;

			for (int i = 0; i < count; i++)
			{
				CairnCondition *condition = &conditions->list[i];
				bool		is_equal = condition->kind == CAIRN_IS_NULL ||
					(condition->kind == CAIRN_COMPARE && condition->strategy == BTEqualStrategyNumber) ||
					(condition->kind == CAIRN_IN && arrays_in_bounds);

				if (condition->column == column && is_equal && (found == NULL || found->kind == CAIRN_IN))
					found = condition;
			}
			if (found == NULL)
				break;
			found->in_bounds = true;
			if (found->kind == CAIRN_IN)
				conditions->arrays[conditions->array_count++] = found;
		}
	MemoryContextSwitchTo(old);
	cairn_conditions_first(conditions, false);
}

static void
set_bound(CairnBound *bound, CairnConditions *conditions, int column, CairnCondition *condition)
{
	CairnBoundColumn *at = &bound->column[column];

	at->is_null = condition->kind == CAIRN_IS_NULL;
	if (!at->is_null)
	{
		at->datum = condition->kind == CAIRN_IN ? condition->elements[condition->chosen] : condition->argument;
		at->is_integer = argument_integer(&conditions->index->column[column], condition->type, at->datum, &at->integer);
		at->compare = &condition->compare;
		at->collation = condition->key->sk_collation;
	}
	bound->count = column + 1;
}

static void
set_null_bound(CairnBound *bound, int column)
{
	bound->column[column].is_null = true;
	bound->count = column + 1;
}

/* The boundaries for the chosen elements of the arrays. */
void
cairn_conditions_bound(CairnConditions *conditions)
{
	CairnIndex *index = conditions->index;
	CairnCondition *low = NULL;
	CairnCondition *high = NULL;
	bool		range = false;
	int			column;

	conditions->lower.count = conditions->upper.count = 0;
	conditions->lower.or_equal = false;
	conditions->upper.or_equal = true;
	for (column = 0; column < index->keys; column++)
	{
		CairnCondition *found = NULL;

		for (int i = 0; i < conditions->count; i++)
			if (conditions->list[i].column == column && conditions->list[i].in_bounds &&
				(conditions->list[i].kind == CAIRN_IS_NULL || conditions->list[i].kind == CAIRN_IN ||
				 conditions->list[i].strategy == BTEqualStrategyNumber))
				found = &conditions->list[i];
		if (found == NULL)
			break;
		set_bound(&conditions->lower, conditions, column, found);
		set_bound(&conditions->upper, conditions, column, found);
	}
	if (column < index->keys)
	{
		bool		descends = index->column[column].descends;

		for (int i = 0; i < conditions->count; i++)
		{
			CairnCondition *condition = &conditions->list[i];
			bool		greater;

			if (condition->column != column || condition->never)
				continue;
			if (condition->kind == CAIRN_IS_NOT_NULL)
			{
				range = true;
				condition->in_bounds = true;
			}
			if (condition->kind != CAIRN_COMPARE || condition->strategy == BTEqualStrategyNumber)
				continue;
			greater = condition->strategy >= BTGreaterEqualStrategyNumber;
			range = true;
			if (greater != descends && low == NULL)
				low = condition;
			else if (greater == descends && high == NULL)
				high = condition;
			else
				continue;
			condition->in_bounds = true;
		}
		if (low != NULL)
		{
			set_bound(&conditions->lower, conditions, column, low);
			conditions->lower.or_equal = low->strategy == BTGreaterStrategyNumber || low->strategy == BTLessStrategyNumber;
		}
		else if (range && index->column[column].nulls_first)
		{
			set_null_bound(&conditions->lower, column);
			conditions->lower.or_equal = true;
		}
		if (high != NULL)
		{
			set_bound(&conditions->upper, conditions, column, high);
			conditions->upper.or_equal =
				high->strategy == BTLessEqualStrategyNumber || high->strategy == BTGreaterEqualStrategyNumber;
		}
		else if (range && !index->column[column].nulls_first)
		{
			set_null_bound(&conditions->upper, column);
			conditions->upper.or_equal = false;
		}
	}
	for (conditions->pinned = 0; conditions->pinned < Min(conditions->lower.count, conditions->upper.count); conditions->pinned++)
	{
		CairnBoundColumn *least = &conditions->lower.column[conditions->pinned];
		CairnBoundColumn *most = &conditions->upper.column[conditions->pinned];

		if (least->is_null || most->is_null || !least->is_integer || !most->is_integer || least->integer != most->integer)
			break;
	}
	conditions->filter_count = 0;
	for (int i = 0; i < conditions->count; i++)
		conditions->filter_count += !conditions->list[i].in_bounds;
}

/* The order of elements is that of the type; a column that descends goes through them from the end. */
static bool
from_end(CairnConditions *conditions, CairnCondition *array, bool backward)
{
	return conditions->index->column[array->column].descends != backward;
}

/* To the first range, or to the last. */
void
cairn_conditions_first(CairnConditions *conditions, bool last)
{
	for (int i = 0; i < conditions->array_count; i++)
	{
		CairnCondition *array = conditions->arrays[i];

		array->chosen = from_end(conditions, array, last) ? array->element_count - 1 : 0;
	}
	cairn_conditions_bound(conditions);
}

/* To the next range, or to the one before. False at the end. */
bool
cairn_conditions_step(CairnConditions *conditions, bool backward)
{
	for (int i = conditions->array_count - 1; i >= 0; i--)
	{
		CairnCondition *array = conditions->arrays[i];
		bool		down = from_end(conditions, array, backward);

		if (down ? array->chosen > 0 : array->chosen + 1 < array->element_count)
		{
			array->chosen += down ? -1 : 1;
			for (int j = i + 1; j < conditions->array_count; j++)
				conditions->arrays[j]->chosen =
					from_end(conditions, conditions->arrays[j], backward) ? conditions->arrays[j]->element_count - 1 : 0;
			cairn_conditions_bound(conditions);
			return true;
		}
	}
	return false;
}

bool
cairn_condition_met(CairnConditions *conditions, CairnCondition *condition, Datum datum, bool is_null)
{
	if (condition->never)
		return false;
	switch (condition->kind)
	{
		case CAIRN_IS_NULL:
			return is_null;
		case CAIRN_IS_NOT_NULL:
			return !is_null;
		case CAIRN_COMPARE:
			return !is_null && DatumGetBool(FunctionCall2Coll(&condition->key->sk_func, condition->key->sk_collation,
															  datum, condition->argument));
		case CAIRN_IN:
			{
				int			low = 0,
							high = condition->element_count;

				while (!is_null && low < high)
				{
					int			middle = low + (high - low) / 2;
					int			order = DatumGetInt32(FunctionCall2Coll(&condition->compare, condition->key->sk_collation,
																		datum, condition->elements[middle]));

					if (order == 0)
						return true;
					if (order < 0)
						high = middle;
					else
						low = middle + 1;
				}
				return false;
			}
	}
	return false;
}

/* Whether a whole tuple meets every condition. */
bool
cairn_conditions_tuple(CairnConditions *conditions, IndexTuple tuple)
{
	for (int i = 0; i < conditions->count; i++)
	{
		CairnCondition *condition = &conditions->list[i];
		bool		is_null;
		Datum		datum;

		datum = index_getattr(tuple, condition->column + 1, conditions->index->desc, &is_null);
		if (!cairn_condition_met(conditions, condition, datum, is_null))
			return false;
	}
	return true;
}
