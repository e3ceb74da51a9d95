#ifndef CAIRN_AGGREGATE_H
#define CAIRN_AGGREGATE_H

extern void cairn_aggregate_init(void);

#endif							/* CAIRN_AGGREGATE_H */
