/* gradcheck: decides whether a gradient kernel is right. The first word is an op or a subcommand. */
#include "cli/cli.h"

#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static const cli_command commands[] = {
    {"list", "[ops|checks|families|…]", "what there is to judge and to ask", cli_list},
    {"explain", "OP [name=value…]", "an op's formula, gradient, terms, sizes and cost", cli_explain},
    {"replay", "FILE|DIR… [options]", "judge captured gradients, from any framework", cli_replay},
    {"structure", "[OP] [name=value…] [options]", "the shape of a kernel's Jacobian, found without a reference",
     cli_structure},
    {"bench", "OP [name=value…] [options]", "times of a kernel against what memory allows", cli_bench},
    {"report", "REPORT.json [options]", "show a report again, or in another form", cli_report},
    {"merge", "REPORT.json… [options]", "one report of many", cli_merge},
    {"diff", "OLD.json NEW.json", "what broke, healed, or moved", cli_diff},
    {"sensitivity", "OP [name=value…]", "the smallest faults that are caught, measured", cli_sensitivity},
    {"doctor", "", "what this machine can check", cli_doctor},
};
enum { COMMANDS = sizeof commands / sizeof commands[0], MAX_NAMES = 64 };

static void print_help(FILE *out)
{
  fputs("gradcheck decides whether a gradient kernel is right, and says what is wrong.\n\n"
        "  gradcheck OP [name=value…] [options]    judge an op's kernel (gradcheck OP --help)\n",
        out);
  for (int k = 0; k < COMMANDS; k++) {
    char line[80];
    (void)snprintf(line, sizeof line, "%s %s", commands[k].name, commands[k].arguments);
    int columns = (int)strlen(line) - (strstr(line, "…") != NULL ? 2 : 0);
    fprintf(out, "  gradcheck %s%*s%s\n", line, columns < 30 ? 30 - columns : 1, "", commands[k].help);
  }
  fputs("\nOps:", out);
  for (const gck_op *const *op = gck_ops(); *op != NULL; op++)
    fprintf(out, " %s", (*op)->name);
  fputs("\n\n  gradcheck layernorm                     the default case, built-in kernel, host device\n"
        "  gradcheck softmax rows=8 cols=1000 --dtype bf16,f16\n"
        "  gradcheck softmax --kernel ./libmine.so --dtype all --html report.html\n"
        "  gradcheck replay dump.safetensors intermediates=storage\n\n"
        "Exit status: 0 right; 1 a gradient is wrong, or nothing was really checked; 2 the words or a file are wrong;\n"
        "3 the environment cannot.\n",
        out);
}

static int unknown_word(const char *word)
{
  const char *names[MAX_NAMES] = {0};
  int count = 0;
  for (int k = 0; k < COMMANDS; k++)
    names[count++] = commands[k].name;
  for (const gck_op *const *op = gck_ops(); *op != NULL && count < MAX_NAMES - 1; op++)
    names[count++] = (*op)->name;
  gck_diag diag = {0};
  (void)cli_unknown("op or subcommand", word, names, &diag);
  return cli_complain(&diag);
}

static int option_first(const char *option)
{
  gck_diag diag = {0};
  (void)gck_fail(&diag, GCK_E_WORDS, option, "gradcheck layernorm, or gradcheck --help",
                 "an op or a subcommand comes first");
  return cli_complain(&diag);
}

static int dispatch(int argc, char **argv)
{
  if (argc < 2) {
    print_help(stderr);
    return CLI_WRONG_WORDS;
  }
  const char *word = argv[1];
  if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) {
    print_help(stdout);
    return 0;
  }
  if (strcmp(word, "--version") == 0) {
    puts("gradcheck " GCK_VERSION);
    return 0;
  }
  if (word[0] == '-') return option_first(word);
  for (int k = 0; k < COMMANDS; k++) {
    if (strcmp(commands[k].name, word) == 0) return commands[k].run(argc - 1, argv + 1);
  }
  return gck_op_find(word) != NULL ? cli_judge(argc - 1, argv + 1) : unknown_word(word);
}

int main(int argc, char **argv)
{
  (void)setlocale(LC_CTYPE, "C.UTF-8"); /* numbers stay in the C locale */
  (void)signal(SIGPIPE, SIG_IGN);       /* a closed pipe is a write that fails, not a status of its own */
  return cli_finish(dispatch(argc, argv));
}
