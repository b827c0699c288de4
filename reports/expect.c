/* Known failures: a list of runs that may fail until a day, so that a red suite shows what is new.
 *
 *   # day it expires   the line that reproduces the run, * for anything       # why
 *   2026-09-30         gradcheck softmax rows=9 * dtype=f16 * --device cuda   # issue 41
 *
 * After its day an entry excuses nothing. That it healed is told, since an entry which stays behind would hide the next
 * fault of the same run. */
#include "reports/render.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DAY_LETTERS = 10 };

typedef struct entry {
  char day[DAY_LETTERS + 1]; /* the last on which it excuses */
  char *pattern;
  char *why; /* "" if nothing was said */
  bool expired;
  size_t failed, passed; /* runs that it matched */
} entry;

struct gck_expectations {
  char *path;
  entry *entry;
  size_t count;
};

static gck_status no_memory(gck_diag *diag)
{
  return gck_fail(diag, GCK_E_MEMORY, "known failures", NULL, "out of memory");
}

/* "2026-09-30", with a month and a day that exist; days order as their letters do. */
static bool is_day(const char *word, size_t length)
{
  static const char form[] = "dddd-dd-dd";
  if (length != DAY_LETTERS) return false;
  for (size_t k = 0; k < DAY_LETTERS; k++) {
    if (form[k] == 'd' ? word[k] < '0' || word[k] > '9' : word[k] != form[k]) return false;
  }
  const int month = (word[5] - '0') * 10 + word[6] - '0', day = (word[8] - '0') * 10 + word[9] - '0';
  return month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

/* Cuts blanks off both ends, in place. */
static char *trim(char *text)
{
  text += strspn(text, " \t\r\n");
  size_t length = strlen(text);
  while (length > 0 && strchr(" \t\r\n", text[length - 1]) != NULL)
    length--;
  text[length] = '\0';
  return text;
}

static gck_status wrong(const char *path, size_t number, const char *what, gck_diag *diag)
{
  return gck_fail(diag, GCK_E_INPUT, path, "2026-09-30 gradcheck softmax rows=9 dtype=f16 seed=1 gen=1  # why",
                  "line %zu: %s", number, what);
}

static const char *without_program(const char *line)
{
  static const char program[] = "gradcheck ";
  return strncmp(line, program, sizeof program - 1) == 0 ? line + sizeof program - 1 : line;
}

/* One line of the file; empty ones and remarks add nothing. */
static gck_status take_line(gck_expectations *list, char *line, size_t number, const char *today, gck_diag *diag)
{
  char *text = trim(line);
  if (text[0] == '\0' || text[0] == '#') return GCK_OK;
  const size_t length = strcspn(text, " \t");
  if (!is_day(text, length)) return wrong(list->path, number, "does not begin with a day", diag);
  char *pattern = text + length, *why = strstr(pattern, " #");
  if (why != NULL) *why = '\0';
  pattern = trim(pattern);
  if (pattern[0] == '\0') return wrong(list->path, number, "names no run", diag);
  entry *grown = realloc(list->entry, (list->count + 1) * sizeof *grown);
  if (grown == NULL) return no_memory(diag);
  list->entry = grown;
  entry *e = &list->entry[list->count++];
  *e = (entry){.pattern = strdup(without_program(pattern)), .why = strdup(why != NULL ? trim(why + 2) : "")};
  if (e->pattern == NULL || e->why == NULL) return no_memory(diag);
  memcpy(e->day, text, DAY_LETTERS);
  e->expired = strcmp(e->day, today) < 0;
  return GCK_OK;
}

static gck_status take_file(gck_expectations *list, FILE *file, const char *today, gck_diag *diag)
{
  char *line = NULL;
  size_t room = 0;
  gck_status status = GCK_OK;
  for (size_t number = 1; status == GCK_OK && getline(&line, &room, file) >= 0; number++)
    status = take_line(list, line, number, today, diag);
  if (status == GCK_OK && ferror(file))
    status = gck_fail(diag, GCK_E_INPUT, list->path, NULL, "cannot be read: %s", strerror(errno));
  free(line);
  return status;
}

gck_status gck_expect_read(const char *path, const char *today, gck_expectations **out, gck_diag *diag)
{
  *out = NULL;
  FILE *file = fopen(path, "re");
  if (file == NULL) return gck_fail(diag, GCK_E_INPUT, path, NULL, "cannot be read: %s", strerror(errno));
  gck_expectations *list = calloc(1, sizeof *list);
  gck_status status = list != NULL && (list->path = strdup(path)) != NULL ? GCK_OK : no_memory(diag);
  if (status == GCK_OK) status = take_file(list, file, today, diag);
  (void)fclose(file);
  if (status == GCK_OK)
    *out = list;
  else
    gck_expect_free(list);
  return status;
}

void gck_expect_free(gck_expectations *list)
{
  if (list == NULL) return;
  for (size_t i = 0; i < list->count; i++) {
    free(list->entry[i].pattern);
    free(list->entry[i].why);
  }
  free(list->entry);
  free(list->path);
  free(list);
}

/* Does the pattern, in which * stands for any text, give the whole line? Goes back to the last * where it does not fit:
 * linear in practice, never worse than the product of both lengths. */
static bool fits(const char *pattern, const char *line)
{
  const char *star = NULL, *from = NULL;
  while (*line != '\0') {
    if (*pattern == '*') {
      star = pattern++;
      from = line;
    } else if (*pattern == *line) {
      pattern++;
      line++;
    } else if (star != NULL) {
      pattern = star + 1;
      line = ++from;
    } else {
      return false;
    }
  }
  while (*pattern == '*')
    pattern++;
  return *pattern == '\0';
}

static bool matches(const entry *e, const gck_run *run)
{
  return (run->reproduce != NULL && fits(e->pattern, without_program(run->reproduce))) ||
         (run->line != NULL && fits(e->pattern, run->line));
}

gck_status gck_expect_run(gck_expectations *list, gck_run *run, gck_diag *diag)
{
  for (size_t i = 0; list != NULL && i < list->count; i++) {
    entry *e = &list->entry[i];
    if (!matches(e, run)) continue;
    e->passed += run->verdict == GCK_PASS;
    e->failed += reports_is_bad(run->verdict);
    if (e->expired || !reports_is_bad(run->verdict) || run->known != NULL) continue;
    const gck_status status =
        gck_record_text(&run->known, diag, "until %s%s%s", e->day, e->why[0] != '\0' ? ": " : "", e->why);
    if (status != GCK_OK) return status;
  }
  return GCK_OK;
}

gck_status gck_expect_end(const gck_expectations *list, gck_report *r, gck_diag *diag)
{
  gck_status status = GCK_OK;
  size_t unmatched = 0;
  for (size_t i = 0; list != NULL && i < list->count && status == GCK_OK; i++) {
    const entry *e = &list->entry[i];
    if (e->failed > 0 && e->expired)
      status = gck_record_note(r, diag, "expired on %s, and fails still: %s", e->day, e->pattern);
    if (e->failed == 0 && e->passed > 0)
      status = gck_record_note(r, diag, "healed, take it out of %s: %s", list->path, e->pattern);
    unmatched += e->failed == 0 && e->passed == 0;
  }
  if (status == GCK_OK && unmatched > 0)
    status = gck_record_note(r, diag, "%zu of the %zu known failures in %s %s no run that was judged here", unmatched,
                             list->count, list->path, unmatched == 1 ? "fits" : "fit");
  return status;
}
