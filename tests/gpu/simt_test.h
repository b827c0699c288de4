/* What the executor's tests share: cmocka from C++, the compat header, schedules. */
#ifndef GCK_TESTS_GPU_SIMT_TEST_H
#define GCK_TESTS_GPU_SIMT_TEST_H

#include "gpu/kernels/device.cuh"

#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>
extern "C" {
#include <cmocka.h>
}

/* Every schedule that a kernel's bits must not depend on, and two OS threads beside one. */
inline std::vector<gck_simt_stream> all_schedules()
{
  std::vector<gck_simt_stream> all;
  for (const gck_simt_order threads : {GCK_SIMT_FORWARD, GCK_SIMT_REVERSE, GCK_SIMT_RANDOM})
    for (const gck_simt_order blocks : {GCK_SIMT_FORWARD, GCK_SIMT_REVERSE, GCK_SIMT_RANDOM})
      for (const int lifo : {0, 1})
        for (const int os_threads : {1, 2}) {
          gck_simt_stream s = {};
          s.struct_size = sizeof s;
          s.threads = threads;
          s.blocks = blocks;
          s.lifo = lifo;
          s.seed = 7;
          s.os_threads = os_threads;
          all.push_back(s);
        }
  return all;
}

inline gck_simt_stream schedule(gck_simt_order threads, int lifo, gck_simt_order blocks = GCK_SIMT_FORWARD)
{
  gck_simt_stream s = {};
  s.struct_size = sizeof s;
  s.threads = threads;
  s.blocks = blocks;
  s.lifo = lifo;
  s.seed = 7;
  s.os_threads = 1;
  return s;
}

#endif
