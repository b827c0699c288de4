/* Tables on a terminal: the width of a column is that of its longest cell; what does not fit is dropped by column. */
#include "reports/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { GAP = 2 };

void reports_table_cell(reports_table *table, const char *text)
{
  reports_put_plain(&table->cells, text);
  reports_put(&table->cells, "", 1);
  table->cell_count++;
}

void reports_table_printf(reports_table *table, const char *format, ...)
{
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  reports_table_cell(table, text);
}

/* Code points, as the escapes of reports_put_plain left them. */
static size_t columns_of(const char *text)
{
  size_t n = 0;
  for (; *text != '\0'; text++)
    n += ((unsigned char)*text & 0xC0) != 0x80;
  return n;
}

static void measure(const reports_table *table, size_t width[REPORTS_COLUMNS])
{
  for (int c = 0; c < table->columns; c++)
    width[c] = columns_of(table->column[c].head);
  const char *cell = table->cells.data;
  for (size_t i = 0; i < table->cell_count; i++) {
    const size_t n = columns_of(cell), c = i % (size_t)table->columns;
    if (n > width[c]) width[c] = n;
    cell += strlen(cell) + 1;
  }
}

static size_t total(const reports_table *table, const size_t width[REPORTS_COLUMNS], const bool *shown)
{
  size_t sum = 0;
  for (int c = 0; c < table->columns; c++)
    sum += shown[c] ? width[c] + GAP : 0;
  return sum > 0 ? sum - GAP : 0;
}

/* Takes out the most dispensable column; false if none is left to take. */
static bool drop_one(const reports_table *table, bool *shown)
{
  int victim = -1;
  for (int c = 0; c < table->columns; c++) {
    if (!shown[c] || table->column[c].dispensable == 0) continue;
    if (victim < 0 || table->column[c].dispensable > table->column[victim].dispensable) victim = c;
  }
  if (victim >= 0) shown[victim] = false;
  return victim >= 0;
}

static void put_cell(reports_text *t, const char *cell, size_t width, bool right, bool last)
{
  const size_t pad = width - columns_of(cell);
  if (right) reports_repeat(t, ' ', pad);
  reports_puts(t, cell);
  if (!right && !last) reports_repeat(t, ' ', pad);
  if (!last) reports_repeat(t, ' ', GAP);
}

static void put_rows(reports_text *t, const reports_table *table, const size_t *width, const bool *shown, size_t indent)
{
  int last = table->columns - 1;
  while (last > 0 && !shown[last])
    last--;
  reports_repeat(t, ' ', indent);
  for (int c = 0; c <= last; c++) {
    if (shown[c]) put_cell(t, table->column[c].head, width[c], table->column[c].right, c == last);
  }
  const char *cell = table->cells.data;
  for (size_t i = 0; i < table->cell_count; i++) {
    const int c = (int)(i % (size_t)table->columns);
    if (c == 0) {
      reports_puts(t, "\n");
      reports_repeat(t, ' ', indent);
    }
    if (shown[c]) put_cell(t, cell, width[c], table->column[c].right, c == last);
    cell += strlen(cell) + 1;
  }
  reports_puts(t, "\n");
}

void reports_table_print(reports_text *t, reports_table *table, size_t indent, size_t width)
{
  if (table->cells.failed) t->failed = true;
  if (!t->failed && table->cell_count > 0) {
    size_t widths[REPORTS_COLUMNS] = {0};
    bool shown[REPORTS_COLUMNS];
    for (int c = 0; c < REPORTS_COLUMNS; c++)
      shown[c] = c < table->columns;
    measure(table, widths);
    while (width > 0 && indent + total(table, widths, shown) > width && drop_one(table, shown))
      continue;
    put_rows(t, table, widths, shown, indent);
  }
  reports_text_free(&table->cells);
  table->cell_count = 0;
}
