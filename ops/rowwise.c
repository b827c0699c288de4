/* A stand-in for an op that nobody has described: one gradient dx of one x, row by row. In no registry and without a
 * reference; discovery alone takes it. */
#include "ops/case.h"

static const gck_attribute_spec attributes[] = {
    {.name = "rows", .kind = GCK_ATTR_SIZE, .fallback = "3", .min = 0, .max = 0x1p62, .help = "rows, each for itself"},
    {.name = "cols", .kind = GCK_ATTR_SIZE, .fallback = "24", .min = 1, .max = 0x1p62, .help = "elements of a row"},
    {0}};

static const gck_tensor_spec tensors[] = {
    {.name = "x",
     .role = GCK_ROLE_INPUT,
     .dims = "rows cols",
     .draw = GCK_DRAW_NORMAL,
     .mean = 0.5,
     .spread = 1.25,
     .nature = GCK_NATURE_DATA,
     .help = "rows"},
    {.name = "dy",
     .role = GCK_ROLE_COTANGENT,
     .of = "y",
     .dims = "rows cols",
     .draw = GCK_DRAW_NORMAL,
     .mean = 0.25,
     .spread = 1,
     .help = "upstream gradient"},
    {.name = "y",
     .role = GCK_ROLE_OUTPUT,
     .dims = "rows cols",
     .readback = true,
     .help = "the kernel's own output; its vjp may read it"},
    {.name = "dx", .role = GCK_ROLE_GRADIENT, .of = "x", .dims = "rows cols", .help = "gradient of x"},
    {0}};

const gck_op gck_op_rowwise = {.name = "rowwise",
                               .title = "a row-wise op that nobody has described",
                               .formula = "unknown",
                               .vjp = "unknown",
                               .saved = "y alone",
                               .attributes = attributes,
                               .tensors = tensors,
                               .independent = "rows"};
