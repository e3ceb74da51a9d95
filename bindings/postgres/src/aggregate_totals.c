/*
 * Totals of rows: stretches of a leaf as the codec adds them up, rows of the tail one by one, both in the order of groups.
 */
#include "aggregate_state.h"

#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "port/pg_bitutils.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"

void
cairn_aggregate_checked(AggregateState *state, int code)
{
	if (code < 0)
		cairn_codec_failed(state->rel, BufferGetBlockNumber(state->walk.leaf_buffer), state->leaf, code);
}

static Numeric
numeric_of(int128 value)
{
	char		digits[64];
	int			at = sizeof(digits) - 1;
	bool		negative = value < 0;
	unsigned __int128 rest = negative ? -(unsigned __int128) value : (unsigned __int128) value;

	if (value >= PG_INT64_MIN && value <= PG_INT64_MAX)
		return int64_to_numeric((int64) value);
	digits[at] = 0;
	for (; rest != 0; rest /= 10)
		digits[--at] = '0' + (int) (rest % 10);
	if (negative)
		digits[--at] = '-';
	return DatumGetNumeric(DirectFunctionCall3(numeric_in, CStringGetDatum(digits + at), ObjectIdGetDatum(InvalidOid),
											   Int32GetDatum(-1)));
}

static Datum
result_of(AggregateState *state, int i, bool *is_null)
{
	Output	   *output = &state->output[i];
	Total	   *total = &state->totals[i];
	int64		value;

	*is_null = false;
	switch (output->kind)
	{
		case CAIRN_COUNT_ROWS:
		case CAIRN_COUNT_VALUES:
			return Int64GetDatum(total->count);
		case CAIRN_GROUP_KEY:
			*is_null = state->key_null;
			value = state->key;
			break;
		case CAIRN_SUM:
			*is_null = total->count == 0;
			if (*is_null)
				return (Datum) 0;
			if (output->type == INT8OID)
				return NumericGetDatum(numeric_of(total->sum));
			if (total->sum < PG_INT64_MIN || total->sum > PG_INT64_MAX)
				ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("bigint out of range")));
			return Int64GetDatum((int64) total->sum);
		case CAIRN_AVERAGE:
			*is_null = total->count == 0;
			if (*is_null)
				return (Datum) 0;
			return DirectFunctionCall2(numeric_div, NumericGetDatum(numeric_of(total->sum)),
									   NumericGetDatum(int64_to_numeric(total->count)));
		default:
			*is_null = total->count == 0;
			value = output->kind == CAIRN_LEAST ? total->least : total->most;
			break;
	}
	return *is_null ? (Datum) 0 : cairn_from_integer(&state->index->column[output->column], (uint64) value);
}

void
cairn_totals_begin(AggregateState *state)
{
	for (int i = 0; i < state->output_count; i++)
	{
		memset(&state->totals[i], 0, sizeof(Total));
		state->totals[i].least = PG_INT64_MAX;
		state->totals[i].most = PG_INT64_MIN;
	}
}

/* The group is complete. */
void
cairn_group_put(AggregateState *state)
{
	TupleTableSlot *slot = state->css.ss.ss_ScanTupleSlot;
	MemoryContext old;

	if (state->is_part)
	{
		cairn_part_put(state);
		return;
	}
	old = MemoryContextSwitchTo(state->group_context);
	ExecClearTuple(slot);
	for (int i = 0; i < state->output_count; i++)
		slot->tts_values[i] = result_of(state, i, &slot->tts_isnull[i]);
	ExecStoreVirtualTuple(slot);
	tuplestore_puttupleslot(state->results, slot);
	ExecClearTuple(slot);
	MemoryContextSwitchTo(old);
	MemoryContextReset(state->group_context);
}

/* Whether some row has been counted. Without grouping the answer to no rows is a row all the same. */
bool
cairn_group_is_worth_a_row(AggregateState *state)
{
	return !state->grouped || state->open;
}

/* The conditions of FILTER clauses. None of them narrows the range, so all are looked at. */
void
cairn_filters_set(AggregateState *state)
{
	ScanKey		keys = state->keys + state->key_count;

	for (int i = 0; i < state->filter_count; i++)
	{
		CairnFilter *filter = &state->filters[i];

		cairn_conditions_set(&filter->conditions, state->index, keys, filter->key_count, false, state->context);
		for (int at = 0; at < filter->conditions.count; at++)
			filter->conditions.list[at].in_bounds = false;
		filter->mask = MemoryContextAlloc(state->context, MASK_WORDS * sizeof(uint64));
		keys += filter->key_count;
	}
}

