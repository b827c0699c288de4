/* A report as one self-contained HTML page (reports/html/): style, scripts and data inside it, no network.
 *
 * The content security policy lists the page's two scripts and its style by their hashes, taken when gradcheck was
 * built; whatever a kernel's name or a message may hold, nothing else can run. Data stand in the page once, as JSON
 * whose '<', '>' and '&' are escaped, and reach the screen as text only. */
#include "page.h"
#include "reports/render.h"

#include <stdlib.h>
#include <string.h>

/* The page stays below 10 MB: the fixed parts take a quarter of one. */
static const size_t MOST_DATA_BYTES = 9u << 20;

static void put_policy(reports_text *t)
{
  reports_printf(t,
                 "default-src 'none'; script-src 'sha256-%s' 'sha256-%s'; style-src 'sha256-%s'; img-src data:; "
                 "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'",
                 page_chart_sha256, page_app_sha256, page_style_sha256);
}

static void put_title(reports_text *t, const gck_report *r)
{
  reports_puts(t, gck_verdict_name(r->verdict));
  reports_puts(t, " – ");
  reports_put_counts(t, reports_count(r));
  reports_puts(t, " – gradcheck");
}

static void put_bytes(reports_text *t, const unsigned char *bytes, size_t count)
{
  reports_put(t, (const char *)bytes, count);
}

/* What a mark in the template stands for; false if it stands for nothing. */
static bool put_part(reports_text *t, const char *mark, size_t length, const gck_report *r, const char *data,
                     size_t bytes)
{
  const char *const name[] = {"POLICY", "TITLE", "STYLE", "CHART", "APP", "DATA"};
  int which = -1;
  for (int k = 0; k < 6; k++) {
    if (strlen(name[k]) == length && memcmp(name[k], mark, length) == 0) which = k;
  }
  switch (which) {
  case 0:
    put_policy(t);
    return true;
  case 1:
    put_title(t, r);
    return true;
  case 2:
    put_bytes(t, page_style, page_style_size);
    return true;
  case 3:
    put_bytes(t, page_chart, page_chart_size);
    return true;
  case 4:
    put_bytes(t, page_app, page_app_size);
    return true;
  case 5:
    reports_put(t, data, bytes);
    return true;
  default:
    return false;
  }
}

/* One pass over the template, so that a mark inside what is put in stays what it is. */
static bool fill_template(reports_text *t, const gck_report *r, const char *data, size_t bytes)
{
  const char *s = (const char *)page_html; /* zero-terminated by the generator */
  for (;;) {
    const char *open = strstr(s, "{{");
    const char *close = open != NULL ? strstr(open, "}}") : NULL;
    if (close == NULL) break;
    reports_put(t, s, (size_t)(open - s));
    if (!put_part(t, open + 2, (size_t)(close - open - 2), r, data, bytes)) return false;
    s = close + 2;
  }
  reports_puts(t, s);
  return true;
}

gck_status gck_render_html(const gck_report *r, char **text, size_t *bytes, gck_diag *diag)
{
  gck_status status = reports_check(r, diag);
  if (status != GCK_OK) return status;
  char *data = NULL;
  size_t data_bytes = 0;
  status = reports_fitting_json(r, true, MOST_DATA_BYTES, &data, &data_bytes, diag);
  if (status != GCK_OK) return status;
  reports_text t = {0};
  const bool filled = fill_template(&t, r, data, data_bytes);
  free(data);
  if (filled) return reports_text_done(&t, text, bytes, diag);
  reports_text_free(&t);
  return gck_fail(diag, GCK_E_INTERNAL, "gck_render_html", NULL, "the page's template holds an unknown mark");
}
