#include "gpu/image.h"
#include "gpu/pattern.h"
#include "gpu/strided.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

static char *body(const gck_buffer *buffer)
{
  return buffer->view.data;
}

static char *guard_before(const gck_plan *plan, const gck_buffer *buffer)
{
  return body(buffer) - plan->guard;
}

static char *guard_after(const gck_buffer *buffer)
{
  return body(buffer) + buffer->bytes;
}

/* ---- before the call -------------------------------------------------------------------------------------------- */

void gck_image_guard(const gck_plan *plan, gck_poison poison)
{
  for (int b = 0; b < plan->buffer_count; b++) {
    const gck_buffer *buffer = &plan->buffer[b];
    const uint64_t word = gck_guard_word(buffer->view.dtype, poison, b);
    gck_pattern_fill(guard_before(plan, buffer), word, plan->guard);
    gck_pattern_fill(guard_after(buffer), word, plan->guard);
  }
}

void gck_image_compose(const gck_buffer *buffer, const gck_tensor *from, gck_poison poison, void *to)
{
  const bool covers = from != NULL && gck_tensor_is_packed(&buffer->view);
  if (!covers) gck_pattern_fill(to, gck_poison_word(buffer->view.dtype, poison), buffer->bytes);
  if (from == NULL) return;
  gck_tensor view = buffer->view;
  view.data = to;
  gck_copy_elements(&view, from);
}

void gck_image_seal(gck_buffer *buffer)
{
  buffer->hash = XXH3_64bits(body(buffer), buffer->bytes);
}

bool gck_image_is_sealed(const gck_buffer *buffer)
{
  return buffer->hash == XXH3_64bits(body(buffer), buffer->bytes);
}

/* ---- after the call --------------------------------------------------------------------------------------------- */

static bool same_fault(const gck_memory_fault *a, const gck_memory_fault *b)
{
  return strcmp(a->tensor, b->tensor) == 0 && a->before == b->before && a->input_changed == b->input_changed &&
         a->padding == b->padding;
}

/* Damage stays where it is, so the second phase sees that of the first again. */
static void add_fault(gck_response *response, const char *name, gck_memory_fault fault)
{
  (void)snprintf(fault.tensor, sizeof fault.tensor, "%s", name);
  for (int f = 0; f < response->fault_count; f++)
    if (same_fault(&response->fault[f], &fault)) return;
  if (response->fault_count < GCK_MAX_MEMORY_FAULTS) response->fault[response->fault_count++] = fault;
}

void gck_image_check_guards(const gck_plan *plan, int phase, gck_poison poison, gck_response *response)
{
  for (int b = 0; b < plan->buffer_count; b++) {
    const gck_buffer *buffer = &plan->buffer[b];
    const char *name = gck_plan_name(plan, buffer);
    const uint64_t word = gck_guard_word(buffer->view.dtype, poison, b);
    const int64_t low = gck_pattern_first_other(guard_before(plan, buffer), word, plan->guard);
    const int64_t high = gck_pattern_first_other(guard_after(buffer), word, plan->guard);
    if (low >= 0)
      add_fault(response, name,
                (gck_memory_fault){.phase = phase, .before = true, .offset = low - (int64_t)plan->guard});
    if (high >= 0)
      add_fault(response, name, (gck_memory_fault){.phase = phase, .offset = (int64_t)buffer->bytes + high});
  }
}

static int64_t first_difference(const char *a, const char *b, size_t bytes)
{
  size_t i = 0;
  while (i < bytes && a[i] == b[i])
    i++;
  return (int64_t)i;
}

static gck_status scratch(const gck_buffer *buffer, char **memory, gck_diag *diag)
{
  *memory = malloc(buffer->bytes > 0 ? buffer->bytes : 1);
  if (*memory != NULL) return GCK_OK;
  return gck_fail(diag, GCK_E_MEMORY, "memory check", NULL, "no room for %zu bytes", buffer->bytes);
}

gck_status gck_image_check_seal(const gck_plan *plan, const gck_buffer *buffer, int phase, const gck_tensor *from,
                                gck_poison poison, gck_response *response, gck_diag *diag)
{
  char *expected;
  if (gck_image_is_sealed(buffer)) return GCK_OK;
  const gck_status status = scratch(buffer, &expected, diag);
  if (status != GCK_OK) return status;
  gck_image_compose(buffer, from, poison, expected);
  add_fault(response, gck_plan_name(plan, buffer),
            (gck_memory_fault){.phase = phase,
                               .input_changed = true,
                               .offset = first_difference(expected, body(buffer), buffer->bytes)});
  free(expected);
  return GCK_OK;
}

gck_status gck_image_check_padding(const gck_plan *plan, const gck_buffer *buffer, int phase, gck_poison poison,
                                   gck_response *response, gck_diag *diag)
{
  char *copy;
  if (gck_tensor_is_packed(&buffer->view)) return GCK_OK;
  const gck_status status = scratch(buffer, &copy, diag);
  if (status != GCK_OK) return status;
  /* Poison over the elements: whatever then is not poison was written beside them. */
  const uint64_t word = gck_poison_word(buffer->view.dtype, poison);
  gck_tensor view = buffer->view;
  memcpy(copy, body(buffer), buffer->bytes);
  view.data = copy;
  gck_set_elements(&view, word);
  const int64_t at = gck_pattern_first_other(copy, word, buffer->bytes);
  if (at >= 0)
    add_fault(response, gck_plan_name(plan, buffer), (gck_memory_fault){.phase = phase, .padding = true, .offset = at});
  free(copy);
  return GCK_OK;
}

/* ---- AddressSanitizer ------------------------------------------------------------------------------------------- */

void gck_image_forbid_guards(const gck_plan *plan)
{
#if defined(__SANITIZE_ADDRESS__)
  for (int b = 0; b < plan->buffer_count; b++) {
    __asan_poison_memory_region(guard_before(plan, &plan->buffer[b]), plan->guard);
    __asan_poison_memory_region(guard_after(&plan->buffer[b]), plan->guard);
  }
#else
  (void)plan;
#endif
}

void gck_image_allow_guards(const gck_plan *plan)
{
#if defined(__SANITIZE_ADDRESS__)
  for (int b = 0; b < plan->buffer_count; b++) {
    __asan_unpoison_memory_region(guard_before(plan, &plan->buffer[b]), plan->guard);
    __asan_unpoison_memory_region(guard_after(&plan->buffer[b]), plan->guard);
  }
#else
  (void)plan;
#endif
}
