/* The command `wsgemm`: finds the command's row in the one table of commands and runs it.
 *
 * What a command does and which options it takes is its own file's business; here is only what is
 * common: help, version, and the check that what was printed has arrived (a full disc behind stdout
 * is a failure like any other). */
#include "cli.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct command {
  const char *name;
  const char *usage; /* what follows the name */
  const char *summary;
  int (*run)(int argc, char **argv);
} commands[] = {
    {"info", "[--json]", "show version, build, machine and kernels", ws_cmd_info},
    {"doctor", "", "check this machine for what slows or distorts results", ws_cmd_doctor},
    {"gemm", "A.npy B.npy -o C.npy [options]", "multiply two matrices kept in .npy files", ws_cmd_gemm},
    {"bench", "[options]", "time wsgemm side by side with other libraries", ws_cmd_bench},
    {"verify", "[--quick] [options]", "check every kernel against an exact reference", ws_cmd_verify},
    {"autotune", "[options]", "search the fastest settings for this machine by measuring", ws_cmd_autotune},
    {"tune", "show|export|import|clear [options]", "see what was tuned, and carry it to other machines", ws_cmd_tune},
    {"preload", "blas|cublas", "where the library is that LD_PRELOAD takes", ws_cmd_preload},
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static const struct command *find_command(const char *name) {
  for (int i = 0; i < N_COMMANDS; i++)
    if (strcmp(commands[i].name, name) == 0) return &commands[i];
  return NULL;
}

void ws_cli_print_usage(const char *name) {
  const struct command *command = find_command(name);
  printf("Usage: wsgemm %s%s%s\n\n", name, *command->usage ? " " : "", command->usage);
}

static int print_help(void) {
  printf("wsgemm %s - dense matrix multiplication\n\nUsage: wsgemm COMMAND [options]\n\nCommands:\n", wsgemm_version_string());
  for (int i = 0; i < N_COMMANDS; i++) printf("  %-9s %s\n", commands[i].name, commands[i].summary);
  printf("\n'wsgemm help COMMAND' describes one; 'wsgemm --version' prints the version.\n"
         "Exit code: 0 done, 1 failed, 2 the command line makes no sense.\n");
  return WS_EXIT_OK;
}

static int help_on(const char *name) {
  const struct command *command = find_command(name);
  if (!command) return ws_cli_usage("", "unknown command '%s'", name);
  char name_copy[32], option[] = "--help";
  snprintf(name_copy, sizeof name_copy, "%s", command->name);
  return command->run(2, (char *[]){name_copy, option, NULL});
}

static int dispatch(int argc, char **argv) {
  if (argc < 2) return print_help();
  const char *word = argv[1];
  bool is_help = strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
  bool is_version = strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0;
  if (argc > (is_help ? 3 : 2) && (is_help || is_version)) return ws_cli_usage("", "too many arguments after '%s'", word);
  if (is_help) return argc == 3 ? help_on(argv[2]) : print_help();
  if (is_version) {
    printf("wsgemm %s\n", wsgemm_version_string());
    return WS_EXIT_OK;
  }
  const struct command *command = find_command(word);
  if (command) return command->run(argc - 1, argv + 1);
  return ws_cli_usage("", "unknown %s '%s'", word[0] == '-' ? "option" : "command", word);
}

int main(int argc, char **argv) {
  int code = dispatch(argc, argv);
  errno = 0;
  if (fflush(stdout) != 0 || ferror(stdout)) {
    /* it was an earlier write that failed: another one fails for the same reason */
    if (errno == 0 && fputc('\n', stdout) != EOF) fflush(stdout);
    int failed = ws_cli_fail("cannot write to standard output: %s", strerror(errno ? errno : EIO));
    if (code == WS_EXIT_OK) code = failed;
  }
  return code;
}