static void
add_value(Total *total, int64 value)
{
	total->count++;
	total->sum += value;
	total->least = Min(total->least, value);
	total->most = Max(total->most, value);
}

/* One row of the tail. */
static void
add_tail_row(AggregateState *state, IndexTuple tuple)
{
	for (int i = 0; i < state->output_count; i++)
	{
		Output	   *output = &state->output[i];
		bool		is_null = false;
		Datum		datum;

		if (output->kind == CAIRN_GROUP_KEY ||
			(output->filter >= 0 && !cairn_conditions_tuple(&state->filters[output->filter].conditions, tuple)))
			continue;
		if (output->kind == CAIRN_COUNT_ROWS)
		{
			state->totals[i].count++;
			continue;
		}
		datum = index_getattr(tuple, output->column + 1, state->index->desc, &is_null);
		if (is_null)
			continue;
		if (output->kind == CAIRN_COUNT_VALUES)
			state->totals[i].count++;
		else
			add_value(&state->totals[i], (int64) cairn_to_integer(&state->index->column[output->column], datum));
	}
}

static int64
count_bits(const uint64 *mask, uint32 count)
{
	int64		bits = 0;

	for (uint32 word = 0; word * 64 < count; word++)
		bits += pg_popcount64(mask[word]);
	return bits;
}

/* Bits `from..from + count` of a mask that has a word behind its last, moved to bit 0. */
static void
cut_mask(const uint64 *mask, uint32 from, uint32 count, uint64 *out)
{
	uint32		shift = from % 64;
	const uint64 *words = mask + from / 64;

	for (uint32 word = 0; word < CAIRN_MASK_WORDS(count); word++)
		out[word] = shift == 0 ? words[word] : (words[word] >> shift) | (words[word + 1] << (64 - shift));
	if (count % 64 != 0)
		out[count / 64] &= (UINT64CONST(1) << (count % 64)) - 1;
}

/* Rows `from..to` of the leaf, those in `mask` if there is one. */
void
cairn_totals_add_rows(AggregateState *state, uint32 from, uint32 to, const uint64 *mask)
{
	int64		all = mask == NULL ? (int64) to - from : count_bits(mask, to - from);

	for (int i = 0; i < state->output_count && all > 0; i++)
	{
		Output	   *output = &state->output[i];
		Total	   *total = &state->totals[i];
		const uint64 *values = mask;
		int64		count = all;
		int			nulls;

		if (output->kind == CAIRN_GROUP_KEY)
			continue;
		if (output->filter >= 0)
		{
			cut_mask(state->filters[output->filter].mask, from - state->filter_from, to - from, state->kept);
			values = state->kept;
			count = count_bits(values, to - from);
			if (count == 0)
				continue;
		}
		if (output->kind == CAIRN_COUNT_ROWS)
		{
			total->count += count;
			continue;
		}
		nulls = cairn_leaf_has_nulls(state->leaf, output->column);
		cairn_aggregate_checked(state, nulls);
		if (nulls > 0)
		{
			uint32		words = CAIRN_MASK_WORDS(to - from);

			if (values != NULL)
				memcpy(state->part + MASK_WORDS, values, words * sizeof(uint64));
			else
			{
				memset(state->part + MASK_WORDS, 0xff, words * sizeof(uint64));
				if ((to - from) % 64 != 0)
					state->part[MASK_WORDS + words - 1] = (UINT64CONST(1) << ((to - from) % 64)) - 1;
			}
			values = state->part + MASK_WORDS;
			cairn_aggregate_checked(state, cairn_leaf_filter_nulls(state->leaf, output->column, from, to, 1, state->part + MASK_WORDS));
			count = count_bits(values, to - from);
		}
		if (count == 0)
			continue;
		total->count += count;
		if (output->kind == CAIRN_SUM || output->kind == CAIRN_AVERAGE)
		{
			uint64		halves[2];

			cairn_aggregate_checked(state, cairn_leaf_sum(state->leaf, output->column, from, to, values, halves));
			total->sum += (int128) (((unsigned __int128) halves[1] << 64) | halves[0]);
		}
		else if (output->kind != CAIRN_COUNT_VALUES)
		{
			int64		bounds[2];

			cairn_aggregate_checked(state, cairn_leaf_extremes(state->leaf, output->column, from, to, values, bounds));
			total->least = Min(total->least, bounds[0]);
			total->most = Max(total->most, bounds[1]);
		}
	}
}

