/* Slice by slice and part by part: split, recognize, and say what all of them share. */
#include "checks/discover.h"
#include "checks/recognize.h"
#include "checks/units.h"
#include "reference/ball.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PARTS = 256 };

typedef struct search {
  const gck_case *c;
  gck_runner *runner;
  gck_discovery *out;
  int gradient;
  gck_tensor tensors[GCK_MAX_TENSORS];
  checks_units units;
  slice_map map; /* of the gradient */
  checks_matrix j[GCK_DISCOVERY_SLICES], radius[GCK_DISCOVERY_SLICES];
  double *x; /* the input, slice after slice */
  int64_t n;
  int64_t part[CHECKS_MATRIX_MAX], parts;
  checks_traits trait[MAX_PARTS];
  int64_t traits;
  int64_t size; /* of a part; 0 if they differ */
  double residual, noise;
} search;

static void say(search *s, const char *format, ...) GCK_PRINTF(2, 3);
static void say(search *s, const char *format, ...)
{
  va_list args;
  if (s->out->lines == GCK_DISCOVERY_LINES) return;
  va_start(args, format);
  (void)vsnprintf(s->out->line[s->out->lines++], GCK_DISCOVERY_BYTES, format, args);
  va_end(args);
}

/* ---- the Jacobians ----------------------------------------------------------------------------------------------- */

static int first_of(const gck_case *c, gck_role role)
{
  for (int t = 0; c->op->tensors[t].name != NULL; t++)
    if (c->present[t] && c->op->tensors[t].role == role) return t;
  return -1;
}

static gck_status prepare(search *s, gck_diag *diag)
{
  int cotangent = first_of(s->c, GCK_ROLE_COTANGENT);
  s->gradient = first_of(s->c, GCK_ROLE_GRADIENT);
  if (s->gradient < 0 || cotangent < 0)
    return gck_fail(diag, GCK_E_UNSUPPORTED, "structure", NULL, "the op has no gradient and cotangent");
  gck_status st = gck_case_draw(s->c, s->tensors, diag);
  if (st == GCK_OK) st = checks_units_make(&s->units, s->c, s->tensors, cotangent, diag);
  if (st != GCK_OK) return st;
  s->map = slices_of(s->c, s->gradient);
  s->n = s->units.map.inside;
  if (s->n < 1 || !s->map.sliced || s->map.inside != s->n || s->n > CHECKS_MATRIX_MAX)
    return gck_fail(diag, GCK_E_WORDS, "structure", "choose sizes so that one slice has 2 to 64 elements",
                    "one slice's Jacobian is not square, or larger than %d", CHECKS_MATRIX_MAX);
  if (s->map.slices < GCK_DISCOVERY_SLICES)
    return gck_fail(diag, GCK_E_WORDS, "structure", "rows=3", "it takes %d generic slices, this case has %lld",
                    GCK_DISCOVERY_SLICES, (long long)s->map.slices);
  for (int k = 0; st == GCK_OK && k < GCK_DISCOVERY_SLICES; k++) {
    st = checks_matrix_make(&s->j[k], s->n, s->n, diag);
    if (st == GCK_OK) st = checks_matrix_make(&s->radius[k], s->n, s->n, diag);
  }
  return st;
}

static bool collect(search *s, const gck_tensor *result, int64_t first)
{
  int64_t count = gck_case_count(s->c, s->gradient);
  bool finite = true;
  for (int64_t lane = 0; lane < s->units.lanes.lanes; lane++) {
    for (int64_t i = 0; i < count; i++) {
      int64_t slice = slices_number(&s->map, i);
      if (slice >= GCK_DISCOVERY_SLICES) continue;
      double y = gck_tensor_get(result, checks_lane_element(&s->units.lanes, s->gradient, lane, i));
      finite = finite && isfinite(y);
      *checks_entry(&s->j[slice], slices_inside(&s->map, i), first + lane) = y;
    }
  }
  return finite;
}

static gck_status launch(search *s, gck_tensor *tensors, int64_t first, gck_diag *diag)
{
  gck_response response;
  memset(&response, 0, sizeof response);
  gck_request request = {.c = &s->units.lanes.c, .forward = true, .vjp = true, .tensors = tensors};
  gck_status st = checks_units_set(&s->units, tensors, first, diag);
  if (st == GCK_OK) st = gck_runner_run(s->runner, &request, &response, diag);
  if (st == GCK_OK && response.code != GCK_KERNEL_OK)
    st = gck_fail(diag, response.code == GCK_KERNEL_UNSUPPORTED ? GCK_E_UNSUPPORTED : GCK_E_KERNEL,
                  gck_runner_kernel(s->runner)->name, NULL, "%s", response.message);
  if (st == GCK_OK && !collect(s, &response.tensors[s->gradient], first))
    st = gck_fail(diag, GCK_E_UNSUPPORTED, "structure", NULL, "the Jacobian has entries that are not finite");
  gck_response_free(&response);
  return st;
}

