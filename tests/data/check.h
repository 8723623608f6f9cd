/* SPDX-License-Identifier: MIT */
/* What the tests of data share. */
#ifndef TN_TESTS_DATA_CHECK_H
#define TN_TESTS_DATA_CHECK_H

#include <tanso/array.h>
#include <tanso/data.h>
#include <tanso/device.h>
#include <tanso/engine.h>
#include "support/device.h"
#include "support/latched.h"
#include "support/random.h"
#include "support/scratch.h"

#endif
