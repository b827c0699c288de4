/* Reads gradcheck-report-1 back. The file is untrusted: every member that is known must have its type and range, sizes
 * must agree with each other, and the first fault is told with its place. Members that are not known are left alone,
 * since later versions add some. */
#include "reports/report.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Far beyond any report (a thousand runs with all exhibits take some tens of MB), and far below what hurts. */
static const int64_t MOST_BYTES = (int64_t)1 << 30;

typedef struct reader {
  const char *path;
  char place[256]; /* "runs[3].gradients[0]" */
  gck_diag *diag;
} reader;

GCK_PRINTF(3, 4)
static gck_status wrong(reader *r, const char *key, const char *format, ...)
{
  char text[256], where[128];
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  (void)snprintf(where, sizeof where, "%.120s", r->path);
  return gck_fail(r->diag, GCK_E_INPUT, where, "write the report again with gradcheck", "%s%s%s: %s", r->place,
                  r->place[0] != '\0' && key[0] != '\0' ? "." : "", key, text);
}

static gck_status no_memory(reader *r)
{
  return gck_fail(r->diag, GCK_E_MEMORY, r->path, NULL, "out of memory while a report was read");
}

/* Steps into a member, optionally with an index; returns the length to step back to. */
static size_t enter(reader *r, const char *key, size_t index)
{
  const size_t length = strlen(r->place);
  (void)snprintf(r->place + length, sizeof r->place - length, "%s%s[%zu]", length > 0 ? "." : "", key, index);
  return length;
}

static void leave(reader *r, size_t length)
{
  r->place[length] = '\0';
}

static gck_status get_text(reader *r, const json_t *o, const char *key, bool needed, char **slot)
{
  const json_t *v = json_object_get(o, key);
  if (v == NULL && !needed) return GCK_OK;
  if (v == NULL) return wrong(r, key, "is missing");
  if (!json_is_string(v)) return wrong(r, key, "must be a string");
  free(*slot);
  *slot = strdup(json_string_value(v));
  return *slot != NULL ? GCK_OK : no_memory(r);
}

static gck_status get_fixed(reader *r, const json_t *o, const char *key, char *slot, size_t room)
{
  const json_t *v = json_object_get(o, key);
  if (!json_is_string(v)) return wrong(r, key, v == NULL ? "is missing" : "must be a string");
  if (json_string_length(v) >= room) return wrong(r, key, "has more than %zu bytes", room - 1);
  memcpy(slot, json_string_value(v), json_string_length(v) + 1);
  return GCK_OK;
}

/* A number, "inf", "-inf" or "nan". */
static bool as_real(const json_t *v, double *value)
{
  if (json_is_number(v)) {
    *value = json_number_value(v);
    return true;
  }
  if (!json_is_string(v)) return false;
  const char *word = json_string_value(v);
  if (strcmp(word, "inf") == 0) {
    *value = INFINITY;
  } else if (strcmp(word, "-inf") == 0) {
    *value = -INFINITY;
  } else if (strcmp(word, "nan") == 0) {
    *value = NAN;
  } else {
    return false;
  }
  return true;
}

static gck_status get_real(reader *r, const json_t *o, const char *key, double *value)
{
  const json_t *v = json_object_get(o, key);
  if (v == NULL) return wrong(r, key, "is missing");
  if (!as_real(v, value)) return wrong(r, key, "must be a number, \"inf\", \"-inf\" or \"nan\"");
  return GCK_OK;
}

/* A figure that may not have been measured: null, or left out. */
static gck_status get_measured(reader *r, const json_t *o, const char *key, double *value)
{
  const json_t *v = json_object_get(o, key);
  *value = NAN;
  return v == NULL || json_is_null(v) ? GCK_OK : get_real(r, o, key, value);
}

static gck_status get_seconds(reader *r, const json_t *o, double *value)
{
  const gck_status status = get_real(r, o, "seconds", value);
  if (status != GCK_OK) return status;
  return isfinite(*value) && *value >= 0 ? GCK_OK : wrong(r, "seconds", "must be finite and not negative");
}

static gck_status get_count(reader *r, const json_t *o, const char *key, int64_t least, int64_t *value)
{
  const json_t *v = json_object_get(o, key);
  if (v == NULL) return wrong(r, key, "is missing");
  if (!json_is_integer(v) || json_integer_value(v) < least) {
    return wrong(r, key, "must be an integer, %" PRId64 " or more", least);
  }
  *value = json_integer_value(v);
  return GCK_OK;
}

