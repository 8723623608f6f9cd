/* SPDX-License-Identifier: MIT */
/* The table of commands, and finding the one asked for. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "cli/command.h"

static const tn__command *const commands[] = {&tn__command_train,   &tn__command_eval, &tn__command_plot,
                                              &tn__command_predict, &tn__command_info, &tn__command_fetch,
                                              &tn__command_warm,    &tn__command_launch};

/* In one piece: other ranks write to the same terminal. */
static void complain(const char *command, const char *format, va_list args, const char *end)
{
    char text[8192];
    vsnprintf(text, sizeof text, format, args);
    fprintf(stderr, "tanso%s%s: %s\n%s", command ? " " : "", command ? command : "", text, end);
}

int tn__usage_error(const char *command, const char *format, ...)
{
    va_list args;
    char help[64];
    va_start(args, format);
    snprintf(help, sizeof help, "Try 'tanso%s%s --help'.\n", command ? " " : "", command ? command : "");
    complain(command, format, args, help);
    va_end(args);
    return TN__EXIT_USAGE;
}

int tn__cli_failure(const char *command, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    complain(command, format, args, "");
    va_end(args);
    return TN__EXIT_FAILED;
}

const char *tn__error_text(const char *command)
{
    static char text[4096];
    snprintf(text, sizeof text, "%s", tn_error());
    char *place = strrchr(text, '(');
    if (place && place > text && strstr(place, ".c:") && text[strlen(text) - 1] == ')')
        place[-1] = '\0';
    size_t length = strlen(command);
    bool twice = strncmp(text, command, length) == 0 && strncmp(text + length, ": ", 2) == 0;
    return twice ? text + length + 2 : text;
}

int tn__library_error(const char *command)
{
    tn__cli_failure(command, "%s", tn__error_text(command));
    return tn_error_code() == TN_ERR_NAME ? TN__EXIT_USAGE : TN__EXIT_FAILED;
}

int tn__config_error(const char *command, const char *flag)
{
    if (tn_error_code() == TN_ERR_MEMORY) /* the words may be right */
        return tn__cli_failure(command, "%s: %s", flag, tn__error_text(command));
    return tn__usage_error(command, "%s: %s", flag, tn__error_text(command));
}

int tn__device_option(const char *command, const char *name, tn_device *device)
{
    tn_status status = TN_OK;
    *device = tn_device_parse(name ? name : "auto", &status);
    if (status == TN_ERR_NAME)
        return tn__config_error(command, "--device");
    if (status == TN_OK && device->kind == TN_DEVICE_NULL)
        return tn__usage_error(command, "--device: null computes nothing; expected auto, cpu, cuda or cuda:1");
    return status == TN_OK ? TN__EXIT_DONE : tn__cli_failure(command, "--device: %s", tn__error_text(command));
}

int tn__devices_option(const char *command, const char *names, tn_device *devices)
{
    bool all = names && strcmp(names, "all") == 0;
    int count = 0, gpus = all ? tn_cuda_count() : 0, code = TN__EXIT_DONE;
    for (; count < gpus && count < TN__DEVICES_MOST; count++)
        devices[count] = tn_cuda(count);
    const char *at = all || !names ? "auto" : names;
    for (bool more = !count; more && code == TN__EXIT_DONE;) {
        char name[32];
        size_t length = strcspn(at, ",");
        if (count == TN__DEVICES_MOST || length >= sizeof name)
            return tn__usage_error(command, "--device: expected up to %d names with commas between them, got '%.60s'",
                                   TN__DEVICES_MOST, names);
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        code = tn__device_option(command, name, &devices[count++]);
        more = at[length] == ',';
        at += length + more;
    }
    devices[count] = (tn_device){TN_DEVICE_DEFAULT, 0};
    return code;
}

