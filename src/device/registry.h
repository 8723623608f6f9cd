/* SPDX-License-Identifier: MIT */
/* What the registry tells the public functions of devices. */
#ifndef TN_DEVICE_REGISTRY_H
#define TN_DEVICE_REGISTRY_H

#include "device/device.h"

/* Behind the kinds with an enumerator come those of plug-ins, numbered as they register. */
#define TN__OPEN_KINDS   3
#define TN__DEVICE_KINDS (TN_DEVICE_VIRTUAL + 1 + TN__OPEN_KINDS)
/* Devices of a kind beyond this many are left alone. */
#define TN__MAX_DEVICES 16

/* The name of a kind without a number, "cuda"; NULL if there is no such kind. */
const char *tn__device_kind_name(int kind);
/* *kind: the kind of that name, whose plug-in is loaded where it is first asked for; TN_DEVICE_DEFAULT: there is none.
 * TN_ERR_DEVICE if its plug-in cannot be used. */
tn_status tn__device_kind_named(const char *name, int *kind);
/* Usable devices of a kind; with none, the reason in *why. */
int tn__device_kind_count(int kind, const char **why);
/* The id with the default replaced by the thread's current device. */
tn_device tn__device_resolve(tn_device id);
/* Makes an opened device the thread's current one. */
void tn__device_make_current(tn__device *device);

#endif
