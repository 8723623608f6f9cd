/* SPDX-License-Identifier: MIT */
/* Runs the command, TANSO_COMMAND, as a process, on the device that is tested. */
#include "cli/command_runner.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/device.h"
#include "support/folder.h"

pid_t command_start(const char *folder, const char *words)
{
    const char *command = getenv("TANSO_COMMAND");
    if (!command) {
        fprintf(stderr, "TANSO_COMMAND does not name the command to test\n");
        exit(1);
    }
    static const char *const with_device[] = {"train ", "eval ", "predict ", "warm "};
    const char *device = "";
    size_t command_word = 0;
    for (int i = 0; i < (int)(sizeof with_device / sizeof *with_device) && test_elsewhere(); i++)
        if (strncmp(words, with_device[i], strlen(with_device[i])) == 0 && !strstr(words, "--device")) {
            command_word = strlen(with_device[i]);
            device = tn_device_name(test_device());
        }
    char line[8192];
    snprintf(line, sizeof line, "exec '%s' %.*s%s%s %s", command, (int)command_word, words, *device ? "--device " : "",
             device, words + command_word);
    const char *out = test_path(folder, "out.txt"), *err = test_path(folder, "err.txt");
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    int out_fd = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0666), err_fd = open(err, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (chdir(folder) != 0 || dup2(out_fd, 1) < 0 || dup2(err_fd, 2) < 0)
        _exit(126);
    execl("/bin/sh", "sh", "-c", line, (char *)NULL);
    _exit(127);
}

int command_wait(pid_t pid)
{
    int status;
    if (waitpid(pid, &status, 0) != pid)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

command_result command_run(const char *folder, const char *words)
{
    command_result result = {.code = command_wait(command_start(folder, words))};
    result.out = test_read(test_path(folder, "out.txt"), NULL);
    result.err = test_read(test_path(folder, "err.txt"), NULL);
    return result;
}

void command_free(command_result *result)
{
    free(result->out);
    free(result->err);
}