/* Closes the group at hand if it is another, and opens this one. */
static void
open_group(AggregateState *state, int64 key, bool is_null)
{
	if (state->open && state->key_null == is_null && (is_null || state->key == key))
		return;
	if (state->open)
		cairn_group_put(state);
	cairn_totals_begin(state);
	state->open = true;
	state->key = key;
	state->key_null = is_null;
}

static Datum
tail_key(AggregateState *state, bool *is_null)
{
	return index_getattr(state->tail[state->tail_at], 1, state->index->desc, is_null);
}

/* Rows of the tail that come before a group, or all that are left, as groups of their own; and those of the group itself. */
void
cairn_groups_add_tail(AggregateState *state, bool all, Datum key, bool is_null)
{
	while (state->tail_at < state->tail_count)
	{
		bool		tail_null;
		Datum		datum = tail_key(state, &tail_null);

		if (!all && cairn_compare_datums(state->index, 0, datum, tail_null, key, is_null) > 0)
			return;
		if (state->grouped)
			open_group(state, (int64) cairn_to_integer(&state->index->column[0], datum), tail_null);
		add_tail_row(state, state->tail[state->tail_at++]);
	}
}

/* The rows of a stretch of the leaf by groups. The first column ascends or descends, so a group is a stretch itself. */
void
cairn_groups_add_rows(AggregateState *state, uint32 from, uint32 to, const uint64 *mask)
{
	CairnColumn *column = &state->index->column[0];
	int			nulls = cairn_leaf_has_nulls(state->leaf, 0);
	uint64		keys[CAIRN_BATCH];
	uint32		base = from;
	uint32		known = from;

	cairn_aggregate_checked(state, nulls);
	for (uint32 row = from; row < to;)
	{
		uint64_t	key;
		uint32		end = row + 1;
		int			is_null = 0;
		uint64	   *part = NULL;

		if (nulls == 0)
		{
			/* Keys of the rows ahead; most groups end among them. */
			if (row >= known)
			{
				base = row;
				known = Min(to, row + CAIRN_BATCH);
				cairn_aggregate_checked(state, cairn_leaf_integers(state->leaf, 0, row, known - row, keys));
			}
			key = keys[row - base];
			while (end < known && keys[end - base] == key)
				end++;
			while (end == known && end < to)
			{
				uint32_t	same;
				uint64_t	next;

				if (column->is_integer)
				{
					cairn_aggregate_checked(state, cairn_leaf_count_before(state->leaf, 0, end, to, (int64) key, 1, column->descends, &same));
					end += same;
					break;
				}
				cairn_aggregate_checked(state, cairn_leaf_cell(state->leaf, 0, end, &next));
				if (next != key)
					break;
				known = ++end;
			}
		}
		else
		{
			is_null = cairn_leaf_cell(state->leaf, 0, row, &key);
			cairn_aggregate_checked(state, is_null);
			for (; end < to; end++)
			{
				uint64_t	other;
				int			other_null = cairn_leaf_cell(state->leaf, 0, end, &other);

				cairn_aggregate_checked(state, other_null);
				if (other_null != is_null || (!is_null && other != key))
					break;
			}
		}
		if (mask != NULL)
		{
			part = state->part;
			cut_mask(mask, row - from, end - row, part);
		}
		if (part == NULL || count_bits(part, end - row) > 0)
		{
			Datum		datum = is_null ? (Datum) 0 : cairn_from_integer(column, key);

			/* Rows of the tail in groups before this one, then this one, then those of the tail in it. */
			while (state->tail_at < state->tail_count)
			{
				bool		tail_null;
				Datum		tail = tail_key(state, &tail_null);

				if (cairn_compare_datums(state->index, 0, tail, tail_null, datum, is_null) >= 0)
					break;
				open_group(state, (int64) cairn_to_integer(column, tail), tail_null);
				add_tail_row(state, state->tail[state->tail_at++]);
			}
			open_group(state, (int64) key, is_null);
			cairn_groups_add_tail(state, false, datum, is_null);
			cairn_totals_add_rows(state, row, end, part);
		}
		row = end;
	}
}
