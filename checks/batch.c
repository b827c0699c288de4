/* batch: same row, same bits, in any batch and at any place in it? Rows of the case (slices along the first of the op's
 * independent sizes) are put into other batches: alone, in smaller and larger ones, turned round. Results that have
 * that axis are compared bit by bit with those of the case; sums over it are another matter (discrepancy). The bits are
 * demanded of a kernel that promises batch or position, and told of any other. */
#include "checks/colours.h"
#include "checks/ledger.h"
#include "checks/place.h"
#include "checks/subject.h"
#include "checks/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_BUDGET 10.0

/* Row i of a batch is row first + ((i + turn) mod size)·step of the case, all of it mod n. */
typedef struct choice {
  const char *how;
  int64_t size;  /* of the batch; 0: the case's own */
  int64_t first; /* in quarters of n, counted from the front */
  int64_t step, turn;
  uint32_t promises; /* that cover it */
} choice;

#define BATCH GCK_PROMISE_BATCH
#define POSITION GCK_PROMISE_POSITION

/* Five places, and every row of five at each of them; one past a warp's and a block's usual shares. */
static const choice choices[] = {
    {"the first row alone", 1, 0, 1, 0, BATCH},
    {"a row from the middle alone", 1, 2, 1, 0, BATCH | POSITION},
    {"the last row alone", 1, 4, 1, 0, BATCH | POSITION},
    {"the first 2 rows", 2, 0, 1, 0, BATCH},
    {"5 rows", 5, 0, 1, 0, BATCH | POSITION},
    {"5 rows turned by 1", 5, 0, 1, 1, BATCH | POSITION},
    {"5 rows turned by 2", 5, 0, 1, 2, BATCH | POSITION},
    {"5 rows turned by 3", 5, 0, 1, 3, BATCH | POSITION},
    {"5 rows turned by 4", 5, 0, 1, 4, BATCH | POSITION},
    {"17 rows", 17, 1, 3, 0, BATCH | POSITION},
    {"33 rows from the last on back", 33, 4, -1, 0, BATCH | POSITION},
    {"257 rows", 257, 3, 5, 0, BATCH | POSITION},
    {"the same batch turned round", 0, 4, -1, 0, POSITION},
    {"the same batch from its middle on", 0, 2, 1, 0, POSITION},
};

enum { CHOICES = sizeof choices / sizeof *choices };

/* Rows of the case that make up a batch. */
typedef struct batch {
  gck_case c;
  int64_t *row;              /* [size] */
  int64_t size, of;          /* of: rows of the case */
  int axis[GCK_MAX_TENSORS]; /* the axis of rows; −1: none */
  gck_tensor tensors[GCK_MAX_TENSORS];
} batch;

/* ---- other batches -----------------------------------------------------------------------------------------------
 */

/* The first independent size; −1 if the op has none. */
static int batch_attribute(const gck_case *c)
{
  for (int a = 0; c->op->attributes[a].name != NULL; a++)
    if (checks_has_word(c->op->independent, c->op->attributes[a].name)) return a;
  return -1;
}

/* The axis that this size is, unless the tensor is shared by all rows. */
static int axis_of(const gck_case *c, int t, const char *dim, int64_t extent)
{
  if (!c->present[t]) return -1;
  checks_axes a = checks_axes_of(c, t);
  for (int k = 0; k < a.rank; k++)
    if (strcmp(a.dim[k], dim) == 0 && c->shape[t][k] == extent) return k;
  return -1;
}

/* Other sizes may not have moved with this one. */
static bool shapes_agree(const batch *b, const gck_case *base)
{
  for (int t = 0; base->op->tensors[t].name != NULL; t++) {
    if (b->c.present[t] != base->present[t] || b->c.rank[t] != base->rank[t]) return false;
    for (int k = 0; base->present[t] && k < base->rank[t]; k++)
      if (b->c.shape[t][k] != (k == b->axis[t] ? b->size : base->shape[t][k])) return false;
  }
  return true;
}

/* From one shape of rows to another: to row i from row row[i]. */
static void gather(const gck_tensor *to, const gck_tensor *from, int axis, const int64_t *row)
{
  size_t bytes = gck_dtype_format(to->dtype)->bytes;
  int64_t inner = 1, size = to->shape[axis], of = from->shape[axis], count = gck_tensor_count(to);
  for (int k = axis + 1; k < to->rank; k++)
    inner *= to->shape[k];
  for (int64_t i = 0; i < count; i++) {
    int64_t outer = i / (inner * size), place = i / inner % size;
    memcpy(gck_tensor_at(to, i), gck_tensor_at(from, (outer * of + row[place]) * inner + i % inner), bytes);
  }
}

static gck_status gather_tensor(const batch *b, int t, const gck_tensor *from, gck_tensor *to, gck_diag *diag)
{
  if (b->axis[t] < 0) return gck_tensor_copy(to, from, diag);
  gck_status st = gck_tensor_make(to, from->dtype, b->c.rank[t], b->c.shape[t], diag);
  if (st == GCK_OK) gather(to, from, b->axis[t], b->row);
  return st;
}

