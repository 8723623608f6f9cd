/* SPDX-License-Identifier: MIT */
/* What both languages must understand alike, as strict C11 and as C++: tn_device_of of every kind, by one header
 * alone. */
#include <tanso/device.h>

#define ON(type) \
    static tn_device of_##type(struct type *x) { return tn_device_of(x); } \
    static tn_device of_const_##type(const struct type *const x) { return tn_device_of(x); }
ON(tn_array)
ON(tn_layer)
ON(tn_optimizer)
ON(tn_loader)
ON(tn_batch)
ON(tn_dataset)
ON(tn_meter)
ON(tn_generator)
ON(tn_archive)
ON(tn_stream)
ON(tn_event)

#include <tanso.h>

#define KINDS(type) of_##type(NULL), of_const_##type(NULL)

int main(void)
{
    const tn_device all[] = {KINDS(tn_array),  KINDS(tn_layer), KINDS(tn_optimizer), KINDS(tn_loader),
                             KINDS(tn_batch),  KINDS(tn_dataset), KINDS(tn_meter),   KINDS(tn_generator),
                             KINDS(tn_archive), KINDS(tn_stream), KINDS(tn_event)};
    int failed = tn_error_code() != TN_ERR_VALUE;
    tn_clear_error();
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        failed |= all[i].kind != TN_DEVICE_DEFAULT;
    tn_layer *layer = tn_linear_with(3, NULL);
    if (tn_layer_to(layer, tn_cpu()) != TN_OK || !tn_device_equal(tn_device_of(layer), tn_cpu()))
        failed = 1;
    tn_layer_free(layer);
    tn_array *x = tn_zeros_with(TN_SHAPE(2), NULL);
    if (!tn_device_equal(tn_device_of(x), tn_cpu()) || !tn_device_equal((tn_device_of)(x), tn_cpu()))
        failed = 1;
    tn_free(x);
    return failed || !tn_ok();
}