static void help(FILE *stream)
{
    fprintf(stream, "Tanso %s: deep learning in C\n\nusage: tanso COMMAND [arguments] [flags]\n\ncommands:\n",
            tn_version());
    for (int i = 0; i < TN__COUNT_OF(commands); i++)
        fprintf(stream, "  %-12s%s\n", commands[i]->name, commands[i]->summary);
    fprintf(stream, "\nflags:\n"
                    "  --help      show this help; 'tanso COMMAND --help' shows a command's\n"
                    "  --version   show the version\n"
                    "\nexamples:\n"
                    "  tanso train digits                  train on the digits that come with Tanso\n"
                    "  tanso eval runs/digits              measure the result again\n"
                    "  tanso plot runs/digits runs/other   compare two runs in one picture\n"
                    "  tanso predict runs/digits seven.png\n");
}

/* The number of words of argv that a command's name takes: "data fetch" has two. */
static int matches(const tn__command *command, int argc, char **argv)
{
    const char *space = strchr(command->name, ' ');
    if (!space)
        return strcmp(command->name, argv[1]) == 0;
    size_t length = (size_t)(space - command->name);
    bool first = strlen(argv[1]) == length && strncmp(command->name, argv[1], length) == 0;
    return first && argc > 2 && strcmp(space + 1, argv[2]) == 0 ? 2 : 0;
}

/* The command of whose name only the first word was given. */
static const tn__command *half_named(const char *word)
{
    size_t length = strlen(word);
    for (int i = 0; i < TN__COUNT_OF(commands); i++)
        if (strncmp(commands[i]->name, word, length) == 0 && commands[i]->name[length] == ' ')
            return commands[i];
    return NULL;
}

static int unknown_command(int argc, char **argv)
{
    const tn__command *half = half_named(argv[1]);
    if (half && argc > 2 && strcmp(argv[2], "--help") == 0) {
        tn__command_help(half);
        return TN__EXIT_DONE;
    }
    if (half)
        return tn__usage_error(NULL, "'%s%s%s' is no command: did you mean '%s'?", argv[1], argc > 2 ? " " : "",
                               argc > 2 ? argv[2] : "", half->name);
    const char *names[TN__COUNT_OF(commands) + 2] = {"--help", "--version"};
    for (int i = 0; i < TN__COUNT_OF(commands); i++)
        names[2 + i] = commands[i]->name;
    const char *near = tn_nearest_name(argv[1], names, TN__COUNT_OF(names));
    const char *what = argv[1][0] == '-' ? "flag" : "command";
    if (near)
        return tn__usage_error(NULL, "there is no %s '%s': did you mean '%s'?", what, argv[1], near);
    return tn__usage_error(NULL, "there is no %s '%s'", what, argv[1]);
}

/* Output that could not be written is a failure: the shell must know. */
static int finish(int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    fprintf(stderr, "tanso: cannot write the output\n");
    return code ? code : TN__EXIT_FAILED;
}

int tn__cli_main(int argc, char **argv)
{
    if (argc < 2) {
        help(stderr);
        return TN__EXIT_USAGE;
    }
    bool asks = strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0;
    if (asks && argc > 2 && argv[2][0] != '-') { /* help COMMAND, --help COMMAND */
        char *words[] = {argv[0], argv[2], argc > 3 && argv[3][0] != '-' ? argv[3] : "--help", "--help", NULL};
        return tn__cli_main(4, words);
    }
    if (asks) {
        help(stdout);
        return finish(TN__EXIT_DONE);
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("tanso %s\n", tn_version());
        return finish(TN__EXIT_DONE);
    }
    for (int i = 0; i < TN__COUNT_OF(commands); i++) {
        int words = matches(commands[i], argc, argv);
        tn__options options;
        if (!words)
            continue;
        if (!tn__flags_read(commands[i], argc - 1 - words, argv + 1 + words, &options))
            return TN__EXIT_USAGE;
        if (!options.help)
            return finish(commands[i]->run(&options));
        tn__command_help(commands[i]);
        return finish(TN__EXIT_DONE);
    }
    return unknown_command(argc, argv);
}
