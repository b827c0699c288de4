/* Diagnoses: is what the kernel returned another simple function of the reference? Every candidate is put
 * to the same element test as the reference, over the elements that failed; one that passes there is the explanation,
 * and it is said whether the other elements agree with it too. */
#include "checks/diagnose.h"
#include "checks/accuse.h"
#include "checks/fit.h"

#include <math.h>
#include <stdio.h>

/* A candidate: value·scale + weight·term[k]; k < 0: no term. */
typedef struct candidate {
  double scale, weight;
  int term;
} candidate;

static checks_target changed(const checks_suspicion *s, candidate c, int64_t i)
{
  checks_target t = checks_target_of(s->e, i);
  double grown = fmax(1.0, fabs(c.scale));
  t.either = false;
  t.value *= c.scale;
  t.low *= c.scale;
  if (c.term >= 0) {
    double part = c.weight * s->e->term[c.term][i];
    t.value += part;
    t.own += 0x1p-52 * fabs(part);
    grown = fmax(grown, 1.0 + fabs(c.weight));
  }
  t.own *= grown;
  t.allowed *= grown;
  return t;
}

typedef struct fit {
  int64_t tried, explained;     /* among the failed elements */
  int64_t others, others_agree; /* among the rest */
  double ulps;
} fit;

/* Candidates that explain nothing are dropped at the first failed element that they miss. */
static fit fit_candidate(const checks_suspicion *s, candidate c)
{
  fit f = {0};
  for (int64_t i = 0; i < s->tally->count; i++) {
    uint8_t state = s->tally->state[i];
    if (state == CHECKS_NOT_DEFINED) continue;
    checks_target t = changed(s, c, i);
    bool good = checks_passes(checks_error(s->store, s->y[i], t), t);
    if (state == CHECKS_BAD) {
      f.tried += 1;
      f.explained += good;
      if (!good) return f;
      f.ulps = fmax(f.ulps, checks_ulps(s->store.dtype, s->y[i], t));
    } else {
      f.others += 1;
      f.others_agree += good;
    }
  }
  return f;
}

static bool explains(fit f)
{
  return f.tried > 0 && f.explained == f.tried;
}

static const char *extent(fit f)
{
  if (f.others == 0 || f.others_agree == f.others) return "";
  return " in the elements that are wrong";
}

/* How many failed elements hold a value for which `is` holds. */
static bool all_failed(const checks_suspicion *s, bool (*is)(double))
{
  for (int64_t i = 0; i < s->tally->count; i++) {
    if (s->tally->state[i] == CHECKS_BAD && !is(s->y[i])) return false;
  }
  return true;
}

static bool is_nan(double x)
{
  return isnan(x);
}

static bool is_infinite(double x)
{
  return isinf(x);
}

static bool is_zero(double x)
{
  return x == 0;
}

static bool diagnose_class(const checks_suspicion *s, checks_diagnosis *d)
{
  const char *each = s->tally->failed == 1 ? "the wrong element is" : "every wrong element is";
  if (all_failed(s, is_nan)) {
    (void)snprintf(d->text, sizeof d->text, "%s NaN", each);
    (void)snprintf(d->advice, sizeof d->advice,
                   "memory that was never written is NaN here; else look for 0/0, inf - inf, or the root of a "
                   "negative variance");
  } else if (all_failed(s, is_infinite)) {
    (void)snprintf(d->text, sizeof d->text, "%s infinite", each);
    (void)snprintf(d->advice, sizeof d->advice, "look for a division by zero or an overflow before the store");
  } else if (all_failed(s, is_zero)) {
    (void)snprintf(d->text, sizeof d->text, "%s 0", each);
    (void)snprintf(d->advice, sizeof d->advice,
                   "look for a store that is skipped after the buffer was cleared, or a loop bound");
  } else {
    return false;
  }
  return true;
}

static bool diagnose_sign(const checks_suspicion *s, checks_diagnosis *d)
{
  fit f = fit_candidate(s, (candidate){.scale = -1, .term = -1});
  if (!explains(f)) return false;
  (void)snprintf(d->text, sizeof d->text, "%s has the wrong sign%s", s->name, extent(f));
  return true;
}

/* Wrong formulas by name (reference/<op>_suspects.c). */
static gck_status diagnose_suspects(const checks_suspicion *s, checks_diagnosis *d, gck_diag *diag)
{
  checks_accusation a;
  gck_status st = checks_accuse(s, &a, diag);
  if (st != GCK_OK || a.suspect[0] == NULL) return st;
  const gck_suspect *first = a.suspect[0], *second = a.suspect[1];
  d->suspect[0] = first;
  d->suspect[1] = second;
  const char *where = a.everywhere ? "" : " in the elements that are wrong";
  size_t used = (size_t)snprintf(d->text, sizeof d->text, "%s is what a kernel returns %s", s->name, first->sentence);
  if (second != NULL && used < sizeof d->text)
    used += (size_t)snprintf(d->text + used, sizeof d->text - used, ", and %s", second->sentence);
  if (used < sizeof d->text && a.ulps <= 16)
    used += (size_t)snprintf(d->text + used, sizeof d->text - used, ", to %.2g ulp%s", a.ulps, where);
  else if (used < sizeof d->text)
    used +=
        (size_t)snprintf(d->text + used, sizeof d->text - used, ", which leaves %.2g of the error%s", a.left, where);
  if (a.rival != NULL && used < sizeof d->text)
    (void)snprintf(d->text + used, sizeof d->text - used, " (or, the same here, %s)", a.rival->sentence);
  (void)snprintf(d->advice, sizeof d->advice, "%s%s%s", first->advice, second != NULL ? "; " : "",
                 second != NULL ? second->advice : "");
  return GCK_OK;
}

