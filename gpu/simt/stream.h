/* The host device's stream: what gck_call.stream points to for a kernel that declares GCK_ABI_HOST. It carries the
 * schedule of every launch made through it and brings the first error back. NULL is a stream with every field 0. */
#ifndef GCK_GPU_SIMT_STREAM_H
#define GCK_GPU_SIMT_STREAM_H

#include "gpu/simt/watch.h"

enum { GCK_SIMT_ERROR_BYTES = 512 };

/* In which order threads that become ready together are queued, and blocks are started. */
typedef enum gck_simt_order { GCK_SIMT_FORWARD = 0, GCK_SIMT_REVERSE = 1, GCK_SIMT_RANDOM = 2 } gck_simt_order;

typedef struct gck_simt_stream {
  size_t struct_size; /* sizeof(gck_simt_stream) */
  gck_simt_order threads, blocks;
  int lifo;       /* 1: the thread that became ready last runs first; 0: first come, first served */
  uint64_t seed;  /* of the random orders */
  int os_threads; /* blocks are spread over so many OS threads; 0: as many as there are cores; 1: replays atomics */
  char error[GCK_SIMT_ERROR_BYTES]; /* the first failed launch, in words; the caller clears it */
  unsigned char fill;               /* the byte that fills shared memory before every block; 0: 0xFF */
  gck_simt_watch *watch;            /* accesses are watched, on one OS thread; NULL: they are not */
} gck_simt_stream;

#endif
