/* gradcheck bench: times of a kernel's forward and vjp, as ratios to the time in which the device could just move the
 * bytes that must move. Medians; caches flushed and the launch's cost hidden before every call. Judges nothing. */
#include "cli/cli.h"

#include "core/random.h"
#include "gpu/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BENCH_REPEATS = 15 };

typedef struct bench {
  gck_case c;
  gck_library *library;
  gck_runner *runner;
  gck_tensor tensors[GCK_MAX_TENSORS];
  double copy_rate; /* bytes a second */
} bench;

/* ---- inputs ---------------------------------------------------------------------------------------------------- */

/* Where the op draws plain numbers, a drawn row of them repeats: drawing 10^8 normals takes longer than the timing, and
 * times do not depend on values as long as they are not all alike. */
enum { DRAWN = 1 << 16 };

static void fill_normal(const gck_case *c, int t, gck_tensor *tensor)
{
  const gck_tensor_spec *spec = &c->op->tensors[t];
  const gck_stream stream = gck_stream_named(c->seed, spec->name);
  const int64_t count = gck_tensor_count(tensor), drawn = count < DRAWN ? count : DRAWN;
  const size_t size = gck_dtype_format(tensor->dtype)->bytes;
  for (int64_t i = 0; i < drawn; i++)
    gck_tensor_set(tensor, i, spec->mean + spec->spread * gck_random_normal(stream, (uint64_t)i));
  char *bytes = tensor->data;
  for (int64_t done = drawn; done < count; done += drawn) {
    const int64_t more = count - done < drawn ? count - done : drawn;
    memcpy(bytes + (size_t)done * size, bytes, (size_t)more * size);
  }
}

static bool is_input(gck_role role)
{
  return role == GCK_ROLE_INPUT || role == GCK_ROLE_COTANGENT;
}

static bool is_plain(const gck_case *c)
{
  for (int t = 0; c->op->tensors[t].name != NULL; t++)
    if (c->present[t] && is_input(c->op->tensors[t].role) && c->op->tensors[t].draw != GCK_DRAW_NORMAL) return false;
  return true;
}

static gck_status make_inputs(bench *b, gck_diag *diag)
{
  const gck_case *c = &b->c;
  gck_status status = GCK_OK;
  if (!is_plain(c)) return gck_case_draw(c, b->tensors, diag);
  for (int t = 0; status == GCK_OK && c->op->tensors[t].name != NULL; t++) {
    if (!c->present[t] || !is_input(c->op->tensors[t].role)) continue;
    status = gck_tensor_make(&b->tensors[t], c->tensor_dtype[t], c->rank[t], c->shape[t], diag);
    if (status == GCK_OK) fill_normal(c, t, &b->tensors[t]);
  }
  return status;
}

/* ---- bytes ----------------------------------------------------------------------------------------------------- */

static double tensor_bytes(const gck_case *c, int t)
{
  return (double)gck_case_count(c, t) * (double)gck_dtype_format(c->tensor_dtype[t])->bytes;
}

/* Whether `saves` names tensor t: what forward keeps for the vjp. */
static bool is_saved(const gck_kernel *kernel, const char *name)
{
  const size_t length = strlen(name);
  for (const char *at = kernel->saves; at != NULL && *at != '\0';) {
    const size_t word = strcspn(at, " ");
    if (word == length && strncmp(at, name, length) == 0) return true;
    at += word + strspn(at + word, " ");
  }
  return false;
}

/* Every tensor of a phase once: read if it goes in, written if it comes out. */
static double phase_bytes(const bench *b, int phase)
{
  const gck_kernel *kernel = gck_runner_kernel(b->runner);
  double bytes = 0.0;
  for (int t = 0; b->c.op->tensors[t].name != NULL; t++) {
    const gck_tensor_spec *spec = &b->c.op->tensors[t];
    if (!b->c.present[t]) continue;
    const bool saved = is_saved(kernel, spec->name);
    const bool forward = spec->role == GCK_ROLE_INPUT || spec->role == GCK_ROLE_OUTPUT || saved;
    const bool vjp = (is_input(spec->role) && !spec->vjp_ignores) || spec->role == GCK_ROLE_GRADIENT || saved;
    const bool both = is_input(spec->role) || spec->role == GCK_ROLE_OUTPUT || spec->role == GCK_ROLE_GRADIENT;
    if (phase == GCK_PHASE_BOTH ? both : phase == GCK_PHASE_FORWARD ? forward : vjp) bytes += tensor_bytes(&b->c, t);
  }
  return bytes;
}

/* ---- one line -------------------------------------------------------------------------------------------------- */

static void print_phase(const bench *b, const char *name, int phase, double seconds, double flops)
{
  const double bytes = phase_bytes(b, phase), floor = bytes / b->copy_rate;
  printf("  %-8s %10.1f us   %8.1f MB   floor %9.1f us   time/floor %6.2f   %8.2f TFLOP/s\n", name, seconds * 1e6,
         bytes / 1e6, floor * 1e6, seconds / floor, flops / seconds / 1e12);
}

