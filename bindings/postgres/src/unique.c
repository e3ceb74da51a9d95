/*
 * Unique indexes: no two rows of the same key that are alive.
 *
 * An insert looks for its key in the tree, where VACUUM waits for the pins of whoever looks, and in the tail, with the page locked that holds the row.
 * Rows of the key are asked about in the heap: one that is alive is an error, one that somebody is writing is waited for. The tail is looked at
 * last, with the meta page locked against all other inserts, and if nothing is found the row is in the tail before the lock is gone. If the tree has been
 * replaced since it was looked at, all is done again.
 *
 * A statement's first inserts compare their key with each row of the tail, which takes no longer than a lookup. One that inserts many rows remembers hashes
 * of the tail's keys from then on, and reads only what has come since: making them takes as long as some fifty comparisons of the tail.
 */
#include "cairn.h"

#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/relcache.h"
#include "utils/snapmgr.h"
#include "utils/typcache.h"

/* Inserts of a statement that compare; those after them look into the hashes. */
#define COMPARING_INSERTS 32

/* What a statement keeps from one insert to the next. */
typedef struct UniqueCache
{
	CairnIndex *index;
	CairnLeaf  *leaf;
	MemoryContext context;
	MemoryContext scratch;		/* of one hash */
	bool		is_hashable;
	uint32		inserts;		/* so far, up to COMPARING_INSERTS */
	FmgrInfo   *hash[INDEX_MAX_KEYS];	/* null of integers */
	HTAB	   *keys;			/* hashes of the tail's keys; null before the first */
	CairnMetaData meta;			/* when they were read */
	CairnTailPlace place;		/* how far, in the tail that inserts go to */
} UniqueCache;

/* One search for rows of a key. */
typedef struct Search
{
	UniqueCache *cache;
	Relation	heap;
	IndexTuple	tuple;
	IndexUniqueCheck check;
	CairnBound	bound;
	uint32		generation;		/* of the tree that has been looked at */
	bool		has_compared;	/* with the tail, up to `place` when the meta page was `meta` */
	CairnMetaData meta;
	CairnTailPlace place;
	bool		over;			/* nothing more needs to be looked at */
	bool		found;			/* another row has the key */
	TransactionId wait_for;
	uint32		token;			/* of an insert that may be taken back */
} Search;

/* The functions that give equal keys of the index equal hashes; not every type has one. */
static bool
find_hashes(UniqueCache *cache)
{
	CairnIndex *index = cache->index;

	for (int i = 0; i < index->keys; i++)
	{
		Oid			type = index->rel->rd_opcintype[i];
		TypeCacheEntry *entry;

		if (index->column[i].is_integer)
			continue;
		entry = lookup_type_cache(IsPolymorphicType(type) ? index->column[i].type : type, TYPECACHE_HASH_PROC_FINFO | TYPECACHE_EQ_OPR);
		if (!OidIsValid(entry->hash_proc) ||
			get_opfamily_member(index->rel->rd_opfamily[i], type, type, BTEqualStrategyNumber) != entry->eq_opr)
			return false;
		cache->hash[i] = &entry->hash_proc_finfo;
	}
	return true;
}

static UniqueCache *
cache_of(Relation rel, IndexInfo *info)
{
	UniqueCache *cache = info->ii_AmCache;
	MemoryContext old;

	if (cache != NULL)
		return cache;
	old = MemoryContextSwitchTo(info->ii_Context);
	cache = palloc0(sizeof(UniqueCache));
	cache->context = info->ii_Context;
	cache->scratch = AllocSetContextCreate(info->ii_Context, "cairn unique hash", ALLOCSET_SMALL_SIZES);
	cache->index = cairn_index_open(rel);
	cache->leaf = cairn_new_leaf(info->ii_Context);
	cache->is_hashable = find_hashes(cache);
	MemoryContextSwitchTo(old);
	info->ii_AmCache = cache;
	return cache;
}

