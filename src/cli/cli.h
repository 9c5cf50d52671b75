/* What the commands of `wsgemm` share: their entry functions, error lines, option values, library
 * texts.
 *
 * Exit codes: 0 done, 1 it failed at run time (or a check found a fault), 2 the command line makes
 * no sense, 130 SIGINT ended a search (autotune). Whatever goes wrong is reported in exactly one
 * line on stderr, "wsgemm: ..."; results go to stdout. Commands use the public API only, so what
 * they can do a user's program can do. */
#ifndef WSGEMM_CLI_H
#define WSGEMM_CLI_H

#include "types.h"
#include "wsgemm.h"
#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { WS_EXIT_OK = 0, WS_EXIT_FAILED = 1, WS_EXIT_USAGE = 2, WS_EXIT_INTERRUPTED = 130 };

/* Commands. argv[0] is the command's own name; "--help" makes each print its help to stdout and
 * return WS_EXIT_OK. */
int ws_cmd_info(int argc, char **argv);
int ws_cmd_doctor(int argc, char **argv);
int ws_cmd_gemm(int argc, char **argv);
int ws_cmd_bench(int argc, char **argv);
int ws_cmd_verify(int argc, char **argv);
int ws_cmd_autotune(int argc, char **argv);
int ws_cmd_tune(int argc, char **argv);
int ws_cmd_preload(int argc, char **argv);

/* The first lines of a command's help: "Usage: wsgemm NAME ..." out of the table of commands in
 * main.c, and an empty line. */
void ws_cli_print_usage(const char *name);

/* Prints "wsgemm: <message>" as one line on stderr, control characters replaced by '?', and returns
 * WS_EXIT_FAILED. */
int ws_cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same for a senseless command line: adds " (see 'wsgemm help COMMAND')" and returns
 * WS_EXIT_USAGE. */
int ws_cli_usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Tells what getopt_long found wrong when it returned '?' or ':'. Call getopt_long with opterr = 0
 * and short options that begin with ':'; long options need the values 'o' for short ones or > 255
 * for those without. Returns WS_EXIT_USAGE. */
int ws_cli_bad_option(const char *command, int argc, char **argv, int found);

/* Whole-string numbers: false if the text is not one number between the limits. */
bool ws_cli_int64(const char *text, int64_t least, int64_t most, int64_t *out);
bool ws_cli_double(const char *text, double *out);

/* A complex number as Python writes it: "1.5", "2j", "1.5-2e3j", "(1+2j)", "nan", "-inf". False if
 * it is none, or too large. */
bool ws_cli_complex(const char *text, wsgemm_cdouble *out);

/* What the registry says of a row that there is; and of the row of this name: false if there is
 * none. */
wsgemm_kernel_info ws_cli_kernel_at(int row);
bool ws_cli_kernel(const char *name, wsgemm_kernel_info *info);

/* Whether a registry row works on matrices in host memory, and on this machine. */
bool ws_cli_row_takes_host_memory(int row);

bool ws_cli_policy(const char *text, wsgemm_policy *out);
const char *ws_cli_policy_names(void);

/* The whole text of wsgemm_config, wsgemm_machine or (desc not NULL) wsgemm_explain, to be freed;
 * NULL: out of memory. */
char *ws_cli_text(size_t (*ask)(char *text, size_t bytes));
char *ws_cli_explain(wsgemm_handle *h, const wsgemm_gemm_desc *desc);

/* As a JSON string. Bytes beyond ASCII (from a variable, a processor's name) become characters of
 * Latin-1: valid whatever they are. */
void ws_cli_put_json(FILE *f, const char *text);
/* ,"key":"value" */
void ws_cli_put_member(FILE *f, const char *key, const char *value);

/* Splits the next "key: value" line off *text, in place. False at the end. */
bool ws_cli_next_line(char **text, char **key, char **value);

/* Refuses to work under a WSGEMM_* variable that the library could make no sense of: WS_EXIT_OK or
 * WS_EXIT_FAILED. To be called before anything else is asked of the library. */
int ws_cli_check_environment(void);

/* The words for a failed library call: wsgemm_last_error(), or the status's own text if that is
 * empty. */
const char *ws_cli_why(wsgemm_status status);

#endif