static gck_status get_flag(reader *r, const json_t *o, const char *key, bool *value)
{
  const json_t *v = json_object_get(o, key);
  *value = json_is_true(v);
  return v == NULL || json_is_boolean(v) ? GCK_OK : wrong(r, key, "must be true or false");
}

static gck_status get_verdict(reader *r, const json_t *o, gck_verdict *verdict)
{
  const char *word = json_string_value(json_object_get(o, "verdict"));
  for (int v = GCK_PASS; word != NULL && v <= GCK_SKIPPED; v++) {
    if (strcmp(word, gck_verdict_name((gck_verdict)v)) == 0) {
      *verdict = (gck_verdict)v;
      return GCK_OK;
    }
  }
  return wrong(r, "verdict", "must be pass, fail, vacuous, undefined or skipped");
}

/* Seeds have 64 bits, more than a JSON number is sure to carry. */
static gck_status get_seed(reader *r, const json_t *o, uint64_t *seed)
{
  const char *word = json_string_value(json_object_get(o, "seed"));
  *seed = 0;
  if (word == NULL) return json_object_get(o, "seed") == NULL ? GCK_OK : wrong(r, "seed", "must be a string of digits");
  if (word[0] == '\0' || strspn(word, "0123456789") != strlen(word) || strlen(word) > 20)
    return wrong(r, "seed", "must be a string of digits");
  errno = 0;
  *seed = strtoull(word, NULL, 10);
  return errno == 0 ? GCK_OK : wrong(r, "seed", "does not fit into 64 bits");
}

/* An array member; *count is 0 where it may be and is missing. */
static gck_status get_array(reader *r, const json_t *o, const char *key, bool needed, const json_t **array,
                            size_t *count)
{
  *array = json_object_get(o, key);
  *count = json_array_size(*array);
  if (*array == NULL) return needed ? wrong(r, key, "is missing") : GCK_OK;
  return json_is_array(*array) ? GCK_OK : wrong(r, key, "must be an array");
}

static gck_status get_integers(reader *r, const json_t *o, const char *key, int64_t least, int capacity, int *count,
                               int64_t *values)
{
  const json_t *array;
  size_t size;
  const gck_status status = get_array(r, o, key, true, &array, &size);
  if (status != GCK_OK) return status;
  if (size > (size_t)capacity) return wrong(r, key, "has %zu entries, at most %d are possible", size, capacity);
  for (size_t i = 0; i < size; i++) {
    const json_t *v = json_array_get(array, i);
    if (!json_is_integer(v) || json_integer_value(v) < least) {
      return wrong(r, key, "entry %zu must be an integer, %" PRId64 " or more", i, least);
    }
    values[i] = json_integer_value(v);
  }
  *count = (int)size;
  return GCK_OK;
}

/* An index into a tensor of this rank. */
static gck_status get_index(reader *r, const json_t *o, const char *key, int rank, int64_t *index)
{
  int count = 0;
  const gck_status status = get_integers(r, o, key, 0, GCK_RECORD_RANK, &count, index);
  if (status != GCK_OK) return status;
  return count == rank ? GCK_OK : wrong(r, key, "has %d entries, the shape has %d", count, rank);
}

static gck_status get_reals(reader *r, const json_t *o, const char *key, size_t count, double **values)
{
  const json_t *array;
  size_t size;
  const gck_status status = get_array(r, o, key, true, &array, &size);
  if (status != GCK_OK) return status;
  if (size != count) return wrong(r, key, "has %zu entries, must have %zu", size, count);
  *values = calloc(count + 1, sizeof **values);
  if (*values == NULL) return no_memory(r);
  for (size_t i = 0; i < count; i++) {
    if (!as_real(json_array_get(array, i), &(*values)[i]))
      return wrong(r, key, "entry %zu must be a number, \"inf\", \"-inf\" or \"nan\"", i);
  }
  return GCK_OK;
}

