/* SPDX-License-Identifier: MIT */
/* The table of LAPACK's operations, for the dtypes that it has. */
#include "backends/cpu/linalg/library.h"

#include "tn_build_config.h"

#if TN_HAVE_LAPACK

#include <math.h>
#include <string.h>

#define SMALL_SYSTEM 24

#define T       float
#define R       float
#define P       s
#define COMPLEX 0
#include "backends/cpu/linalg/lapack_of_type.h"

#define T       double
#define R       double
#define P       d
#define COMPLEX 0
#include "backends/cpu/linalg/lapack_of_type.h"

#define T       float _Complex
#define R       float
#define P       c
#define COMPLEX 1
#include "backends/cpu/linalg/lapack_of_type.h"

#define T       double _Complex
#define R       double
#define P       z
#define COMPLEX 1
#include "backends/cpu/linalg/lapack_of_type.h"

#define ROW(ID, name, text) \
    {TN__OP_##ID, \
     {{[TN_FLOAT32] = s_##name, [TN_FLOAT64] = d_##name, [TN_COMPLEX64] = c_##name, [TN_COMPLEX128] = z_##name}, text}}
static const struct {
    int op;
    tn__library_functions functions;
} table[] = { /* not by number: the unrolled loops above would be compiled anew with every new row of ops.def */
    ROW(CHOLESKY, cholesky, "the matrix is not positive definite"),
    ROW(SOLVE, solve, "singular matrix: it has no inverse; use tn_linalg_lstsq or tn_linalg_pinv"),
    ROW(SLOGDET, slogdet, ""),
    ROW(QR, qr, ""),
    ROW(SVD, svd, "the singular values did not converge; are all elements finite?"),
    ROW(EIGH, eigh, "the eigenvalues did not converge; are all elements finite?"),
    ROW(EIG, eig, "the eigenvalues did not converge"),
    ROW(LSTSQ, lstsq, "the singular values did not converge in least squares; are all elements finite?"),
};

const tn__library_functions *tn__lapack_functions(int op)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].op == op)
            return &table[i].functions;
    return NULL;
}

#else

const tn__library_functions *tn__lapack_functions(int op)
{
    (void)op;
    return NULL;
}

#endif
