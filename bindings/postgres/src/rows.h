/* Rows of an index-only scan, taken from the compressed pages by batches. */
#ifndef CAIRN_ROWS_H
#define CAIRN_ROWS_H

#include "postgres.h"

#include "nodes/extensible.h"

/*
 * The plan has the index-only scan that it stands for as its only child, which is never run: it holds the conditions, and opens and
 * closes the scan. custom_private: which index column each entry of custom_scan_tlist is (integers).
 */
extern void cairn_rows_init(void);
extern Node *cairn_rows_state(CustomScan *plan);

#endif							/* CAIRN_ROWS_H */
