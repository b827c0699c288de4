/* Layouts: how the tensors of a case lie in memory. A layout says by role in which form a tensor lies; no form changes
 * a value, but an expanded cotangent, whose slices are one and the same memory, is drawn with equal slices. */
#include "ops/case.h"

#include <string.h>

typedef enum form {
  FORM_PACKED = 0,
  FORM_ROWS,       /* rows of the last axis stand apart: padding behind each */
  FORM_COLUMNS,    /* every second element of each row */
  FORM_TRANSPOSED, /* the last two axes change places in memory */
  FORM_FUSED,      /* one of three parts of a wider buffer; with heads beside rows: [row, part, head, column] */
  FORM_EXPANDED    /* stride 0 along the first axis */
} form;

struct gck_forms {
  form input, cotangent, output, gradient;
};

/* Elements behind each row: odd, so that no row but the first keeps its alignment. */
enum { ROW_PADDING = 5 };

static const gck_layout layout[] = {
    {"packed", "row-major, nothing between the elements", NULL, 0},
    {"row-strided", "rows of every tensor stand apart, poison between them",
     &(const struct gck_forms){FORM_ROWS, FORM_ROWS, FORM_ROWS, FORM_ROWS}, 0},
    {"column-strided", "every tensor is every second column of a wider one",
     &(const struct gck_forms){FORM_COLUMNS, FORM_COLUMNS, FORM_COLUMNS, FORM_COLUMNS}, 0},
    {"transposed", "the last two axes of every tensor change places in memory",
     &(const struct gck_forms){FORM_TRANSPOSED, FORM_TRANSPOSED, FORM_TRANSPOSED, FORM_TRANSPOSED}, 0},
    {"fused", "inputs and gradients are slices of one wider buffer, as q, k, v of a joint projection",
     &(const struct gck_forms){FORM_FUSED, FORM_PACKED, FORM_PACKED, FORM_FUSED}, 0},
    {"expanded", "cotangents have stride 0 along their first axis, as a sum's gradient has",
     &(const struct gck_forms){.cotangent = FORM_EXPANDED}, 0},
    {"strided-input", "every second column of the inputs, all else packed",
     &(const struct gck_forms){.input = FORM_COLUMNS}, 0},
    {"strided-cotangent", "rows of the cotangent stand apart, all else packed",
     &(const struct gck_forms){.cotangent = FORM_ROWS}, 0},
    {"strided-gradient", "rows of the gradients stand apart, all else packed",
     &(const struct gck_forms){.gradient = FORM_ROWS}, 0},
    {"crossed", "inputs, cotangents and gradients each lie in another way",
     &(const struct gck_forms){FORM_ROWS, FORM_TRANSPOSED, FORM_COLUMNS, FORM_PACKED}, 0},
    {"offset", "every base pointer is one element off its alignment", NULL, 1},
};

enum { LAYOUT_COUNT = sizeof layout / sizeof *layout };

const gck_layout *const *gck_layouts(void)
{
  static const gck_layout *const all[LAYOUT_COUNT + 1] = {&layout[0], &layout[1], &layout[2], &layout[3],
                                                          &layout[4], &layout[5], &layout[6], &layout[7],
                                                          &layout[8], &layout[9], &layout[10]};
  _Static_assert(LAYOUT_COUNT == 11, "list every layout here");
  return all;
}

const gck_layout *gck_layout_find(const char *name)
{
  for (size_t k = 0; k < LAYOUT_COUNT; k++)
    if (strcmp(layout[k].name, name) == 0) return &layout[k];
  return NULL;
}

/* ---- strides ---------------------------------------------------------------------------------------------------- */

/* Row-major strides of the axes in another order of memory, outermost first; rows of the innermost get `wide` times
 * their room and `padding` elements more. */
static void lay(int rank, const int64_t *shape, const int *order, int64_t wide, int64_t padding, int64_t *stride)
{
  int64_t step = 1;
  for (int k = rank - 1; k >= 0; k--) {
    const int64_t extent = shape[order[k]] > 0 ? shape[order[k]] : 1;
    stride[order[k]] = step;
    step *= extent;
    if (k == rank - 1) step = step * wide + padding;
  }
}

