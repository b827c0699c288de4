#include "checks/provocations.h"
#include "checks/subject.h"

enum { LINE_BYTES = 256, MOST_LINES = 15, OTHER_FILL = 0x7B /* finite in every floating-point type */ };

#define FORWARD GCK_ORDER_FORWARD
#define REVERSE GCK_ORDER_REVERSE
#define SHUFFLE GCK_ORDER_RANDOM

/* The host runs its orders on one OS thread, since the order itself is the point. (forward, reverse) × (first, last
 * ready first) × blocks, because each finds what the others cannot; docs/host-device.md has which. */
#define ORDER(threads_, blocks_, lifo_)                                                                                \
  {                                                                                                                    \
    .threads = (threads_), .blocks = (blocks_), .lifo = (lifo_), .os_threads = 1                                       \
  }

static const checks_provocation on_host[] = {
    {.how = "the same again"},
    {.how = "threads forward, last ready first", .schedule = ORDER(FORWARD, FORWARD, true)},
    {.how = "threads reversed", .schedule = ORDER(REVERSE, FORWARD, false)},
    {.how = "threads reversed, last ready first", .schedule = ORDER(REVERSE, FORWARD, true)},
    {.how = "blocks reversed", .schedule = ORDER(FORWARD, REVERSE, false)},
    {.how = "threads and blocks reversed, last ready first", .schedule = ORDER(REVERSE, REVERSE, true)},
    {.how = "another address", .address = CHECKS_OTHER_LINES},
    {.how = "other contents of workspace and shared memory", .other_contents = true},
    {.how = "after a call with other values", .after_other = true},
    {.how = "launched from another thread", .device = {.other_thread = true}},
    {.how = "threads and blocks shuffled", .schedule = ORDER(SHUFFLE, SHUFFLE, false), .shuffled = true},
    {.how = "threads and blocks shuffled, last ready first",
     .schedule = ORDER(SHUFFLE, SHUFFLE, true),
     .shuffled = true},
    {.how = "another alignment", .address = CHECKS_OTHER_ALIGNMENT, .promise = GCK_PROMISE_ALIGNMENT},
    {.how = "blocks shuffled, another address, other contents",
     .schedule = ORDER(REVERSE, SHUFFLE, false),
     .shuffled = true,
     .address = CHECKS_OTHER_LINES,
     .other_contents = true},
};

static const checks_provocation on_cuda[] = {
    {.how = "the same again"},
    {.how = "among noise", .device = {.noise = true}},
    {.how = "another address, among noise", .address = CHECKS_OTHER_LINES, .device = {.noise = true}},
    {.how = "other contents of the workspace, among noise", .other_contents = true, .device = {.noise = true}},
    {.how = "after a call with other values, among noise", .after_other = true, .device = {.noise = true}},
    {.how = "launched from another thread, among noise", .device = {.other_thread = true, .noise = true}},
    {.how = "as a graph", .device = {.graph = true}},
    {.how = "as a graph, among noise", .device = {.graph = true, .noise = true}},
    {.how = "on part of the multiprocessors", .device = {.confined = true}},
    {.how = "on part of the multiprocessors, among noise", .device = {.confined = true, .noise = true}},
    {.how = "another alignment", .address = CHECKS_OTHER_ALIGNMENT, .promise = GCK_PROMISE_ALIGNMENT},
    {.how = "on a second GPU, among noise", .second_device = true, .device = {.other_thread = true, .noise = true}},
};

static const checks_provocation on_cpu[] = {
    {.how = "the same again"},
    {.how = "another address", .address = CHECKS_OTHER_LINES},
    {.how = "other contents of the workspace", .other_contents = true},
    {.how = "after a call with other values", .after_other = true},
    {.how = "called from another thread", .device = {.other_thread = true}},
    {.how = "another alignment", .address = CHECKS_OTHER_ALIGNMENT, .promise = GCK_PROMISE_ALIGNMENT},
};

const checks_provocation *checks_provocations(uint32_t device, int *count)
{
  static const struct {
    uint32_t device;
    const checks_provocation *table;
    size_t count;
  } tables[] = {
      {GCK_ABI_HOST, on_host, sizeof on_host / sizeof *on_host},
      {GCK_ABI_CUDA, on_cuda, sizeof on_cuda / sizeof *on_cuda},
      {GCK_ABI_CPU, on_cpu, sizeof on_cpu / sizeof *on_cpu},
  };
  *count = 0;
  for (size_t k = 0; k < sizeof tables / sizeof *tables; k++) {
    if (tables[k].device != device) continue;
    *count = (int)tables[k].count;
    return tables[k].table;
  }
  return NULL;
}

gck_request checks_provoked(const gck_subject *s, const checks_provocation *p, uint64_t seed)
{
  gck_request request = checks_request(s);
  request.schedule = p->schedule;
  request.schedule.seed = p->shuffled || p->device.noise ? seed : 0;
  request.provoke = p->device;
  if (p->address == CHECKS_OTHER_LINES) request.misalign = LINE_BYTES * (1 + (size_t)(seed % MOST_LINES));
  if (p->address == CHECKS_OTHER_ALIGNMENT) request.misalign = 1; /* rounded up to an element */
  if (p->other_contents) {
    request.poison = GCK_POISON_HUGE;
    request.schedule.fill = OTHER_FILL;
  }
  return request;
}
