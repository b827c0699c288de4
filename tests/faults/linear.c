/* The linear layer: outputs that are read, rows that are not there, sums that lose. */
#include "faults.h"

#define OP_NAME "linear"

typedef enum fault {
  SOUND,
  CHUNKED,    /* dw is added up in the storage type, chunk by chunk */
  READS_DW,   /* beta = 0 is multiplied, not left out */
  SKIPS_ROWS, /* without rows there is nothing to launch, and dw, db keep what they held */
  OVERWRITES, /* declared to accumulate, writes dw instead */
  ADDS,       /* declared to overwrite, adds to what is there */
  NARROW_SUM, /* the "reference": every product and sum in the storage type */
  BATCHED     /* from 17 rows on, the products of a row are summed from the back */
} fault;

enum { CHUNK = 8 };

typedef struct layer {
  const gck_call *call;
  fault f;
  const gck_view *x, *w, *b, *dy;
  int64_t rows, K, N;
  bool nk;
} layer;

static layer open_layer(const gck_call *call, fault f)
{
  layer l = {.call = call,
             .f = f,
             .x = gck_call_view(call, "x"),
             .w = gck_call_view(call, "w"),
             .b = gck_call_view(call, "b"),
             .dy = gck_call_view(call, "dy"),
             .nk = strcmp(gck_call_attribute(call, "weight_layout")->word, "nk") == 0};
  l.rows = rows_of(l.x);
  l.K = cols_of(l.x);
  l.N = l.nk ? l.w->shape[0] : l.w->shape[1];
  return l;
}

static double weight(const layer *l, int64_t k, int64_t n)
{
  return l->nk ? get(l->w, n, k) : get(l->w, k, n);
}

static int forward(const gck_call *call, fault f)
{
  layer l = open_layer(call, f);
  const gck_view *y = gck_call_view(call, "y");
  for (int64_t i = 0; i < l.rows; i++)
    for (int64_t n = 0; n < l.N; n++) {
      double sum = 0;
      for (int64_t k = 0; k < l.K; k++)
        sum += get(l.x, i, k) * weight(&l, k, n);
      put_at(y, i, n, sum + get_or(l.b, n, 0));
    }
  return GCK_KERNEL_OK;
}

static double dx_at(const layer *l, int64_t i, int64_t k)
{
  float narrow = 0;
  double sum = 0;
  bool batched = l->f == BATCHED && l->x->dtype != GCK_ABI_F64;
  for (int64_t step = 0; step < l->N; step++) {
    int64_t n = batched && l->rows >= 17 ? l->N - 1 - step : step;
    double product = get(l->dy, i, n) * weight(l, k, n);
    narrow += (float)product;
    sum = l->f == NARROW_SUM ? stored_as(l->x->dtype, sum + stored_as(l->x->dtype, product)) : sum + product;
  }
  return batched ? (double)narrow : sum;
}

/* Σ over rows of dy·(x or 1); in chunks each of which is stored where the fault says so. */
static double parameter_sum(const layer *l, const gck_view *v, int64_t k, int64_t n)
{
  double sum = 0, chunk = 0;
  for (int64_t i = 0; i < l->rows; i++) {
    chunk += get(l->dy, i, n) * (k >= 0 ? get(l->x, i, k) : 1);
    if ((i + 1) % CHUNK != 0 && i + 1 < l->rows) continue;
    sum = l->f == CHUNKED ? stored_as(v->dtype, sum + chunk) : sum + chunk;
    chunk = 0;
  }
  return sum;
}

static void store_parameter(const layer *l, const gck_view *v, int64_t at, double sum)
{
  double held = load_at(v, at);
  bool adds = (l->call->accumulate && l->f != OVERWRITES) || l->f == ADDS;
  if (l->f == READS_DW && !l->call->accumulate) sum += 0 * held;
  store_at(v, at, adds ? held + sum : sum);
}

static void write_parameters(const layer *l)
{
  const gck_view *dw = gck_call_view(l->call, "dw"), *db = gck_call_view(l->call, "db");
  for (int64_t n = 0; n < l->N; n++) {
    for (int64_t k = 0; k < l->K; k++)
      store_parameter(l, dw, l->nk ? place(dw, n, k) : place(dw, k, n), parameter_sum(l, dw, k, n));
    if (db != NULL) store_parameter(l, db, n * db->stride[0], parameter_sum(l, db, -1, n));
  }
}

static int vjp(const gck_call *call, fault f)
{
  layer l = open_layer(call, f);
  const gck_view *dx = gck_call_view(call, "dx");
  for (int64_t i = 0; i < l.rows; i++)
    for (int64_t k = 0; k < l.K; k++)
      put_at(dx, i, k, dx_at(&l, i, k));
  if (l.rows > 0 || f != SKIPS_ROWS) write_parameters(&l);
  return GCK_KERNEL_OK;
}

#define KERNELS(X)                                                                                                     \
  X(sound, "sound", SOUND, .said = "promises=all")                                                                     \
  X(sound_adds, "sound.accumulate", SOUND, .said = "contract=accumulate promises=all")                                 \
  X(f33, "F33", CHUNKED, .dtypes = "bf16 f16")                                                                         \
  X(f35, "F35", READS_DW, .said = NULL)                                                                                \
  X(f36, "F36", SKIPS_ROWS, .said = NULL)                                                                              \
  X(f37_writes, "F37.overwrites", OVERWRITES, .said = "contract=accumulate")                                           \
  X(f37_adds, "F37.adds", ADDS, .said = NULL)                                                                          \
  X(f38, "F38", NARROW_SUM, .dtypes = "bf16 f16")                                                                      \
  X(f39, "F39", BATCHED, .said = "promises=all")

KERNELS(DEFINE_FAULT)
static const faulty kernels[] = {KERNELS(FAULT_ENTRY)};
const faulty_list linear_faults = {kernels, sizeof kernels / sizeof *kernels};
