#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes lbfgs_values.h beside this script: where PyTorch's LBFGS goes on three functions; needs torch.

The functions are those of tests/optim/test_lbfgs.c.
"""
import pathlib

import torch

N, STEPS = 6, 4


def start():
    return [((7 * i) % 5 - 2) / 4 + 1 / 16 for i in range(N)]


def quadratic(x):
    scale = torch.tensor([1.0 + i * i for i in range(N)])
    return (scale * (x - 1) ** 2).sum() / 2 + (x[1:] * x[:-1]).sum() / 4


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum() / 10


def bumps(x):
    return (torch.sin(3 * x) + x ** 2 / 4).sum()


KINDS = [
    ("quadratic", quadratic, {}),
    ("quadratic", quadratic, dict(lr=0.5, max_iter=3)),
    ("quadratic", quadratic, dict(line_search_fn="strong_wolfe")),
    ("rosenbrock", rosenbrock, dict(lr=0.05, max_iter=6, history_size=3)),
    ("rosenbrock", rosenbrock, dict(line_search_fn="strong_wolfe")),
    ("rosenbrock", rosenbrock, dict(max_iter=5, max_eval=4, history_size=2, line_search_fn="strong_wolfe")),
    ("rosenbrock", rosenbrock, dict(lr=3.0, max_iter=7, line_search_fn="strong_wolfe")),
    ("bumps", bumps, dict(max_iter=4, line_search_fn="strong_wolfe")),
    ("bumps", bumps, dict(lr=0.1, max_iter=4, tolerance_grad=0.5)),
    ("bumps", bumps, dict(lr=0.1, max_iter=9, tolerance_change=0.02)),
]


def run(function, options):
    x = torch.nn.Parameter(torch.tensor(start()))
    optimizer = torch.optim.LBFGS([x], **options)
    losses = []

    def closure():
        optimizer.zero_grad()
        loss = function(x)
        loss.backward()
        return loss

    for _ in range(STEPS):
        losses.append(optimizer.step(closure).item())
    state = optimizer.state[x]
    return losses, x.detach().tolist(), state["n_iter"], state["func_evals"]


def main():
    torch.set_default_dtype(torch.float64)
    lines = ["/* SPDX-License-Identifier: MIT */",
             "/* By lbfgs_values.py, of PyTorch " + torch.__version__.split("+")[0] +
             ": losses at the beginning of steps, and after the last one",
             " * the parameters and how many movements and evaluations there were. */",
             f"enum {{ LBFGS_N = {N}, LBFGS_STEPS = {STEPS} }};",
             "static const struct {",
             "    const char *function;",
             "    double lr;",
             "    int iterations, evaluations, history; /* 0: left out, as above and below */",
             "    double gradient_tolerance, change_tolerance;",
             "    bool strong_wolfe;",
             "    double loss[LBFGS_STEPS], x[LBFGS_N];",
             "    int movements, looks;",
             "} lbfgs_values[] = {"]
    for name, function, options in KINDS:
        losses, x, movements, looks = run(function, options)
        get = options.get
        lines.append(f'    {{"{name}", {get("lr", 0)}, {get("max_iter", 0)}, {get("max_eval", 0)}, '
                     f'{get("history_size", 0)}, {get("tolerance_grad", 0)}, {get("tolerance_change", 0)}, '
                     f'{str("line_search_fn" in options).lower()},')
        for values in (losses, x):
            lines.append("     {" + ", ".join(f"{v:.12g}" for v in values) + "},")
        lines.append(f"     {movements}, {looks}}},")
    pathlib.Path(__file__).with_name("lbfgs_values.h").write_text("\n".join(lines + ["};", ""]))


if __name__ == "__main__":
    main()