static uint64
hash_key(UniqueCache *cache, IndexTuple tuple)
{
	CairnIndex *index = cache->index;
	uint64		hash = 0;
	/* Not all of these functions free what they unpack, and the context that inserts run in lasts as long as their statement. */
	MemoryContext old = MemoryContextSwitchTo(cache->scratch);

	for (int i = 0; i < index->keys; i++)
	{
		bool		is_null;
		Datum		datum = index_getattr(tuple, i + 1, index->desc, &is_null);
		uint64		own = 0;

		if (is_null)
			own = 1;
		else if (cache->hash[i] == NULL)
			own = cairn_to_integer(&index->column[i], datum);
		else
			own = DatumGetUInt32(FunctionCall1Coll(cache->hash[i], index->column[i].collation, datum));
		hash = hash_combine64(hash, own * UINT64CONST(0x9e3779b97f4a7c15));
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(cache->scratch);
	return hash;
}

static void
remember_key(IndexTuple tuple, void *argument)
{
	UniqueCache *cache = argument;
	uint64		hash = hash_key(cache, tuple);

	(void) hash_search(cache->keys, &hash, HASH_ENTER, NULL);
}

/*
 * Whether rows may only have come to the tail, and none gone.
 *
 * While the sequence is odd, which it stays after a VACUUM that was cut off, rows may go without a step of it. But no place in the heap is used again
 * before the next step, so that the row id at a place in the tail tells whether rows have moved. Rows that have gone do no harm to who has seen them.
 */
static bool
has_only_grown(const CairnMetaData *was, const CairnMetaData *now)
{
	return was->generation == now->generation && was->frozen_head == now->frozen_head && was->tail_head == now->tail_head &&
		was->vacuum_seq == now->vacuum_seq;
}

/* Reads what has come to the tail since the last time; all of it if rows may have gone as well. The meta page is locked. */
static void
catch_up(UniqueCache *cache, const CairnMetaData *meta)
{
	Relation	rel = cache->index->rel;

	if (cache->keys == NULL || !has_only_grown(&cache->meta, meta))
	{
		HASHCTL		control = {.keysize = sizeof(uint64), .entrysize = sizeof(uint64), .hcxt = cache->context};

		if (cache->keys != NULL)
			hash_destroy(cache->keys);
		cache->keys = hash_create("cairn tail keys", 1024, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
		cache->place.block = InvalidBlockNumber;
		cairn_visit_tail(rel, meta->frozen_head, remember_key, cache);
	}
	cairn_visit_tail_from(rel, meta->tail_head, &cache->place, remember_key, cache);
	cache->meta = *meta;
}

/* What a row of the same key means. Its index page is pinned or locked, so that its place in the heap is still its own. */
static void
judge(Search *search, const ItemPointerData *place)
{
	SnapshotData dirty;
	ItemPointerData tid = *place;

	InitDirtySnapshot(dirty);
	if (!table_index_fetch_tuple_check(search->heap, &tid, &dirty, NULL))
		return;
	search->over = true;
	if (search->check == UNIQUE_CHECK_PARTIAL)
	{
		search->found = true;
		return;
	}
	search->wait_for = TransactionIdIsValid(dirty.xmin) ? dirty.xmin : dirty.xmax;
	search->token = dirty.speculativeToken;
	if (TransactionIdIsValid(search->wait_for))
		return;
	/* A concurrent build may bring a row that has been deleted meanwhile: it is in nobody's way. */
	tid = search->tuple->t_tid;
	search->found = table_index_fetch_tuple_check(search->heap, &tid, SnapshotSelf, NULL);
}

static void
judge_tail_row(IndexTuple tuple, void *argument)
{
	Search	   *search = argument;
	CairnIndex *index = search->cache->index;

	if (search->over)
		return;
	for (int i = 0; i < index->keys; i++)
	{
		bool		is_null;
		Datum		datum = index_getattr(tuple, i + 1, index->desc, &is_null);

		if (cairn_compare_bound_column(index, &search->bound, i, datum, is_null) != 0)
			return;
	}
	judge(search, &tuple->t_tid);
}

/* Whether the hashes of the tail's keys are worth their while. */
static bool
remembers(const UniqueCache *cache)
{
	return cache->is_hashable && cache->inserts >= COMPARING_INSERTS;
}

/* Compares the key with what has come to the tail since the last time; all of it if rows may have gone as well. The meta page is locked. */
static void
compare_tail(Search *search, const CairnMetaData *meta)
{
	Relation	rel = search->cache->index->rel;

	if (!search->has_compared || !has_only_grown(&search->meta, meta))
	{
		search->place.block = InvalidBlockNumber;
		cairn_visit_tail(rel, meta->frozen_head, judge_tail_row, search);
	}
	cairn_visit_tail_from(rel, meta->tail_head, &search->place, judge_tail_row, search);
	search->meta = *meta;
	search->has_compared = true;
}

static void
search_tree(Search *search)
{
	UniqueCache *cache = search->cache;
	CairnIndex *index = cache->index;
	CairnWalk	walk;
	Buffer		buffer = cairn_read(index->rel, CAIRN_META_BLOCK, BUFFER_LOCK_SHARE);
	CairnMetaData meta = *cairn_meta(index->rel, BufferGetPage(buffer));
	bool		more;

	search->generation = meta.generation;
	/* What there is of the tail so far, while others can insert. */
	if (remembers(cache))
		catch_up(cache, &meta);
	else
		compare_tail(search, &meta);
	cairn_walk_begin(&walk, index, &meta, cache->leaf);
	UnlockReleaseBuffer(buffer);
	search->bound.or_equal = false;
	more = cairn_walk_seek(&walk, &search->bound);
	while (more && !search->over)
	{
		uint32		from;
		uint32		to;

		search->bound.or_equal = false;
		from = cairn_walk_count_before(&walk, &search->bound);
		search->bound.or_equal = true;
		to = cairn_walk_count_before(&walk, &search->bound);
		for (; from < to && !search->over; from++)
		{
			ItemPointerData tid;
			int			code = cairn_leaf_tids(walk.leaf, from, 1, &tid);

			if (code < 0)
				cairn_codec_failed(index->rel, BufferGetBlockNumber(walk.leaf_buffer), walk.leaf, code);
			judge(search, &tid);
		}
		more = to == walk.rows && cairn_walk_next(&walk);
	}
	cairn_walk_release(&walk);
}

/* Looks at the tail and adds the row if it may be there. False if the tree has been replaced meanwhile. */
static bool
search_tail_and_add(Search *search, bool *grew)
{
	UniqueCache *cache = search->cache;
	Relation	rel = cache->index->rel;
	Buffer		buffer = cairn_read(rel, CAIRN_META_BLOCK, BUFFER_LOCK_EXCLUSIVE);
	CairnMetaData meta = *cairn_meta(rel, BufferGetPage(buffer));
	bool		same_tree = meta.generation == search->generation;

	if (same_tree)
	{
		if (remembers(cache))
		{
			uint64		hash = hash_key(cache, search->tuple);
			bool		may_be_there;

			catch_up(cache, &meta);
			(void) hash_search(cache->keys, &hash, HASH_FIND, &may_be_there);
			if (may_be_there)
			{
				cairn_visit_tail(rel, meta.frozen_head, judge_tail_row, search);
				cairn_visit_tail(rel, meta.tail_head, judge_tail_row, search);
			}
		}
		else
			compare_tail(search, &meta);
		if (!TransactionIdIsValid(search->wait_for) && (!search->found || search->check == UNIQUE_CHECK_PARTIAL))
			*grew = cairn_append(rel, buffer, search->tuple, true);
	}
	UnlockReleaseBuffer(buffer);
	return same_tree;
}

static void
refuse(Relation rel, Relation heap, Datum *values, bool *nulls, bool at_build)
{
	char	   *key = BuildIndexValueDescription(rel, values, nulls);

	if (at_build)
		ereport(ERROR,
				(errcode(ERRCODE_UNIQUE_VIOLATION),
				 errmsg("could not create unique index \"%s\"", RelationGetRelationName(rel)),
				 key != NULL ? errdetail("Key %s is duplicated.", key) : errdetail("Duplicate keys exist."),
				 errtableconstraint(heap, RelationGetRelationName(rel))));
	ereport(ERROR,
			(errcode(ERRCODE_UNIQUE_VIOLATION),
			 errmsg("duplicate key value violates unique constraint \"%s\"", RelationGetRelationName(rel)),
			 key != NULL ? errdetail("Key %s already exists.", key) : 0,
			 errtableconstraint(heap, RelationGetRelationName(rel))));
}

/* Two rows of a build have one key. */
void
cairn_unique_built(CairnIndex *index, Relation heap, Datum *values, bool *nulls)
{
	refuse(index->rel, heap, values, nulls, true);
	pg_unreachable();
}

/* Adds the row if no other has its key. For a check that only looks, says whether that is so, and adds it anyway. */
bool
cairn_insert_unique(Relation rel, Relation heap, IndexTuple tuple, Datum *values, bool *nulls, IndexUniqueCheck check,
					IndexInfo *info, bool *grew)
{
	UniqueCache *cache = cache_of(rel, info);
	Search		search = {.cache = cache, .heap = heap, .tuple = tuple, .check = check};
	bool		has_null = false;

	/* PostgreSQL makes no deferrable constraint of an index that is not a btree. */
	if (check == UNIQUE_CHECK_EXISTING)
		elog(ERROR, "unique index \"%s\" cannot be checked later", RelationGetRelationName(rel));
	for (int i = 0; i < cache->index->keys; i++)
		has_null |= nulls[i];
	if (has_null && !info->ii_NullsNotDistinct)
	{
		Buffer		buffer = cairn_read(rel, CAIRN_META_BLOCK, BUFFER_LOCK_SHARE);

		*grew = cairn_append(rel, buffer, tuple, false);
		UnlockReleaseBuffer(buffer);
		return true;
	}
	cairn_bound_of(cache->index, tuple, &search.bound);
	for (;;)
	{
		bool		refused;

		CHECK_FOR_INTERRUPTS();
		search.over = search.found = search.has_compared = false;
		search.wait_for = InvalidTransactionId;
		search_tree(&search);
		/* A row in the tree is enough, unless the insert is only to be told of it. */
		refused = check != UNIQUE_CHECK_PARTIAL && (search.found || TransactionIdIsValid(search.wait_for));
		if (!refused && !search_tail_and_add(&search, grew))
			continue;
		if (TransactionIdIsValid(search.wait_for))
		{
			if (search.token != 0)
				SpeculativeInsertionWait(search.wait_for, search.token);
			else
				XactLockTableWait(search.wait_for, rel, &tuple->t_tid, XLTW_InsertIndex);
			continue;
		}
		if (search.found && check != UNIQUE_CHECK_PARTIAL)
			refuse(rel, heap, values, nulls, false);
		if (cache->inserts < COMPARING_INSERTS)
			cache->inserts++;
		return !search.found;
	}
}
