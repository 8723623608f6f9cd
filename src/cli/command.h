/* SPDX-License-Identifier: MIT */
/*
 * The command `tanso` as a table: each command has its flags, its help and the function that runs it. The command uses
 * the library as any program does, through its public headers.
 */
#ifndef TN_CLI_COMMAND_H
#define TN_CLI_COMMAND_H

#include <tanso.h>

enum { TN__EXIT_DONE = 0, TN__EXIT_FAILED = 1, TN__EXIT_USAGE = 2, TN__EXIT_INTERRUPTED = 130 };

/* Values of a flag that may be given several times. */
typedef struct tn__list {
    const char *items[16];
    int count;
} tn__list;

/* What the flags of all commands set. */
typedef struct tn__options {
    const char *model, *optimizer, *rate, *schedule, *device, *out, *dataset, *invert, *keys, *x;
    tn__list extend, log, plot;
    long epochs, batch, ranks, port;
    uint64_t seed, restarts, shard;
    bool resume, quiet, synthetic, help, prefix;
    int count; /* arguments that are no flags */
    char **arguments;
} tn__options;

typedef enum tn__flag_kind {
    TN__FLAG_SWITCH,
    TN__FLAG_TEXT,
    TN__FLAG_LIST, /* a text, several times */
    TN__FLAG_COUNT,
    TN__FLAG_NUMBER
} tn__flag_kind;

typedef struct tn__flag {
    const char *name;  /* "--epochs" */
    const char *value; /* "N" in the help; NULL for a switch */
    const char *help;
    tn__flag_kind kind; /* COUNT: 1 or more; NUMBER: 0 or more */
    size_t offset;      /* in tn__options */
    uint64_t most;      /* that a number may be; 0: what its place holds */
} tn__flag;

/* Flags of one command, --help among them. */
#define TN__FLAGS_MOST 24

typedef struct tn__command {
    const char *name;      /* "train", "data fetch" */
    const char *arguments; /* "DATASET" */
    const char *summary;   /* one line */
    const char *text;      /* what it does, for --help */
    const char *examples;
    const tn__flag *flags;
    int flag_count;
    int least, most; /* arguments */
    bool starts_program; /* what stands behind the first argument is that program's, flags too */
    int (*run)(const tn__options *options);
    void (*more_help)(void); /* (optional) printed after the flags */
} tn__command;

extern const tn__command tn__command_train, tn__command_eval, tn__command_plot, tn__command_predict, tn__command_info,
    tn__command_fetch, tn__command_warm, tn__command_launch;

/* The whole program. */
int tn__cli_main(int argc, char **argv);

/* The name of a dataset's computed stand-in; those that need no files are their own. */
void tn__stand_in(const char *dataset, char *name, size_t size);
/* Reads a command's arguments into options; false after saying what is wrong with them. */
bool tn__flags_read(const tn__command *command, int count, char **words, tn__options *options);
/* Prints a command's help. */
void tn__command_help(const tn__command *command);

/* Prints "tanso NAME: ..." and where to find help; gives TN__EXIT_USAGE. */
int tn__usage_error(const char *command, const char *format, ...) TN_PRINTF(2, 3);
/* Prints "tanso NAME: ..." alone; gives TN__EXIT_FAILED. */
int tn__cli_failure(const char *command, const char *format, ...) TN_PRINTF(2, 3);
/* The library's latched error without the place in this program's source that it ends in, which is no help to a user,
 * and without the operation it begins with where that is the command itself; valid until the next call. */
const char *tn__error_text(const char *command);
/* Prints the library's error; gives TN__EXIT_FAILED, or TN__EXIT_USAGE where a name was unknown. */
int tn__library_error(const char *command);
/* Prints the library's error of what a flag was given: wrong usage, or out of memory, which is not. */
int tn__config_error(const char *command, const char *flag);
/* The device of --device (NULL: auto); else says what is wrong and gives the exit code. */
int tn__device_option(const char *command, const char *name, tn_device *device);
/* Several, with commas between them, or "all" GPUs, into devices[0..], ended by the zero device. */
#define TN__DEVICES_MOST 64
int tn__devices_option(const char *command, const char *names, tn_device *devices);

#define TN__COUNT_OF(array) ((int)(sizeof(array) / sizeof *(array)))

#endif
