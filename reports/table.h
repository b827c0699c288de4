/* A table of text whose columns align. Private to reports/. */
#ifndef GCK_REPORTS_TABLE_H
#define GCK_REPORTS_TABLE_H

#include "reports/text.h"

enum { REPORTS_COLUMNS = 12 };

typedef struct reports_column {
  const char *head;
  bool right;      /* numbers */
  int dispensable; /* 0: always there; else the larger goes first where the terminal is narrow */
} reports_column;

/* Cells are appended row by row, each a plain text; all of them are kept until the table is printed. */
typedef struct reports_table {
  const reports_column *column;
  int columns;
  reports_text cells; /* zero-terminated strings, one after the other */
  size_t cell_count;
} reports_table;

void reports_table_cell(reports_table *table, const char *text);
GCK_PRINTF(2, 3)
void reports_table_printf(reports_table *table, const char *format, ...);

/* Head, then rows, every line begun by `indent` blanks; empty tables print nothing. Frees the cells. `width` 0: any. */
void reports_table_print(reports_text *t, reports_table *table, size_t indent, size_t width);

#endif
