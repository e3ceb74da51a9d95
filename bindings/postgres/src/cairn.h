/*
 * Shared by the parts of the access method: what pages look like, what a column is, and who offers what.
 * Pages: docs/src/formats/index.md. Why it works beside VACUUM and merges: docs/src/design/index.md.
 */
#ifndef CAIRN_H
#define CAIRN_H

#include "postgres.h"

#include "access/amapi.h"
#include "access/generic_xlog.h"
#include "access/htup_details.h"
#include "access/itup.h"
#include "access/nbtree.h"
#include "access/reloptions.h"
#include "access/relscan.h"
#include "fmgr.h"
#include "nodes/execnodes.h"
#include "nodes/pathnodes.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/tuplesort.h"

#include "cairn_index.h"

/* PostgreSQL 18 moved its own word for this to the front of declarations. */
#define CAIRN_NORETURN __attribute__((noreturn))

/* Before PostgreSQL 17 VACUUM may remove rows that snapshots older than old_snapshot_threshold see: they are told so where a page has changed since. */
#if PG_VERSION_NUM >= 170000
#define TestForOldSnapshot(snapshot, rel, page) ((void) 0)
#endif

#define CAIRN_MAGIC 0x4E524943	/* "CIRN" on disk */
#define CAIRN_VERSION 1
#define CAIRN_PAGE_ID 0xC417
#define CAIRN_META_BLOCK 0

/* What a page is. Stored in its special space. */
typedef enum CairnPageKind
{
	CAIRN_META = 1,
	CAIRN_LEAF,					/* compressed rows */
	CAIRN_INNER,				/* first key of each child */
	CAIRN_SPLIT,				/* an inner page that a leaf turned into when VACUUM could not fit its rows any more, or below such a page */
	CAIRN_TAIL,					/* rows that came after the last merge, as index tuples */
	CAIRN_FREE,					/* may be used again */
	CAIRN_RETIRED				/* a list of pages that become free when the scans that know them have ended */
} CairnPageKind;

typedef struct CairnPageOpaqueData
{
	BlockNumber next;			/* of tail pages and retired lists */
	uint32		generation;		/* of the tree when the page was written: a scan may not meet one newer than its own */
	uint16		kind;
	uint16		page_id;
} CairnPageOpaqueData;

typedef CairnPageOpaqueData *CairnPageOpaque;

#define CairnOpaque(page) ((CairnPageOpaque) PageGetSpecialPointer(page))
#define CAIRN_LEAF_CAPACITY (BLCKSZ - MAXALIGN(SizeOfPageHeaderData) - MAXALIGN(sizeof(CairnPageOpaqueData)))
#define CAIRN_MAX_ROW_BYTES (CAIRN_LEAF_CAPACITY / 3)

typedef struct CairnMetaData
{
	uint32		magic;
	uint32		version;
	uint32		generation;		/* grows with each merge */
	BlockNumber root;			/* a leaf or an inner page; invalid without rows */
	BlockNumber frozen_head;	/* tail that a merge has begun to move */
	BlockNumber tail_head;		/* tail that inserts go to */
	BlockNumber tail_last;
	uint32		tail_pages;		/* of both tails */
	BlockNumber retired_head;	/* list of pages of the tree before */
	BlockNumber retired_root;	/* root of that tree: its scans keep it pinned */
	uint64		vacuum_seq;		/* odd while VACUUM removes rows */
	uint64		rows;			/* in the tree when it was written, or when VACUUM last went through it */
} CairnMetaData;

/* One column of the index: how its datums become values of the codec, and how they compare. */
typedef struct CairnColumn
{
	Oid			type;			/* as stored */
	int16		len;
	bool		byval;
	char		align;
	bool		is_integer;		/* order of datums is order of the codec's integers */
	bool		is_unsigned;	/* 4 bytes without a sign */
	bool		is_unsigned64;	/* 8 bytes without a sign: the top bit is turned */
	bool		descends;
	bool		nulls_first;
	Oid			collation;
	FmgrInfo   *compare;		/* key columns only */
	int			offset;			/* in a tuple of fixed columns without NULLs */
} CairnColumn;

