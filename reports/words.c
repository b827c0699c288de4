#include "reports/words.h"

#include "reports/render.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *reports_or_dash(const char *text)
{
  return reports_said(text) ? text : "-";
}

static const char *verdict_colour(gck_verdict v)
{
  switch (v) {
  case GCK_PASS:
    return "\033[32m";
  case GCK_FAIL:
    return "\033[1;31m";
  case GCK_VACUOUS:
    return "\033[1;35m";
  case GCK_UNDEFINED:
    return "\033[33m";
  default:
    return "\033[36m";
  }
}

void reports_put_verdict(reports_text *t, gck_verdict v, size_t width, gck_terminal_style style)
{
  const char *name = gck_verdict_name(v);
  if (style.colour) reports_puts(t, verdict_colour(v));
  reports_puts(t, name);
  if (style.colour) reports_puts(t, "\033[0m");
  if (strlen(name) < width) reports_repeat(t, ' ', width - strlen(name));
}

void reports_put_wrapped(reports_text *t, const char *text, size_t indent, gck_terminal_style style)
{
  const size_t room = style.width > 0 && (size_t)style.width > indent + 30 ? (size_t)style.width - indent : 0;
  size_t used = 0;
  for (const char *s = text; *s != '\0';) {
    s += strspn(s, " \n\t");
    const size_t length = strcspn(s, " \n\t");
    if (length == 0) break;
    char *word = strndup(s, length);
    if (word == NULL) {
      t->failed = true;
      return;
    }
    reports_text plain = {0};
    const size_t columns = reports_put_plain(&plain, word);
    if (room > 0 && used > 0 && used + 1 + columns > room) {
      reports_puts(t, "\n");
      reports_repeat(t, ' ', indent);
      used = 0;
    }
    if (used > 0) reports_puts(t, " ");
    if (plain.data != NULL) reports_put(t, plain.data, plain.size);
    used += columns + (used > 0 ? 1 : 0);
    t->failed = t->failed || plain.failed;
    reports_text_free(&plain);
    free(word);
    s += length;
  }
  reports_puts(t, "\n");
}

void reports_put_labelled(reports_text *t, const char *label, const char *text, gck_terminal_style style)
{
  if (!reports_said(text)) return;
  reports_repeat(t, ' ', REPORTS_LABEL_INDENT);
  reports_printf(t, "%-*s", REPORTS_LABEL_WIDTH, label);
  reports_put_wrapped(t, text, REPORTS_LABEL_INDENT + REPORTS_LABEL_WIDTH, style);
}

void reports_put_reproduction(reports_text *t, const gck_run *run)
{
  if (!reports_said(run->reproduce)) return;
  reports_repeat(t, ' ', REPORTS_LABEL_INDENT);
  reports_printf(t, "%-*s", REPORTS_LABEL_WIDTH, "reproduce");
  reports_put_plain(t, run->reproduce);
  reports_puts(t, "\n");
}

void reports_put_notes(reports_text *t, const char *notes, gck_terminal_style style)
{
  char *note = NULL;
  for (const char *s = notes; (s = reports_next_line(t, s, &note)) != NULL; free(note)) {
    reports_puts(t, "note: ");
    reports_put_wrapped(t, note, 6, style);
  }
}

const gck_gradient_record *reports_worst_gradient(const gck_run *run)
{
  const gck_gradient_record *worst = NULL;
  for (size_t i = 0; i < run->gradient_count; i++) {
    const gck_gradient_record *g = &run->gradient[i];
    if (g->compared == 0) continue;
    if (worst == NULL || isnan(g->score_max) || g->score_max > worst->score_max) worst = g;
    if (isnan(worst->score_max)) break;
  }
  return worst;
}

gck_status reports_print(FILE *out, reports_text *t, gck_diag *diag)
{
  char *text = NULL;
  size_t bytes = 0;
  const gck_status status = reports_text_done(t, &text, &bytes, diag);
  if (status != GCK_OK) return status;
  const bool whole = fwrite(text, 1, bytes, out) == bytes && fflush(out) == 0;
  free(text);
  if (whole) return GCK_OK;
  return gck_fail(diag, GCK_E_IO, "output", "is the disk full or the reader gone?", "writing failed: %s",
                  strerror(errno));
}
