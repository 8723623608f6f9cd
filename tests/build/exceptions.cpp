// SPDX-License-Identifier: MIT
// Functions of a C++ program's that throw: the exception comes to who called the library, and the thread is as it was
// before the call, with nothing lost, so that everything works again.
#include <csignal>
#include <cstdio>
#include <sys/wait.h>
#include <unistd.h>

#include "leaving.h"

static void leave()
{
    if (leaves)
        throw 42;
}

static int failed;

static void expect(bool right, const char *name, const char *what)
{
    if (right)
        return;
    std::fprintf(stderr, "%s: expected %s (%s)\n", name, what, tn_error());
    failed = 1;
}

static void one(const char *name, tn_status (*call)(scene *), scene *s)
{
    int caught = 0;
    if (call != call_trainer) // a run is one only
        expect(call(s) == TN_OK, name, "a call that works");
    leaves = true;
    try {
        call(s);
    } catch (int number) {
        caught = number;
    }
    leaves = false;
    expect(caught == 42, name, "the exception");
    expect(tn_ok(), name, "no error");
    expect(tn_scope_depth() == 1 && tn_grad_enabled(), name, "the scopes, and recording, as before");
    expect(tn_current_observation() == nullptr, name, "nobody that listens to reports");
    expect(call(s) == TN_OK, name, "a call that works again");
    expect(tn_needs_grad(tn_square(s->x)), name, "recording");
}

static float throws(float x)
{
    if (x > 1)
        throw 42;
    return x;
}

// One out of what computing calls ends the process, as nothing else could be right.
static void out_of_a_kernel()
{
    std::fflush(stderr);
    pid_t child = fork();
    if (child == 0) {
        if (!std::freopen("/dev/null", "w", stderr))
            _exit(1);
        try {
            tn_kernel *f = tn_vectorize_with(reinterpret_cast<tn_scalar_function>(throws), "float f(float)", nullptr);
            tn_arg arg = tn__arg_array(tn_full(TN_SHAPE(3), 2, .dtype = TN_FLOAT32));
            (void)tn_item(tn_sum(tn_call_with(f, tn_args{1, &arg}, nullptr)));
        } catch (int) {
            _exit(2);
        }
        _exit(3);
    }
    int status = 0;
    waitpid(child, &status, 0);
    expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "a function of numbers", "std::terminate");
}

int main()
{
    for (int i = 0; i < CASES; i++) {
        tn_scope_push();
        scene s = make_scene();
        one(cases[i].name, cases[i].call, &s);
        free_scene(&s);
        tn_scope_pop();
        expect(tn_scope_depth() == 0, cases[i].name, "no scope");
        expect(tn_ok() && tn_live_arrays() == 0, cases[i].name, "nothing left");
    }
    out_of_a_kernel();
    return failed;
}
