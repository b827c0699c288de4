/* Flat or not: the forward of an op whose gradient is a rule instead of a derivative. */
#include "checks/flat.h"
#include "checks/place.h"
#include "checks/score.h"

#include <math.h>
#include <stdio.h>

void checks_flatness_add(checks_flatness *f, const checks_ladder *l, int64_t element)
{
  double slope = fabs(l->central[CHECKS_LEVELS - 1]);
  if (!isfinite(slope)) return; /* an element that is not finite moves nowhere */
  switch (checks_rise_of(l)) {
  case CHECKS_FLAT:
    f->flat += 1;
    return;
  case CHECKS_STEP:
    f->steps += 1;
    return;
  case CHECKS_SLOPED:
    break;
  }
  f->sloped += 1;
  f->mark[element] = CHECKS_BAD;
  if (f->worst >= 0 && slope <= f->slope) return;
  f->worst = element;
  f->slope = slope;
}

static gck_status add_finding(const checks_flatness *f, gck_check_record *record, gck_diag *diag)
{
  checks_axes axes = checks_axes_of(f->c, f->gradient);
  checks_place place;
  char element[96];
  gck_status st = checks_find_place(&axes, f->mark, CHECKS_BAD, &place, diag);
  if (st != GCK_OK) return st;
  gck_finding *finding = gck_record_finding(record);
  if (finding == NULL) return gck_fail(diag, GCK_E_MEMORY, "report", NULL, "no memory for a finding");
  record->verdict = GCK_FAIL;
  finding->size = f->slope;
  checks_name_element(&axes, f->worst, element, sizeof element);
  st = gck_record_text(&finding->where, diag, "%s", place.where);
  if (st == GCK_OK)
    st = gck_record_text(&finding->what, diag,
                         "the kernel's forward must be flat but for its steps, and rises by %.9g at %s; it rises at "
                         "%lld elements in all",
                         f->slope, element, (long long)f->sloped);
  if (st == GCK_OK) st = gck_record_text(&finding->advice, diag, "the forward does not round where it must");
  return st;
}

gck_status checks_flatness_tell(const checks_flatness *f, gck_check_record *record, gck_diag *diag)
{
  char text[256];
  const char *name = f->c->op->tensors[f->gradient].name;
  if (f->sloped > 0) return add_finding(f, record, diag);
  record->verdict = gck_verdict_join(record->verdict, f->flat > 0 ? GCK_PASS : GCK_UNDEFINED);
  int used =
      snprintf(text, sizeof text,
               "%s is a rule: the forward's own derivative is 0 at %lld elements, as it must be almost everywhere",
               name, (long long)f->flat);
  if (f->steps > 0 && used > 0 && (size_t)used < sizeof text)
    (void)snprintf(text + used, sizeof text - (size_t)used, ", and it steps at %lld", (long long)f->steps);
  return gck_record_more(&record->reason, diag, text);
}
