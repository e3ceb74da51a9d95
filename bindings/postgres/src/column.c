/* Columns: datums into values of the codec and back, and their order. */
#include "cairn.h"

#include "access/toast_internals.h"
#include "catalog/pg_type.h"
#include "common/pg_lzcompress.h"
#include "utils/fmgroids.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

/* The comparison functions under which datums are ordered as the integers that the codec holds. */
static void
set_class(CairnColumn *column, Oid compare)
{
	switch (compare)
	{
		case F_BTINT2CMP:
		case F_BTINT4CMP:
		case F_BTINT8CMP:
		case F_DATE_CMP:
		case F_TIME_CMP:
		case F_TIMESTAMP_CMP:
		case F_TIMESTAMPTZ_CMP:
		case F_CASH_CMP:
		case F_BTBOOLCMP:
		case F_BTCHARCMP:
			column->is_integer = true;
			break;
		case F_BTOIDCMP:
			column->is_integer = true;
			column->is_unsigned = true;
			break;
		case F_PG_LSN_CMP:
		case F_XID8CMP:
			column->is_integer = true;
			column->is_unsigned64 = true;
			break;
		default:
			break;
	}
}

CairnIndex *
cairn_index_open(Relation rel)
{
	CairnIndex *index = palloc0(offsetof(CairnIndex, column) + RelationGetNumberOfAttributes(rel) * sizeof(CairnColumn));
	int			offset = 0;

	index->rel = rel;
	index->desc = RelationGetDescr(rel);
	index->columns = index->desc->natts;
	index->keys = IndexRelationGetNumberOfKeyAttributes(rel);
#if PG_VERSION_NUM >= 180000
	/* Where the attributes lie depends on how many there are. */
	index->key_desc = CreateTupleDescTruncatedCopy(index->desc, index->keys);
#else
	index->key_desc = CreateTupleDescCopy(index->desc);
	index->key_desc->natts = index->keys;
#endif
	index->is_fixed = true;
	for (int i = 0; i < index->columns; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(index->desc, i);
		CairnColumn *column = &index->column[i];

		column->type = attribute->atttypid;
		column->len = attribute->attlen;
		column->byval = attribute->attbyval;
		column->align = attribute->attalign;
		if (column->len == -2)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("access method \"cairn\" does not support columns of type %s",
							format_type_be(column->type))));
		if (i < index->keys)
		{
			column->collation = rel->rd_indcollation[i];
			column->descends = (rel->rd_indoption[i] & INDOPTION_DESC) != 0;
			column->nulls_first = (rel->rd_indoption[i] & INDOPTION_NULLS_FIRST) != 0;
			column->compare = index_getprocinfo(rel, i + 1, BTORDER_PROC);
			set_class(column, column->compare->fn_oid);
		}
		else if (column->type == INT2OID || column->type == INT4OID || column->type == INT8OID ||
				 column->type == DATEOID || column->type == TIMESTAMPOID || column->type == TIMESTAMPTZOID)
			column->is_integer = true;
		if (column->byval)
		{
			offset = att_align_nominal(offset, column->align);
			column->offset = offset;
			offset += column->len;
		}
		else
			index->is_fixed = false;
	}
	index->tuple_bytes = MAXALIGN(MAXALIGN(sizeof(IndexTupleData)) + offset);
	return index;
}

/* Any datum by value, as the 64 bits that the codec keeps. Order is kept for the classes above. */
uint64
cairn_to_integer(const CairnColumn *column, Datum datum)
{
	switch (column->len)
	{
		case 1:
			return DatumGetUInt8(datum);
		case 2:
			return (uint64) (int64) DatumGetInt16(datum);
		case 4:
			return column->is_unsigned ? (uint64) DatumGetUInt32(datum) : (uint64) (int64) DatumGetInt32(datum);
		default:
			return column->is_unsigned64 ? (uint64) datum ^ (UINT64CONST(1) << 63) : (uint64) datum;
	}
}

Datum
cairn_from_integer(const CairnColumn *column, uint64 integer)
{
	switch (column->len)
	{
		case 1:
			return UInt8GetDatum((uint8) integer);
		case 2:
			return Int16GetDatum((int16) integer);
		case 4:
			return column->is_unsigned ? UInt32GetDatum((uint32) integer) : Int32GetDatum((int32) integer);
		default:
			return (Datum) (column->is_unsigned64 ? integer ^ (UINT64CONST(1) << 63) : integer);
	}
}

