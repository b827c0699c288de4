/* Status: whether a function could do its job. What a check found is a verdict (checks/record.h), never a status. */
#ifndef GCK_CORE_STATUS_H
#define GCK_CORE_STATUS_H

#define GCK_MUST_USE __attribute__((warn_unused_result))
#define GCK_PRINTF(f, a) __attribute__((format(printf, f, a)))

typedef enum gck_status {
  GCK_OK = 0,
  GCK_E_WORDS,       /* the caller's words are wrong: unknown op, attribute out of range; exit status 2 */
  GCK_E_INPUT,       /* a file or a plug-in cannot be read or breaks its format; exit status 2 */
  GCK_E_UNSUPPORTED, /* well formed, but not offered here (a dtype a kernel lacks); the case is skipped with the reason
                      */
  GCK_E_KERNEL,      /* the kernel under test misbehaved: a finding about it */
  GCK_E_MEMORY,      /* out of memory; exit status 3 */
  GCK_E_DEVICE,      /* no device, or the device failed; exit status 3 */
  GCK_E_IO,          /* writing failed; exit status 3 */
  GCK_E_CANCELLED,   /* the caller asked to stop; exit status 3 */
  GCK_E_INTERNAL     /* a broken invariant of ours; exit status 3 */
} gck_status;

/* What went wrong, where, and what to do. Owned by the caller, who starts it with {0}. The first error wins: a later
 * gck_fail on a diagnostic that holds an error only prefixes nothing and keeps the first. */
typedef struct gck_diag {
  gck_status status;
  char where[128]; /* a file, a word, a function: "x.safetensors: header" */
  char text[512];  /* one sentence */
  char hint[256];  /* what to do; may be empty */
} gck_diag;

/* Records an error and returns `status`. `hint` may be NULL. `diag` may be NULL (the status alone is kept). */
GCK_PRINTF(5, 6)
gck_status gck_fail(gck_diag *diag, gck_status status, const char *where, const char *hint, const char *format, ...);

/* "bad words", "unreadable input", … */
const char *gck_status_name(gck_status status);

/* The exit status that the CLI gives for an error: 2 for words and input, 3 for the rest. */
int gck_status_exit(gck_status status);

#endif
