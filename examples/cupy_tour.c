/* SPDX-License-Identifier: MIT */
/*
 * The tour of CuPy, line by line, in C: an array and its strides, host to device and back, arithmetic, elementwise
 * functions, a norm, random numbers, kernels of one's own. The Python lines stand beside the C ones.
 */
#include <stdio.h>
#include <tanso.h>

static void show(const char *line, const tn_array *x)
{
    char *text = tn_repr(x);
    printf(">>> %s\n%s\n", line, text ? text : tn_error());
    tn_string_free(text);
}

int main(void)
{
    tn_device gpu = tn_device_best(); /* the CPU where there is no GPU */
    if (tn_set_device(gpu))
        return 1;
    printf("device: %s\n", tn_device_name(gpu));
    TN_SCOPE {
        /* ary = cupy.arange(10).reshape((2, 5)) */
        tn_array *ary = tn_reshape(tn_arange(0, 10, 1), TN_SHAPE(2, 5));
        show("ary = cupy.arange(10).reshape((2, 5))", ary);
        printf(">>> ary.dtype\n%s\n", tn_dtype_name(tn_dtype_of(ary)));
        tn_shape shape = tn_shape_of(ary);
        printf(">>> ary.shape\n(%lld, %lld)\n", (long long)shape.dim[0], (long long)shape.dim[1]);
        int64_t strides[TN_MAX_NDIM];
        tn_strides_of(ary, strides);
        printf(">>> ary.strides\n(%lld, %lld)\n", (long long)strides[0], (long long)strides[1]);
        printf(">>> ary.device\n%s\n", tn_device_name(tn_device_of(ary)));

        /* ary_cpu = numpy.arange(10); ary_gpu = cupy.asarray(ary_cpu); ary_gpu.get() */
        int64_t numbers[10], back[10];
        for (int i = 0; i < 10; i++)
            numbers[i] = i;
        tn_array *ary_gpu = tn_from_host(numbers, TN_SHAPE(10), TN_INT64);
        show("ary_gpu = cupy.asarray(ary_cpu)", ary_gpu);
        if (tn_to_host(ary_gpu, back, sizeof back))
            break;
        printf(">>> ary_gpu.get()\n");
        for (int i = 0; i < 10; i++)
            printf("%lld%s", (long long)back[i], i < 9 ? " " : "\n");
        tn_array *ary_cpu = tn_to(ary_gpu, tn_cpu());
        printf(">>> ary_cpu.device\n%s\n", tn_device_name(tn_device_of(ary_cpu)));

        show("ary * 2", tn_multiply(ary, 2));
        show("cupy.exp(-0.5 * ary**2)", tn_exp(tn_multiply(-0.5, tn_power(tn_cast(ary, TN_FLOAT64), 2))));

        /* cupy.linalg.norm(ary) */
        printf(">>> cupy.linalg.norm(ary)\n%.15f\n", tn_item(tn_linalg_norm(ary)));

        tn_seed(0);
        show("cupy.random.normal(loc=5, scale=2.0, size=10)", tn_random_normal(TN_SHAPE(10), .loc = 5, .scale = 2.0));

        /* cupy.ElementwiseKernel, cupy.ReductionKernel */
        tn_kernel *squared_diff = tn_elementwise("T x, T y", "T z", "z = (x - y) * (x - y)", "squared_diff");
        tn_array *x = tn_reshape(tn_arange(0, 10, 1, .dtype = TN_FLOAT32), TN_SHAPE(2, 5)),
                 *y = tn_arange(0, 5, 1, .dtype = TN_FLOAT32);
        show("squared_diff(x, y)", tn_call(squared_diff, TN_ARGS(x, y)));
        show("squared_diff(x, 5)", tn_call(squared_diff, TN_ARGS(x, 5)));
        tn_kernel *l2norm = tn_reduction("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "l2norm");
        show("l2norm_kernel(x, axis=1)", tn_call(l2norm, TN_ARGS(x), .axis = TN_AXES(1)));
    }
    if (!tn_ok())
        fprintf(stderr, "%s\n", tn_error());
    return !tn_ok();
}
