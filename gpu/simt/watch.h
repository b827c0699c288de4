/* Watching a run's memory accesses on the host device: what the harness asks for and gets back. A C header. Only
 * kernels that were compiled for it (gpu/race/) can be watched; others leave `launches` at 0. */
#ifndef GCK_GPU_SIMT_WATCH_H
#define GCK_GPU_SIMT_WATCH_H

#include <stddef.h>
#include <stdint.h>

enum { GCK_SIMT_HAZARDS = 16, GCK_SIMT_NAME_BYTES = 64 };

/* Global memory that is watched. Accesses outside all regions and shared arrays are not looked at. */
typedef struct gck_simt_region {
  const char *name;
  const void *begin;
  size_t bytes;
  int undefined; /* 1: it holds nothing until the kernel writes it */
} gck_simt_region;

typedef enum gck_simt_hazard_kind {
  GCK_SIMT_RACE,     /* two accesses, one of them writes, and nothing orders them */
  GCK_SIMT_UNWRITTEN /* a read of what nobody has written; `earlier` is empty */
} gck_simt_hazard_kind;

typedef struct gck_simt_access {
  const void *pc; /* where the access returns to: one byte before it lies in its instruction */
  int write, atomic;
  unsigned block[3], thread[3];
} gck_simt_access;

typedef struct gck_simt_hazard {
  gck_simt_hazard_kind kind;
  char kernel[GCK_SIMT_NAME_BYTES];
  char memory[GCK_SIMT_NAME_BYTES]; /* a region's name, or "shared NAME" */
  int64_t offset;                   /* bytes from its begin */
  gck_simt_access earlier, later;
  uint64_t times; /* how often these two places met */
} gck_simt_hazard;

typedef struct gck_simt_watch {
  size_t struct_size; /* sizeof(gck_simt_watch) */
  const gck_simt_region *regions;
  int region_count;

  gck_simt_hazard hazard[GCK_SIMT_HAZARDS]; /* one for each pair of places */
  int hazard_count;
  uint64_t launches, accesses;

  void *state; /* the detector's, made by the first launch; `release` ends it */
  void (*release)(void *state);
} gck_simt_watch;

#endif
