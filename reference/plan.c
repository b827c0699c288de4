/* Before MPFR starts: what it will cost, and what a sample may miss. The estimate is counted, not timed, so that the
 * same case and budget give the same sample on every machine with as many cores. */
#include "core/random.h"
#include "reference/crew.h"
#include "reference/reference.h"
#include "reference/slices.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One multiply-add at 256 bits and one at 320 (ziv.h), with their share of everything else; measured on one core of an
 * AMD EPYC with MPFR 4.2.0: LayerNorm dx 64 × 768 takes 103 ms of processor time for 49152 · 20 operations. */
static const double SECONDS_AN_OPERATION = 110e-9;

typedef struct estimate {
  const gck_problem *p;
  const gck_reference *reference;
  int gradient;
  slice_map map;
  int threads;
} estimate;

/* Operations of one core that computes `elements` elements in `slices` slices. An op without its own count is charged
 * its flops in full. */
static double operations(const estimate *e, double slices, double elements)
{
  const gck_case *c = e->p->c;
  if (e->reference != NULL && e->reference->operations != NULL) {
    return e->reference->operations(c, e->gradient, slices, elements);
  }
  double forward = 0.0, vjp = 0.0, bytes = 0.0;
  if (c->op->cost != NULL) c->op->cost(c, &forward, &vjp, &bytes);
  const double part = e->map.sliced && e->map.slices > 0 ? slices / (double)e->map.slices : 1.0;
  return (forward + vjp) * part + elements;
}

/* Slices are shared out among the cores; where a gradient sums over slices every core pays for all of them. */
static double seconds(const estimate *e, double slices, double elements)
{
  const double threads = e->threads;
  if (e->map.sliced && e->map.slices > 1) {
    const double used = fmin(threads, fmax(1.0, slices));
    return SECONDS_AN_OPERATION * operations(e, slices, elements) / used;
  }
  return SECONDS_AN_OPERATION * operations(e, slices, ceil(elements / threads));
}

static double sample_seconds(const estimate *e, int64_t slices, int64_t sample)
{
  return seconds(e, (double)(slices < sample ? slices : sample), (double)sample);
}

/* The largest sample whose time stays within the budget; at least one element. */
static int64_t fit_sample(const estimate *e, int64_t slices, int64_t wanted, double budget)
{
  int64_t low = 1, high = wanted;
  while (low < high) {
    const int64_t middle = low + (high - low + 1) / 2;
    if (sample_seconds(e, slices, middle) <= budget)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

/* log Γ without the global sign. */
static double log_gamma(double x)
{
  int sign;
  return lgamma_r(x, &sign);
}

double gck_miss_probability(int64_t population, int64_t faulty, int64_t sample)
{
  if (faulty <= 0 || sample <= 0) return 1.0;
  if (sample > population - faulty) return 0.0;
  const double N = (double)population, F = (double)faulty, k = (double)sample;
  /* Few draws against many elements: the sum of logarithms loses less than log Γ at large arguments. */
  if (sample <= 4096) {
    double sum = 0.0;
    for (int64_t i = 0; i < sample; i++)
      sum += log1p(-F / (N - (double)i));
    return exp(sum);
  }
  const double log_miss = log_gamma(N - F + 1) - log_gamma(N - F - k + 1) - log_gamma(N + 1) + log_gamma(N - k + 1);
  return fmin(1.0, exp(log_miss));
}

gck_escalation_plan gck_plan_escalation(const gck_problem *p, int gradient, const uint8_t *wanted, double budget,
                                        double fault_fraction)
{
  const int64_t count = gck_case_count(p->c, gradient);
  const estimate e = {.p = p,
                      .reference = gck_reference_find(p->c->op->name),
                      .gradient = gradient,
                      .map = slices_of(p->c, gradient),
                      .threads = crew_cores()};
  gck_escalation_plan plan = {.threads = e.threads, .fault_fraction = fault_fraction, .wanted = 0};
  for (int64_t i = 0; i < count; i++)
    plan.wanted += wanted == NULL || wanted[i] != 0;
  if (plan.wanted == 0) return plan;
  plan.slices = slices_touched(&e.map, wanted, count);
  plan.seconds_all = seconds(&e, (double)plan.slices, (double)plan.wanted);
  plan.sample = plan.wanted;
  plan.seconds = plan.seconds_all;
  if (plan.seconds_all > budget) {
    plan.sample = fit_sample(&e, plan.slices, plan.wanted, budget);
    plan.seconds = sample_seconds(&e, plan.slices, plan.sample);
  }
  /* A fault touches a whole number of elements, at least one. */
  const int64_t faulty = (int64_t)fmax(1.0, floor(fault_fraction * (double)plan.wanted));
  plan.miss = gck_miss_probability(plan.wanted, faulty, plan.sample);
  return plan;
}

void gck_plan_sample(const gck_problem *p, int gradient, const uint8_t *wanted, const gck_escalation_plan *plan,
                     uint64_t seed, uint8_t *chosen)
{
  /* Selection sampling (Knuth, The Art of Computer Programming 2, 3.4.2, algorithm S): exactly `sample` elements, every
   * subset equally likely. */
  const gck_stream stream = gck_stream_named(seed, p->c->op->tensors[gradient].name);
  const int64_t count = gck_case_count(p->c, gradient);
  int64_t left = plan->wanted, needed = plan->sample;
  for (int64_t i = 0; i < count; i++) {
    chosen[i] = 0;
    if (wanted != NULL && wanted[i] == 0) continue;
    if (needed > 0 && gck_random_below(stream, (uint64_t)i, (uint64_t)left) < (uint64_t)needed) {
      chosen[i] = 1;
      needed--;
    }
    left--;
  }
}