static void swap(int *order, int a, int b)
{
  const int kept = order[a];
  order[a] = order[b];
  order[b] = kept;
}

static void natural_order(int rank, int *order)
{
  for (int k = 0; k < rank; k++)
    order[k] = k;
}

/* A part of a joint buffer: the row outside, then which of the three parts, then heads (if there are), then columns. */
static void lay_fused(int rank, const int64_t *shape, int64_t *stride)
{
  int order[GCK_MAX_RANK];
  natural_order(rank, order);
  if (rank < 3) {
    lay(rank, shape, order, rank == 2 ? 3 : 1, 0, stride);
    return;
  }
  swap(order, rank - 3, rank - 2);
  lay(rank, shape, order, 1, 0, stride);
  for (int axis = 0; axis < rank; axis++)
    if (axis != rank - 1 && axis != rank - 3) stride[axis] *= 3;
}

static void lay_form(form f, int rank, const int64_t *shape, int64_t *stride)
{
  int order[GCK_MAX_RANK];
  natural_order(rank, order);
  switch (f) {
  case FORM_PACKED:
    lay(rank, shape, order, 1, 0, stride);
    return;
  case FORM_ROWS:
    lay(rank, shape, order, 1, rank > 1 ? ROW_PADDING : 0, stride);
    return;
  case FORM_COLUMNS:
    lay(rank, shape, order, 1, 0, stride);
    for (int axis = 0; axis < rank; axis++)
      stride[axis] *= 2;
    return;
  case FORM_TRANSPOSED:
    if (rank > 1) swap(order, rank - 2, rank - 1);
    lay(rank, shape, order, 1, 0, stride);
    return;
  case FORM_FUSED:
    lay_fused(rank, shape, stride);
    return;
  case FORM_EXPANDED:
    lay(rank, shape, order, 1, 0, stride);
    if (rank > 0) stride[0] = 0;
    return;
  }
}

static form form_of(const gck_layout *l, const gck_case *c, int t)
{
  if (l->forms == NULL) return FORM_PACKED;
  switch (c->op->tensors[t].role) {
  case GCK_ROLE_INPUT:
    return l->forms->input;
  case GCK_ROLE_COTANGENT:
    return l->forms->cotangent;
  case GCK_ROLE_OUTPUT:
    return l->forms->output;
  case GCK_ROLE_GRADIENT:
    return l->forms->gradient;
  case GCK_ROLE_SAVED: /* the kernel's own business: the harness passes it from forward to vjp */
    break;
  }
  return FORM_PACKED;
}

void gck_layout_strides(const gck_layout *l, const gck_case *c, int tensor, int64_t *stride)
{
  lay_form(form_of(l, c, tensor), c->rank[tensor], c->shape[tensor], stride);
}

/* ---- what it asks of a case ------------------------------------------------------------------------------------- */

static bool moves(const gck_layout *l, const gck_case *c, int t)
{
  int64_t packed[GCK_MAX_RANK], stride[GCK_MAX_RANK];
  if (!c->present[t] || gck_case_count(c, t) == 0) return false;
  lay_form(FORM_PACKED, c->rank[t], c->shape[t], packed);
  gck_layout_strides(l, c, t, stride);
  for (int axis = 0; axis < c->rank[t]; axis++)
    if (c->shape[t][axis] > 1 && stride[axis] != packed[axis]) return true;
  return false;
}

bool gck_layout_applies(const gck_layout *l, const gck_case *c)
{
  if (l->forms == NULL) return true;
  for (int t = 0; c->op->tensors[t].name != NULL; t++)
    if (moves(l, c, t)) return true;
  return false;
}

bool gck_layout_holds(const gck_layout *l, const gck_case *c, int tensor)
{
  return form_of(l, c, tensor) == FORM_EXPANDED && c->rank[tensor] > 0;
}

void gck_layout_hold(const gck_layout *l, const gck_case *c, int tensor, double *values)
{
  const int64_t count = gck_case_count(c, tensor);
  if (!gck_layout_holds(l, c, tensor) || count == 0) return;
  const int64_t slice = count / c->shape[tensor][0];
  for (int64_t i = slice; i < count; i++)
    values[i] = values[i - slice];
}