static void free_batch(batch *b)
{
  for (int t = 0; t < GCK_MAX_TENSORS; t++)
    gck_tensor_free(&b->tensors[t]);
  free(b->row);
  memset(b, 0, sizeof *b);
}

static gck_status choose_rows(batch *b, const choice *chosen, gck_diag *diag)
{
  b->row = malloc((size_t)b->size * sizeof *b->row);
  if (b->row == NULL) return gck_fail(diag, GCK_E_MEMORY, "batch", NULL, "no memory for a batch");
  int64_t first = (b->of - 1) * chosen->first / 4;
  for (int64_t i = 0; i < b->size; i++) {
    int64_t place = (i + chosen->turn) % b->size;
    b->row[i] = ((first + place * chosen->step) % b->of + b->of) % b->of;
  }
  return GCK_OK;
}

/* GCK_E_UNSUPPORTED where the op does not let its batch be changed alone. */
static gck_status make_batch(batch *b, const gck_subject *s, int attribute, const choice *chosen, gck_diag *diag)
{
  const char *dim = s->c->op->attributes[attribute].name;
  char value[32];
  gck_diag quiet = {0};
  memset(b, 0, sizeof *b);
  b->of = s->c->attribute[attribute].integer;
  b->size = chosen->size > 0 ? chosen->size : b->of;
  b->c = *s->c;
  for (int t = 0; t < gck_op_tensor_count(s->c->op); t++)
    b->axis[t] = axis_of(s->c, t, dim, b->of);
  (void)snprintf(value, sizeof value, "%" PRId64, b->size);
  bool made = gck_case_set(&b->c, dim, value, &quiet) == GCK_OK && gck_case_resolve(&b->c, &quiet) == GCK_OK;
  if (!made || !shapes_agree(b, s->c))
    return gck_fail(diag, GCK_E_UNSUPPORTED, "batch", NULL, "%s cannot be changed alone here", dim);
  gck_status st = choose_rows(b, chosen, diag);
  for (int t = 0; st == GCK_OK && t < gck_op_tensor_count(s->c->op); t++)
    if (s->tensors[t].dtype != GCK_DTYPE_NONE) st = gather_tensor(b, t, &s->tensors[t], &b->tensors[t], diag);
  return st;
}

/* ---- running -----------------------------------------------------------------------------------------------------
 */

static bool is_rowwise(const batch *b, const gck_op *op, int t)
{
  gck_role role = op->tensors[t].role;
  return b->axis[t] >= 0 && (role == GCK_ROLE_GRADIENT || role == GCK_ROLE_OUTPUT || role == GCK_ROLE_SAVED);
}

static gck_status compare(const batch *b, const gck_subject *s, const gck_response *response, checks_ledger_line *line,
                          gck_diag *diag)
{
  bool differs = false;
  gck_status st = GCK_OK;
  for (int t = 0; st == GCK_OK && t < gck_op_tensor_count(s->c->op); t++) {
    gck_tensor expected;
    if (!is_rowwise(b, s->c->op, t) || s->result[t].dtype == GCK_DTYPE_NONE) continue;
    st = gather_tensor(b, t, &s->result[t], &expected, diag);
    if (st != GCK_OK) break;
    if (checks_ledger_compare(&line->of[t], &b->c, t, &expected, &response->tensors[t])) differs = true;
    gck_tensor_free(&expected);
  }
  line->runs += 1;
  line->differing += differs;
  return st;
}

static gck_status run_batch(const gck_subject *s, batch *b, checks_ledger_line *line, gck_diag *diag)
{
  gck_request request = checks_request(s);
  gck_response *response = calloc(1, sizeof *response);
  if (response == NULL) return gck_fail(diag, GCK_E_MEMORY, "batch", NULL, "no memory for another run");
  request.c = &b->c;
  request.tensors = b->tensors;
  gck_status st = gck_runner_run(s->runner, &request, response, diag);
  if (st == GCK_OK && response->code == GCK_KERNEL_OK)
    st = compare(b, s, response, line, diag);
  else if (st == GCK_OK && response->code == GCK_KERNEL_UNSUPPORTED)
    (void)snprintf(line->declined, sizeof line->declined, "%.180s", response->message);
  else if (st == GCK_OK)
    (void)snprintf(line->failure, sizeof line->failure, "%.250s", response->message);
  gck_response_free(response);
  free(response);
  return st;
}

static gck_status run_choice(const gck_subject *s, int attribute, int k, checks_ledger *l, gck_diag *diag)
{
  gck_diag local = {0};
  checks_ledger_line *line = checks_ledger_add(l, choices[k].how);
  batch *b = calloc(1, sizeof *b);
  if (line == NULL || b == NULL) {
    free(b);
    return gck_fail(diag, GCK_E_MEMORY, "batch", NULL, "no memory for another batch");
  }
  line->excused = (s->declaration.promises & choices[k].promises) != choices[k].promises;
  gck_status st = make_batch(b, s, attribute, &choices[k], &local);
  if (st == GCK_OK) st = run_batch(s, b, line, &local);
  free_batch(b);
  free(b);
  if (st == GCK_OK) return GCK_OK;
  (void)snprintf(line->declined, sizeof line->declined, "%.180s", local.text);
  return st == GCK_E_UNSUPPORTED ? GCK_OK : gck_fail(diag, st, local.where, local.hint, "%s", local.text);
}

