/* Blocks of a case that do not see each other, from the descriptor's block facts: rows, batches, groups of heads. */
#ifndef GCK_CHECKS_BLOCKS_H
#define GCK_CHECKS_BLOCKS_H

#include "ops/structure.h"

enum { CHECKS_MAX_BLOCK_FACTS = 4 };

typedef struct checks_blocks {
  const gck_case *c;
  int count; /* facts that hold */
  const gck_block_fact *fact[CHECKS_MAX_BLOCK_FACTS];
  int64_t extent[CHECKS_MAX_BLOCK_FACTS]; /* blocks by each fact */
  int64_t total;                          /* their product */
} checks_blocks;

checks_blocks checks_blocks_of(const gck_case *c, const gck_block_fact *facts);

/* How one tensor falls into the blocks. */
typedef struct checks_block_map {
  bool whole; /* it has an axis for every fact, so each element lies in one block */
  int rank;
  int64_t shape[GCK_MAX_RANK];
  int64_t divide[GCK_MAX_RANK], weight[GCK_MAX_RANK]; /* block = Σ weight·(index / divide) */
  int64_t run;                                        /* so many elements that follow each other share a block */
} checks_block_map;

checks_block_map checks_block_map_of(const checks_blocks *b, int tensor);

/* The block of an element by its row-major number; only where `whole`. */
int64_t checks_block_number(const checks_block_map *m, int64_t element);

/* What becomes of a block when one run varies some and keeps others; neighbours along every fact differ. */
typedef enum checks_fate { CHECKS_KEPT, CHECKS_CHANGED, CHECKS_PAIRED } checks_fate;
checks_fate checks_block_fate(const checks_blocks *b, int64_t block);

#endif