/* rows · cols, and both of a size that an array in memory can have. */
static gck_status get_area(reader *r, const json_t *o, gck_exhibit *e, const char *array, int64_t extra_rows,
                           size_t *area)
{
  gck_status status = get_count(r, o, "rows", 0, &e->rows);
  if (status == GCK_OK) status = get_count(r, o, "cols", 0, &e->cols);
  if (status != GCK_OK) return status;
  const int64_t most = (int64_t)json_array_size(json_object_get(o, array));
  const int64_t rows = e->rows < INT64_MAX ? e->rows + extra_rows : e->rows;
  if (e->cols != 0 && rows > most / e->cols)
    return wrong(r, array, "has %" PRId64 " entries, too few for its rows and cols", most);
  *area = (size_t)(rows * e->cols);
  return GCK_OK;
}

static gck_status read_table(reader *r, const json_t *o, gck_exhibit *e)
{
  size_t area = 0;
  const gck_status status = get_area(r, o, e, "cells", 1, &area);
  if (status != GCK_OK) return status;
  const json_t *array = json_object_get(o, "cells");
  if (!json_is_array(array) || json_array_size(array) != area)
    return wrong(r, "cells", "must be an array of (rows + 1) * cols strings");
  e->cell = calloc(area + 1, sizeof *e->cell);
  if (e->cell == NULL) return no_memory(r);
  for (size_t i = 0; i < area; i++) {
    const char *cell = json_string_value(json_array_get(array, i));
    if (cell == NULL) return wrong(r, "cells", "entry %zu must be a string", i);
    e->cell[i] = strdup(cell);
    if (e->cell[i] == NULL) return no_memory(r);
  }
  return GCK_OK;
}

static gck_status read_matrix(reader *r, const json_t *o, gck_exhibit *e)
{
  size_t area = 0;
  gck_status status = get_area(r, o, e, "matrix", 0, &area);
  if (status == GCK_OK) status = get_count(r, o, "row_step", 1, &e->row_step);
  if (status == GCK_OK) status = get_count(r, o, "col_step", 1, &e->col_step);
  if (status == GCK_OK) status = get_reals(r, o, "matrix", area, &e->matrix);
  return status;
}

static gck_status read_points(reader *r, const json_t *o, gck_exhibit *e)
{
  gck_status status = get_count(r, o, "cols", 0, &e->cols);
  if (status == GCK_OK) status = get_flag(r, o, "log_x", &e->log_x);
  if (status == GCK_OK) status = get_flag(r, o, "log_y", &e->log_y);
  if (status == GCK_OK) status = get_reals(r, o, "y", (size_t)e->cols, &e->y);
  const size_t edges = (size_t)e->cols + (e->kind == GCK_EXHIBIT_HISTOGRAM ? 1 : 0);
  if (status == GCK_OK) status = get_reals(r, o, "x", edges, &e->x);
  return status;
}

static gck_status get_kind(reader *r, const json_t *o, gck_exhibit_kind *kind)
{
  static const char *const word[] = {"table", "histogram", "curve", "matrix"};
  static const gck_exhibit_kind kinds[] = {GCK_EXHIBIT_TABLE, GCK_EXHIBIT_HISTOGRAM, GCK_EXHIBIT_CURVE,
                                           GCK_EXHIBIT_MATRIX};
  const char *said = json_string_value(json_object_get(o, "kind"));
  for (int k = 0; said != NULL && k < 4; k++) {
    if (strcmp(said, word[k]) == 0) {
      *kind = kinds[k];
      return GCK_OK;
    }
  }
  return wrong(r, "kind", "must be table, histogram, curve or matrix");
}

static gck_status read_exhibit(reader *r, const json_t *o, gck_check_record *c)
{
  gck_exhibit_kind kind = GCK_EXHIBIT_TABLE;
  gck_status status = get_kind(r, o, &kind);
  if (status != GCK_OK) return status;
  gck_exhibit *e = gck_record_exhibit(c, kind, "");
  if (e == NULL) return no_memory(r);
  status = get_text(r, o, "title", true, &e->title);
  if (status == GCK_OK) status = get_text(r, o, "group", false, &e->group);
  if (status == GCK_OK) status = get_text(r, o, "x_label", false, &e->x_label);
  if (status == GCK_OK) status = get_text(r, o, "y_label", false, &e->y_label);
  if (status != GCK_OK) return status;
  if (kind == GCK_EXHIBIT_TABLE) return read_table(r, o, e);
  return kind == GCK_EXHIBIT_MATRIX ? read_matrix(r, o, e) : read_points(r, o, e);
}

