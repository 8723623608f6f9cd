/* SPDX-License-Identifier: MIT */
/*
 * The operations of LAPACK for one dtype; included once for each. The includer defines
 *     T, R      the type of elements, and of their parts
 *     P         LAPACK's letter: s, d, c or z
 *     COMPLEX   0 or 1
 * and gets P##_solve and so on, functions as library.h wants them. Matrices pass to LAPACK in Fortran's order. The
 * drivers are NumPy's (numpy/linalg/umath_linalg.cpp), so that signs and orders agree with it.
 */
#define JOIN_(a, b)   a##b
#define JOIN(a, b)    JOIN_(a, b)
#define FUNCTION(name) JOIN(JOIN(P, _), name)
#define LAPACK(name)  JOIN(JOIN(P, name), _)
#if COMPLEX
#define UNITARY(name) JOIN(JOIN(P, un), JOIN(name, _))
#define RWORK(x)      , x
#else
#define UNITARY(name) JOIN(JOIN(P, or), JOIN(name, _))
#define RWORK(x)
#endif

void LAPACK(potrf)(const char *uplo, const int *n, T *a, const int *lda, int *info);
void LAPACK(gesv)(const int *n, const int *nrhs, T *a, const int *lda, int *pivot, T *b, const int *ldb, int *info);
void LAPACK(getrf)(const int *m, const int *n, T *a, const int *lda, int *pivot, int *info);
void LAPACK(geqrf)(const int *m, const int *n, T *a, const int *lda, T *tau, T *work, const int *lwork, int *info);
void UNITARY(gqr)(const int *m, const int *n, const int *k, T *a, const int *lda, const T *tau, T *work,
                  const int *lwork, int *info);
void LAPACK(gesdd)(const char *jobz, const int *m, const int *n, T *a, const int *lda, R *s, T *u, const int *ldu,
                   T *vt, const int *ldvt, T *work, const int *lwork RWORK(R *rwork), int *iwork, int *info);
void LAPACK(gelsd)(const int *m, const int *n, const int *nrhs, T *a, const int *lda, T *b, const int *ldb, R *s,
                   const R *rcond, int *rank, T *work, const int *lwork RWORK(R *rwork), int *iwork, int *info);
#if COMPLEX
void LAPACK(heevd)(const char *jobz, const char *uplo, const int *n, T *a, const int *lda, R *w, T *work,
                   const int *lwork, R *rwork, const int *lrwork, int *iwork, const int *liwork, int *info);
void LAPACK(geev)(const char *jobvl, const char *jobvr, const int *n, T *a, const int *lda, T *w, T *vl,
                  const int *ldvl, T *vr, const int *ldvr, T *work, const int *lwork, R *rwork, int *info);
#else
void LAPACK(syevd)(const char *jobz, const char *uplo, const int *n, T *a, const int *lda, R *w, T *work,
                   const int *lwork, int *iwork, const int *liwork, int *info);
void LAPACK(geev)(const char *jobvl, const char *jobvr, const int *n, T *a, const int *lda, R *wr, R *wi, T *vl,
                  const int *ldvl, T *vr, const int *ldvr, T *work, const int *lwork, int *info);
#endif

#define TAKE(type, count) tn__carve(carver, count, sizeof(type))
#define EXTENT(x)         ((x) > 1 ? (int)(x) : 1) /* a leading extent: LAPACK refuses 0 */

/* Copies an operand's matrix into Fortran order, `ld` elements from column to column. */
static void FUNCTION(load)(const tn__matrix_layout *l, const char *from, T *to, int64_t ld)
{
    for (int64_t j = 0; j < l->columns; j++)
        for (int64_t i = 0; i < l->rows; i++)
            to[i + j * ld] = *(const T *)(from + i * l->row + j * l->column);
}

static bool FUNCTION(finite)(T x) { return isfinite(__real__ x) && (!COMPLEX || isfinite(__imag__ x)); }

