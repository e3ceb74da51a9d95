/*
 * Sorting rows of numbers.
 *
 * Rows gather in memory. When it is full they are sorted and written to a run, and all runs are merged in the end. In memory they are sorted digit
 * by digit of 8 bits from the last to the first, which keeps the order of rows that are equal so far: of a scan of the table they come in the order
 * of their places, so places need no pass. Digits that all rows have in common need none either.
 */
#include "numbers.h"

#include <fcntl.h>

#include "miscadmin.h"
#include "storage/buffile.h"

#define DIGIT_BITS 8
#define DIGITS (1 << DIGIT_BITS)
/* Bytes of a run that are read at a time. */
#define READ_BYTES 16384

typedef struct Run
{
	BufFile    *file;			/* null: the rows are in memory */
	uint64		left;			/* rows of the file that have not been read */
	uint64	   *rows;
	size_t		at;
	size_t		count;
} Run;

struct CairnNumbers
{
	int			keys;
	int			width;
	bool		nulls_first[INDEX_MAX_KEYS];
	uint64	   *rows;
	size_t		count;
	size_t		room;
	size_t		most;
	SharedFileSet *files;		/* null: runs are this process's own */
	int			participant;
	int			run_count;
	int			run_room;
	Run		   *runs;
	int			heap_count;
	int		   *heap;			/* runs by their next row, the least on top */
	bool		merging;
	bool		stepped;		/* the row on top has been handed out */
	size_t		at;				/* rows handed out of memory */
	MemoryContext context;
};

/* What a pass over the rows says of a key, or of places. */
typedef struct Span
{
	uint64		least;
	uint64		most;
	bool		has_nulls;
} Span;

static inline int
compare_rows(const void *a, const void *b, const CairnNumbers *numbers)
{
	const uint64 *x = a;
	const uint64 *y = b;

	for (int i = 0; i < numbers->keys; i++)
	{
		bool		x_null;
		bool		y_null;

		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
		/* NULL and the value of the same number. */
		x_null = (x[numbers->keys] >> i) & 1;
		y_null = (y[numbers->keys] >> i) & 1;
		if (unlikely(x_null != y_null))
			return x_null == numbers->nulls_first[i] ? -1 : 1;
	}
	return x[numbers->keys] < y[numbers->keys] ? -1 : x[numbers->keys] > y[numbers->keys];
}

#define ST_SORT sort_by_comparison
#define ST_ELEMENT_TYPE_VOID
#define ST_COMPARE_ARG_TYPE const CairnNumbers
#define ST_COMPARE(a, b, numbers) compare_rows(a, b, numbers)
#define ST_CHECK_FOR_INTERRUPTS
#define ST_SCOPE static
#define ST_DECLARE
#define ST_DEFINE
#include "lib/sort_template.h"

/* `files` and `participant` of one of several processes that sort together; null and 0 of one by itself. */
CairnNumbers *
cairn_numbers_begin(CairnIndex *index, int kilobytes, SharedFileSet *files, int participant)
{
	CairnNumbers *numbers = palloc0(sizeof(CairnNumbers));

	numbers->keys = index->keys;
	numbers->width = index->columns + 1;
	for (int i = 0; i < index->keys; i++)
		numbers->nulls_first[i] = index->column[i].nulls_first;
	numbers->files = files;
	numbers->participant = participant;
	numbers->context = CurrentMemoryContext;
	/* Sorting takes as much again as the rows. */
	numbers->most = Max((size_t) kilobytes * 1024 / (2 * numbers->width * sizeof(uint64)), 1024);
	numbers->room = Min(numbers->most, 8192);
	numbers->rows = palloc(numbers->room * numbers->width * sizeof(uint64));
	return numbers;
}