/* A batch that would take too long beside the case is left out. */
static bool too_long(const gck_subject *s, const gck_options *o, int64_t rows, const choice *chosen)
{
  double budget = o->budget_seconds > 0 ? o->budget_seconds : DEFAULT_BUDGET;
  double seconds = s->response.forward_seconds + s->response.vjp_seconds;
  double growth = chosen->size > rows ? (double)chosen->size / (double)rows : 1.0;
  return seconds * growth > budget / CHOICES;
}

/* ---- telling -----------------------------------------------------------------------------------------------------
 */

static gck_status add_finding(const gck_subject *s, const checks_ledger *l, int t, gck_check_record *record,
                              gck_diag *diag)
{
  checks_story y;
  gck_status st = checks_ledger_story(l, t, record, &y, diag);
  if (st != GCK_OK || y.finding == NULL) return st;
  st = gck_record_text(&y.finding->what, diag,
                       "%s of a row depends on its batch, which was promised not to be: %" PRId64
                       " elements differ %s (%s, first %s of that batch); %d of %d batches: %s",
                       s->c->op->tensors[t].name, y.worst->elements, y.size, y.how, y.worst->first, y.differing,
                       checks_ledger_runs(l), y.ways);
  if (st != GCK_OK) return st;
  return gck_record_text(&y.finding->advice, diag,
                         "look for sums whose shape follows the number of rows, or leave out promises=");
}

static int all_runs(const checks_ledger *l)
{
  int runs = 0;
  for (int k = 0; k < l->count; k++)
    runs += l->line[k].runs;
  return runs;
}

static gck_status conclude(const gck_subject *s, const checks_ledger *l, gck_check_record *record, gck_diag *diag)
{
  char exceptions[1024];
  checks_say_exceptions(l, exceptions, sizeof exceptions);
  int failures = 0;
  gck_status st = checks_ledger_failures(l, record, &failures, diag);
  for (int t = 0; st == GCK_OK && t < GCK_MAX_TENSORS; t++)
    st = add_finding(s, l, t, record, diag);
  if (st != GCK_OK) return st;
  record->verdict = record->finding_count > 0 ? GCK_FAIL : all_runs(l) > 0 ? GCK_PASS : GCK_SKIPPED;
  return gck_record_text(&record->reason, diag, "%d other batches, bit by bit%s", all_runs(l), exceptions);
}

static gck_status skip(gck_check_record *record, const char *reason, gck_diag *diag)
{
  record->verdict = GCK_SKIPPED;
  return gck_record_text(&record->reason, diag, "%s", reason);
}

/* Some gradient must have the axis. */
static bool has_rowwise_gradient(const gck_case *c, int attribute)
{
  const char *dim = c->op->attributes[attribute].name;
  for (int t = 0; c->op->tensors[t].name != NULL; t++)
    if (c->op->tensors[t].role == GCK_ROLE_GRADIENT && axis_of(c, t, dim, c->attribute[attribute].integer) >= 0)
      return true;
  return false;
}

static gck_status run_all(gck_subject *s, const gck_options *o, int attribute, checks_ledger *l, gck_diag *diag)
{
  gck_status st = GCK_OK;
  for (int k = 0; st == GCK_OK && k < CHOICES; k++)
    if (!too_long(s, o, s->c->attribute[attribute].integer, &choices[k])) st = run_choice(s, attribute, k, l, diag);
  return st;
}

static gck_status run(gck_subject *s, const gck_options *o, gck_run *run_record, gck_check_record *record,
                      gck_diag *diag)
{
  (void)run_record;
  checks_ledger l;
  int attribute = batch_attribute(s->c);
  if (attribute < 0 || s->c->attribute[attribute].integer < 1) return skip(record, "there is no row", diag);
  if (!has_rowwise_gradient(s->c, attribute)) return skip(record, "no gradient has an axis of rows", diag);
  if (!gck_case_holds(s->c, s->c->op->alone_when))
    return skip(record, "a row's gradient depends on the other rows by definition here", diag);
  gck_status st = checks_ledger_make(&l, CHOICES, diag);
  if (st == GCK_OK) st = run_all(s, o, attribute, &l, diag);
  if (st == GCK_OK && l.count == 0)
    st = skip(record, "too large to run again in other batches", diag);
  else if (st == GCK_OK)
    st = checks_ledger_table(&l, s->c->op, "Rows in other batches, bit by bit", record, diag);
  if (st == GCK_OK && l.count > 0) st = conclude(s, &l, record, diag);
  checks_ledger_free(&l);
  return st;
}

const gck_check checks_batch = {
    .name = "batch",
    .question = "same row, same bits, in any batch?",
    .needs_kernel = true,
    .run = run,
};