/* The fault of a loaded matrix of which LAPACK's loops may never end, or end in messages of its own on stderr: 2 for an
 * element that is NaN, 1 for one that is infinite, 0 for none. part: 'L', 'U' a triangle with the diagonal, 'A' all. */
static int FUNCTION(fault)(const T *a, int64_t rows, int64_t columns, int64_t ld, char part)
{
    int worst = 0;
    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = part == 'L' ? j : 0; i < (part == 'U' ? j + 1 : rows); i++)
            if (!FUNCTION(finite)(a[i + j * ld]))
                worst = a[i + j * ld] != a[i + j * ld] ? 2 : worst ? worst : 1;
    return worst;
}

static void FUNCTION(fill)(T *to, int64_t count, T value)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = value;
}

/* Copies a matrix back, into C order; returns the address after it. */
static T *FUNCTION(store)(T *to, const T *from, int64_t rows, int64_t columns, int64_t ld)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            to[i * columns + j] = from[i + j * ld];
    return to + rows * columns;
}

static T *FUNCTION(store_real)(T *to, const R *from, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = from[i];
    return to + count;
}

static int64_t FUNCTION(workspace)(T answer) { return (int64_t)__real__ answer + 1; }

/* The lower Cholesky factor, with zeros above the diagonal. mode[0] = 1: the upper factor, from the upper triangle. */
static int FUNCTION(cholesky)(tn__library *l, char *const *p, tn__carver *carver)
{
    int n = (int)l->layout[1].rows, ld = EXTENT(n), info = 0;
    bool upper = l->mode_count && l->mode[0];
    T *a = TAKE(T, (int64_t)n * n);
    if (!a || n == 0)
        return 0;
    FUNCTION(load)(&l->layout[1], p[1], a, ld);
    LAPACK(potrf)(upper ? "U" : "L", &n, a, &ld, &info);
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++)
            if (upper ? i > j : i < j)
                a[i + (int64_t)j * ld] = 0;
    FUNCTION(store)((T *)p[0], a, n, n, ld);
    return info;
}

/*
 * gesv of small systems: a LAPACK of many threads wakes these for each one that has several right sides, so that an
 * inverse of 4 x 4 took 10 us on two cores; by these loops it takes 0.3.
 */
static int FUNCTION(solve_small)(int n, int nrhs, T *restrict a, T *restrict b)
{
    for (int k = 0; k < n; k++) {
        T *restrict column = a + (int64_t)k * n;
        int best = k;
        R largest = -1;
        for (int i = k; i < n; i++) {
            R real = __real__ column[i], imaginary = COMPLEX ? __imag__ column[i] : 0;
            R size = (real < 0 ? -real : real) + (imaginary < 0 ? -imaginary : imaginary);
            if (size > largest)
                largest = size, best = i;
        }
        if (column[best] == 0)
            return k + 1;
        T pivot = column[best];
        column[best] = column[k];
        for (int i = k + 1; i < n; i++)
            column[i] /= pivot;
        column[k] = pivot;
        for (int j = k + 1; j < n + nrhs; j++) { /* the columns behind it, then those of b */
            T *restrict to = j < n ? a + (int64_t)j * n : b + (int64_t)(j - n) * n;
            T factor = to[best];
            to[best] = to[k];
            to[k] = factor;
            for (int i = k + 1; i < n; i++)
                to[i] -= factor * column[i];
        }
    }
    for (int j = 0; j < nrhs; j++)
        for (int k = n - 1; k >= 0; k--) {
            const T *restrict column = a + (int64_t)k * n;
            T *restrict x = b + (int64_t)j * n;
            x[k] /= column[k];
            for (int i = 0; i < k; i++)
                x[i] -= x[k] * column[i];
        }
    return 0;
}