/* Looks at every key. True if the rows are in order as they are; `places` if their places ascend. */
static bool
survey(CairnNumbers *numbers, Span *spans, bool *places)
{
	int			width = numbers->width;
	int			keys = numbers->keys;
	bool		ordered = true;

	*places = true;
	for (int i = 0; i < keys; i++)
		spans[i] = (Span) {.least = PG_UINT64_MAX};
	spans[keys] = (Span) {.least = PG_UINT64_MAX};
	for (size_t at = 0; at < numbers->count; at++)
	{
		const uint64 *row = numbers->rows + at * width;

		for (int i = 0; i < keys; i++)
		{
			if (unlikely((row[keys] >> i) & 1))
			{
				spans[i].has_nulls = true;
				continue;
			}
			spans[i].least = Min(spans[i].least, row[i]);
			spans[i].most = Max(spans[i].most, row[i]);
		}
		spans[keys].least = Min(spans[keys].least, row[keys]);
		spans[keys].most = Max(spans[keys].most, row[keys]);
		if (at == 0)
			continue;
		*places &= row[keys - width] < row[keys];
		ordered = ordered && compare_rows(row - width, row, numbers) <= 0;
	}
	return ordered;
}

/*
 * Gives NULLs of a key the number next to its values', so that few digits differ, and says so in the span. False if there is none: then only
 * comparing tells NULL from a value.
 */
static bool
place_nulls(CairnNumbers *numbers, int key, Span *span)
{
	uint64		stand_in;

	if (!span->has_nulls)
		return true;
	if (span->least > span->most)
		span->least = span->most = 1;
	if (numbers->nulls_first[key] ? span->least == 0 : span->most == PG_UINT64_MAX)
		return false;
	stand_in = numbers->nulls_first[key] ? --span->least : ++span->most;
	for (size_t at = 0; at < numbers->count; at++)
	{
		uint64	   *row = numbers->rows + at * numbers->width;

		if ((row[numbers->keys] >> key) & 1)
			row[key] = stand_in;
	}
	return true;
}

static void
restore_nulls(CairnNumbers *numbers, const Span *spans)
{
	for (int key = 0; key < numbers->keys; key++)
		for (size_t at = 0; spans[key].has_nulls && at < numbers->count; at++)
		{
			uint64	   *row = numbers->rows + at * numbers->width;

			if ((row[numbers->keys] >> key) & 1)
				row[key] = numbers->nulls_first[key] ? 0 : PG_UINT64_MAX;
		}
}

static int
digits_of(const Span *span)
{
	uint64		range = span->least < span->most ? span->most - span->least : 0;
	int			digits = 0;

	for (; range != 0; range >>= DIGIT_BITS)
		digits++;
	return digits;
}

/* Moves rows to where one digit of a number puts them, those with the same digit in their order. */
static void
pass(CairnNumbers *numbers, int number, uint64 least, int digit, uint64 *out)
{
	int			width = numbers->width;
	int			shift = digit * DIGIT_BITS;
	size_t		starts[DIGITS] = {0};
	size_t		start = 0;

	CHECK_FOR_INTERRUPTS();
	for (size_t at = 0; at < numbers->count; at++)
		starts[((numbers->rows[at * width + number] - least) >> shift) % DIGITS]++;
	for (int i = 0; i < DIGITS; i++)
	{
		size_t		count = starts[i];

		starts[i] = start;
		start += count;
	}
	for (size_t at = 0; at < numbers->count; at++)
	{
		const uint64 *row = numbers->rows + at * width;
		uint64	   *to = out + width * starts[((row[number] - least) >> shift) % DIGITS]++;

		for (int i = 0; i < width; i++)
			to[i] = row[i];
	}
}

/* Sorts what is in memory. */
void
cairn_numbers_sort(CairnNumbers *numbers)
{
	Span		spans[INDEX_MAX_KEYS + 1];
	bool		places;
	int			passes = 0;
	int			worth = 0;
	bool		by_digits = true;

	if (survey(numbers, spans, &places))
		return;
	for (int i = 0; i < numbers->keys; i++)
	{
		by_digits = place_nulls(numbers, i, &spans[i]) && by_digits;
		passes += digits_of(&spans[i]);
	}
	passes += places ? 0 : digits_of(&spans[numbers->keys]);
	/* Comparing looks at each row about log2(count) times. */
	for (size_t count = numbers->count; count > 1; count /= 2)
		worth++;
	if (by_digits && passes <= worth)
	{
		uint64	   *spare = MemoryContextAllocHuge(numbers->context, numbers->count * numbers->width * sizeof(uint64));

		/* From the number that decides last, which are the places. */
		for (int number = places ? numbers->keys - 1 : numbers->keys; number >= 0; number--)
			for (int digit = 0; digit < digits_of(&spans[number]); digit++)
			{
				uint64	   *sorted = spare;

				pass(numbers, number, spans[number].least, digit, sorted);
				spare = numbers->rows;
				numbers->rows = sorted;
			}
		pfree(spare);
		/* What is left has room for these rows, which may be less than before. */
		numbers->room = numbers->count;
		restore_nulls(numbers, spans);
		return;
	}
	restore_nulls(numbers, spans);
	sort_by_comparison(numbers->rows, numbers->count, numbers->width * sizeof(uint64), numbers);
}

