# SPDX-License-Identifier: MIT
"""nulls.py CHECKOUT WORK CC LIBDIR: every public function, called with NULL for pointers, or with nonsense, returns.

Prototypes are read from the headers. Each function is called with NULL for whatever is a pointer; with arrays that are
right and NULL for every other pointer; with arrays, shapes and lists of axes that have more axes than there are; and
with objects that have been freed.
Each call is in a process of its own. One that is killed by a signal, or takes ten seconds, is a failure: nothing in
Tanso aborts, and who forgot to make something is told so.
"""
import os
import re
import subprocess
import sys

# What stands for an argument that is no pointer, by its type; 1 for any other.
VALUES = {
    "tn_shape": "(tn_shape){.ndim = 1, .dim = {2}}",
    "tn_device": "tn_cpu()",
    "tn_dtype": "TN_FLOAT32",
    "tn_axes": "(tn_axes){0}",
    "tn_init": "(tn_init){0}",
    "tn_sample_type": "(tn_sample_type){0}",
    "tn_args": "(tn_args){0}",
    "tn_norm_order": "(tn_norm_order){0}",
    "tn_distribution": "(tn_distribution){.kind = TN_DIST_NORMAL}",
}
# The same where arrays are right and other pointers NULL, and where what is no pointer is nonsense.
WITH_ARRAYS = {**VALUES, "tn_array *": "matrix()", "int": "2", "int64_t": "2"}
NONSENSE = {**WITH_ARRAYS, "tn_shape": "(tn_shape){.ndim = 0x7fffffff}", "tn_axes": "(tn_axes){.count = 0x7fffffff}",
            "tn_args": "(tn_args){.count = 0x7fffffff}", "tn_dtype": "(tn_dtype)0x7fffffff",
            "tn_device": "(tn_device){0x7fff, -1}", "int": "-0x7fffffff - 1", "int64_t": "INT64_MIN"}
# Objects that have been freed, beside arrays that are right.
OBJECTS = {"layer": "tn_relu_layer()", "dataset": "tn_sine(3, 0)", "loader": "tn_loader_new_with(tn_sine(3, 0), NULL)",
           "optimizer": "tn_sgd_with(tn_linear_with(1, NULL), NULL)", "updater": "tn_updater_of_with(0, 0, 0, 0)",
           "trainer": "tn_trainer_new_with(0, 0)", "trigger": "tn_every(1, TN_EPOCH)",
           "extension": "tn_snapshot_with(0)", "sampler": "tn_sampler_of_with(3, 0, 0, 0)"}
FREED = {**WITH_ARRAYS, **{f"tn_{kind} *": f"freed_{kind}()" for kind in OBJECTS}}
POINTER = re.compile(r"[*\[]|^(?:tn_function|\w+_fn|\w+_hook|\w+_function)\b")
PROTOTYPE = re.compile(r"TN_API\s+([\w\s*]+?)\b(tn_[a-z]\w*)\(([^;]*)\)\s*(?:TN_MUST_CHECK)?\s*;")


def arguments(text):
    """The arguments in a list of parameters; what is between parentheses is a function's own list."""
    while re.search(r"\([^()]*\)", text):
        text = re.sub(r"\([^()]*\)", "[]", text)
    return [] if text.strip() == "void" else [part.strip() for part in text.split(",")]


def value(argument, values):
    plain = argument.replace("const ", "")
    pointer = re.fullmatch(r"(tn_\w+ \*)\w*", plain)
    if pointer and pointer[1] in values:
        return values[pointer[1]]
    if POINTER.search(argument):
        return "NULL"
    return values.get(plain.split()[0], "1")


def calls(checkout):
    folder = os.path.join(checkout, "include", "tanso")
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
        for _, function, parameters in PROTOTYPE.findall(text):
            seen = set()
            for i, values in enumerate((VALUES, WITH_ARRAYS, NONSENSE, FREED)):
                call = f"{function}({', '.join(value(a, values) for a in arguments(parameters))})"
                if call not in seen:
                    yield f"{function}_{i}", call
                seen.add(call)


MAIN = """
int main(void)
{
    int failed = 0;
    setvbuf(stdout, NULL, _IONBF, 0);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(10);
            all[i].call();
            _exit(0);
        }
        int status = 0;
        if (child < 0 || waitpid(child, &status, 0) < 0)
            return 2;
        if (WIFSIGNALED(status)) {
            fprintf(stderr, "%s: killed by signal %d\\n", all[i].text, WTERMSIG(status));
            failed = 1;
        }
    }
    return failed;
}
"""


def main():
    checkout, work, cc, libdir = sys.argv[1:5]
    found = list(calls(checkout))
    if len(found) < 1200:
        sys.exit(f"only {len(found)} calls of the headers' functions")
    lines = ["#define TN_NO_MACROS", "#include <stdio.h>", "#include <sys/wait.h>", "#include <unistd.h>",
             "#include <tanso.h>",
             "static tn_array *matrix(void) { return tn_ones_with((tn_shape){2, {2, 2}}, NULL); }"]
    lines += [f"static tn_{kind} *freed_{kind}(void) {{ tn_{kind} *x = {made}; tn_{kind}_free(x); return x; }}"
              for kind, made in OBJECTS.items()]
    lines += [f"static void call_{name}(void) {{ (void){call}; }}" for name, call in found]
    lines.append("static const struct { const char *text; void (*call)(void); } all[] = {")
    lines += [f'    {{"{call}", call_{name}}},' for name, call in found]
    lines.append("};")
    os.makedirs(work, exist_ok=True)
    source, program = os.path.join(work, "nulls.c"), os.path.join(work, "nulls")
    with open(source, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + MAIN)
    subprocess.run([cc, "-std=gnu11", "-w", "-I" + os.path.join(checkout, "include"), source, "-o", program,
                    "-L" + libdir, "-ltanso", "-Wl,-rpath," + libdir], check=True)
    print(f"{len(found)} calls")
    sys.exit(subprocess.run([program], cwd=work, stdin=subprocess.DEVNULL, check=False).returncode)


main()
