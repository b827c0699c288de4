/* The table of checks, in the order in which they run: discrepancy first, since it sets up what bias reads. */
#include "checks/table.h"

#include <string.h>

const gck_check *const *gck_checks(void)
{
  static const gck_check *const table[] = {
      &checks_discrepancy, &checks_bias,        &checks_forward, &checks_difference, &checks_structure,
      &checks_memory,      &checks_determinism, &checks_race,    &checks_batch,      NULL};
  return table;
}

const gck_check *gck_check_find(const char *name)
{
  for (const gck_check *const *c = gck_checks(); *c != NULL; c++) {
    if (strcmp((*c)->name, name) == 0) return *c;
  }
  return NULL;
}