static Run *
new_run(CairnNumbers *numbers)
{
	if (numbers->run_count == numbers->run_room)
	{
		numbers->run_room = Max(numbers->run_room * 2, 16);
		numbers->runs = numbers->runs == NULL ? MemoryContextAlloc(numbers->context, numbers->run_room * sizeof(Run))
			: repalloc(numbers->runs, numbers->run_room * sizeof(Run));
	}
	memset(&numbers->runs[numbers->run_count], 0, sizeof(Run));
	return &numbers->runs[numbers->run_count++];
}

static void
run_name(char *name, int participant, int run)
{
	snprintf(name, MAXPGPATH, "cairn.%d.%d", participant, run);
}

/* Writes what is in memory, in order, behind its number of rows. */
static void
spill(CairnNumbers *numbers)
{
	MemoryContext old = MemoryContextSwitchTo(numbers->context);
	Run		   *run = new_run(numbers);
	size_t		row_bytes = numbers->width * sizeof(uint64);

	cairn_numbers_sort(numbers);
	if (numbers->files != NULL)
	{
		char		name[MAXPGPATH];

		run_name(name, numbers->participant, numbers->run_count - 1);
		run->file = BufFileCreateFileSet(&numbers->files->fs, name);
	}
	else
		run->file = BufFileCreateTemp(false);
	run->left = numbers->count;
	BufFileWrite(run->file, &run->left, sizeof(run->left));
	for (size_t at = 0; at < numbers->count; at += 8192)
	{
		CHECK_FOR_INTERRUPTS();
		BufFileWrite(run->file, numbers->rows + at * numbers->width, Min(numbers->count - at, 8192) * row_bytes);
	}
	numbers->count = 0;
	MemoryContextSwitchTo(old);
}

/* Room for the next row, which the caller fills in. */
uint64 *
cairn_numbers_add(CairnNumbers *numbers)
{
	if (unlikely(numbers->count == numbers->most))
		spill(numbers);
	if (unlikely(numbers->count == numbers->room))
	{
		numbers->room = Min(numbers->room * 2, numbers->most);
		numbers->rows = repalloc_huge(numbers->rows, numbers->room * numbers->width * sizeof(uint64));
	}
	return numbers->rows + numbers->count++ * numbers->width;
}

/* Puts all rows into runs that other processes can read, and says how many there are. */
int
cairn_numbers_share(CairnNumbers *numbers)
{
	if (numbers->count > 0)
		spill(numbers);
	for (int i = 0; i < numbers->run_count; i++)
	{
		BufFileExportFileSet(numbers->runs[i].file);
		BufFileClose(numbers->runs[i].file);
		numbers->runs[i].file = NULL;
	}
	return numbers->run_count;
}

static void
read_exactly(BufFile *file, void *out, size_t bytes)
{
	if (BufFileRead(file, out, bytes) != bytes)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not read from the temporary file of an index build: it has ended")));
}

/* Adds the runs that another process has shared to those that are merged. */
void
cairn_numbers_open(CairnNumbers *numbers, int participant, int runs)
{
	for (int i = 0; i < runs; i++)
	{
		Run		   *run = new_run(numbers);
		char		name[MAXPGPATH];

		run_name(name, participant, i);
		run->file = BufFileOpenFileSet(&numbers->files->fs, name, O_RDONLY, false);
	}
}

