/* Report files: whole or not at all. The text goes into a new file beside the target, is forced to the disk, and only
 * then takes the target's name. */
#include "reports/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static gck_status render(gck_report_format format, const gck_report *r, char **text, size_t *bytes, gck_diag *diag)
{
  switch (format) {
  case GCK_REPORT_JSON:
    return gck_render_json(r, text, bytes, diag);
  case GCK_REPORT_JUNIT:
    return gck_render_junit(r, text, bytes, diag);
  case GCK_REPORT_HTML:
    return gck_render_html(r, text, bytes, diag);
  case GCK_REPORT_MARKDOWN:
    return gck_render_markdown(r, text, bytes, diag);
  }
  return gck_fail(diag, GCK_E_INTERNAL, "gck_write_file", NULL, "unknown report format %d", (int)format);
}

static gck_status io_failed(const char *path, const char *deed, gck_diag *diag)
{
  const int error = errno;
  const char *hint = "is the folder writable?";
  if (error == ENOENT || error == ENOTDIR) hint = "the folder must exist";
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) hint = "free some room or write elsewhere";
  return gck_fail(diag, GCK_E_IO, path, hint, "%s failed: %s", deed, strerror(error));
}

static gck_status exists(const char *path, gck_diag *diag)
{
  return gck_fail(diag, GCK_E_IO, path, "name another file, remove this one, or ask for it to be replaced",
                  "the file exists already and is not replaced unasked");
}

static bool write_all(int file, const char *text, size_t bytes)
{
  while (bytes > 0) {
    const ssize_t n = write(file, text, bytes < (1u << 30) ? bytes : (1u << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    text += n;
    bytes -= (size_t)n;
  }
  return true;
}

/* The folder's entry must reach the disk too; file systems that cannot do that say so by EINVAL, which is fine. */
static void sync_folder(const char *path)
{
  char *folder = strdup(path);
  if (folder == NULL) return;
  char *slash = strrchr(folder, '/');
  if (slash != NULL) slash[1] = '\0';
  const int file = open(slash != NULL ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file >= 0) {
    (void)fsync(file);
    close(file);
  }
  free(folder);
}

/* Gives the finished file its name. Without `replace` the name is taken by link(), which cannot overwrite: a file that
 * appeared in the meantime survives. */
static gck_status take_name(const char *beside, const char *path, bool replace, gck_diag *diag)
{
  if (replace) return rename(beside, path) == 0 ? GCK_OK : io_failed(path, "renaming", diag);
  if (link(beside, path) == 0) {
    (void)unlink(beside);
    return GCK_OK;
  }
  if (errno == EEXIST) return exists(path, diag);
  if (errno != EPERM && errno != ENOSYS && errno != EOPNOTSUPP) return io_failed(path, "naming", diag);
  struct stat there; /* a file system without links */
  if (lstat(path, &there) == 0) return exists(path, diag);
  return rename(beside, path) == 0 ? GCK_OK : io_failed(path, "renaming", diag);
}

/* A new file beside the target, in the mode that any new file gets; its name goes to `beside`. */
static int create_beside(const char *path, char *beside, size_t room)
{
  for (int n = 0; n < 100; n++) {
    (void)snprintf(beside, room, "%s.%ld-%d.tmp", path, (long)getpid(), n);
    const int file = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file >= 0 || errno != EEXIST) return file;
  }
  return -1;
}

static gck_status write_beside(const char *path, char *beside, size_t room, const char *text, size_t bytes,
                               bool replace, gck_diag *diag)
{
  const int file = create_beside(path, beside, room);
  if (file < 0) return io_failed(path, "creating a file beside it", diag);
  gck_status status = GCK_OK;
  if (!write_all(file, text, bytes) || fsync(file) != 0) status = io_failed(path, "writing", diag);
  if (close(file) != 0 && status == GCK_OK) status = io_failed(path, "closing", diag);
  if (status == GCK_OK) status = take_name(beside, path, replace, diag);
  if (status != GCK_OK) (void)unlink(beside);
  return status;
}

/* A target that can be refused before anything is rendered. */
static gck_status check_target(const char *path, bool replace, gck_diag *diag)
{
  struct stat there;
  if (lstat(path, &there) != 0) return GCK_OK;
  if (!replace) return exists(path, diag);
  if (S_ISREG(there.st_mode) || S_ISLNK(there.st_mode)) return GCK_OK;
  return gck_fail(diag, GCK_E_IO, path, "name a file", "it is %s, not a file",
                  S_ISDIR(there.st_mode) ? "a folder" : "a device, pipe or socket");
}

gck_status gck_write_file(const char *path, gck_report_format format, const gck_report *r, bool replace, gck_diag *diag)
{
  gck_status status = check_target(path, replace, diag);
  if (status != GCK_OK) return status;
  char *text = NULL;
  size_t bytes = 0;
  status = render(format, r, &text, &bytes, diag);
  if (status != GCK_OK) return status;
  const size_t room = strlen(path) + 40;
  char *beside = malloc(room);
  if (beside == NULL) {
    free(text);
    return gck_fail(diag, GCK_E_MEMORY, path, NULL, "out of memory");
  }
  status = write_beside(path, beside, room, text, bytes, replace, diag);
  if (status == GCK_OK) sync_folder(path);
  free(beside);
  free(text);
  return status;
}
