/* Conditions on rows of a leaf, where they can be on encoded values. */
#include "batch.h"

#include "catalog/pg_type.h"
#include "port/pg_bitutils.h"

static void
check(CairnWalk *walk, int code)
{
	if (code < 0)
		cairn_codec_failed(walk->index->rel, BufferGetBlockNumber(walk->leaf_buffer), walk->leaf, code);
}

/* Any condition, value by value. Equal neighbours among strings are looked at once. */
static void
filter_values(CairnConditions *conditions, CairnCondition *condition, CairnWalk *walk, uint32 start, uint32 count,
			  uint64 *mask)
{
	bool		by_reference = !walk->index->column[condition->column].byval;
	bool		known = false;
	uint64_t	known_code = 0;
	bool		known_met = false;

	for (uint32 i = 0; i < count; i++)
	{
		Datum		datum;
		bool		is_null;
		bool		met;

		if (!(mask[i / 64] & (UINT64CONST(1) << (i % 64))))
			continue;
		if (by_reference)
		{
			uint64_t	code;
			int			null = cairn_leaf_cell(walk->leaf, condition->column, start + i, &code);

			check(walk, null);
			if (null == 0 && known && code == known_code)
			{
				if (!known_met)
					mask[i / 64] &= ~(UINT64CONST(1) << (i % 64));
				continue;
			}
			known = null == 0;
			known_code = code;
		}
		is_null = cairn_leaf_datum(walk, condition->column, start + i, &datum);
		met = cairn_condition_met(conditions, condition, datum, is_null);
		if (by_reference && !is_null)
			pfree(DatumGetPointer(datum));
		known_met = met;
		if (!met)
			mask[i / 64] &= ~(UINT64CONST(1) << (i % 64));
	}
}

/* Clears the bits of rows `start..start + count` that do not meet the conditions which the range does not see to. False where it is plain that none does. */
bool
cairn_filter_rows(CairnConditions *conditions, CairnWalk *walk, uint32 start, uint32 count, uint64 *mask)
{
	for (int i = 0; i < conditions->count; i++)
	{
		CairnCondition *condition = &conditions->list[i];

		if (condition->in_bounds)
			continue;
		if (condition->kind == CAIRN_IS_NULL || condition->kind == CAIRN_IS_NOT_NULL)
			check(walk, cairn_leaf_filter_nulls(walk->leaf, condition->column, start, start + count,
												condition->kind == CAIRN_IS_NOT_NULL, mask));
		else
		{
			bool		range = condition->is_integer || (condition->kind == CAIRN_IN && condition->integer_elements);

			if (range)
			{
				int			left = cairn_leaf_filter(walk->leaf, condition->column, start, start + count, condition->least,
													 condition->most, mask);

				check(walk, left);
				if (left == 0)
					return false;
			}
			if (!range || (condition->kind == CAIRN_IN && condition->element_count > 1))
				filter_values(conditions, condition, walk, start, count, mask);
		}
	}
	return true;
}