typedef struct CairnIndex
{
	Relation	rel;
	TupleDesc	desc;
	TupleDesc	key_desc;		/* the key columns alone: inner pages hold these */
	int			keys;
	int			columns;
	bool		is_fixed;		/* all columns by value: tuples have one layout */
	int			tuple_bytes;
	CairnColumn column[FLEXIBLE_ARRAY_MEMBER];
} CairnIndex;

/*
 * A boundary in the order of the index: the rows before it are those that sort before `column[0..count]`, and with
 * `or_equal` those equal to it too. No columns: before everything, or behind it.
 */
typedef struct CairnBoundColumn
{
	Datum		datum;
	int64		integer;
	FmgrInfo   *compare;
	Oid			collation;
	bool		is_null;
	bool		is_integer;
} CairnBoundColumn;

typedef struct CairnBound
{
	int			count;
	bool		or_equal;
	CairnBoundColumn column[INDEX_MAX_KEYS];
} CairnBound;

/* A position in the tree: the inner pages above a leaf, pinned, and the leaf. With keys so long that two fill a page, all blocks of a file are this deep. */
#define CAIRN_MAX_DEPTH 32

typedef struct CairnStep
{
	Page		page;			/* in the buffer, or a copy on a standby, where pins do not hold replay off */
	Page		copy;
	Buffer		buffer;
	OffsetNumber at;
	OffsetNumber count;
} CairnStep;

typedef struct CairnWalk
{
	CairnIndex *index;
	BlockNumber root;
	uint32		generation;
	bool		copies;
	uint64		vacuum_seq;		/* of the meta page before the leaf was read; with copies only */
	Snapshot	snapshot;		/* of a scan, to be set after the walk has begun; null if rows are wanted whoever sees them */
	Buffer		root_pin;
	int			depth;
	CairnStep	step[CAIRN_MAX_DEPTH];
	Buffer		leaf_buffer;
	Page		leaf_copy;
	CairnLeaf  *leaf;
	uint32		rows;
} CairnWalk;

/* How a walk came to its leaf: by a search, from the leaf before it, or from the one behind. */
typedef enum CairnArrival
{
	CAIRN_BY_SEARCH,
	CAIRN_FROM_BEFORE,
	CAIRN_FROM_BEHIND
} CairnArrival;

/* Rows in order, on their way into pages. */
typedef struct CairnChild
{
	BlockNumber block;
	IndexTuple	first;
} CairnChild;

typedef struct CairnImage
{
	size_t		count;
	uint8_t	   *bytes;
} CairnImage;

typedef struct CairnWriter
{
	CairnIndex *index;
	CairnPacker *packer;
	CairnLeaf  *leaf;
	uint32		generation;
	MemoryContext context;		/* of the children */
	MemoryContext scratch;
	CairnChild *children;
	int			child_count;
	int			child_room;
	double		rows;
	bool		collects;		/* pages go to `images` instead of the index */
	List	   *images;
	MemoryContextCallback callback;
} CairnWriter;

typedef struct CairnOptions
{
	int32		vl_len_;
	int			page_rows;
	int			tail_limit;		/* in kB; -1: as the setting says */
} CairnOptions;

/* Whether a table can have a row there. */
static inline bool
cairn_is_row_id(const ItemPointerData *tid)
{
	OffsetNumber offset = ItemPointerGetOffsetNumberNoCheck(tid);

	return offset >= FirstOffsetNumber && offset <= MaxHeapTuplesPerPage;
}

/* page.c */
extern void cairn_page_init(Page page, CairnPageKind kind, uint32 generation);
extern void cairn_check_page(Relation rel, BlockNumber block, Page page);
extern void cairn_page_damaged(Relation rel, BlockNumber block, const char *what) CAIRN_NORETURN;
extern IndexTuple cairn_item(Relation rel, BlockNumber block, Page page, OffsetNumber at);
extern IndexTuple cairn_tail_row(Relation rel, BlockNumber block, Page page, OffsetNumber at);
extern Buffer cairn_read(Relation rel, BlockNumber block, int lock);
extern Buffer cairn_allocate(Relation rel);
extern void cairn_write_leaf(Page page, uint32 generation, const uint8_t *bytes, size_t count);
extern void cairn_meta_init(Page page);
extern CairnMetaData *cairn_meta(Relation rel, Page page);
extern CairnMetaData cairn_read_meta(Relation rel);
extern uint32 cairn_tail_pages(Relation rel, BlockNumber blocks);
extern void cairn_tail_seen(Relation rel, uint32 pages);

