/* memory: does the kernel write all it must, and nothing else? Two runs start from two poisons, NaN and a huge finite
 * value; a bit that follows the poison was not written. Guard zones and inputs are compared by the runner. */
#include "checks/place.h"
#include "checks/subject.h"
#include "checks/table.h"

#include <stdlib.h>
#include <string.h>

enum { SAME, UNWRITTEN, DEPENDS };

static gck_status new_finding(gck_check_record *record, gck_finding **f, gck_diag *diag)
{
  record->verdict = GCK_FAIL;
  *f = gck_record_finding(record);
  return *f != NULL ? GCK_OK : gck_fail(diag, GCK_E_MEMORY, "report", NULL, "no memory for a finding");
}

/* ---- faults that the runner saw ---------------------------------------------------------------------------------- */

static gck_status add_fault(const gck_memory_fault *fault, gck_check_record *record, gck_diag *diag)
{
  gck_finding *f = NULL;
  gck_status st = new_finding(record, &f, diag);
  if (st == GCK_OK) st = gck_record_text(&f->where, diag, "%s", fault->tensor);
  if (st != GCK_OK) return st;
  long long at = (long long)fault->offset;
  if (fault->input_changed) {
    st = gck_record_text(&f->advice, diag, "inputs and cotangents belong to the caller, who may use them again");
    if (st != GCK_OK) return st;
    return gck_record_text(&f->what, diag, "the kernel changed its input %s, first at byte %lld", fault->tensor, at);
  }
  st = gck_record_text(&f->advice, diag, "look at the bounds of the last block and of vector-wide stores");
  if (st != GCK_OK) return st;
  const char *side = fault->padding  ? "between the elements of"
                     : fault->before ? "before the begin of"
                                     : "past the end of";
  return gck_record_text(&f->what, diag, "the kernel's %s wrote %s %s (first at byte %lld from its begin)",
                         fault->phase == GCK_PHASE_FORWARD ? "forward"
                         : fault->phase == GCK_PHASE_VJP   ? "vjp"
                                                           : "forward_vjp",
                         side, fault->tensor, at);
}

/* The second run repeats the first one's faults: only new places are told. */
static bool known(const gck_response *first, const gck_memory_fault *fault)
{
  for (int i = 0; i < first->fault_count; i++) {
    const gck_memory_fault *f = &first->fault[i];
    if (strcmp(f->tensor, fault->tensor) == 0 && f->before == fault->before &&
        f->input_changed == fault->input_changed && f->padding == fault->padding)
      return true;
  }
  return false;
}

static gck_status add_faults(const gck_response *response, const gck_response *first, gck_check_record *record,
                             gck_diag *diag)
{
  gck_status st = GCK_OK;
  for (int i = 0; st == GCK_OK && i < response->fault_count; i++) {
    if (first == NULL || !known(first, &response->fault[i])) st = add_fault(&response->fault[i], record, diag);
  }
  if (st != GCK_OK || !response->changed_fp || (first != NULL && first->changed_fp)) return st;
  gck_finding *f = NULL;
  st = new_finding(record, &f, diag);
  if (st == GCK_OK) st = gck_record_text(&f->where, diag, "the process");
  if (st == GCK_OK) st = gck_record_text(&f->what, diag, "the kernel left another floating-point control word behind");
  if (st == GCK_OK)
    st = gck_record_text(&f->advice, diag,
                         "look for flush-to-zero or rounding modes; -ffast-math at link time sets them");
  return st;
}

/* ---- bits that follow the poison --------------------------------------------------------------------------------- */

/* The element holds this poison still. */
static bool holds_poison(const gck_tensor *t, int64_t i, gck_poison poison)
{
  uint64_t word = gck_poison_word(t->dtype, poison);
  return memcmp(gck_tensor_at(t, i), &word, gck_dtype_format(t->dtype)->bytes) == 0;
}

static gck_poison other_poison(gck_poison poison)
{
  return poison == GCK_POISON_NAN ? GCK_POISON_HUGE : GCK_POISON_NAN;
}

static bool same_bits(const gck_tensor *a, const gck_tensor *b, int64_t i)
{
  size_t bytes = gck_dtype_format(a->dtype)->bytes;
  return memcmp(gck_tensor_at(a, i), gck_tensor_at(b, i), bytes) == 0;
}

