/* SPDX-License-Identifier: MIT */
/* Tests hold the OpenCL backend in themselves, as its plug-in works with libtanso.so: they register its kind before
 * support/device.c asks for a device. */
#include "backends/plugin.h"

extern const tn__plugin tn__plugin_opencl;

__attribute__((constructor(200))) static void add(void)
{
    (void)tn__backend_register(tn__plugin_opencl.backend);
}
