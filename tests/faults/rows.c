#include "rows.h"

#include <stddef.h>

const fault_row fault_rows[] = {
    {"F12", "softmax", "a row without a visible element makes its warp's gradients NaN"},
    {"F18", "layernorm", "dx subtracts mean(dy*w) twice"},
    {"F19", "layernorm", "scratch for the partial sums of dw and db is sized by the wrong axis"},
    {"F20", "layernorm", "the last block's partial sums are not there yet when the blocks are added up"},
    {"F21.dx", "layernorm", "dx is stored with the strides of dy"},
    {"F21.x", "layernorm", "x is read as if its rows touched"},
    {"F22", "layernorm", "variance in one pass, E[x^2] - E[x]^2"},
    {"F23", "layernorm", "the backward pass divides by the deviation without eps: NaN on a constant row"},
    {"F24", "layernorm", "variance over D - 1 in 16-bit types"},
    {"F25", "softmax", "log-softmax: dx = dy - (dy.y) instead of dy - exp(y) sum(dy)"},
    {"F26", "softmax", "the maximum is taken over hidden elements too"},
    {"F27", "softmax", "the row sum forgets what does not fill a vector of 4"},
    {"F28.rows", "softmax", "no rows: an empty grid is a launch error"},
    {"F28.one", "softmax", "y of a row of one element is not exactly 1"},
    {"F33", "linear", "dw is added up in the storage type, chunk by chunk"},
    {"F35", "linear", "beta = 0 is multiplied, not left out: dw is read before it is written"},
    {"F36", "linear", "without rows dw and db keep what they held"},
    {"F37.overwrites", "layernorm", "declared to accumulate, writes dw and db instead"},
    {"F37.adds", "layernorm", "declared to overwrite, adds to what is there"},
    {"F37.overwrites", "linear", "declared to accumulate, writes dw and db instead"},
    {"F37.adds", "linear", "declared to overwrite, adds to what is there"},
    {"F38", "linear", "a plain 16-bit sum, as taken for a reference: worse than any kernel that it would judge"},
    {"F39", "layernorm", "a row's gradient depends on how many rows the batch has"},
    {"F39", "linear", "a row's gradient depends on how many rows the batch has"},
    {NULL, NULL, NULL}};

const checker_row checker_rows[] = {
    {"F40", "a constant cotangent makes softmax and LayerNorm gradients 0, so wrong signs pass",
     "no draw is constant; zeros and flipped signs are tried in every case (tests/ops/test_draw.c, "
     "tests/checks/test_discrepancy.c)"},
    {"F41", "a fixed step of 1e-4 vanishes in 16-bit types",
     "differences are taken in f64 or f32 with a step from the variable's length scale, and say so where the type is "
     "too coarse (tests/checks/test_plugins.c)"},
    {"F42", "nothing is compared, and that passes",
     "a run that compared nothing is no pass: exit status 1 (tests/checks/test_record.c, tests/cli/test_runs.c)"},
    {"F43", "differences across a kink, or noisy ones, call a right gradient wrong",
     "two Richardson extrapolations bound their own error; a kink shows in one-sided differences "
     "(tests/checks/test_richardson.c)"},
    {NULL, NULL, NULL}};