/* `first` ran over memory full of `poison`, `second` over the other. */
static void mark_differences(const gck_tensor *first, const gck_tensor *second, gck_poison poison, bool deterministic,
                             uint8_t *mark, int64_t *unwritten, int64_t *depends)
{
  int64_t count = gck_tensor_count(first);
  for (int64_t i = 0; i < count; i++) {
    mark[i] = SAME;
    if (same_bits(first, second, i)) continue;
    if (holds_poison(first, i, poison) && holds_poison(second, i, other_poison(poison)))
      mark[i] = UNWRITTEN;
    else if (deterministic)
      mark[i] = DEPENDS;
    *unwritten += mark[i] == UNWRITTEN;
    *depends += mark[i] == DEPENDS;
  }
}

static gck_status say(const gck_subject *s, int t, const uint8_t *mark, uint8_t kind, gck_check_record *record,
                      gck_diag *diag)
{
  checks_axes axes = checks_axes_of(s->c, t);
  checks_place place;
  gck_finding *f = NULL;
  gck_status st = checks_find_place(&axes, mark, kind, &place, diag);
  if (st == GCK_OK) st = new_finding(record, &f, diag);
  if (st == GCK_OK) st = gck_record_text(&f->where, diag, "%s", place.where);
  if (st != GCK_OK) return st;
  f->size = (double)place.marked;
  char first[96];
  checks_name_element(&axes, place.first, first, sizeof first);
  const char *verb = place.single || place.slice ? "was" : "were";
  if (kind == DEPENDS)
    return gck_record_text(&f->what, diag,
                           "%s changed with the memory that the kernel was given: it read what it never wrote "
                           "(first %s)",
                           place.where, first);
  st = gck_record_text(&f->advice, diag, "look at the grid's size and at early returns: no thread stores there");
  if (st != GCK_OK) return st;
  return gck_record_text(&f->what, diag, "%s %s never written: the memory's old content is still there (first %s)",
                         place.where, verb, first);
}

static gck_status compare_tensor(const gck_subject *s, int t, const gck_tensor *other, gck_check_record *record,
                                 gck_diag *diag)
{
  const gck_tensor *mine = &s->result[t];
  int64_t count = gck_tensor_count(mine);
  if (count == 0 || gck_tensor_count(other) != count || other->dtype != mine->dtype) return GCK_OK;
  uint8_t *mark = calloc((size_t)count, 1);
  if (mark == NULL)
    return gck_fail(diag, GCK_E_MEMORY, "memory", NULL, "no memory for a map of %lld", (long long)count);
  int64_t unwritten = 0;
  int64_t depends = 0;
  mark_differences(mine, other, checks_request(s).poison, s->declaration.deterministic, mark, &unwritten, &depends);
  gck_status st = GCK_OK;
  if (unwritten > 0) st = say(s, t, mark, UNWRITTEN, record, diag);
  if (st == GCK_OK && depends > 0) st = say(s, t, mark, DEPENDS, record, diag);
  free(mark);
  return st;
}

static gck_status compare(const gck_subject *s, const gck_response *other, gck_check_record *record, gck_diag *diag)
{
  gck_status st = add_faults(&s->response, NULL, record, diag);
  if (st == GCK_OK) st = add_faults(other, &s->response, record, diag);
  int count = gck_op_tensor_count(s->c->op);
  for (int t = 0; st == GCK_OK && t < count; t++) {
    if (s->result[t].dtype == GCK_DTYPE_NONE || other->tensors[t].dtype == GCK_DTYPE_NONE) continue;
    st = compare_tensor(s, t, &other->tensors[t], record, diag);
  }
  if (st == GCK_OK && record->verdict == GCK_VERDICT_NONE) record->verdict = GCK_PASS;
  return st;
}

static gck_status run(gck_subject *s, const gck_options *o, gck_run *run_record, gck_check_record *record,
                      gck_diag *diag)
{
  (void)o;
  (void)run_record;
  gck_request request = checks_request(s);
  request.poison = other_poison(request.poison);
  gck_response *other = calloc(1, sizeof *other);
  if (other == NULL) return gck_fail(diag, GCK_E_MEMORY, "memory", NULL, "no memory for a second run");
  gck_status st = gck_runner_run(s->runner, &request, other, diag);
  if (st == GCK_OK && other->code != GCK_KERNEL_OK) {
    gck_finding *f = NULL;
    st = new_finding(record, &f, diag);
    if (st == GCK_OK) st = gck_record_text(&f->where, diag, "the kernel");
    if (st == GCK_OK)
      st = gck_record_text(&f->what, diag, "a second run, over memory with other contents, failed: %s", other->message);
  } else if (st == GCK_OK) {
    st = compare(s, other, record, diag);
  }
  gck_response_free(other);
  free(other);
  return st;
}

const gck_check checks_memory = {
    .name = "memory",
    .question = "does it write all it must and nothing else?",
    .needs_kernel = true,
    .run = run,
};
