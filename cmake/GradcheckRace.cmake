# How a host kernel library is compiled for being watched: every access calls out (gpu/race/entry.cpp), lines are kept.
#   tsan-distinguish-volatile      volatile accesses order memory on a GPU, plain ones do not
#   no-tree-loop-distribute-patterns   a loop must not become a memset, which would not be seen
#   gdwarf-4                       addr2line of binutils before 2.41 takes version 5's first file for the wrong one
#   no-tsan                        fences are understood here
set(GCK_RACE_OPTIONS -O1 -g1 -gdwarf-4 -fsanitize=thread --param tsan-distinguish-volatile=1 -fno-tree-loop-distribute-patterns
  -Wno-tsan)