static gck_status read_finding(reader *r, const json_t *o, gck_check_record *c)
{
  gck_finding *f = gck_record_finding(c);
  if (f == NULL) return no_memory(r);
  gck_status status = get_text(r, o, "what", true, &f->what);
  if (status == GCK_OK) status = get_text(r, o, "where", false, &f->where);
  if (status == GCK_OK) status = get_text(r, o, "diagnosis", false, &f->diagnosis);
  if (status == GCK_OK) status = get_text(r, o, "advice", false, &f->advice);
  if (status == GCK_OK) status = get_text(r, o, "suspect", false, &f->suspect[0]);
  if (status == GCK_OK) status = get_text(r, o, "second_suspect", false, &f->suspect[1]);
  if (status == GCK_OK) status = get_measured(r, o, "size", &f->size);
  return status;
}

/* Reads every entry of an array of objects by `each` into `into`. */
#define READ_ALL(r, o, key, needed, each, into)                                                                        \
  do {                                                                                                                 \
    const json_t *all_;                                                                                                \
    size_t count_;                                                                                                     \
    gck_status status_ = get_array(r, o, key, needed, &all_, &count_);                                                 \
    for (size_t i_ = 0; status_ == GCK_OK && i_ < count_; i_++) {                                                      \
      const size_t back_ = enter(r, key, i_);                                                                          \
      const json_t *entry_ = json_array_get(all_, i_);                                                                 \
      status_ = json_is_object(entry_) ? each(r, entry_, into) : wrong(r, "", "must be an object");                    \
      if (status_ == GCK_OK) leave(r, back_);                                                                          \
    }                                                                                                                  \
    if (status_ != GCK_OK) return status_;                                                                             \
  } while (0)

static gck_status read_check(reader *r, const json_t *o, gck_run *run)
{
  const char *name = json_string_value(json_object_get(o, "name"));
  if (name == NULL) return wrong(r, "name", "must be a string");
  gck_check_record *c = gck_record_check(run, name);
  if (c == NULL) return no_memory(r);
  gck_status status = get_verdict(r, o, &c->verdict);
  if (status == GCK_OK) status = get_text(r, o, "reason", false, &c->reason);
  if (status == GCK_OK && json_object_get(o, "seconds") != NULL) status = get_seconds(r, o, &c->seconds);
  if (status == GCK_OK && json_object_get(o, "exhibits_left_out") != NULL)
    status = get_count(r, o, "exhibits_left_out", 0, &c->exhibits_left_out);
  if (status != GCK_OK) return status;
  READ_ALL(r, o, "findings", true, read_finding, c);
  READ_ALL(r, o, "exhibits", false, read_exhibit, c);
  return GCK_OK;
}

static gck_status read_worst(reader *r, const json_t *o, gck_gradient_record *g)
{
  if (g->worst_count >= GCK_WORST) return wrong(r, "", "is one too many, %d are possible", GCK_WORST);
  gck_worst *e = &g->worst[g->worst_count++];
  gck_status status = get_index(r, o, "index", g->rank, e->index);
  if (status == GCK_OK) status = get_real(r, o, "score", &e->score);
  if (status == GCK_OK) status = get_fixed(r, o, "kernel", e->kernel, sizeof e->kernel);
  if (status == GCK_OK) status = get_fixed(r, o, "reference", e->reference, sizeof e->reference);
  if (status == GCK_OK) status = get_fixed(r, o, "exact", e->exact, sizeof e->exact);
  if (status == GCK_OK) status = get_real(r, o, "allowed", &e->allowed);
  return status;
}

