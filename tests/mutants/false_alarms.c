/* Random sound cases, judged as a user would: no verdict may be fail. Ops, options, sizes, types, families and kernels
 * are drawn by a seed; a case that fails is printed as the line that repeats it.
 *
 *   false_alarms LIBRARY CASES SECONDS SEED      up to so many cases or seconds; exit 1 if one fails
 *
 * Sound kernels are the library's sound.* and, for every eighth case, the built-in kernel on the host device. At the
 * end stands how the bias check's p-values are distributed: sound arithmetic must not put more than its share below any
 * level. */
#include "checks/check.h"
#include "core/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_KERNELS = 512, ELEMENTS = 1 << 13, LEVELS = 5, BINS = 10 };

typedef struct sound {
  const gck_library *library;
  const gck_kernel *kernel;
} sound;

typedef struct hunt {
  sound kernel[MOST_KERNELS];
  int kernels;
  gck_library *mutants, *builtin;
  uint64_t seed;
  int64_t cases;
  int64_t verdicts[GCK_SKIPPED + 1];
  int64_t alarms, gradients, elements;
  int64_t bin[BINS], below[LEVELS], p_values;
} hunt;

static const double level[LEVELS] = {1e-1, 1e-2, 1e-3, 1e-4, 1e-6};

static double now(void)
{
  struct timespec t = {0};
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- drawing a case --------------------------------------------------------------------------------------------- */

typedef struct dice {
  gck_stream stream;
  uint64_t thrown;
} dice;

static int64_t below(dice *d, int64_t n)
{
  return (int64_t)gck_random_below(d->stream, d->thrown++, (uint64_t)n);
}

static int64_t draw_size(dice *d)
{
  static const int64_t sizes[] = {1, 2, 3, 5, 7, 8, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 96, 127, 128, 129, 257};
  return sizes[below(d, (int64_t)(sizeof sizes / sizeof *sizes))];
}

/* A value of one attribute, or "" for its default. */
static void draw_attribute(dice *d, const gck_attribute_spec *a, char *out, size_t bytes)
{
  static const double factor[] = {0.5, 2, 0.125, 8};
  int words = 0;
  out[0] = '\0';
  while (a->words != NULL && a->words[words] != NULL)
    words++;
  if (a->kind == GCK_ATTR_SIZE)
    (void)snprintf(out, bytes, "%lld", (long long)draw_size(d));
  else if (a->kind == GCK_ATTR_FLAG && below(d, 2) == 1)
    (void)snprintf(out, bytes, "%s", strcmp(a->fallback, "yes") == 0 ? "no" : "yes");
  else if (a->kind == GCK_ATTR_WORD && words > 0)
    (void)snprintf(out, bytes, "%s", a->words[below(d, words)]);
  else if (a->kind == GCK_ATTR_REAL && below(d, 3) == 0)
    (void)snprintf(out, bytes, "%g", strtod(a->fallback, NULL) * factor[below(d, 4)]);
}

static int64_t elements_of(const gck_case *c)
{
  int64_t total = 0;
  for (int t = 0; c->op->tensors[t].name != NULL; t++)
    total += c->present[t] ? gck_case_count(c, t) : 0;
  return total;
}

static void draw_family(dice *d, gck_case *c)
{
  int count = 0;
  while (gck_families()[count] != NULL)
    count++;
  const gck_family *f = gck_families()[below(d, count)];
  if (gck_family_applies(f, c)) c->values = f;
}

/* Words that do not go together are drawn again. */
static bool draw_case(dice *d, const gck_kernel *k, gck_case *c)
{
  static const char *const dtypes[] = {"f64", "f32", "bf16", "f16"};
  const gck_op *op = gck_op_find(k->op);
  gck_diag ignored = {0};
  char text[64];
  gck_case_start(c, op);
  for (const gck_attribute_spec *a = op->attributes; a->name != NULL; a++) {
    draw_attribute(d, a, text, sizeof text);
    if (text[0] != '\0' && gck_case_set(c, a->name, text, &ignored) != GCK_OK) return false;
  }
  const char *dtype = dtypes[below(d, 4)];
  if (strstr(k->dtypes, dtype) == NULL || gck_case_set(c, "dtype", dtype, &ignored) != GCK_OK) return false;
  (void)snprintf(text, sizeof text, "%llu", (unsigned long long)gck_random_bits(d->stream, d->thrown++));
  if (gck_case_set(c, "seed", text, &ignored) != GCK_OK || gck_case_resolve(c, &ignored) != GCK_OK) return false;
  if (elements_of(c) > ELEMENTS || elements_of(c) == 0) return false;
  draw_family(d, c);
  return true;
}

/* ---- judging ---------------------------------------------------------------------------------------------------- */

/* Ordinary values only: where a family makes rows alike their roundings agree, and the floor speaks for them instead.
 * p = 1 is an error of exactly nothing. */
static void count_p(hunt *h, double p, const char *line)
{
  if (isnan(p) || p >= 1 || strstr(line, " values=") != NULL) return;
  int bin = (int)(p * BINS);
  h->p_values += 1;
  h->bin[bin < BINS ? bin : BINS - 1] += 1;
  for (int k = 0; k < LEVELS; k++)
    h->below[k] += p < level[k];
}

static void count_run(hunt *h, const gck_run *run)
{
  h->verdicts[run->verdict] += 1;
  for (size_t g = 0; g < run->gradient_count; g++) {
    h->gradients += run->gradient[g].verdict == GCK_PASS;
    h->elements += run->gradient[g].compared;
    count_p(h, run->gradient[g].bias_p, run->line);
  }
  if (run->verdict != GCK_FAIL) return;
  h->alarms += 1;
  printf("false alarm: %s (%s, %s): %s\n", run->line, run->kernel, run->device, run->reason != NULL ? run->reason : "");
}

static gck_status judge(hunt *h, const sound *s, const gck_case *c, gck_diag *diag)
{
  static const char *const only[] = {"discrepancy", "bias", "forward", NULL};
  gck_runner *runner = NULL;
  gck_report report = {0};
  const gck_options options = {.only = only, .seed = 1, .budget_seconds = 1, .planned_tests = 100000};
  gck_status st = gck_runner_open(s->library, s->kernel->op, s->kernel->name, c->dtype, &runner, diag);
  if (st == GCK_OK) st = gck_judge_case(c, runner, NULL, &options, &report, diag);
  for (size_t r = 0; st == GCK_OK && r < report.run_count; r++)
    count_run(h, &report.run[r]);
  gck_runner_close(runner);
  gck_report_free(&report);
  return st;
}

static gck_status hunt_one(hunt *h, int64_t number, gck_diag *diag)
{
  dice d = {.stream = gck_stream_named(h->seed + (uint64_t)number, "false alarms")};
  gck_case c;
  const sound *s;
  do {
    s = &h->kernel[below(&d, h->kernels)];
    bool host = s->library == h->builtin;
    if (host && below(&d, 2) == 0) continue; /* slower by far: a share of them is enough */
    if (draw_case(&d, s->kernel, &c)) break;
  } while (true);
  h->cases += 1;
  return judge(h, s, &c, diag);
}

/* ---- the program ------------------------------------------------------------------------------------------------ */

static void add_kernels(hunt *h, const gck_library *library, const char *prefix)
{
  for (size_t k = 0; k < gck_library_kernel_count(library) && h->kernels < MOST_KERNELS; k++) {
    const gck_kernel *kernel = gck_library_kernel(library, k);
    if (strncmp(kernel->name, prefix, strlen(prefix)) == 0) h->kernel[h->kernels++] = (sound){library, kernel};
  }
}

static void tell(const hunt *h, double seconds)
{
  printf(
      "%lld cases in %.0f s, %d kernels, seed %llu: %lld pass, %lld undefined, %lld vacuous, %lld skipped, %lld fail\n",
      (long long)h->cases, seconds, h->kernels, (unsigned long long)h->seed, (long long)h->verdicts[GCK_PASS],
      (long long)h->verdicts[GCK_UNDEFINED], (long long)h->verdicts[GCK_VACUOUS], (long long)h->verdicts[GCK_SKIPPED],
      (long long)h->verdicts[GCK_FAIL]);
  printf("%lld gradients passed, %lld elements compared, %lld false alarms\n", (long long)h->gradients,
         (long long)h->elements, (long long)h->alarms);
  printf("bias: %lld p-values over ordinary values; by tenths:", (long long)h->p_values);
  for (int k = 0; k < BINS; k++)
    printf(" %.3f", h->p_values > 0 ? (double)h->bin[k] / (double)h->p_values : 0);
  printf("\nbias: share below");
  for (int k = 0; k < LEVELS; k++)
    printf("%s %g: %.2g", k > 0 ? "," : "", level[k], h->p_values > 0 ? (double)h->below[k] / (double)h->p_values : 0);
  printf("\n");
}

int main(int argc, char **argv)
{
  static hunt h;
  gck_diag diag = {0};
  bool changed = false;
  if (argc < 5) {
    fprintf(stderr, "false_alarms LIBRARY CASES SECONDS SEED\n");
    return 2;
  }
  h.seed = strtoull(argv[4], NULL, 10);
  gck_status st = gck_library_open(argv[1], "cpu", &h.mutants, &changed, &diag);
  if (st == GCK_OK) st = gck_library_open(NULL, "host", &h.builtin, &changed, &diag);
  if (st == GCK_OK) add_kernels(&h, h.mutants, "sound.");
  if (st == GCK_OK) add_kernels(&h, h.builtin, "");
  double begin = now(), limit = strtod(argv[3], NULL);
  int64_t most = strtoll(argv[2], NULL, 10);
  for (int64_t k = 0; st == GCK_OK && k < most && now() - begin < limit; k++)
    st = hunt_one(&h, k, &diag);
  tell(&h, now() - begin);
  if (st != GCK_OK) fprintf(stderr, "%s: %s\n", diag.where, diag.text);
  gck_library_close(h.mutants);
  gck_library_close(h.builtin);
  return st != GCK_OK ? 3 : h.alarms > 0 || h.verdicts[GCK_PASS] == 0 ? 1 : 0;
}