/* Makes the run's next row one that is in memory. False at its end. */
static bool
has_row(CairnNumbers *numbers, Run *run)
{
	size_t		row_bytes = numbers->width * sizeof(uint64);

	if (run->at < run->count)
		return true;
	if (run->file == NULL || run->left == 0)
		return false;
	CHECK_FOR_INTERRUPTS();
	run->count = Min(run->left, Max(READ_BYTES / row_bytes, 1));
	run->at = 0;
	read_exactly(run->file, run->rows, run->count * row_bytes);
	run->left -= run->count;
	return true;
}

static const uint64 *
row_of(CairnNumbers *numbers, int run)
{
	return numbers->runs[run].rows + numbers->runs[run].at * numbers->width;
}

/* Lets what stands at `at` of the heap sink to its place. */
static void
sink(CairnNumbers *numbers, int at)
{
	int			run = numbers->heap[at];

	for (;;)
	{
		int			child = 2 * at + 1;

		if (child >= numbers->heap_count)
			break;
		if (child + 1 < numbers->heap_count &&
			compare_rows(row_of(numbers, numbers->heap[child + 1]), row_of(numbers, numbers->heap[child]), numbers) < 0)
			child++;
		if (compare_rows(row_of(numbers, run), row_of(numbers, numbers->heap[child]), numbers) <= 0)
			break;
		numbers->heap[at] = numbers->heap[child];
		at = child;
	}
	numbers->heap[at] = run;
}

static void
begin_merge(CairnNumbers *numbers)
{
	MemoryContext old = MemoryContextSwitchTo(numbers->context);
	size_t		row_bytes = numbers->width * sizeof(uint64);

	for (int i = 0; i < numbers->run_count; i++)
	{
		Run		   *run = &numbers->runs[i];

		run->rows = palloc(Max(READ_BYTES / row_bytes, 1) * row_bytes);
		if (BufFileSeek(run->file, 0, 0, SEEK_SET) != 0)
			ereport(ERROR, (errcode_for_file_access(), errmsg("could not rewind the temporary file of an index build")));
		read_exactly(run->file, &run->left, sizeof(run->left));
	}
	if (numbers->count > 0)
	{
		Run		   *run = new_run(numbers);

		run->rows = numbers->rows;
		run->count = numbers->count;
	}
	numbers->heap = palloc(Max(numbers->run_count, 1) * sizeof(int));
	for (int i = 0; i < numbers->run_count; i++)
		if (has_row(numbers, &numbers->runs[i]))
			numbers->heap[numbers->heap_count++] = i;
	for (int at = numbers->heap_count / 2 - 1; at >= 0; at--)
		sink(numbers, at);
	numbers->merging = true;
	MemoryContextSwitchTo(old);
}

/* The next row in order, which holds until the next call; null behind the last. What is in memory has been sorted. */
const uint64 *
cairn_numbers_next(CairnNumbers *numbers)
{
	if (numbers->run_count == 0)
		return numbers->at < numbers->count ? numbers->rows + numbers->width * numbers->at++ : NULL;
	if (!numbers->merging)
		begin_merge(numbers);
	else if (numbers->stepped)
	{
		Run		   *run = &numbers->runs[numbers->heap[0]];

		run->at++;
		if (!has_row(numbers, run))
			numbers->heap[0] = numbers->heap[--numbers->heap_count];
		if (numbers->heap_count > 0)
			sink(numbers, 0);
	}
	numbers->stepped = numbers->heap_count > 0;
	return numbers->stepped ? row_of(numbers, numbers->heap[0]) : NULL;
}

void
cairn_numbers_end(CairnNumbers *numbers)
{
	for (int i = 0; i < numbers->run_count; i++)
	{
		if (numbers->runs[i].file == NULL)
			continue;
		BufFileClose(numbers->runs[i].file);
		if (numbers->runs[i].rows != NULL)
			pfree(numbers->runs[i].rows);
	}
	if (numbers->runs != NULL)
		pfree(numbers->runs);
	if (numbers->heap != NULL)
		pfree(numbers->heap);
	pfree(numbers->rows);
	pfree(numbers);
}