/* mode[0]: singular matrices give NaN instead of an error. */
static int FUNCTION(solve)(tn__library *l, char *const *p, tn__carver *carver)
{
    int n = (int)l->layout[1].rows, nrhs = (int)l->layout[2].columns, ld = EXTENT(n), info = 0;
    T *a = TAKE(T, (int64_t)n * n), *b = TAKE(T, (int64_t)n * nrhs);
    int *pivot = TAKE(int, n);
    if (!a || n == 0 || nrhs == 0)
        return 0;
    FUNCTION(load)(&l->layout[1], p[1], a, ld);
    FUNCTION(load)(&l->layout[2], p[2], b, ld);
    if (n <= SMALL_SYSTEM && nrhs <= SMALL_SYSTEM)
        info = FUNCTION(solve_small)(n, nrhs, a, b);
    else
        LAPACK(gesv)(&n, &nrhs, a, &ld, pivot, b, &ld, &info);
    if (info > 0 && l->mode_count && l->mode[0]) {
        for (int64_t i = 0; i < (int64_t)n * nrhs; i++)
            b[i] = (R)NAN;
        info = 0;
    }
    FUNCTION(store)((T *)p[0], b, n, nrhs, ld);
    return info;
}

/* The determinant's sign (for complex numbers, its phase) and the logarithm of its absolute value. */
static int FUNCTION(slogdet)(tn__library *l, char *const *p, tn__carver *carver)
{
    int n = (int)l->layout[1].rows, ld = EXTENT(n), info = 0;
    T *a = TAKE(T, (int64_t)n * n), *out = (T *)p[0], sign = 1;
    int *pivot = TAKE(int, n);
    R log_size = 0;
    if (!a)
        return 0;
    FUNCTION(load)(&l->layout[1], p[1], a, ld);
    if (n)
        LAPACK(getrf)(&n, &n, a, &ld, pivot, &info);
    for (int i = 0; i < n && info == 0; i++) {
        T element = a[i + (int64_t)i * ld];
        R size = (R)hypot(__real__ element, COMPLEX ? (double)__imag__ element : 0.0);
        sign = (pivot[i] == i + 1 ? sign : -sign) * (element / size);
        log_size += (R)log(size);
    }
    out[0] = info > 0 ? 0 : sign;
    out[1] = info > 0 ? (R)-INFINITY : log_size;
    return 0;
}

/* mode: rows of q's columns (m for the complete q), 0 for no q; then r, as many rows. With mode[1], raw: LAPACK's
 * reflectors and factors instead. */
static int FUNCTION(qr)(tn__library *l, char *const *p, tn__carver *carver)
{
    int m = (int)l->layout[1].rows, n = (int)l->layout[1].columns, k = m < n ? m : n, ld = EXTENT(m), info = 0,
        query = -1;
    int columns = (int)l->mode[0], wide = columns > n ? columns : n;
    T *a = TAKE(T, (int64_t)m * wide), *q = TAKE(T, (int64_t)m * wide), *tau = TAKE(T, k), *out = (T *)p[0];
    if (!a) {
        T answer = 0;
        LAPACK(geqrf)(&m, &n, NULL, &ld, NULL, &answer, &query, &info);
        l->work[0] = FUNCTION(workspace)(answer);
        if (columns && k) {
            UNITARY(gqr)(&m, &columns, &k, NULL, &ld, NULL, &answer, &query, &info);
            int64_t more = FUNCTION(workspace)(answer);
            l->work[0] = more > l->work[0] ? more : l->work[0];
        }
    }
    int lwork = (int)l->work[0];
    T *work = TAKE(T, lwork);
    if (!work)
        return 0;
    FUNCTION(load)(&l->layout[1], p[1], a, ld);
    if (k)
        LAPACK(geqrf)(&m, &n, a, &ld, tau, work, &lwork, &info);
    if (l->mode[1]) {
        out = FUNCTION(store)(out, a, m, n, ld);
        memcpy(out, tau, sizeof(T) * (size_t)k);
        return 0;
    }
    if (columns) {
        memset(q, 0, sizeof(T) * (size_t)m * (size_t)columns);
        memcpy(q, a, sizeof(T) * (size_t)m * (size_t)(columns < n ? columns : n));
        if (k)
            UNITARY(gqr)(&m, &columns, &k, q, &ld, tau, work, &lwork, &info);
        else
            for (int i = 0; i < columns; i++)
                q[i + (int64_t)i * ld] = 1;
        out = FUNCTION(store)(out, q, m, columns, ld);
    }
    int rows = columns ? columns : k;
    for (int j = 0; j < n; j++)
        for (int i = j + 1; i < m; i++)
            a[i + (int64_t)j * ld] = 0;
    FUNCTION(store)(out, a, rows, n, ld);
    return 0;
}

