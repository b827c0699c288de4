/* A launch: checks the configuration as CUDA does, spreads the blocks over OS threads and brings errors back. */
#ifndef GCK_GPU_SIMT_LAUNCH_H
#define GCK_GPU_SIMT_LAUNCH_H

#include "gpu/simt/processor.h"

#include <tuple>
#include <type_traits>
#include <utility>

namespace gck::simt
{

/* 0, or 1 with the reason in the stream's `error` and in launch_error(). Returns when every block has ended. */
int launch_grid(const char *kernel, dim3 grid, dim3 block, size_t dynamic_bytes, void *stream,
                void (*call)(const void *), const void *arguments);

/* The last error of a launch made by this OS thread, "" if there was none. */
const char *launch_error();

template <class... P, class... A>
int launch(const char *name, dim3 grid, dim3 block, size_t dynamic_bytes, void *stream, void (*kernel)(P...),
           A &&...arguments)
{
  struct Call {
    void (*kernel)(P...);
    std::tuple<std::decay_t<P>...> arguments; /* evaluated and converted once, copied for each thread as CUDA does */
  };
  const Call call{kernel, std::tuple<std::decay_t<P>...>(std::forward<A>(arguments)...)};
  const auto run = [](const void *pointer) {
    const Call &c = *static_cast<const Call *>(pointer);
    std::apply(c.kernel, c.arguments);
  };
  return launch_grid(name, grid, block, dynamic_bytes, stream, run, &call);
}

} // namespace gck::simt

#endif
