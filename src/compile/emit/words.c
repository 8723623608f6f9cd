/* SPDX-License-Identifier: MIT */
/*
 * The words of a target's language: what is written as @name, or as @name(a, b), in a line of kernel text stands for
 * what the target's table says, with $1 and $2 in the place of a and b.
 */
#include "compile/emit/emit.h"

#include <ctype.h>
#include <string.h>

#define MOST_ARGS 2

static const char *find(const tn__word *words, const char *name, size_t length)
{
    for (; words && words->name; words++)
        if (strncmp(words->name, name, length) == 0 && !words->name[length])
            return words->text;
    return NULL;
}

const char *tn__word_of(const tn__emit_target *target, const char *name)
{
    return find(target->words, name, strlen(name));
}

/* Takes the arguments of a word off the line, "(a, b)"; what is behind them. */
static const char *take_args(const char *at, const char *arg[MOST_ARGS], size_t length[MOST_ARGS])
{
    for (int i = 0; i < MOST_ARGS && *at != ')'; i++) {
        at += i ? 2 : 1; /* the comma and a blank, or the bracket */
        arg[i] = at;
        length[i] = strcspn(at, ",)");
        at += length[i];
    }
    return at + (*at == ')');
}

static const char *expand_one(const char *word, const char *rest, tn__text *to)
{
    const char *arg[MOST_ARGS] = {"", ""};
    size_t length[MOST_ARGS] = {0};
    if (*rest == '(')
        rest = take_args(rest, arg, length);
    for (const char *at = word; *at; at++) {
        int i = *at == '$' ? at[1] - '1' : -1;
        if (i < 0 || i >= MOST_ARGS) {
            tn__text_addn(to, at, 1);
            continue;
        }
        tn__text_addn(to, arg[i], length[i]);
        at++;
    }
    return rest + (!*word && *rest == ' '); /* a qualifier that the language has not, and the blank behind it */
}

void tn__words_expand(const tn__emit_target *target, const char *line, tn__text *to)
{
    for (const char *at; (at = strchr(line, '@')); ) {
        size_t length = 1;
        while (isalpha((unsigned char)at[length]) || at[length] == '_')
            length++;
        const char *word = find(target->words, at + 1, length - 1);
        tn__text_addn(to, line, (size_t)(at - line));
        if (word) {
            line = expand_one(word, at + length, to);
        } else { /* which no compiler takes: the table lacks it */
            tn__text_addn(to, at, length);
            line = at + length;
        }
    }
    tn__text_add(to, line);
}