/* mode: 0 values only, 1 reduced, 2 full. u, s, vh. */
static int FUNCTION(svd)(tn__library *l, char *const *p, tn__carver *carver)
{
    int m = (int)l->layout[1].rows, n = (int)l->layout[1].columns, k = m < n ? m : n, ld = EXTENT(m), info = 0,
        query = -1;
    const char *job = l->mode[0] == 0 ? "N" : l->mode[0] == 1 ? "S" : "A";
    int columns = l->mode[0] == 0 ? 0 : l->mode[0] == 1 ? k : m, rows = l->mode[0] == 0 ? 0 : l->mode[0] == 1 ? k : n;
    int ldvt = EXTENT(rows);
    T *a = TAKE(T, (int64_t)m * n), *u = TAKE(T, (int64_t)m * columns), *vt = TAKE(T, (int64_t)rows * n),
      *out = (T *)p[0];
    R *s = TAKE(R, k);
    int *iwork = TAKE(int, 8 * (int64_t)k);
#if COMPLEX /* LAPACK's bounds for either job, with room for older versions */
    int64_t most = m > n ? m : n, least = k;
    R *rwork =
        TAKE(R, least * (5 * least + 7 > 2 * most + 2 * least + 1 ? 5 * least + 7 : 2 * most + 2 * least + 1) + 1);
#endif
    if (!a) {
        T answer = 0;
        if (k)
            LAPACK(gesdd)(job, &m, &n, NULL, &ld, NULL, NULL, &ld, NULL, &ldvt, &answer, &query RWORK(NULL), NULL,
                          &info);
        l->work[0] = FUNCTION(workspace)(answer);
    }
    int lwork = (int)l->work[0];
    T *work = TAKE(T, lwork);
    if (!work)
        return 0;
    FUNCTION(load)(&l->layout[1], p[1], a, ld);
    int fault = FUNCTION(fault)(a, m, n, ld, 'A');
    if (fault) { /* with an infinite element all results are NaN, as in NumPy */
        FUNCTION(fill)(out, (int64_t)m * columns + k + (int64_t)rows * n, (R)NAN);
        return fault - 1;
    }
    if (k)
        LAPACK(gesdd)(job, &m, &n, a, &ld, s, u, &ld, vt, &ldvt, work, &lwork RWORK(rwork), iwork, &info);
    else /* an empty matrix: the bases are whatever is unitary */
        for (int i = 0; i < columns + rows; i++)
            if (i < columns)
                memset(u + (int64_t)i * ld, 0, sizeof(T) * (size_t)m), u[i + (int64_t)i * ld] = 1;
            else
                memset(vt + (int64_t)(i - columns) * ldvt, 0, sizeof(T) * (size_t)rows),
                vt[(int64_t)(i - columns) * (ldvt + 1)] = 1;
    out = FUNCTION(store)(out, u, m, columns, ld);
    out = FUNCTION(store_real)(out, s, k);
    FUNCTION(store)(out, vt, rows, n, ldvt);
    return info;
}