/* column.c */
extern CairnIndex *cairn_index_open(Relation rel);
extern uint64 cairn_to_integer(const CairnColumn *column, Datum datum);
extern Datum cairn_from_integer(const CairnColumn *column, uint64 integer);
extern bool cairn_leaf_datum(CairnWalk *walk, int column, uint32 row, Datum *out);
extern Datum cairn_from_string(const CairnColumn *column, const uint8_t *bytes, size_t count);
extern struct varlena *cairn_pack(const struct varlena *plain, int columns);
extern size_t cairn_stored_bytes(const struct varlena *value);
extern void cairn_to_string(const struct varlena *value, const uint8_t **bytes, size_t *count);
extern int	cairn_compare_datums(CairnIndex *index, int column, Datum a, bool a_null, Datum b, bool b_null);
extern int	cairn_compare_keys(CairnIndex *index, Datum *a, bool *a_null, ItemPointer a_tid,
							   Datum *b, bool *b_null, ItemPointer b_tid);
extern int	cairn_compare_bound_column(CairnIndex *index, const CairnBound *bound, int column, Datum datum, bool is_null);
extern Oid	cairn_column_family(CairnIndex *index, int column, Oid *input);
extern void cairn_codec_failed(Relation rel, BlockNumber block, CairnLeaf *leaf, int code) CAIRN_NORETURN;
extern CairnLeaf *cairn_new_leaf(MemoryContext context);

/* walk.c */
extern void cairn_walk_begin(CairnWalk *walk, CairnIndex *index, const CairnMetaData *meta, CairnLeaf *leaf);
extern void cairn_walk_release(CairnWalk *walk);
extern bool cairn_walk_seek(CairnWalk *walk, const CairnBound *bound);
extern bool cairn_walk_edge(CairnWalk *walk, bool last);
extern bool cairn_walk_next(CairnWalk *walk);
extern bool cairn_walk_next_in_unit(CairnWalk *walk);
extern bool cairn_walk_skip_units(CairnWalk *walk, uint32 count);
extern bool cairn_walk_previous(CairnWalk *walk);
extern void cairn_walk_range(CairnWalk *walk, const CairnBound *lower, const CairnBound *upper, CairnArrival arrival,
							 uint32 *from, uint32 *to);
extern uint32 cairn_walk_count_before(CairnWalk *walk, const CairnBound *bound);
extern bool cairn_walk_key_tuple(CairnWalk *walk, IndexTuple *out);
extern bool cairn_walk_next_key(CairnWalk *walk, IndexTuple *out);
extern void cairn_bound_of(CairnIndex *index, IndexTuple key, CairnBound *bound);

/* write.c */
extern CairnWriter *cairn_writer_begin(CairnIndex *index, uint32 generation);
extern void cairn_writer_add(CairnWriter *writer, ItemPointer tid, Datum *values, bool *nulls);
extern void cairn_writer_flush(CairnWriter *writer);
extern void cairn_writer_put(CairnWriter *writer, const uint8_t *bytes, size_t count);
extern void cairn_writer_keep(CairnWriter *writer, BlockNumber block, IndexTuple first);
extern void cairn_writer_level(CairnWriter *writer, CairnPageKind kind);
extern BlockNumber cairn_writer_finish(CairnWriter *writer);
extern void cairn_writer_free(CairnWriter *writer);
extern void cairn_fill_inner(CairnIndex *index, Page page, CairnChild *children, int from, int *to);

/* sort.c */
typedef struct CairnSort CairnSort;

