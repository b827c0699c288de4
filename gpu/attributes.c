#include "gpu/attributes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* The fewest digits that read back as the same double. */
static void print_real(double value, char *text)
{
  for (int digits = 1; digits <= 17; digits++) {
    (void)snprintf(text, GCK_ATTRIBUTE_TEXT_BYTES, "%.*g", digits, value);
    const double back = strtod(text, NULL);
    if (back == value) return;
  }
}

static void print_list(const gck_value *value, char *text)
{
  size_t used = 0;
  if (value->list_count == 0) (void)snprintf(text, GCK_ATTRIBUTE_TEXT_BYTES, "none");
  for (int i = 0; i < value->list_count; i++)
    used +=
        (size_t)snprintf(text + used, GCK_ATTRIBUTE_TEXT_BYTES - used, "%s%" PRId64, i > 0 ? "," : "", value->list[i]);
}

/* The word of an enumeration or flag, and every other value as it stands in the case line. */
static const char *word_of(const gck_attribute_spec *spec, const gck_value *value, char *text)
{
  switch (spec->kind) {
  case GCK_ATTR_WORD:
    return spec->words[value->integer];
  case GCK_ATTR_FLAG:
    return value->integer != 0 ? "yes" : "no";
  case GCK_ATTR_REAL:
    print_real(value->real, text);
    return text;
  case GCK_ATTR_LIST:
    print_list(value, text);
    return text;
  default:
    (void)snprintf(text, GCK_ATTRIBUTE_TEXT_BYTES, "%" PRId64, value->integer);
    return text;
  }
}

void gck_attributes_fill(gck_attributes *a, const gck_case *c)
{
  a->count = gck_op_attribute_count(c->op);
  for (int k = 0; k < a->count; k++) {
    const gck_attribute_spec *spec = &c->op->attributes[k];
    gck_value *value = &a->value[k];
    *value = c->attribute[k];
    const bool is_list = spec->kind == GCK_ATTR_LIST, is_real = spec->kind == GCK_ATTR_REAL;
    a->item[k] = (gck_attribute){.name = spec->name,
                                 .integer = value->integer,
                                 .real = is_real ? value->real : (double)value->integer,
                                 .word = word_of(spec, value, a->text[k]),
                                 .list = is_list ? value->list : NULL,
                                 .list_count = is_list ? value->list_count : 0};
  }
}
