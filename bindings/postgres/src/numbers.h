/* Rows of numbers in order: in memory, in runs on disk, and merged. */
#ifndef CAIRN_NUMBERS_H
#define CAIRN_NUMBERS_H

#include "cairn.h"

#include "storage/sharedfileset.h"

/*
 * A row: the key columns as unsigned numbers that ascend, the row's place, the other columns. A place is block << 32 | offset << 16 | a bit for a dead
 * row | a bit for each column that is NULL. The number of a key that is NULL is 0, or the greatest where NULLs come last.
 */
#define CAIRN_NUMBERS_MOST_COLUMNS 15
#define CAIRN_PLACE_DEAD (UINT64CONST(1) << 15)

typedef struct CairnNumbers CairnNumbers;

extern CairnNumbers *cairn_numbers_begin(CairnIndex *index, int kilobytes, SharedFileSet *files, int participant);
extern uint64 *cairn_numbers_add(CairnNumbers *numbers);
extern void cairn_numbers_sort(CairnNumbers *numbers);
extern int	cairn_numbers_share(CairnNumbers *numbers);
extern void cairn_numbers_open(CairnNumbers *numbers, int participant, int runs);
extern const uint64 *cairn_numbers_next(CairnNumbers *numbers);
extern void cairn_numbers_end(CairnNumbers *numbers);

#endif							/* CAIRN_NUMBERS_H */