/*
 * Strings that are not the bytes of their values. They begin with a mark that no text in UTF-8 has, and a letter: `p`, and then what PostgreSQL has behind the
 * length of a compressed value; or `=`, and then a value that itself begins with the mark.
 */
#define MARK_BYTES 3
#define HEAD_BYTES (MARK_BYTES + 1)

static const uint8_t mark[MARK_BYTES] = {0xFF, 0xC4, 0x17};

static bool
has_mark(const void *bytes, size_t count)
{
	return count >= MARK_BYTES && memcmp(bytes, mark, MARK_BYTES) == 0;
}

/*
 * The value compressed, where it is longer than its share of a row and that helps; else null. A value is packed or not by itself and always in one way, so that
 * equal values of a column have equal strings, and rows of values that are none of them longer than their shares are never packed.
 */
struct varlena *
cairn_pack(const struct varlena *plain, int columns)
{
	size_t		count = VARSIZE_ANY_EXHDR(plain);
	struct varlena *packed;
	int32		bytes;

	if (count <= CAIRN_MAX_ROW_BYTES / columns)
		return NULL;
	packed = palloc(VARHDRSZ_COMPRESSED + PGLZ_MAX_OUTPUT(count));
	bytes = pglz_compress(VARDATA_ANY(plain), count, (char *) packed + VARHDRSZ_COMPRESSED, PGLZ_strategy_default);
	if (bytes < 0 || bytes + VARHDRSZ_COMPRESSED + HEAD_BYTES >= count)
	{
		pfree(packed);
		return NULL;
	}
	TOAST_COMPRESS_SET_SIZE_AND_COMPRESS_METHOD(packed, count, TOAST_PGLZ_COMPRESSION_ID);
	SET_VARSIZE_COMPRESSED(packed, VARHDRSZ_COMPRESSED + bytes);
	return packed;
}

/* How long the string of a value is that may be packed. */
size_t
cairn_stored_bytes(const struct varlena *value)
{
	if (VARATT_IS_COMPRESSED(value))
		return HEAD_BYTES + VARSIZE(value) - VARHDRSZ;
	return VARSIZE_ANY_EXHDR(value) + (has_mark(VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value)) ? HEAD_BYTES : 0);
}

/* The string of a value that may be packed: the value's own bytes, or a copy in the current memory context. */
void
cairn_to_string(const struct varlena *value, const uint8_t **bytes, size_t *count)
{
	bool		is_packed = VARATT_IS_COMPRESSED(value);
	uint8_t    *copy;

	*count = cairn_stored_bytes(value);
	*bytes = (const uint8_t *) VARDATA_ANY(value);
	if (!is_packed && !has_mark(*bytes, *count))
		return;
	copy = palloc(*count);
	memcpy(copy, mark, MARK_BYTES);
	copy[MARK_BYTES] = is_packed ? 'p' : '=';
	memcpy(copy + HEAD_BYTES, is_packed ? VARDATA(value) : (const char *) *bytes, *count - HEAD_BYTES);
	*bytes = copy;
}

/* A datum by reference, in the current memory context. One that was packed is as PostgreSQL compresses values, which all its functions take. */
Datum
cairn_from_string(const CairnColumn *column, const uint8_t *bytes, size_t count)
{
	if (column->len > 0)
	{
		char	   *copy = palloc0(column->len);

		memcpy(copy, bytes, Min(count, (size_t) column->len));
		return PointerGetDatum(copy);
	}
	else
	{
		bool		is_packed = false;
		struct varlena *copy;

		if (has_mark(bytes, count) && count > HEAD_BYTES)
		{
			is_packed = bytes[MARK_BYTES] == 'p' && count > HEAD_BYTES + VARHDRSZ_COMPRESSED - VARHDRSZ;
			bytes += HEAD_BYTES;
			count -= HEAD_BYTES;
		}
		copy = palloc(VARHDRSZ + count);
		if (is_packed)
			SET_VARSIZE_COMPRESSED(copy, VARHDRSZ + count);
		else
			SET_VARSIZE(copy, VARHDRSZ + count);
		memcpy(VARDATA(copy), bytes, count);
		return PointerGetDatum(copy);
	}
}