/* Scores and power. `shape` and `dtype` came with the first extension of the schema and may be missing. */
static gck_status read_scores(reader *r, const json_t *o, gck_gradient_record *g)
{
  const json_t *score = json_object_get(o, "score");
  const json_t *power = json_object_get(o, "detectable");
  if (!json_is_object(score)) return wrong(r, "score", "must be an object");
  if (power != NULL && !json_is_object(power)) return wrong(r, "detectable", "must be an object");
  gck_status status = get_real(r, score, "max", &g->score_max);
  if (status == GCK_OK) status = get_real(r, score, "median", &g->score_median);
  if (status == GCK_OK && json_object_get(o, "shape") != NULL) status = get_index(r, score, "at", g->rank, g->score_at);
  if (status == GCK_OK) status = get_real(r, o, "ulp_max", &g->ulp_max);
  if (status == GCK_OK) status = get_measured(r, o, "bias_z", &g->bias_z);
  if (status == GCK_OK) status = get_measured(r, o, "bias_p", &g->bias_p);
  if (status == GCK_OK) status = get_measured(r, o, "bias_slope", &g->bias_slope);
  if (status == GCK_OK) status = get_measured(r, o, "condition", &g->condition);
  if (status == GCK_OK) status = get_measured(r, power, "element", &g->detectable_element);
  if (status == GCK_OK) status = get_measured(r, power, "element_relative", &g->detectable_element_relative);
  if (status == GCK_OK) status = get_measured(r, power, "scale", &g->detectable_scale);
  return status;
}

static gck_status read_gradient(reader *r, const json_t *o, gck_run *run)
{
  gck_gradient_record *g = gck_record_gradient(run, "");
  if (g == NULL) return no_memory(r);
  gck_status status = get_fixed(r, o, "name", g->name, sizeof g->name);
  if (status == GCK_OK) status = get_fixed(r, o, "dtype", g->dtype, sizeof g->dtype);
  if (status == GCK_OK) status = get_verdict(r, o, &g->verdict);
  if (status == GCK_OK) status = get_text(r, o, "reason", false, &g->reason);
  if (status == GCK_OK) status = get_integers(r, o, "shape", 0, GCK_RECORD_RANK, &g->rank, g->shape);
  if (status == GCK_OK) status = get_count(r, o, "compared", 0, &g->compared);
  if (status == GCK_OK) status = get_count(r, o, "escalated", 0, &g->escalated);
  if (status == GCK_OK) status = get_count(r, o, "outside_cell", 0, &g->outside_cell);
  if (status == GCK_OK) status = read_scores(r, o, g);
  if (status != GCK_OK) return status;
  READ_ALL(r, o, "worst", false, read_worst, g);
  return GCK_OK;
}

static gck_status read_words(reader *r, const json_t *o, gck_run *run)
{
  gck_status status = get_text(r, o, "case", true, &run->line);
  if (status == GCK_OK) status = get_text(r, o, "op", true, &run->op);
  if (status == GCK_OK) status = get_text(r, o, "kernel", true, &run->kernel);
  if (status == GCK_OK) status = get_text(r, o, "device", true, &run->device);
  if (status == GCK_OK) status = get_text(r, o, "dtype", true, &run->dtype);
  if (status == GCK_OK) status = get_text(r, o, "source", false, &run->source);
  if (status == GCK_OK) status = get_text(r, o, "reproduce", false, &run->reproduce);
  if (status == GCK_OK) status = get_text(r, o, "declaration", false, &run->declaration);
  if (status == GCK_OK) status = get_text(r, o, "remark", false, &run->remark);
  if (status == GCK_OK) status = get_text(r, o, "known", false, &run->known);
  if (status == GCK_OK) status = get_text(r, o, "reason", false, &run->reason);
  if (status == GCK_OK) status = get_seed(r, o, &run->seed);
  if (status == GCK_OK) status = get_verdict(r, o, &run->verdict);
  if (status == GCK_OK) status = get_seconds(r, o, &run->seconds);
  return status;
}

static gck_status read_run(reader *r, const json_t *o, gck_report *report)
{
  gck_run *run = gck_record_run(report);
  if (run == NULL) return no_memory(r);
  const gck_status status = read_words(r, o, run);
  if (status != GCK_OK) return status;
  READ_ALL(r, o, "gradients", true, read_gradient, run);
  READ_ALL(r, o, "checks", true, read_check, run);
  return GCK_OK;
}

/* [{"name": "gpu", "value": "…"}] back to lines. */
static gck_status read_fact(reader *r, const json_t *o, char **facts)
{
  const char *name = json_string_value(json_object_get(o, "name"));
  const char *value = json_string_value(json_object_get(o, "value"));
  if (name == NULL || value == NULL) return wrong(r, "", "must have a name and a value, both strings");
  char *longer = NULL;
  const char *so_far = *facts != NULL ? *facts : "";
  if (asprintf(&longer, "%s%s%s%s%s", so_far, so_far[0] != '\0' ? "\n" : "", name, name[0] != '\0' ? ": " : "", value) <
      0) {
    return no_memory(r);
  }
  free(*facts);
  *facts = longer;
  return GCK_OK;
}

