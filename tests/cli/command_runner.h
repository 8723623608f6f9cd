/* SPDX-License-Identifier: MIT */
/* Runs the command as a user does. */
#ifndef TN_TESTS_CLI_COMMAND_RUNNER_H
#define TN_TESTS_CLI_COMMAND_RUNNER_H

#include <sys/types.h>

typedef struct command_result {
    int code;        /* exit status; 128 + signal */
    char *out, *err; /* malloc's */
} command_result;

/* Starts `tanso WORDS` in `folder`, output into its files out.txt and err.txt. `words` is split at spaces; a word in
 * single quotes may hold some. */
pid_t command_start(const char *folder, const char *words);
int command_wait(pid_t pid);
command_result command_run(const char *folder, const char *words);
void command_free(command_result *result);

#endif