/* One term missing, counted twice, or with the wrong sign. One or two elements fit too easily to be believed. */
static bool diagnose_terms(const checks_suspicion *s, checks_diagnosis *d)
{
  static const double weight[] = {-1, 1, -2};
  static const char *const how[] = {"without its term", "with twice its term", "with the wrong sign of its term"};
  if (s->tally->failed < 3 || s->e->term_count < 2) return false;
  for (int k = 0; k < s->e->term_count; k++) {
    for (int w = 0; w < 3; w++) {
      fit f = fit_candidate(s, (candidate){.scale = 1, .weight = weight[w], .term = k});
      if (!explains(f)) continue;
      const char *term = s->terms != NULL && s->terms[k] != NULL ? s->terms[k] : "?";
      (void)snprintf(d->text, sizeof d->text, "%s equals the reference %s %s (number %d of %d) to %.2g ulp%s", s->name,
                     how[w], term, k + 1, s->e->term_count, f.ulps, extent(f));
      return true;
    }
  }
  return false;
}

/* One factor for all failed elements. */
static bool diagnose_scale(const checks_suspicion *s, checks_diagnosis *d)
{
  double yv = 0;
  double vv = 0;
  for (int64_t i = 0; i < s->tally->count; i++) {
    if (s->tally->state[i] != CHECKS_BAD) continue;
    yv += s->y[i] * s->e->value[i];
    vv += s->e->value[i] * s->e->value[i];
  }
  double ratio = yv / vv;
  if (s->tally->failed < 8 || !isfinite(ratio)) return false;
  fit f = fit_candidate(s, (candidate){.scale = ratio, .term = -1});
  if (!explains(f)) return false;
  (void)snprintf(d->text, sizeof d->text, "%s is %.9g times what it must be%s", s->name, ratio, extent(f));
  return true;
}

/* Any other mixture of the terms: y − Σ factor·term within what each element may lose, for all that failed. */
static bool mixture_explains(const checks_suspicion *s, const checks_fit *f)
{
  int64_t failed = 0;
  for (int64_t i = 0; i < s->tally->count; i++) {
    if (s->tally->state[i] != CHECKS_BAD) continue;
    checks_target t = checks_target_of(s->e, i);
    double grown = 1;
    t.value = t.low = 0;
    for (int k = 0; k < f->terms; k++) {
      t.value += f->factor[k] * s->e->term[k][i];
      t.own += 4 * f->error[k] * fabs(s->e->term[k][i]);
      grown = fmax(grown, fabs(f->factor[k]));
    }
    t.allowed *= 2 * grown;
    if (!checks_passes(checks_error(s->store, s->y[i], t), t)) return false;
    failed += 1;
  }
  return failed >= 8;
}

static bool diagnose_mixture(const checks_suspicion *s, checks_diagnosis *d)
{
  checks_fit f;
  if (s->e->term_count < 2 || !checks_fit_terms(s->store, s->y, s->e, &f) || !mixture_explains(s, &f)) return false;
  size_t used = (size_t)snprintf(d->text, sizeof d->text, "the terms of %s do not enter once each:", s->name);
  for (int k = 0; k < f.terms && used < sizeof d->text; k++) {
    const char *term = s->terms != NULL && s->terms[k] != NULL ? s->terms[k] : "?";
    used += (size_t)snprintf(d->text + used, sizeof d->text - used, "%s %s enters %.6g times (± %.2g)",
                             k > 0 ? "," : "", term, f.factor[k], f.error[k]);
  }
  return true;
}

/* Where the right gradient holds exact zeros of its own, a wrong one is more likely a rule's other answer than a store
 * that was skipped. */
static bool zero_is_an_answer(const checks_suspicion *s)
{
  for (int64_t i = 0; i < s->tally->count; i++)
    if (s->e->value[i] == 0 && s->e->allowed[i] == 0) return all_failed(s, is_zero);
  return false;
}

gck_status checks_diagnose(const checks_suspicion *s, checks_diagnosis *d, gck_diag *diag)
{
  *d = (checks_diagnosis){"", "", {NULL, NULL}};
  bool late = zero_is_an_answer(s);
  if (s->tally->failed == 0 || (!late && diagnose_class(s, d)) || diagnose_sign(s, d)) return GCK_OK;
  gck_status st = diagnose_suspects(s, d, diag);
  if (st != GCK_OK || d->text[0] != '\0') return st;
  if (late && diagnose_class(s, d)) return GCK_OK;
  if (diagnose_terms(s, d) || diagnose_scale(s, d)) return GCK_OK;
  (void)diagnose_mixture(s, d);
  return GCK_OK;
}
