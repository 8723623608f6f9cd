/* SPDX-License-Identifier: MIT */
/* Users' functions in the kernels' text: each instance once, behind its preamble, which comes once too. */
#include "array/user.h"
#include "compile/emit.h"

#include <string.h>

static void add_preamble(tn__emitter *emitter, const tn__user *user)
{
    const char *preamble = user->kernel->source;
    for (int i = 0; i < emitter->user_count; i++)
        if (strcmp(emitter->user[i]->kernel->source, preamble) == 0)
            return;
    if (*preamble)
        tn__text_addf(&emitter->functions, "#line 1 \"%s, preamble\"\n%s\n#line 1 \"kernels\"\n", user->kernel->name,
                      preamble);
}

static bool is_declared(const tn__emitter *emitter, const tn__user *user)
{
    for (int i = 0; i < emitter->user_count; i++)
        if (emitter->user[i] == user || strcmp(emitter->user[i]->function, user->function) == 0)
            return true;
    return false;
}

const char *tn__user_function(tn__printer *p, const tn__user *user)
{
    tn__emitter *emitter = p->emitter;
    if (is_declared(emitter, user))
        return user->function;
    add_preamble(emitter, user);
    tn__text_add(&emitter->functions, user->text);
    emitter->math = emitter->integers = true;
    for (int k = 0; k < user->in_count; k++)
        emitter->complex |= tn_dtype_is_complex(user->in[k]);
    for (int k = 0; k < user->out_count; k++)
        emitter->complex |= tn_dtype_is_complex(user->out[k]);
    if (tn__grow((void **)&emitter->user, &emitter->user_capacity, (size_t)emitter->user_count + 1,
                 sizeof *emitter->user))
        emitter->user[emitter->user_count++] = user;
    else
        emitter->functions.failed = true;
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
