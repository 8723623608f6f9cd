/* SPDX-License-Identifier: MIT */
/* Reading flags by a command's table, and printing them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "cli/command.h"

#define HELP_COLUMN 26

static const tn__flag help_flag = {"--help", NULL, "show this help", TN__FLAG_SWITCH,
                                   .offset = offsetof(tn__options, help)};

/* Every command has --help beside its own. */
static const tn__flag *flag_at(const tn__command *command, int i)
{
    return i < command->flag_count ? &command->flags[i] : &help_flag;
}

static const tn__flag *find_flag(const tn__command *command, const char *word, size_t length)
{
    const char *names[TN__FLAGS_MOST];
    int count = command->flag_count + 1;
    for (int i = 0; i < count && i < TN__FLAGS_MOST; i++) {
        const tn__flag *flag = flag_at(command, i);
        if (strncmp(flag->name, word, length) == 0 && flag->name[length] == '\0')
            return flag;
        names[i] = flag->name;
    }
    if (length == 2 && word[1] == 'h')
        return &help_flag;
    char copy[64];
    snprintf(copy, sizeof copy, "%.*s", (int)length, word);
    const char *near = tn_nearest_name(copy, names, count);
    if (near)
        tn__usage_error(command->name, "there is no flag %s: did you mean %s?", copy, near);
    else
        tn__usage_error(command->name, "there is no flag %s", copy);
    return NULL;
}

static bool set_number(const tn__command *command, const tn__flag *flag, const char *value, void *place)
{
    char *end;
    errno = 0;
    unsigned long long number = strtoull(value, &end, 10);
    bool count = flag->kind == TN__FLAG_COUNT;
    unsigned long long most = flag->most ? flag->most : count ? INT32_MAX : UINT64_MAX;
    if (*value < '0' || *value > '9' || *end || errno || number > most || number < count) {
        tn__usage_error(command->name, "%s takes a whole number from %d to %llu, not '%s'", flag->name, count, most,
                        value);
        return false;
    }
    if (count)
        *(long *)place = (long)number;
    else
        *(uint64_t *)place = number;
    return true;
}

static bool add_value(const tn__command *command, const tn__flag *flag, const char *value, tn__list *list)
{
    if (list->count == TN__COUNT_OF(list->items)) {
        tn__usage_error(command->name, "%s may be given %d times", flag->name, list->count);
        return false;
    }
    list->items[list->count++] = value;
    return true;
}

static bool set_flag(const tn__command *command, const tn__flag *flag, const char *value, tn__options *options)
{
    void *place = (char *)options + flag->offset;
    if (flag->kind == TN__FLAG_SWITCH) {
        if (value)
            tn__usage_error(command->name, "%s takes no value, and '%s' was given", flag->name, value);
        *(bool *)place = true;
        return !value;
    }
    if (!value) {
        tn__usage_error(command->name, "%s needs a value: %s %s", flag->name, flag->name, flag->value);
        return false;
    }
    if (flag->kind == TN__FLAG_LIST)
        return add_value(command, flag, value, place);
    if (flag->kind != TN__FLAG_TEXT)
        return set_number(command, flag, value, place);
    *(const char **)place = value;
    return true;
}

bool tn__flags_read(const tn__command *command, int count, char **words, tn__options *options)
{
    *options = (tn__options){.arguments = words};
    bool flags_end = false;
    for (int i = 0; i < count; i++) {
        char *word = words[i];
        flags_end |= command->starts_program && options->count;
        if (flags_end || word[0] != '-' || word[1] == '\0') {
            words[options->count++] = word; /* never past i: what is read is moved to the front */
            continue;
        }
        if (strcmp(word, "--") == 0) {
            flags_end = true;
            continue;
        }
        const char *equals = strchr(word, '=');
        const tn__flag *flag = find_flag(command, word, equals ? (size_t)(equals - word) : strlen(word));
        if (!flag)
            return false;
        const char *value = equals ? equals + 1 : NULL;
        if (!value && flag->kind != TN__FLAG_SWITCH && i + 1 < count)
            value = words[++i];
        if (!set_flag(command, flag, value, options))
            return false;
    }
    if (options->help)
        return true;
    if (options->count < command->least || options->count > command->most) {
        tn__usage_error(command->name,
                        options->count < command->least ? "expected %s" : "too many arguments: expected %s",
                        command->most ? command->arguments : "none");
        return false;
    }
    return true;
}

void tn__command_help(const tn__command *command)
{
    printf("usage: tanso %s%s%s [flags]\n\n%s\n\nflags:\n", command->name, *command->arguments ? " " : "",
           command->arguments, command->text);
    for (int i = 0; i <= command->flag_count; i++) {
        const tn__flag *flag = flag_at(command, i);
        char head[64];
        snprintf(head, sizeof head, "%s%s%s", flag->name, flag->value ? " " : "", flag->value ? flag->value : "");
        printf("  %-*s", HELP_COLUMN - 2, head);
        /* Further lines of a help text are set below its first. */
        for (const char *line = flag->help; line;) {
            const char *end = strchr(line, '\n');
            printf("%.*s\n%*s", end ? (int)(end - line) : (int)strlen(line), line, end ? HELP_COLUMN : 0, "");
            line = end ? end + 1 : NULL;
        }
    }
    if (command->more_help)
        command->more_help();
    printf("\nexamples:\n%s", command->examples);
}