static gck_status launch_all(search *s, gck_diag *diag)
{
  gck_tensor tensors[GCK_MAX_TENSORS];
  memset(tensors, 0, sizeof tensors);
  gck_status st = GCK_OK;
  for (int64_t first = 0; st == GCK_OK && first < s->n; first += s->units.lanes.lanes)
    st = launch(s, tensors, first, diag);
  for (int t = 0; t < GCK_MAX_TENSORS; t++)
    gck_tensor_free(&tensors[t]);
  return st;
}

/* Without a reference an entry may be off by what a sum of n terms as large as the largest of its row or column loses,
 * and by its store. What all entries of a row share (its mean, its 1/s) keeps the shape and does not count. */
static void bound(const search *s, const checks_matrix *j, checks_matrix *radius)
{
  gck_arith k = gck_arith_of(gck_runner_declaration(s->runner), s->c->dtype);
  gck_dtype stored = s->c->tensor_dtype[s->gradient];
  double lost = gck_growth(&k, (double)s->n) + 4 * k.u;
  for (int64_t i = 0; i < s->n; i++) {
    for (int64_t q = 0; q < s->n; q++) {
      double largest = fabs(*checks_entry(j, i, q));
      for (int64_t r = 0; r < s->n; r++) {
        if (r != q && r != i) largest = fmax(largest, fabs(*checks_entry(j, i, r)));
        if (r != i && r != q) largest = fmax(largest, fabs(*checks_entry(j, r, q)));
      }
      double entry = *checks_entry(j, i, q);
      *checks_entry(radius, i, q) =
          entry == 0 && largest == 0 ? 0 : lost * largest + gck_half_gap(stored, entry, 0) + k.eta;
    }
  }
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

static bool same_parts(const search *s, int slice)
{
  int64_t part[CHECKS_MATRIX_MAX];
  (void)checks_parts(&s->j[slice], part);
  return memcmp(part, s->part, (size_t)s->n * sizeof *part) == 0;
}

static int64_t members(const search *s, int64_t number, int64_t *index)
{
  int64_t count = 0;
  for (int64_t i = 0; i < s->n; i++)
    if (s->part[i] == number) index[count++] = i;
  return count;
}

static gck_status study_part(search *s, int slice, int64_t number, const char **why, gck_diag *diag)
{
  int64_t index[CHECKS_MATRIX_MAX], n = members(s, number, index);
  double x[CHECKS_MATRIX_MAX];
  checks_matrix j = {0}, radius = {0};
  checks_split split = {0};
  for (int64_t i = 0; i < n; i++)
    x[i] = s->x[slice * s->n + index[i]];
  gck_status st = checks_submatrix(&j, &s->j[slice], index, n, diag);
  if (st == GCK_OK) st = checks_submatrix(&radius, &s->radius[slice], index, n, diag);
  if (st == GCK_OK) st = checks_split_make(&split, &j, &radius, diag);
  if (st == GCK_OK && split.rank < 0) *why = split.why;
  if (st == GCK_OK && split.rank >= 0 && s->traits < MAX_PARTS) {
    checks_recognize(&split, x, &s->trait[s->traits++]);
    s->residual = fmax(s->residual, split.residual);
    s->noise = fmax(s->noise, split.noise);
  }
  checks_split_free(&split);
  checks_matrix_free(&j);
  checks_matrix_free(&radius);
  return st;
}

static gck_status study(search *s, const char **why, gck_diag *diag)
{
  gck_status st = GCK_OK;
  int64_t index[CHECKS_MATRIX_MAX];
  s->parts = checks_parts(&s->j[0], s->part);
  s->size = members(s, 0, index);
  for (int64_t k = 1; k < s->parts; k++)
    if (members(s, k, index) != s->size) s->size = 0;
  for (int slice = 0; st == GCK_OK && *why == NULL && slice < GCK_DISCOVERY_SLICES; slice++) {
    if (!same_parts(s, slice)) *why = "the zeros differ from slice to slice";
    for (int64_t k = 0; st == GCK_OK && *why == NULL && s->size != 1 && k < s->parts; k++)
      st = study_part(s, slice, k, why, diag);
  }
  return st;
}

/* ---- what all share ---------------------------------------------------------------------------------------------- */

static bool alike(const search *s)
{
  const checks_traits *a = &s->trait[0];
  for (int64_t k = 1; k < s->traits; k++) {
    const checks_traits *b = &s->trait[k];
    if (a->rank != b->rank || a->diagonal != b->diagonal) return false;
    if (strcmp(a->left, b->left) != 0 || strcmp(a->right, b->right) != 0) return false;
  }
  return true;
}

static double statistic(const checks_traits *t, int which)
{
  return which == 0 ? t->variance : which == 1 ? t->mean_square : t->sum_square;
}

/* 1/a² − statistic: the same number ε in all parts, or it is another statistic. `slack` gets how far it may be off. */
static double left_over(const checks_traits *t, int which, double *slack)
{
  double square = 1 / (t->factor * t->factor), of = statistic(t, which);
  *slack = 2 * t->slack / fabs(t->factor) * square + t->x_slack * of;
  return square - of;
}

static bool scaled_by(const search *s, int which, double *epsilon, double *slack)
{
  *epsilon = left_over(&s->trait[0], which, slack);
  if (*epsilon < -*slack) return false;
  for (int64_t k = 1; k < s->traits; k++) {
    double other, e = left_over(&s->trait[k], which, &other);
    if (!(fabs(e - *epsilon) <= other + *slack)) return false;
  }
  return true;
}

static bool one_factor(const search *s)
{
  for (int64_t k = 1; k < s->traits; k++)
    if (!(fabs(s->trait[k].factor - s->trait[0].factor) <= s->trait[k].slack + s->trait[0].slack)) return false;
  return true;
}

/* ", scaled 1/s" and the line that says what s is. */
static void name_scale(search *s, char *text, size_t bytes)
{
  static const char *const name[] = {"s", "rms(x)", "norm(x)"}, *const of[] = {"var(x)", "mean(x^2)", "sum(x^2)"};
  const checks_traits *t = &s->trait[0];
  text[0] = '\0';
  if (t->diagonal == CHECKS_DIAGONAL_OTHER) return;
  if (one_factor(s)) {
    if (fabs(t->factor - 1) > t->slack) (void)snprintf(text, bytes, ", scaled %.6g", t->factor);
    return;
  }
  for (int which = 0; t->diagonal == CHECKS_DIAGONAL_CONSTANT && which < 3; which++) {
    double epsilon, slack;
    if (!scaled_by(s, which, &epsilon, &slack)) continue;
    (void)snprintf(text, bytes, ", scaled 1/%s", name[which]);
    if (fabs(epsilon) <= slack)
      say(s, "%s = sqrt(%s)", name[which], of[which]);
    else
      say(s, "%s = sqrt(%s + %.4g)", name[which], of[which], epsilon);
    return;
  }
}

static void write_headline(search *s)
{
  const checks_traits *t = &s->trait[0];
  char scale[96], blocks[96] = "", factors[200] = "";
  name_scale(s, scale, sizeof scale);
  if (s->parts > 1)
    (void)snprintf(blocks, sizeof blocks, "%lld blocks of %lld columns, each ", (long long)s->parts,
                   (long long)s->size);
  if (strcmp(t->left, t->right) == 0)
    (void)snprintf(factors, sizeof factors, "%s", t->left);
  else
    (void)snprintf(factors, sizeof factors, "%s by %s", t->left, t->right);
  (void)snprintf(s->out->headline, sizeof s->out->headline, "%sdiagonal%s minus rank %lld: %s%s", blocks,
                 t->diagonal == CHECKS_DIAGONAL_P ? " p" : "", (long long)t->rank, factors, scale);
}

/* ---- symmetry and null space ------------------------------------------------------------------------------------- */

static bool symmetric(const search *s)
{
  for (int slice = 0; slice < GCK_DISCOVERY_SLICES; slice++)
    for (int64_t i = 0; i < s->n; i++)
      for (int64_t k = 0; k < i; k++) {
        double off = fabs(*checks_entry(&s->j[slice], i, k) - *checks_entry(&s->j[slice], k, i));
        if (off > *checks_entry(&s->radius[slice], i, k) + *checks_entry(&s->radius[slice], k, i)) return false;
      }
  return true;
}

/* J v = 0, or vᵀ J = 0, in every slice. */
static bool vanishes(const search *s, int candidate, bool left)
{
  double v[CHECKS_MATRIX_MAX];
  for (int slice = 0; slice < GCK_DISCOVERY_SLICES; slice++) {
    (void)checks_candidate(candidate, s->x + slice * s->n, s->n, v);
    for (int64_t i = 0; i < s->n; i++) {
      double sum = 0, slack = 0;
      for (int64_t k = 0; k < s->n; k++) {
        int64_t row = left ? k : i, col = left ? i : k;
        sum += *checks_entry(&s->j[slice], row, col) * v[k];
        slack += *checks_entry(&s->radius[slice], row, col) * fabs(v[k]);
      }
      if (!(fabs(sum) <= slack)) return false;
    }
  }
  return true;
}

static gck_status say_null_space(search *s, gck_diag *diag)
{
  checks_svd svd;
  int64_t null = 0;
  double noise = checks_matrix_norm(&s->radius[0]);
  gck_status st = checks_svd_make(&svd, &s->j[0], diag);
  if (st != GCK_OK) return st;
  for (int64_t k = 0; k < svd.k; k++)
    null += svd.sigma[k] <= noise;
  checks_svd_free(&svd);
  char text[160] = "";
  double v[CHECKS_MATRIX_MAX];
  for (int k = 0; checks_candidate(k, s->x, s->n, v) != NULL; k++) {
    const char *name = k == 0 ? "1" : checks_candidate(k, s->x, s->n, v);
    for (int left = 0; left < 2; left++) {
      size_t used = strlen(text);
      if (vanishes(s, k, left != 0))
        (void)snprintf(text + used, sizeof text - used, left != 0 ? ", %sᵀJ = 0" : ", J%s = 0", name);
    }
  }
  say(s, "null space of dimension %lld%s", (long long)null, text);
  return GCK_OK;
}

static gck_status conclude(search *s, const char *why, gck_diag *diag)
{
  gck_discovery *out = s->out;
  if (why == NULL && s->size == 1) {
    out->determined = true;
    (void)snprintf(out->headline, sizeof out->headline, "diagonal");
  } else if (why == NULL && !alike(s)) {
    why = s->parts > 1 ? "slices or blocks differ in rank or factors" : "slices differ in rank or factors";
  } else if (why == NULL) {
    out->determined = true;
    write_headline(s);
    say(s, "off the diagonal %.2g is left, rounding allows %.2g", s->residual, s->noise);
  }
  if (why != NULL) (void)snprintf(out->headline, sizeof out->headline, "undetermined: %s", why);
  say(s, "%s", symmetric(s) ? "symmetric" : "not symmetric");
  return say_null_space(s, diag);
}

/* ---- the search -------------------------------------------------------------------------------------------------- */

static gck_status load_x(search *s, gck_diag *diag)
{
  int input = gck_case_tensor(s->c, s->c->op->tensors[s->gradient].of);
  slice_map map = slices_of(s->c, input);
  s->x = calloc((size_t)(s->n * GCK_DISCOVERY_SLICES) + 1, sizeof *s->x);
  if (s->x == NULL) return gck_fail(diag, GCK_E_MEMORY, "structure", NULL, "no memory for the input");
  for (int64_t slice = 0; slice < GCK_DISCOVERY_SLICES; slice++)
    for (int64_t i = 0; i < s->n; i++)
      s->x[slice * s->n + i] =
          gck_tensor_get(&s->tensors[input], checks_slice_element(&map, gck_case_count(s->c, input), slice, i));
  return GCK_OK;
}

static void free_search(search *s)
{
  for (int t = 0; t < GCK_MAX_TENSORS; t++)
    gck_tensor_free(&s->tensors[t]);
  for (int k = 0; k < GCK_DISCOVERY_SLICES; k++) {
    checks_matrix_free(&s->j[k]);
    checks_matrix_free(&s->radius[k]);
  }
  checks_units_free(&s->units);
  free(s->x);
}

static gck_status run(search *s, gck_diag *diag)
{
  const char *why = NULL;
  gck_status st = prepare(s, diag);
  if (st == GCK_OK) st = launch_all(s, diag);
  if (st == GCK_OK) st = load_x(s, diag);
  for (int k = 0; st == GCK_OK && k < GCK_DISCOVERY_SLICES; k++)
    bound(s, &s->j[k], &s->radius[k]);
  if (st == GCK_OK) st = study(s, &why, diag);
  return st == GCK_OK ? conclude(s, why, diag) : st;
}

gck_status gck_discover(const gck_case *c, gck_runner *runner, gck_discovery *out, gck_diag *diag)
{
  *out = (gck_discovery){0};
  search *s = calloc(1, sizeof *s);
  if (s == NULL) return gck_fail(diag, GCK_E_MEMORY, "structure", NULL, "no memory for a search");
  s->c = c;
  s->runner = runner;
  s->out = out;
  gck_status st = run(s, diag);
  free_search(s);
  free(s);
  return st;
}