/* One of several processes that sort together. */
typedef struct CairnSortPart
{
	int			number;			/* of this one; -1 of the one that reads what the others have sorted */
	int			participants;	/* those others */
	int		   *runs;			/* of rows of numbers, of each */
	struct SharedFileSet *files;	/* for them */
	Sharedsort *tuples;			/* for other rows */
} CairnSortPart;

extern CairnSort *cairn_sort_begin(CairnIndex *index, int kilobytes, const CairnSortPart *part);
extern void cairn_sort_add(CairnSort *sort, ItemPointer tid, Datum *values, bool *nulls, bool dead);
extern void cairn_sort_perform(CairnSort *sort);
extern bool cairn_sort_next(CairnSort *sort, ItemPointer tid, Datum **values, bool **nulls, bool *dead);
extern void cairn_sort_end(CairnSort *sort);

/* unique.c */
extern void cairn_unique_built(CairnIndex *index, Relation heap, Datum *values, bool *nulls) CAIRN_NORETURN;
extern bool cairn_insert_unique(Relation rel, Relation heap, IndexTuple tuple, Datum *values, bool *nulls,
								IndexUniqueCheck check, struct IndexInfo *info, bool *grew);

/* build.c, insert.c, scan.c, vacuum.c, merge.c, sweep.c, handler.c */
extern IndexBuildResult *cairn_build(Relation heap, Relation index, struct IndexInfo *info);
extern void cairn_build_empty(Relation index);
extern bool cairn_insert(Relation index, Datum *values, bool *nulls, ItemPointer tid, Relation heap,
						 IndexUniqueCheck check, bool unchanged, struct IndexInfo *info);
extern IndexScanDesc cairn_begin_scan(Relation rel, int keys, int order_bys);
extern void cairn_rescan(IndexScanDesc scan, ScanKey keys, int key_count, ScanKey order_bys, int order_by_count);
extern bool cairn_get_tuple(IndexScanDesc scan, ScanDirection direction);
extern int64 cairn_get_bitmap(IndexScanDesc scan, TIDBitmap *bitmap);
extern void cairn_end_scan(IndexScanDesc scan);
#if PG_VERSION_NUM >= 180000
extern Size cairn_estimate_parallel(Relation rel, int keys, int order_bys);
#elif PG_VERSION_NUM >= 170000
extern Size cairn_estimate_parallel(int keys, int order_bys);
#else
extern Size cairn_estimate_parallel(void);
#endif
extern void cairn_init_parallel(void *target);
extern void cairn_rescan_parallel(IndexScanDesc scan);
extern void cairn_mark_position(IndexScanDesc scan);
extern void cairn_restore_position(IndexScanDesc scan);
extern IndexBulkDeleteResult *cairn_bulk_delete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
												IndexBulkDeleteCallback callback, void *state);
extern IndexBulkDeleteResult *cairn_vacuum_cleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats);
extern bool cairn_merge_tail(CairnIndex *index, int kilobytes, bool wait);
extern int	cairn_tail_limit;
extern void cairn_bound_tail(Relation rel, Relation heap);
extern BlockNumber cairn_sweep(CairnIndex *index);
extern bool cairn_free_retired(CairnIndex *index, bool wait);
extern bool cairn_is_own(const IndexOptInfo *index);
extern void cairn_cost_estimate(struct PlannerInfo *root, struct IndexPath *path, double loop_count, Cost *startup,
								Cost *total, Selectivity *selectivity, double *correlation, double *pages);

/* A tail page's tuples, for scans, VACUUM and merges. */
typedef void (*CairnTailVisitor) (IndexTuple tuple, void *state);
typedef struct CairnTailPlace
{
	BlockNumber block;
	OffsetNumber offset;
	ItemPointerData tid;		/* of the tuple there */
} CairnTailPlace;

extern void cairn_visit_tail_from(Relation rel, BlockNumber head, CairnTailPlace *from, CairnTailVisitor visitor, void *state);
extern bool cairn_append(Relation rel, Buffer meta_buffer, IndexTuple tuple, bool exclusive);
extern void cairn_visit_tail(Relation rel, BlockNumber head, CairnTailVisitor visitor, void *state);

#endif							/* CAIRN_H */
