#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes torch_values.h beside this script: where PyTorch's optimizers take a matrix of ones; needs torch.

Gradients are of a formula that tests/optim/test_kinds.c has, too.
"""
import pathlib

import torch

ROWS, COLUMNS, STEPS = 2, 3, 6
O = torch.optim
KINDS = {
    "momentum:lr=0.1,weight_decay=0.1": (O.SGD, dict(lr=0.1, momentum=0.9, weight_decay=0.1)),
    "adagrad:lr=0.1": (O.Adagrad, dict(lr=0.1, eps=1e-8)),
    "adadelta": (O.Adadelta, dict(rho=0.95)),
    "rmsprop": (O.RMSprop, {}),
    "adam:lr=0.1": (O.Adam, dict(lr=0.1)),
    "adamw:lr=0.1": (O.AdamW, dict(lr=0.1)),
    "radam:lr=0.1": (O.RAdam, dict(lr=0.1)),
    "radam:lr=0.1,beta2=0.9": (O.RAdam, dict(lr=0.1, betas=(0.9, 0.9))),
    "adafactor": (O.Adafactor, {}),
    "adamax": (O.Adamax, {}),
    "adamax:lr=0.1,beta2=0.5,weight_decay=0.1": (O.Adamax, dict(lr=0.1, betas=(0.9, 0.5), weight_decay=0.1)),
    "nadam": (O.NAdam, {}),
    "nadam:lr=0.1,gamma=0.5": (O.NAdam, dict(lr=0.1, momentum_decay=0.5)),
    "asgd": (O.ASGD, {}),
    "asgd:lr=0.5,gamma=0.1,rho=0.5": (O.ASGD, dict(lr=0.5, lambd=0.1, alpha=0.5)),
    "asgd:lr=0.5,gamma=0.1,rho=0.5,average_after=2": (O.ASGD, dict(lr=0.5, lambd=0.1, alpha=0.5, t0=2)),
    "rprop": (O.Rprop, {}),
    "rprop:lr=0.5": (O.Rprop, dict(lr=0.5)),
    "muon": (O.Muon, {}),
    "muon:lr=0.1,momentum=0.5,weight_decay=0.5": (O.Muon, dict(lr=0.1, momentum=0.5, weight_decay=0.5)),
    "sparse_adam": (O.SparseAdam, {}),
    "sparse_adam:lr=0.1,beta1=0.5,beta2=0.9,eps=0.1": (O.SparseAdam, dict(lr=0.1, betas=(0.5, 0.9), eps=0.1)),
}


# What PyTorch calls the state that is looked at instead of the parameter, and what Tanso does.
STATES = {"asgd:lr=0.5,gamma=0.1,rho=0.5,average_after=2": ("ax", "p.a")}


def run(kind, options, state):
    p = torch.nn.Parameter(torch.ones(ROWS, COLUMNS, dtype=torch.float64))
    optimizer = kind([p], **({} if kind in (O.Muon, O.SparseAdam) else dict(foreach=False)), **options)
    for t in range(1, STEPS + 1):
        p.grad = torch.tensor([((7 * t * i + 3 * t + 5 * i) % 11 - 5) / 4 + 1 / 8 for i in range(ROWS * COLUMNS)],
                              dtype=torch.float64).reshape(ROWS, COLUMNS)
        p.grad = p.grad.to_sparse(1) if kind is O.SparseAdam else p.grad
        optimizer.step()
    return (optimizer.state[p][state] if state else p.detach()).flatten().tolist()


def main():
    torch.set_default_dtype(torch.float64)  # numbers that optimizers keep are of it, too
    torch.bfloat16 = torch.float64  # which Muon multiplies in
    lines = ["/* SPDX-License-Identifier: MIT */",
             "/* By torch_values.py, of PyTorch " + torch.__version__.split("+")[0] +
             ": optimizers, and their parameter, or a state, after the last step. */",
             f"enum {{ TORCH_ROWS = {ROWS}, TORCH_COLUMNS = {COLUMNS}, TORCH_STEPS = {STEPS} }};",
             "static const struct {", "    const char *text, *state;", "    double p[TORCH_ROWS * TORCH_COLUMNS];",
             "} torch_values[] = {"]
    for text, (kind, options) in KINDS.items():
        theirs, ours = STATES.get(text, (None, None))
        values = ", ".join(f"{v:.12g}" for v in run(kind, options, theirs))
        name = f'"{ours}"' if ours else "NULL"
        lines += [f'    {{"{text}", {name},', f"     {{{values}}}}},"]
    path = pathlib.Path(__file__).with_name("torch_values.h")
    path.write_text("\n".join(lines + ["};"]) + "\n")


if __name__ == "__main__":
    main()
