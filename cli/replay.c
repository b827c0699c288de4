/* gradcheck replay: judges captures, whatever produced them. */
#include "cli/cli.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct file_list {
  char **path;
  size_t count;
} file_list;

static void free_list(file_list *list)
{
  for (size_t i = 0; i < list->count; i++)
    free(list->path[i]);
  free(list->path);
  *list = (file_list){0};
}

/* Takes `path` over, NULL included. */
static gck_status add_file(file_list *list, char *path, gck_diag *diag)
{
  char **grown = path != NULL ? realloc(list->path, (list->count + 1) * sizeof *grown) : NULL;
  if (grown == NULL) {
    free(path);
    return gck_fail(diag, GCK_E_MEMORY, "replay", NULL, "out of memory");
  }
  list->path = grown;
  list->path[list->count++] = path;
  return GCK_OK;
}

static int is_capture(const struct dirent *entry)
{
  const char *dot = strrchr(entry->d_name, '.');
  return entry->d_name[0] != '.' && dot != NULL && strcmp(dot, ".safetensors") == 0;
}

/* The captures of a folder, by name. */
static gck_status add_folder(file_list *list, const char *folder, gck_diag *diag)
{
  struct dirent **entries = NULL;
  int count = scandir(folder, &entries, is_capture, alphasort);
  if (count < 0) return gck_fail(diag, GCK_E_INPUT, folder, NULL, "cannot be read: %s", strerror(errno));
  gck_status status = count > 0 ? GCK_OK : gck_fail(diag, GCK_E_INPUT, folder, NULL, "holds no .safetensors file");
  for (int i = 0; i < count; i++) {
    char *path = NULL;
    const char *slash = folder[strlen(folder) - 1] == '/' ? "" : "/";
    if (status == GCK_OK && asprintf(&path, "%s%s%s", folder, slash, entries[i]->d_name) < 0) path = NULL;
    if (status == GCK_OK) status = add_file(list, path, diag);
    free(entries[i]);
  }
  free(entries);
  return status;
}

static gck_status add_word(file_list *list, const char *word, gck_diag *diag)
{
  struct stat info;
  if (stat(word, &info) == 0)
    return S_ISDIR(info.st_mode) ? add_folder(list, word, diag) : add_file(list, strdup(word), diag);
  int error = errno;
  size_t length = strcspn(word, "=");
  if (word[length] == '=' && strchr(word, '/') == NULL) { /* a declaration with a slip */
    char name[64];
    (void)snprintf(name, sizeof name, "%.*s", (int)(length < 60 ? length : 60), word);
    return cli_unknown("file, nor a word of a declaration", name, gck_declaration_words(), diag);
  }
  return gck_fail(diag, GCK_E_INPUT, word, NULL, "cannot be read: %s", strerror(error));
}

static gck_status note_reproduction(gck_run *run, const cli_options *o, const char *path, gck_diag *diag)
{
  char said[1024], file[4096];
  cli_quote(path, file, sizeof file);
  (void)gck_declaration_print(&o->declaration, said, sizeof said);
  return gck_record_text(&run->reproduce, diag, "gradcheck replay %s%s%s", file, said[0] != '\0' ? " " : "", said);
}

/* A capture's bytes tell how long it takes. */
static double work_of(const char *path)
{
  struct stat info;
  return stat(path, &info) == 0 ? 1e5 + (double)info.st_size : 1;
}

static double work_of_all(const file_list *list)
{
  double work = 0;
  for (size_t i = 0; i < list->count; i++)
    work += work_of(list->path[i]);
  return work;
}

/* A capture that cannot be read does not keep the others from being judged; it decides the exit status. */
static gck_status replay_all(cli_trial *s, const file_list *list, gck_diag *unreadable, gck_diag *diag)
{
  cli_progress_plan(s->progress, (int)list->count, work_of_all(list));
  for (size_t i = 0; i < list->count; i++) {
    gck_options options = cli_trial_options(s, 1, (int)list->count * 8);
    gck_diag one = {0};
    size_t before = s->report.run_count;
    cli_progress_run(s->progress, list->path[i], work_of(list->path[i]));
    gck_status status = gck_judge_capture(list->path[i], &s->options->declaration, &options, &s->report, &one);
    if (status != GCK_OK) cli_trial_drop(s, before);
    if (status == GCK_E_INPUT || status == GCK_E_WORDS) {
      cli_progress_ran(s->progress, false);
      (void)cli_complain(&one);
      if (unreadable->status == GCK_OK) *unreadable = one;
      continue;
    }
    if (status == GCK_OK)
      status = note_reproduction(&s->report.run[s->report.run_count - 1], s->options, list->path[i], &one);
    if (status == GCK_OK) status = cli_trial_show(s, &one);
    if (status == GCK_OK && cli_interrupted())
      status = gck_fail(&one, GCK_E_CANCELLED, "gradcheck", NULL, "interrupted; the report is partial");
    if (status != GCK_OK) {
      *diag = one;
      return status;
    }
  }
  return GCK_OK;
}

static int replay_files(const cli_options *o, const file_list *list)
{
  cli_trial trial;
  gck_diag diag = {0}, unreadable = {0};
  gck_status status = cli_trial_begin(&trial, o, "gradcheck replay", &diag);
  if (status != GCK_OK) return cli_complain(&diag);
  status = replay_all(&trial, list, &unreadable, &diag);
  if (status == GCK_OK && trial.report.run_count == 0 && unreadable.status != GCK_OK) {
    cli_progress_stop(trial.progress); /* all was said: there is nothing to report on */
    cli_trial_free(&trial);
    return gck_status_exit(unreadable.status);
  }
  int code = cli_trial_end(&trial, status, &diag);
  return unreadable.status != GCK_OK && code < CLI_CANNOT ? gck_status_exit(unreadable.status) : code;
}

int cli_replay(int argc, char **argv)
{
  static const cli_usage usage = {
      "gradcheck replay", "FILE|DIR… [word=value…] [options]",
      "Judges captures: safetensors files of inputs, cotangents and gradients. The words of "
      "a\ndeclaration (intermediates=storage) override those of the files.",
      CLI_TAKES_REPORTS | CLI_TAKES_CHECKS | CLI_TAKES_DECLARATION};
  cli_options options;
  file_list list = {0};
  gck_diag diag = {0};
  gck_status status = cli_parse(argc, argv, &usage, NULL, &options, &diag);
  if (status == GCK_OK && options.help) return 0;
  if (status == GCK_OK && options.word_count == 0)
    status = gck_fail(&diag, GCK_E_WORDS, "replay", "gradcheck replay dump.safetensors", "names no file");
  for (int i = 0; i < options.word_count && status == GCK_OK; i++)
    status = add_word(&list, options.words[i], &diag);
  int code = status == GCK_OK ? replay_files(&options, &list) : cli_complain(&diag);
  free_list(&list);
  return code;
}
