/* What pg_stat_progress_create_index shows. 1 is PostgreSQL's own "initializing". */
#define CAIRN_PHASE_SCAN 2
#define CAIRN_PHASE_SORT 3
#define CAIRN_PHASE_WRITE 4
