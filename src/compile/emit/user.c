/* SPDX-License-Identifier: MIT */
/* Users' functions in the kernels' text: each instance once, behind its preamble, which comes once too. */
#include "array/user.h"
#include "compile/emit/emit.h"

#include <string.h>

static bool same_preamble(const tn__user *a, const tn__user *b)
{
    return strcmp(a->kernel->source, b->kernel->source) == 0;
}

/* What is in the text already, of all users; -1: nothing that fits. */
static int find(const tn__emitter *emitter, const tn__user *user, bool preamble)
{
    for (int i = 0; i < emitter->user_count; i++) {
        const tn__user_piece *u = &emitter->user[i];
        if (preamble ? same_preamble(u->user, user)
                     : u->user == user || strcmp(u->user->function, user->function) == 0)
            return preamble ? u->preamble : u->function;
    }
    return -1;
}

/* The piece that a kernel's preamble is; -1: it has none. */
static int preamble_of(tn__emitter *emitter, const tn__user *user)
{
    int there = find(emitter, user, true);
    if (there >= 0 || !*user->kernel->source)
        return there;
    return tn__piece_add(emitter,
                         tn__format("#line 1 \"%s, preamble\"\n%s\n#line 1 \"kernels\"\n", user->kernel->name,
                                    user->kernel->source),
                         &(tn__piece){.function = true, .needs = TN__NEEDS_USER});
}

static uint32_t needs_of(const tn__user *user)
{
    bool complex = false;
    for (int k = 0; k < user->in_count; k++)
        complex = complex || tn_dtype_is_complex(user->in[k]);
    for (int k = 0; k < user->out_count; k++)
        complex = complex || tn_dtype_is_complex(user->out[k]);
    return TN__NEEDS_USER | TN__NEEDS_MATH | TN__NEEDS_INTEGERS | (complex ? TN__NEEDS_COMPLEX : 0);
}

const char *tn__user_function(tn__printer *p, const tn__user *user)
{
    tn__emitter *emitter = p->emitter;
    int there = find(emitter, user, false);
    if (there >= 0) {
        tn__piece_use(emitter, there);
        return user->function;
    }
    tn__user_piece made = {.user = user, .preamble = preamble_of(emitter, user)};
    tn__piece like = {.function = true, .needs = needs_of(user)};
    if (made.preamble >= 0 && !tn__numbers_add(&like.uses, made.preamble))
        emitter->failed = true;
    made.function = tn__piece_add(emitter, tn__strdup(user->text), &like);
    if (tn__grow((void **)&emitter->user, &emitter->user_capacity, (size_t)emitter->user_count + 1,
                 sizeof *emitter->user))
        emitter->user[emitter->user_count++] = made;
    else
        emitter->failed = true;
    return user->function;
}

void tn__print_user(tn__printer *p, const tn__expr *e)
{
    bool rounds = tn__dtypes[e->dtype].compute != e->dtype;
    if (rounds)
        tn__text_addf(p->text, "tn_round_%s(", tn__dtypes[e->dtype].suffix);
    tn__text_addf(p->text, "%s(", tn__user_function(p, e->user));
    for (int i = 0; i < e->arity; i++)
        tn__text_addf(p->text, "%sv%d", i ? ", " : "", e->arg[i]);
    tn__text_addf(p->text, ").o%d%s", e->output, rounds ? ")" : "");
}

void tn__print_raw(tn__printer *p, const tn__expr *e, int index)
{
    const tn__access *a = &p->nest->access[e->access];
    const char *type = e->dtype == TN_BOOL ? tn__user_ctype(TN_BOOL) : tn__dtypes[e->dtype].ctype;
    tn__text_addf(p->text, "const %s *const v%d = (const %s *)p%d + n[%d];\n", type, index, type, e->access,
                  a->param + 1);
}