/* mode: vectors too; of the upper triangle. Values, vectors. */
static int FUNCTION(eigh)(tn__library *l, char *const *p, tn__carver *carver)
{
    int n = (int)l->layout[1].rows, ld = EXTENT(n), info = 0, query = -1;
    const char *job = l->mode[0] ? "V" : "N", *uplo = l->mode[1] ? "U" : "L";
    T *a = TAKE(T, (int64_t)n * n), *out = (T *)p[0];
    R *w = TAKE(R, n);
    if (!a && n) {
        T answer = 0;
        int integers = 0;
#if COMPLEX
        R reals = 0;
        LAPACK(heevd)(job, uplo, &n, NULL, &ld, NULL, &answer, &query, &reals, &query, &integers, &query, &info);
        l->work[0] = FUNCTION(workspace)(answer) + ((int64_t)reals + 1);
#else
        LAPACK(syevd)(job, uplo, &n, NULL, &ld, NULL, &answer, &query, &integers, &query, &info);
        l->work[0] = FUNCTION(workspace)(answer);
#endif
        l->work[1] = integers;
    }
    int lwork = (int)l->work[0], liwork = (int)l->work[1];
    T *work = TAKE(T, lwork);
    int *iwork = TAKE(int, liwork);
#if COMPLEX
    R *rwork = TAKE(R, lwork);
#endif
    if (!work || n == 0)
        return 0;
    FUNCTION(load)(&l->layout[1], p[1], a, ld);
    int fault = n > 1 ? FUNCTION(fault)(a, n, n, ld, *uplo) : 0;
    if (fault) {
        FUNCTION(fill)(out, n + (l->mode[0] ? (int64_t)n * n : 0), (R)NAN);
        return fault - 1;
    }
#if COMPLEX
    LAPACK(heevd)(job, uplo, &n, a, &ld, w, work, &lwork, rwork, &lwork, iwork, &liwork, &info);
#else
    LAPACK(syevd)(job, uplo, &n, a, &ld, w, work, &lwork, iwork, &liwork, &info);
#endif
    out = FUNCTION(store_real)(out, w, n);
    if (l->mode[0])
        FUNCTION(store)(out, a, n, n, ld);
    return info;
}

/* mode: vectors too. The result is complex: values, vectors. */
static int FUNCTION(eig)(tn__library *l, char *const *p, tn__carver *carver)
{
    int n = (int)l->layout[1].rows, ld = EXTENT(n), one = 1, info = 0, query = -1;
    const char *job = l->mode[0] ? "V" : "N";
    const int *ldvr = l->mode[0] ? &ld : &one;
    T *a = TAKE(T, (int64_t)n * n), *vr = TAKE(T, (int64_t)n * n);
    R *w = TAKE(R, 2 * (int64_t)n);
    R _Complex *out = (R _Complex *)p[0];
    (void)w;
    if (!a && n) {
        T answer = 0;
#if COMPLEX
        R reals = 0; /* LAPACK writes it, though its documentation does not say so */
        LAPACK(geev)("N", job, &n, NULL, &ld, NULL, NULL, &one, NULL, ldvr, &answer, &query, &reals, &info);
#else
        LAPACK(geev)("N", job, &n, NULL, &ld, NULL, NULL, NULL, &one, NULL, ldvr, &answer, &query, &info);
#endif
        l->work[0] = FUNCTION(workspace)(answer);
    }
    int lwork = (int)l->work[0];
    T *work = TAKE(T, lwork);
    if (!work || n == 0)
        return 0;
    FUNCTION(load)(&l->layout[1], p[1], a, ld);
    if (FUNCTION(fault)(a, n, n, ld, 'A'))
        return 1;
#if COMPLEX
    LAPACK(geev)("N", job, &n, a, &ld, out, NULL, &one, vr, ldvr, work, &lwork, w, &info);
    if (l->mode[0])
        FUNCTION(store)(out + n, vr, n, n, ld);
#else
    LAPACK(geev)("N", job, &n, a, &ld, w, w + n, NULL, &one, vr, ldvr, work, &lwork, &info);
    for (int j = 0; j < n; j++) {
        __real__ out[j] = w[j];
        __imag__ out[j] = w[n + j];
    }
    /* of a pair of conjugate values, two columns hold the real and imaginary parts of the first one's vector */
    for (int j = 0; j < n && l->mode[0]; j++) {
        bool pair = w[n + j] != 0 && j + 1 < n;
        for (int i = 0; i < n; i++) {
            R re = vr[i + (int64_t)j * ld], im = pair ? vr[i + (int64_t)(j + 1) * ld] : 0;
            R _Complex *at = out + n + (int64_t)i * n + j;
            __real__ at[0] = re;
            __imag__ at[0] = im;
            if (pair) {
                __real__ at[1] = re;
                __imag__ at[1] = -im;
            }
        }
        j += pair;
    }
#endif
    return info;
}

