/* SPDX-License-Identifier: MIT */
/* The calls that go up, which the rooms above fill in. */
#include "device/engine_calls.h"

tn__engine_calls tn__engine;
