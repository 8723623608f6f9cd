/* SPDX-License-Identifier: MIT */
/* What -march=native stands for on this machine. */
#ifndef TN_BACKENDS_CPU_PROCESSOR_H
#define TN_BACKENDS_CPU_PROCESSOR_H

#include "core/memory.h"

/* Adds a description of the processor's model and instruction sets, the same on equal machines. */
void tn__processor_identity(tn__text *text);

#endif