/* mode: the bits of rcond, a double. x (n, nrhs), s (k), rank, residuals (nrhs). */
static int FUNCTION(lstsq)(tn__library *l, char *const *p, tn__carver *carver)
{
    int m = (int)l->layout[1].rows, n = (int)l->layout[1].columns, nrhs = (int)l->layout[2].columns;
    int k = m < n ? m : n, lda = EXTENT(m), ldb = EXTENT(m > n ? m : n), rank = 0, info = 0, query = -1;
    double given;
    memcpy(&given, &l->mode[0], sizeof given);
    R rcond = (R)given;
    T *a = TAKE(T, (int64_t)m * n), *b = TAKE(T, (int64_t)ldb * nrhs), *out = (T *)p[0];
    R *s = TAKE(R, k);
    if (!a && k) {
        T answer = 0;
        int integers = 0;
        R reals = 0;
        (void)reals;
        LAPACK(gelsd)(&m, &n, &nrhs, NULL, &lda, NULL, &ldb, NULL, &rcond, &rank, &answer, &query RWORK(&reals),
                      &integers, &info);
        l->work[0] = FUNCTION(workspace)(answer) + (int64_t)reals;
        l->work[1] = integers;
    }
    int lwork = (int)l->work[0];
    T *work = TAKE(T, lwork);
    int *iwork = TAKE(int, l->work[1]);
#if COMPLEX
    R *rwork = TAKE(R, lwork);
#endif
    if (!work)
        return 0;
    FUNCTION(load)(&l->layout[1], p[1], a, lda);
    memset(b, 0, sizeof(T) * (size_t)ldb * (size_t)nrhs);
    FUNCTION(load)(&l->layout[2], p[2], b, ldb);
    if (FUNCTION(fault)(a, m, n, lda, 'A'))
        return 1;
    for (int j = 0; j < nrhs; j++) /* the residual of finite columns only; the solution of others is NaN */
        if (FUNCTION(fault)(b + (int64_t)j * ldb, m, 1, ldb, 'A'))
            FUNCTION(fill)(b + (int64_t)j * ldb, m, 0);
    if (k)
        LAPACK(gelsd)(&m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, &rank, work, &lwork RWORK(rwork), iwork, &info);
    else
        memset(b, 0, sizeof(T) * (size_t)ldb * (size_t)nrhs);
    for (int j = 0; j < nrhs; j++) {
        const tn__matrix_layout *right = &l->layout[2];
        bool finite = true;
        for (int64_t i = 0; i < m; i++)
            finite = finite && FUNCTION(finite)(*(const T *)(p[2] + i * right->row + j * right->column));
        if (!finite)
            FUNCTION(fill)(b + (int64_t)j * ldb, m > n ? m : n, (R)NAN);
    }
    out = FUNCTION(store)(out, b, n, nrhs, ldb);
    out = FUNCTION(store_real)(out, s, k);
    *out++ = (R)rank;
    for (int j = 0; j < nrhs; j++) {
        R sum = 0;
        for (int i = n; i < m; i++) {
            T x = b[i + (int64_t)j * ldb];
            sum += __real__ x * __real__ x + (COMPLEX ? __imag__ x * __imag__ x : 0);
        }
        *out++ = sum;
    }
    return info;
}

#undef T
#undef R
#undef P
#undef COMPLEX
#undef JOIN_
#undef JOIN
#undef FUNCTION
#undef LAPACK
#undef UNITARY
#undef RWORK
#undef TAKE
#undef EXTENT
