/* One report of many: the shards of a suite that ran on several machines. */
#include "reports/identity.h"
#include "reports/render.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A run and where it comes from. */
typedef struct entry {
  gck_run *run;
  size_t shard;
  size_t place; /* among all runs, in the order of the shards */
  bool dropped;
} entry;

typedef struct merger {
  gck_report *shard;
  const char *const *name;
  size_t count;
  entry *entry;
  size_t entries;
  size_t duplicates, conflicts;
  gck_report *merged;
  gck_diag *diag;
} merger;

/* Conflicts told one by one; the others are counted. */
enum { MOST_CONFLICTS = 20 };

static gck_status no_memory(gck_diag *diag)
{
  return gck_fail(diag, GCK_E_MEMORY, "merge", "merge fewer reports", "out of memory");
}

static int by_question(const void *a, const void *b)
{
  const entry *x = a, *y = b;
  const int order = reports_compare_question(x->run, y->run);
  if (order != 0) return order;
  return x->place < y->place ? -1 : x->place > y->place;
}

static int by_place(const void *a, const void *b)
{
  const entry *x = a, *y = b;
  return x->place < y->place ? -1 : x->place > y->place;
}

static gck_status gather(merger *m)
{
  for (size_t s = 0; s < m->count; s++)
    m->entries += m->shard[s].run_count;
  m->entry = calloc(m->entries + 1, sizeof *m->entry);
  if (m->entry == NULL) return no_memory(m->diag);
  size_t place = 0;
  for (size_t s = 0; s < m->count; s++) {
    for (size_t i = 0; i < m->shard[s].run_count; i++, place++)
      m->entry[place] = (entry){.run = &m->shard[s].run[i], .shard = s, .place = place};
  }
  return GCK_OK;
}

/* Of two that answer the same question the worse, the earlier if they are alike. */
static entry *choose(entry *a, entry *b)
{
  const gck_verdict worse = gck_verdict_join(a->run->verdict, b->run->verdict);
  return a->run->verdict == worse ? a : b;
}

static gck_status note_conflict(merger *m, const entry *kept, const entry *dropped)
{
  if (kept->run->verdict != dropped->run->verdict)
    return gck_record_note(m->merged, m->diag, "conflict: %s says %s and %s says %s, the worse is kept: %s",
                           m->name[kept->shard], gck_verdict_name(kept->run->verdict), m->name[dropped->shard],
                           gck_verdict_name(dropped->run->verdict), kept->run->line);
  return gck_record_note(m->merged, m->diag, "conflict: %s and %s say %s with other figures, the former is kept: %s",
                         m->name[kept->shard], m->name[dropped->shard], gck_verdict_name(kept->run->verdict),
                         kept->run->line);
}

/* Drops all but one of the entries [first, end), which answer the same question. */
static gck_status settle(merger *m, size_t first, size_t end)
{
  entry *kept = &m->entry[first];
  for (size_t i = first + 1; i < end; i++)
    kept = choose(kept, &m->entry[i]);
  for (size_t i = first; i < end; i++) {
    entry *e = &m->entry[i];
    if (e == kept) continue;
    e->dropped = true;
    const bool same = reports_same_answer(kept->run, e->run);
    m->duplicates += same;
    m->conflicts += !same;
    const bool told = !same && m->conflicts <= MOST_CONFLICTS;
    const gck_status status = told ? note_conflict(m, kept, e) : GCK_OK;
    if (status != GCK_OK) return status;
  }
  return GCK_OK;
}

static gck_status note_totals(merger *m)
{
  gck_status status = GCK_OK;
  if (m->conflicts > MOST_CONFLICTS)
    status = gck_record_note(m->merged, m->diag, "%zu more conflicts", m->conflicts - MOST_CONFLICTS);
  if (status == GCK_OK && m->duplicates > 0)
    status = gck_record_note(m->merged, m->diag, "%zu %s of a run that another report has with the same answer",
                             m->duplicates, m->duplicates == 1 ? "duplicate" : "duplicates");
  return status;
}

