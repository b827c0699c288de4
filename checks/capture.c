/* Judging a capture: inputs, cotangents and gradients that another program wrote down. */
#include "checks/subject.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_REPEATS = 1000 };

static gck_status copy_tensor(gck_tensor *to, const gck_archive *archive, const char *name, gck_diag *diag)
{
  const gck_tensor *from = gck_archive_find(archive, name);
  if (from == NULL || to->dtype != GCK_DTYPE_NONE) return GCK_OK;
  return gck_tensor_copy(to, from, diag);
}

static gck_status take_tensors(gck_subject *s, const gck_archive *archive, gck_diag *diag)
{
  gck_status st = GCK_OK;
  int count = gck_op_tensor_count(s->c->op);
  for (int t = 0; st == GCK_OK && t < count; t++) {
    const gck_tensor_spec *spec = &s->c->op->tensors[t];
    bool given = spec->role == GCK_ROLE_INPUT || spec->role == GCK_ROLE_COTANGENT;
    if (s->c->present[t]) st = copy_tensor(given ? &s->tensors[t] : &s->result[t], archive, spec->name, diag);
  }
  return st;
}

/* "dq@3": the number behind the last '@', 0 if there is none or it is no run number. */
static int repeat_of(const char *name)
{
  const char *at = strrchr(name, '@');
  if (at == NULL || !isdigit((unsigned char)at[1])) return 0;
  char *end = NULL;
  long run = strtol(at + 1, &end, 10);
  return *end == '\0' && run > 0 && run <= MAX_REPEATS ? (int)run : 0;
}

static gck_status take_repeats(gck_subject *s, const gck_archive *archive, gck_diag *diag)
{
  int runs = 0;
  for (size_t i = 0; i < archive->entry_count; i++) {
    int run = repeat_of(archive->entries[i].name);
    if (run > runs) runs = run;
  }
  if (runs == 0) return GCK_OK;
  s->repeat = calloc((size_t)runs, sizeof *s->repeat);
  if (s->repeat == NULL) return gck_fail(diag, GCK_E_MEMORY, "capture", NULL, "no memory for %d more runs", runs);
  s->repeat_count = runs;
  gck_status st = GCK_OK;
  for (size_t i = 0; st == GCK_OK && i < archive->entry_count; i++) {
    int run = repeat_of(archive->entries[i].name);
    if (run == 0) continue;
    char base[GCK_NAME_BYTES];
    size_t length = (size_t)(strrchr(archive->entries[i].name, '@') - archive->entries[i].name);
    (void)snprintf(base, sizeof base, "%.*s", (int)length, archive->entries[i].name);
    int t = gck_op_tensor(s->c->op, base);
    if (t >= 0) st = gck_tensor_copy(&s->repeat[run - 1][t], &archive->entries[i].tensor, diag);
  }
  return st;
}

static gck_status describe(const gck_subject *s, const gck_options *o, const char *path, const gck_archive *archive,
                           gck_run *run, gck_diag *diag)
{
  const char *source = gck_archive_metadata(archive, "source");
  const char *more = o->command_words != NULL ? o->command_words : "";
  gck_status st = checks_subject_describe(s, run, diag);
  if (st == GCK_OK) st = gck_record_text(&run->source, diag, "%s", path);
  if (st == GCK_OK) st = gck_record_text(&run->kernel, diag, "%s", source != NULL ? source : "unknown");
  if (st == GCK_OK) st = gck_record_text(&run->device, diag, "capture");
  if (st == GCK_OK)
    st = gck_record_text(&run->reproduce, diag, "gradcheck replay %s%s%s", path, more[0] != '\0' ? " " : "", more);
  return st;
}

static gck_status find_op(const gck_archive *archive, const char *path, const gck_op **op, gck_diag *diag)
{
  const char *name = gck_archive_metadata(archive, "op");
  *op = name != NULL ? gck_op_find(name) : NULL;
  if (*op != NULL) return GCK_OK;
  if (name == NULL)
    return gck_fail(diag, GCK_E_INPUT, path, "write op=NAME into the file's __metadata__", "the metadata name no op");
  return gck_fail(diag, GCK_E_INPUT, path, "gradcheck list shows the ops", "op '%s' is unknown", name);
}

/* A gradient whose shape or type the case does not expect would be compared with something else. */
static gck_status check_results(const gck_subject *s, const char *path, gck_diag *diag)
{
  int count = gck_op_tensor_count(s->c->op);
  for (int t = 0; t < count; t++) {
    const gck_tensor *r = &s->result[t];
    if (r->dtype == GCK_DTYPE_NONE) continue;
    bool same = r->rank == s->c->rank[t] &&
                (r->rank == 0 || memcmp(r->shape, s->c->shape[t], (size_t)r->rank * sizeof r->shape[0]) == 0);
    if (!gck_dtype_format(r->dtype)->is_float)
      return gck_fail(diag, GCK_E_INPUT, path, NULL, "%s is not of a floating-point type", s->c->op->tensors[t].name);
    if (!same)
      return gck_fail(diag, GCK_E_INPUT, path, "compare its shape with those of the inputs",
                      "%s has not the shape that the case demands", s->c->op->tensors[t].name);
  }
  return GCK_OK;
}

static gck_status judge(gck_subject *s, gck_case *c, const gck_archive *archive, const char *path,
                        const gck_declaration *over, const gck_options *o, gck_report *report, gck_diag *diag)
{
  const gck_op *op = NULL;
  gck_declaration declaration = gck_declaration_default();
  gck_status st = find_op(archive, path, &op, diag);
  if (st != GCK_OK) return st;
  gck_case_start(c, op);
  st = gck_case_from_archive(c, &declaration, archive, path, diag);
  if (st != GCK_OK) return st;
  if (over != NULL) gck_declaration_merge(&declaration, over);
  checks_subject_start(s, c, &declaration);
  st = take_tensors(s, archive, diag);
  if (st == GCK_OK) st = take_repeats(s, archive, diag);
  if (st == GCK_OK) st = check_results(s, path, diag);
  if (st == GCK_OK) st = checks_subject_expect(s, diag);
  if (st != GCK_OK) return st;
  gck_run *run = gck_record_run(report);
  if (run == NULL) return gck_fail(diag, GCK_E_MEMORY, "report", NULL, "no memory for a run");
  double begin = checks_seconds();
  st = describe(s, o, path, archive, run, diag);
  if (st == GCK_OK) st = checks_subject_judge(s, o, run, diag);
  run->seconds = checks_seconds() - begin;
  return st;
}

gck_status gck_judge_capture(const char *path, const gck_declaration *over, const gck_options *o, gck_report *report,
                             gck_diag *diag)
{
  gck_archive archive = {0};
  gck_status st = gck_archive_read(path, &archive, diag);
  if (st != GCK_OK) return st;
  gck_case *c = calloc(1, sizeof *c);
  gck_subject *s = calloc(1, sizeof *s);
  if (c == NULL || s == NULL)
    st = gck_fail(diag, GCK_E_MEMORY, path, NULL, "no memory for a subject");
  else
    st = judge(s, c, &archive, path, over, o, report, diag);
  if (s != NULL) checks_subject_free(s);
  free(s);
  free(c);
  gck_archive_free(&archive);
  return st;
}