static gck_status run_once(bench *b, int repeats, gck_diag *diag)
{
  gck_response response;
  const gck_request request = {.c = &b->c,
                               .forward = gck_runner_kernel(b->runner)->forward != NULL,
                               .vjp = true,
                               .tensors = b->tensors,
                               .repeats = repeats};
  gck_status status = gck_runner_run(b->runner, &request, &response, diag);
  if (status != GCK_OK) return status;
  double forward = 0.0, vjp = 0.0, saved = 0.0;
  b->c.op->cost(&b->c, &forward, &vjp, &saved);
  if (response.code == GCK_KERNEL_UNSUPPORTED)
    status = gck_fail(diag, GCK_E_UNSUPPORTED, gck_runner_kernel(b->runner)->name, NULL, "%s", response.message);
  else if (response.code != GCK_KERNEL_OK)
    status = gck_fail(diag, GCK_E_KERNEL, gck_runner_kernel(b->runner)->name, NULL, "%s", response.message);
  if (status == GCK_OK && response.at_once)
    print_phase(b, "both", GCK_PHASE_BOTH, response.vjp_seconds, forward + vjp);
  else if (status == GCK_OK && request.forward)
    print_phase(b, "forward", GCK_PHASE_FORWARD, response.forward_seconds, forward);
  if (status == GCK_OK && !response.at_once) print_phase(b, "vjp", GCK_PHASE_VJP, response.vjp_seconds, vjp);
  gck_response_free(&response);
  return status;
}

static gck_status time_case(bench *b, const cli_options *o, const char *line, gck_diag *diag)
{
  bool changed;
  const char *device = o->device != NULL ? o->device : "host";
  const char *name = o->kernel != NULL && o->kernel[0] == ':' ? o->kernel + 1 : o->kernel;
  char text[GCK_CASE_LINE_BYTES];
  gck_status status = gck_case_parse(&b->c, line, diag);
  if (status == GCK_OK) status = gck_library_open(NULL, device, &b->library, &changed, diag);
  if (status == GCK_OK) status = gck_runner_open(b->library, b->c.op->name, name, b->c.dtype, &b->runner, diag);
  if (status == GCK_OK) status = gck_measure_copy(device, &b->copy_rate, diag);
  if (status == GCK_OK) status = make_inputs(b, diag);
  if (status != GCK_OK) return status;
  (void)gck_case_print(&b->c, text, sizeof text);
  printf("%s   %s on %s, copy %.3f TB/s\n", text, gck_runner_kernel(b->runner)->name, device, b->copy_rate / 1e12);
  return run_once(b, BENCH_REPEATS, diag);
}

static void close_bench(bench *b)
{
  for (int t = 0; t < GCK_MAX_TENSORS; t++)
    gck_tensor_free(&b->tensors[t]);
  if (b->runner != NULL) gck_runner_close(b->runner);
  if (b->library != NULL) gck_library_close(b->library);
}

/* ---- the subcommand -------------------------------------------------------------------------------------------- */

static gck_status join_words(const cli_options *o, const char *dtype, char *line, size_t bytes, gck_diag *diag)
{
  size_t length = 0;
  for (int k = 0; k < o->word_count && length < bytes; k++)
    length += (size_t)snprintf(line + length, bytes - length, "%s%s", k > 0 ? " " : "", o->words[k]);
  if (dtype != NULL && length < bytes) length += (size_t)snprintf(line + length, bytes - length, " dtype=%s", dtype);
  return length < bytes ? GCK_OK : gck_fail(diag, GCK_E_WORDS, "bench", NULL, "the words are too long");
}

static gck_status time_dtypes(const cli_options *o, gck_diag *diag)
{
  const char **dtypes = NULL;
  const char *const none[] = {NULL, NULL};
  gck_status status = o->dtypes != NULL ? cli_split(o->dtypes, &dtypes, diag) : GCK_OK;
  const char *const *each = dtypes != NULL ? dtypes : none;
  for (int k = 0; status == GCK_OK && (k == 0 || each[k] != NULL); k++) {
    char line[GCK_CASE_LINE_BYTES];
    bench *b = calloc(1, sizeof *b);
    if (b == NULL) status = gck_fail(diag, GCK_E_MEMORY, "bench", NULL, "out of memory");
    if (status == GCK_OK) status = join_words(o, each[k], line, sizeof line, diag);
    if (status == GCK_OK) status = time_case(b, o, line, diag);
    if (b != NULL) close_bench(b);
    free(b);
  }
  free(dtypes);
  return status;
}

int cli_bench(int argc, char **argv)
{
  static const cli_usage usage = {
      "gradcheck bench", "OP [name=value…]",
      "Times a built-in kernel's forward and vjp (--kernel :NAME chooses one) against the time in which the "
      "device could just copy their bytes. Medians of 15 calls with cold caches.",
      CLI_TAKES_KERNEL};
  cli_options options;
  gck_diag diag = {0};
  gck_status status = cli_parse(argc, argv, &usage, NULL, &options, &diag);
  if (status == GCK_OK && options.help) return 0;
  if (status == GCK_OK && options.word_count == 0)
    status = gck_fail(&diag, GCK_E_WORDS, "bench", "gradcheck bench layernorm rows=8192 cols=4096 --device cuda",
                      "which op?");
  if (status == GCK_OK) status = time_dtypes(&options, &diag);
  return status == GCK_OK ? cli_finish(0) : cli_complain(&diag);
}
