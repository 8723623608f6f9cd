/* SPDX-License-Identifier: MIT */
/* The gradient rule of what went from process to process: another such call, which the room comm makes. */
#include "autograd/rules.h"

void tn__grad_collective(tn__chain *c) { c->in[0] = tn__engine.collective_gradient(c->node, c->g); }