static gck_status settle_all(merger *m)
{
  gck_status status = GCK_OK;
  qsort(m->entry, m->entries, sizeof *m->entry, by_question);
  for (size_t first = 0, end; first < m->entries && status == GCK_OK; first = end) {
    end = first + 1;
    while (end < m->entries && reports_compare_question(m->entry[first].run, m->entry[end].run) == 0)
      end++;
    status = settle(m, first, end);
  }
  qsort(m->entry, m->entries, sizeof *m->entry, by_place);
  return status == GCK_OK ? note_totals(m) : status;
}

/* Moves the runs that stay. */
static gck_status move_runs(merger *m)
{
  for (size_t i = 0; i < m->entries; i++) {
    if (m->entry[i].dropped) continue;
    gck_run *run = gck_record_run(m->merged);
    if (run == NULL) return no_memory(m->diag);
    *run = *m->entry[i].run;
    *m->entry[i].run = (gck_run){0};
  }
  return GCK_OK;
}

static bool everywhere(const merger *m, const char *fact)
{
  for (size_t s = 0; s < m->count; s++) {
    if (!reports_has_line(m->shard[s].environment, fact)) return false;
  }
  return true;
}

/* Facts that all shards share stand once, the others with the shard's name. */
static void put_facts(reports_text *t, const merger *m, size_t shard)
{
  char *fact = NULL;
  for (const char *s = m->shard[shard].environment; (s = reports_next_line(t, s, &fact)) != NULL; free(fact)) {
    const bool shared = everywhere(m, fact);
    if (shared && shard > 0) continue;
    const char *colon = strstr(fact, ": ");
    if (t->size > 0) reports_puts(t, "\n");
    if (shared || colon == NULL)
      reports_puts(t, fact);
    else
      reports_printf(t, "%.*s (%s)%s", (int)(colon - fact), fact, m->name[shard], colon);
  }
}

static gck_status merge_environment(merger *m)
{
  reports_text t = {0};
  for (size_t s = 0; s < m->count; s++)
    put_facts(&t, m, s);
  return reports_text_done(&t, &m->merged->environment, NULL, m->diag);
}

/* Title, start, time spent on all machines together, notes of the shards. */
static gck_status merge_head(merger *m)
{
  gck_report *into = m->merged;
  const char *started = NULL;
  gck_status status = gck_record_text(&into->title, m->diag, "%zu reports merged", m->count);
  for (size_t s = 0; s < m->count && status == GCK_OK; s++) {
    const gck_report *r = &m->shard[s];
    into->partial = into->partial || r->partial;
    into->seconds += r->seconds;
    if (r->started != NULL && (started == NULL || strcmp(r->started, started) < 0)) started = r->started;
    if (r->partial) status = gck_record_note(into, m->diag, "%s is partial: its run was interrupted", m->name[s]);
    if (r->notes != NULL && status == GCK_OK) status = gck_record_note(into, m->diag, "%s", r->notes);
  }
  if (started != NULL && status == GCK_OK) status = gck_record_text(&into->started, m->diag, "%s", started);
  return status;
}

gck_status gck_merge(gck_report *shard, const char *const *name, size_t count, gck_report *merged, gck_diag *diag)
{
  merger m = {.shard = shard, .name = name, .count = count, .merged = merged, .diag = diag};
  *merged = (gck_report){0};
  gck_status status = gather(&m);
  if (status == GCK_OK) status = merge_head(&m);
  if (status == GCK_OK) status = merge_environment(&m);
  if (status == GCK_OK) status = settle_all(&m);
  if (status == GCK_OK) status = move_runs(&m);
  free(m.entry);
  if (status == GCK_OK)
    gck_report_conclude(merged);
  else
    gck_report_free(merged);
  return status;
}