/* Column `column` of `row` of the walk's leaf. True if it is NULL. By-reference results are in the current context. */
bool
cairn_leaf_datum(CairnWalk *walk, int column, uint32 row, Datum *out)
{
	CairnColumn *info = &walk->index->column[column];
	uint64_t	integer;
	int			code = cairn_leaf_cell(walk->leaf, column, row, &integer);

	if (code < 0)
		cairn_codec_failed(walk->index->rel, BufferGetBlockNumber(walk->leaf_buffer), walk->leaf, code);
	*out = (Datum) 0;
	if (code == 1)
		return true;
	if (info->byval)
		*out = cairn_from_integer(info, integer);
	else
	{
		const uint8_t *bytes;
		size_t		count;

		code = cairn_leaf_string(walk->leaf, column, integer, &bytes, &count);
		if (code < 0)
			cairn_codec_failed(walk->index->rel, BufferGetBlockNumber(walk->leaf_buffer), walk->leaf, code);
		*out = cairn_from_string(info, bytes, count);
	}
	return false;
}

static inline int
by_direction(const CairnColumn *column, int order)
{
	return column->descends ? (order < 0) - (order > 0) : order;
}

static inline int
compare_nulls(const CairnColumn *column, bool a_null, bool b_null)
{
	if (a_null && b_null)
		return 0;
	return (a_null == column->nulls_first) ? -1 : 1;
}

int
cairn_compare_datums(CairnIndex *index, int i, Datum a, bool a_null, Datum b, bool b_null)
{
	CairnColumn *column = &index->column[i];

	if (a_null || b_null)
		return compare_nulls(column, a_null, b_null);
	if (column->is_integer)
	{
		int64		x = (int64) cairn_to_integer(column, a);
		int64		y = (int64) cairn_to_integer(column, b);

		return by_direction(column, (x > y) - (x < y));
	}
	return by_direction(column, DatumGetInt32(FunctionCall2Coll(column->compare, column->collation, a, b)));
}

/* The order of the index is total: rows with equal keys are in the order of their tids. */
int
cairn_compare_keys(CairnIndex *index, Datum *a, bool *a_null, ItemPointer a_tid, Datum *b, bool *b_null, ItemPointer b_tid)
{
	for (int i = 0; i < index->keys; i++)
	{
		int			order = cairn_compare_datums(index, i, a[i], a_null[i], b[i], b_null[i]);

		if (order != 0)
			return order;
	}
	return ItemPointerCompare(a_tid, b_tid);
}

/* Where a row's column stands against a boundary's: below 0 is before it. */
int
cairn_compare_bound_column(CairnIndex *index, const CairnBound *bound, int i, Datum datum, bool is_null)
{
	CairnColumn *column = &index->column[i];
	const CairnBoundColumn *at = &bound->column[i];

	if (is_null || at->is_null)
		return compare_nulls(column, is_null, at->is_null);
	if (at->is_integer)
	{
		int64		x = (int64) cairn_to_integer(column, datum);

		return by_direction(column, (x > at->integer) - (x < at->integer));
	}
	return by_direction(column, DatumGetInt32(FunctionCall2Coll(at->compare, at->collation, datum, at->datum)));
}

/* A leaf that nobody uses, kept for the next scan: making one takes several allocations. And one in which the codec failed, not to be used again. */
static CairnLeaf *spare_leaf = NULL;
static CairnLeaf *faulty_leaf = NULL;

void
cairn_codec_failed(Relation rel, BlockNumber block, CairnLeaf *leaf, int code)
{
	if (code == CAIRN_DAMAGED)
	{
		uint32_t	offset;
		const char *what;
		int			count = (int) cairn_leaf_error(leaf, &offset, &what);

		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("index \"%s\" is damaged at block %u, byte %u of its rows: expected %.*s",
						RelationGetRelationName(rel), block, offset, count, what),
				 errhint("Please REINDEX it.")));
	}
	faulty_leaf = leaf;
	ereport(ERROR,
			(errcode(ERRCODE_INTERNAL_ERROR),
			 errmsg("the codec of index \"%s\" failed at block %u with code %d", RelationGetRelationName(rel), block, code)));
	pg_unreachable();
}

static void
free_leaf(void *leaf)
{
	if (spare_leaf == NULL && leaf != faulty_leaf)
		spare_leaf = leaf;
	else
		cairn_leaf_free(leaf);
}

/* A leaf handle that goes away with `context`, errors included. */
CairnLeaf *
cairn_new_leaf(MemoryContext context)
{
	MemoryContextCallback *callback = MemoryContextAlloc(context, sizeof(MemoryContextCallback));

	callback->func = free_leaf;
	callback->arg = spare_leaf != NULL ? spare_leaf : cairn_leaf_new();
	spare_leaf = NULL;
	MemoryContextRegisterResetCallback(context, callback);
	return callback->arg;
}
