/* A run's memory as the harness sees it: the buffers themselves on the host, a staged copy of them for a device with
 * memory of its own. What is laid out before a call, and what is looked for after it. */
#ifndef GCK_GPU_IMAGE_H
#define GCK_GPU_IMAGE_H

#include "gpu/plan.h"

/* Fills both guard zones of every buffer. */
void gck_image_guard(const gck_plan *plan, gck_poison poison);

/* Writes what a buffer holds before the kernel comes: poison, and over it the elements of `from` unless that is NULL.
 */
void gck_image_compose(const gck_buffer *buffer, const gck_tensor *from, gck_poison poison, void *body);

/* Notes the body's hash. */
void gck_image_seal(gck_buffer *buffer);
bool gck_image_is_sealed(const gck_buffer *buffer);

/* Appends a fault for each guard zone that is not intact, unless it is known already. */
void gck_image_check_guards(const gck_plan *plan, int phase, gck_poison poison, gck_response *response);

/* A sealed body that has changed: finds the first changed byte by composing it anew from `from`. */
GCK_MUST_USE gck_status gck_image_check_seal(const gck_plan *plan, const gck_buffer *buffer, int phase,
                                             const gck_tensor *from, gck_poison poison, gck_response *response,
                                             gck_diag *diag);

/* The poison between the elements of a strided result. */
GCK_MUST_USE gck_status gck_image_check_padding(const gck_plan *plan, const gck_buffer *buffer, int phase,
                                                gck_poison poison, gck_response *response, gck_diag *diag);

/* Under AddressSanitizer on host memory: any access to a guard zone between the two is reported at its source line. */
void gck_image_forbid_guards(const gck_plan *plan);
void gck_image_allow_guards(const gck_plan *plan);

#endif