static gck_status read_notes(reader *r, const json_t *o, gck_report *report)
{
  const json_t *array;
  size_t count;
  gck_status status = get_array(r, o, "notes", false, &array, &count);
  for (size_t i = 0; status == GCK_OK && i < count; i++) {
    const char *note = json_string_value(json_array_get(array, i));
    if (note == NULL) return wrong(r, "notes", "entry %zu must be a string", i);
    status = gck_record_note(report, r->diag, "%s", note);
  }
  return status;
}

static gck_status read_report(reader *r, const json_t *o, gck_report *report)
{
  if (!json_is_object(o)) return wrong(r, "", "the file must hold a JSON object");
  const char *schema = json_string_value(json_object_get(o, "schema"));
  if (schema == NULL || strcmp(schema, "gradcheck-report-1") != 0)
    return wrong(r, "schema", "must be \"gradcheck-report-1\"");
  gck_status status = get_verdict(r, o, &report->verdict);
  if (status == GCK_OK) status = get_text(r, o, "reason", false, &report->reason);
  if (status == GCK_OK) status = get_text(r, o, "title", false, &report->title);
  if (status == GCK_OK) status = get_text(r, o, "started", false, &report->started);
  if (status == GCK_OK) status = get_flag(r, o, "partial", &report->partial);
  if (status == GCK_OK && json_object_get(o, "seconds") != NULL) status = get_seconds(r, o, &report->seconds);
  if (status == GCK_OK) status = read_notes(r, o, report);
  if (status != GCK_OK) return status;
  READ_ALL(r, o, "environment", false, read_fact, &report->environment);
  READ_ALL(r, o, "runs", true, read_run, report);
  return GCK_OK;
}

/* A file that says "pass" over runs that fail is forged or broken; either way it is not believed. */
static gck_status agree(reader *r, const gck_report *report)
{
  gck_verdict joined = GCK_VERDICT_NONE;
  for (size_t i = 0; i < report->run_count; i++)
    joined = gck_verdict_join(joined, gck_run_excused(&report->run[i]) ? GCK_PASS : report->run[i].verdict);
  if (joined == GCK_VERDICT_NONE || gck_verdict_join(report->verdict, joined) == report->verdict) return GCK_OK;
  return wrong(r, "verdict", "is %s, but a run's is %s", gck_verdict_name(report->verdict), gck_verdict_name(joined));
}

/* Opens without waiting (a pipe's name could block for ever) and takes regular files only. */
static gck_status open_file(reader *r, FILE **file)
{
  struct stat there;
  const int handle = open(r->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (handle < 0) {
    return gck_fail(r->diag, GCK_E_INPUT, r->path, "name a report that gradcheck wrote with --json",
                    "cannot be opened: %s", strerror(errno));
  }
  gck_status status = GCK_OK;
  if (fstat(handle, &there) != 0 || !S_ISREG(there.st_mode)) status = wrong(r, "", "is not a regular file");
  if (status == GCK_OK && (int64_t)there.st_size > MOST_BYTES) status = wrong(r, "", "is larger than 1 GiB");
  if (status == GCK_OK) *file = fdopen(handle, "rb");
  if (status == GCK_OK && *file != NULL) return GCK_OK;
  close(handle);
  return status != GCK_OK ? status : no_memory(r);
}

gck_status gck_read_json(const char *path, gck_report *report, gck_diag *diag)
{
  reader r = {.path = path, .diag = diag};
  *report = (gck_report){0};
  FILE *file = NULL;
  gck_status status = open_file(&r, &file);
  if (status != GCK_OK) return status;
  json_error_t error;
  json_t *root = json_loadf(file, JSON_REJECT_DUPLICATES, &error);
  (void)fclose(file);
  if (root == NULL) {
    return gck_fail(diag, GCK_E_INPUT, path, "write the report again with gradcheck",
                    "not JSON: line %d, column %d: %s", error.line, error.column, error.text);
  }
  status = read_report(&r, root, report);
  if (status == GCK_OK) status = agree(&r, report);
  json_decref(root);
  if (status != GCK_OK) gck_report_free(report);
  return status;
}
