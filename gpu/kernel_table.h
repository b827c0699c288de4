/* Is a plug-in's kernel table sound? Every fault is told with the library, the entry and the right words. */
#ifndef GCK_GPU_KERNEL_TABLE_H
#define GCK_GPU_KERNEL_TABLE_H

#include "core/status.h"
#include "gradcheck/kernel.h"

#include <stdbool.h>

struct gck_op;

/* GCK_E_INPUT on the first fault; `path` stands in the message. Kernels of unknown ops are read as those of `stand_in`,
 * or are a fault if that is NULL. */
GCK_MUST_USE gck_status gck_kernel_table_check(const char *path, const gck_kernel *const *table, size_t count,
                                               const struct gck_op *stand_in, gck_diag *diag);

/* One blank-separated word of `text` (NULL: none) at a time: copies it into `word`, returns the text after it, or NULL
 * if there is none left. A word that does not fit is cut. */
const char *gck_next_word(const char *text, char *word, size_t bytes);

/* True if `word` is one of the blank-separated words of `text`. */
bool gck_has_word(const char *text, const char *word);

#endif
