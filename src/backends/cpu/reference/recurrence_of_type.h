/* SPDX-License-Identifier: MIT */
/*
 * Recurrent networks for one type and one set of instructions; included once for each. The includer defines
 *     T, NAME(name)     the type, and a function's name for both
 *     TARGET            the functions' attribute
 *     MULTIPLY_ADD      a b + c
 *     VECTOR, ADD_ALL   a vector of T, and the same of vectors; SAME(x): one of x
 * and gets NAME(forward) and NAME(backward), loops over rows for tn__cpu_for.
 */

/* to[j] += sum over k of a[k] w[k][j], j < n: m rows of w, `ld` numbers apart. Four at once, so that sums are loaded
 * less often. */
static TARGET void NAME(add_product)(T *restrict to, const T *restrict a, const T *restrict w, int64_t m, int64_t n,
                                     int64_t ld)
{
    int64_t k = 0;
    for (; k + 4 <= m; k += 4, w += 4 * ld) {
        const T a0 = a[k], a1 = a[k + 1], a2 = a[k + 2], a3 = a[k + 3];
        for (int64_t j = 0; j < n; j++) {
            T sum = MULTIPLY_ADD(a1, w[ld + j], MULTIPLY_ADD(a0, w[j], to[j]));
            to[j] = MULTIPLY_ADD(a3, w[3 * ld + j], MULTIPLY_ADD(a2, w[2 * ld + j], sum));
        }
    }
    for (; k < m; k++, w += ld) {
        const T a0 = a[k];
        for (int64_t j = 0; j < n; j++)
            to[j] = MULTIPLY_ADD(a0, w[j], to[j]);
    }
}

static inline TARGET VECTOR NAME(load)(const T *from)
{
    VECTOR v;
    memcpy(&v, from, sizeof v);
    return v;
}

static inline TARGET void NAME(store)(T *to, VECTOR v) { memcpy(to, &v, sizeof v); }

/* The same of four rows, `apart` from each other, of a and of what is added to, so that w is read once for all of them,
 * and two vectors of each row's sums stay in registers. Added up in the same order. */
static TARGET void NAME(add_products)(T *to, int64_t to_apart, const T *a, int64_t a_apart, const T *w, int64_t m,
                                      int64_t n)
{
    const int64_t lanes = (int64_t)(sizeof(VECTOR) / sizeof(T));
    const T *a0 = a, *a1 = a + a_apart, *a2 = a1 + a_apart, *a3 = a2 + a_apart;
    T *to0 = to, *to1 = to + to_apart, *to2 = to1 + to_apart, *to3 = to2 + to_apart;
    int64_t j = 0;
    for (; j + 2 * lanes <= n; j += 2 * lanes) {
        const T *weights = w + j;
        VECTOR low0 = NAME(load)(to0 + j), high0 = NAME(load)(to0 + j + lanes);
        VECTOR low1 = NAME(load)(to1 + j), high1 = NAME(load)(to1 + j + lanes);
        VECTOR low2 = NAME(load)(to2 + j), high2 = NAME(load)(to2 + j + lanes);
        VECTOR low3 = NAME(load)(to3 + j), high3 = NAME(load)(to3 + j + lanes);
        for (int64_t k = 0; k < m; k++, weights += n) {
            const VECTOR low = NAME(load)(weights), high = NAME(load)(weights + lanes);
            const VECTOR x0 = SAME(a0[k]), x1 = SAME(a1[k]), x2 = SAME(a2[k]), x3 = SAME(a3[k]);
            low0 = ADD_ALL(x0, low, low0), high0 = ADD_ALL(x0, high, high0);
            low1 = ADD_ALL(x1, low, low1), high1 = ADD_ALL(x1, high, high1);
            low2 = ADD_ALL(x2, low, low2), high2 = ADD_ALL(x2, high, high2);
            low3 = ADD_ALL(x3, low, low3), high3 = ADD_ALL(x3, high, high3);
        }
        NAME(store)(to0 + j, low0), NAME(store)(to0 + j + lanes, high0);
        NAME(store)(to1 + j, low1), NAME(store)(to1 + j + lanes, high1);
        NAME(store)(to2 + j, low2), NAME(store)(to2 + j + lanes, high2);
        NAME(store)(to3 + j, low3), NAME(store)(to3 + j + lanes, high3);
    }
    for (int64_t r = 0; r < ROWS_AT_ONCE && j < n; r++)
        NAME(add_product)(to + r * to_apart + j, a + r * a_apart, w + j, m, n - j, n);
}

static TARGET void NAME(sum)(T *restrict to, const T *restrict a, const T *restrict b, int64_t n)
{
    for (int64_t j = 0; j < n; j++)
        to[j] = a[j] + b[j];
}

static T *NAME(at)(const recurrence_run *run, const char *whole, int block, int64_t place, int64_t row)
{
    return (T *)whole + (tn__recurrence_place(&run->data->of, block, place) + row) * run->data->of.units;
}

/* Numbers as the operation gives them everywhere, in place. */
static void NAME(map)(const recurrence_run *run, tn__op op, T *to, const T *from, int64_t n)
{
    char *p[] = {(char *)to, (char *)from};
    static const int64_t step[] = {sizeof(T), sizeof(T)};
    run->data->functions->map[op](p, step, n);
}

/* ---- forward ---- */

/* A row's sums, x W + b and beside it h U, go to the blocks of a place; then all rows' states are made of them. */

static void NAME(spread_plain)(const recurrence_run *run, int64_t place, int64_t row, const T *x, const T *hu)
{
    NAME(sum)(NAME(at)(run, run->out, 0, place, row), x, hu, run->data->of.units);
}

static void NAME(spread_lstm)(const recurrence_run *run, int64_t place, int64_t row, const T *x, const T *hu)
{
    int64_t units = run->data->of.units;
    for (int gate = 0; gate < 4; gate++)
        NAME(sum)(NAME(at)(run, run->out, 2 + gate, place, row), x + gate * units, hu + gate * units, units);
}

static void NAME(spread_gru)(const recurrence_run *run, int64_t place, int64_t row, const T *x, const T *hu)
{
    int64_t units = run->data->of.units;
    for (int gate = 0; gate < 2; gate++)
        NAME(sum)(NAME(at)(run, run->out, 1 + gate, place, row), x + gate * units, hu + gate * units, units);
    memcpy(NAME(at)(run, run->out, 3, place, row), x + 2 * units, (size_t)units * sizeof(T));
    memcpy(NAME(at)(run, run->out, 4, place, row), hu + 2 * units, (size_t)units * sizeof(T));
}

static void NAME(finish_plain)(const recurrence_run *run, int64_t before, int64_t after, int64_t row, int64_t n)
{
    T *h = NAME(at)(run, run->out, 0, after, row);
    (void)before;
    NAME(map)(run, run->data->of.kind == TN__RECUR_TANH ? TN__OP_TANH : TN__OP_RELU, h, h, n);
}

static TARGET void NAME(finish_lstm)(const recurrence_run *run, int64_t before, int64_t after, int64_t row, int64_t n)
{
    const T *old = NAME(at)(run, run->out, 1, before, row);
    T *c = NAME(at)(run, run->out, 1, after, row), *h = NAME(at)(run, run->out, 0, after, row), *gate[4];
    for (int i = 0; i < 4; i++) {
        gate[i] = NAME(at)(run, run->out, 2 + i, after, row);
        NAME(map)(run, i == 2 ? TN__OP_TANH : TN__OP_SIGMOID, gate[i], gate[i], n);
    }
    const T *in = gate[0], *forget = gate[1], *candidate = gate[2], *out = gate[3];
    INDEPENDENT for (int64_t j = 0; j < n; j++) c[j] = forget[j] * old[j] + in[j] * candidate[j];
    NAME(map)(run, TN__OP_TANH, h, c, n);
    INDEPENDENT for (int64_t j = 0; j < n; j++) h[j] = out[j] * h[j];
}

static TARGET void NAME(finish_gru)(const recurrence_run *run, int64_t before, int64_t after, int64_t row, int64_t n)
{
    const T *old = NAME(at)(run, run->out, 0, before, row), *hu = NAME(at)(run, run->out, 4, after, row);
    T *h = NAME(at)(run, run->out, 0, after, row), *gate[3];
    for (int i = 0; i < 2; i++) {
        gate[i] = NAME(at)(run, run->out, 1 + i, after, row);
        NAME(map)(run, TN__OP_SIGMOID, gate[i], gate[i], n);
    }
    gate[2] = NAME(at)(run, run->out, 3, after, row);
    T *reset = gate[0], *update = gate[1], *candidate = gate[2];
    INDEPENDENT for (int64_t j = 0; j < n; j++) candidate[j] = candidate[j] + reset[j] * hu[j];
    NAME(map)(run, TN__OP_TANH, candidate, candidate, n);
    INDEPENDENT for (int64_t j = 0; j < n; j++) h[j] = candidate[j] + update[j] * (old[j] - candidate[j]);
}

/* The steps that a row has. */
static int64_t NAME(length)(const recurrence_run *run, const char *lengths, int64_t row)
{
    return lengths ? (int64_t)((const T *)lengths)[row * run->data->of.units] : run->data->of.steps;
}

/* A row beyond its length: its states stay. */
static void NAME(stay)(const recurrence_run *run, int64_t before, int64_t after, int64_t row)
{
    size_t bytes = (size_t)run->data->of.units * sizeof(T);
    for (int block = 0; block < run->data->row.blocks; block++) {
        T *to = NAME(at)(run, run->out, block, after, row);
        if (block < run->data->row.states)
            memcpy(to, NAME(at)(run, run->out, block, before, row), bytes);
        else
            memset(to, 0, bytes);
    }
}

/* The state that rows begin with, and their lengths. */
static void NAME(begin)(const recurrence_run *run, int64_t row, int64_t rows)
{
    const tn__recurrence *of = &run->data->of;
    int states = run->data->row.states, blocks = run->data->row.blocks;
    int64_t place = tn__recurrence_before(of, tn__recurrence_step(of, 0));
    size_t bytes = (size_t)(rows * of->units) * sizeof(T);
    for (int block = 0; block < blocks; block++) {
        T *to = NAME(at)(run, run->out, block, place, row);
        if (block < states)
            memcpy(to, (const T *)run->in[2] + (block * of->rows + row) * of->units, bytes);
        else
            memset(to, 0, bytes);
    }
    if (of->lengths)
        memcpy(NAME(at)(run, run->out, blocks, 0, row),
               (const T *)run->in[2] + (states * of->rows + row) * of->units, bytes);
}

static void NAME(forward)(void *context, int64_t begin, int64_t end)
{
    static const struct {
        void (*spread)(const recurrence_run *run, int64_t place, int64_t row, const T *x, const T *hu);
        void (*finish)(const recurrence_run *run, int64_t before, int64_t after, int64_t row, int64_t n);
    } by[TN__RECUR_KINDS] = {[TN__RECUR_TANH] = {NAME(spread_plain), NAME(finish_plain)},
                             [TN__RECUR_RELU] = {NAME(spread_plain), NAME(finish_plain)},
                             [TN__RECUR_LSTM] = {NAME(spread_lstm), NAME(finish_lstm)},
                             [TN__RECUR_GRU] = {NAME(spread_gru), NAME(finish_gru)}};
    recurrence_run *run = context;
    const tn__recurrence *of = &run->data->of;
    int64_t units = of->units, width = run->data->row.gates * units;
    const T *x = (const T *)run->in[0], *w = (const T *)run->in[1];
    const char *lengths = of->lengths ? (const char *)((const T *)run->in[2] + run->data->row.states * of->rows * units)
                                      : NULL;
    T *sums = tn__alloc((size_t)(ROWS_AT_ONCE * width) * sizeof(T));
    if (!sums) {
        run->no_memory = true;
        return;
    }
    NAME(begin)(run, begin, end - begin);
    for (int64_t i = 0; i < of->steps; i++) {
        int64_t step = tn__recurrence_step(of, i), before = tn__recurrence_before(of, step),
                after = tn__recurrence_after(of, step);
        for (int64_t row = begin, count; row < end; row += count) {
            const T *h = NAME(at)(run, run->out, 0, before, row);
            count = end - row < ROWS_AT_ONCE ? 1 : ROWS_AT_ONCE;
            for (int64_t r = 0; r < count; r++)
                if (of->bias)
                    memcpy(sums + r * width, w + units * width, (size_t)width * sizeof(T));
                else
                    memset(sums + r * width, 0, (size_t)width * sizeof(T));
            if (count == 1)
                NAME(add_product)(sums, h, w, units, width, width);
            else
                NAME(add_products)(sums, width, h, units, w, units, width);
            for (int64_t r = row; r < row + count; r++)
                by[of->kind].spread(run, after, r, x + (step * of->rows + r) * width, sums + (r - row) * width);
        }
        by[of->kind].finish(run, before, after, begin, (end - begin) * units);
        for (int64_t row = begin; row < end && lengths; row++)
            if (step >= NAME(length)(run, lengths, row))
                NAME(stay)(run, before, after, row);
    }
    tn__free(sums);
}

/* ---- backward ---- */

/* One row of one step: dh and dc, the gradients by its states, become those by the states before but for what comes
 * through h U; d is set to the gradient by the sums, and `by` to that by h U + b, where it is another one. */
typedef struct NAME(back) {
    const recurrence_run *run;
    int64_t before, after, row;
    T *dh, *dc, *d, *by;
} NAME(back);

/* What forward made of the step, and the gradient by it. */
static T *NAME(made)(const NAME(back) *b, int block)
{
    return NAME(at)(b->run, b->run->in[0], block, b->after, b->row);
}
static T *NAME(by_it)(const NAME(back) *b, int block)
{
    return NAME(at)(b->run, b->run->in[1], block, b->after, b->row);
}

static TARGET void NAME(back_plain)(const NAME(back) *b)
{
    const T *h = NAME(made)(b, 0);
    bool is_tanh = b->run->data->of.kind == TN__RECUR_TANH;
    for (int64_t j = 0; j < b->run->data->of.units; j++) {
        b->d[j] = b->dh[j] * (is_tanh ? 1 - h[j] * h[j] : (T)(h[j] > 0));
        b->dh[j] = 0;
    }
}

static TARGET void NAME(back_lstm)(const NAME(back) *b)
{
    int64_t units = b->run->data->of.units;
    const T *old = NAME(at)(b->run, b->run->in[0], 1, b->before, b->row);
    const T *in = NAME(made)(b, 2), *forget = NAME(made)(b, 3), *candidate = NAME(made)(b, 4), *out = NAME(made)(b, 5);
    const T *g_in = NAME(by_it)(b, 2), *g_forget = NAME(by_it)(b, 3), *g_candidate = NAME(by_it)(b, 4),
            *g_out = NAME(by_it)(b, 5);
    T *restrict dh = b->dh, *restrict dc = b->dc, *restrict d = b->d, *restrict tanh_c = b->by;
    NAME(map)(b->run, TN__OP_TANH, tanh_c, NAME(made)(b, 1), units);
    INDEPENDENT for (int64_t j = 0; j < units; j++)
    {
        T c = dc[j] + dh[j] * out[j] * (1 - tanh_c[j] * tanh_c[j]);
        d[j] = (c * candidate[j] + g_in[j]) * (in[j] * (1 - in[j]));
        d[units + j] = (c * old[j] + g_forget[j]) * (forget[j] * (1 - forget[j]));
        d[2 * units + j] = (c * in[j] + g_candidate[j]) * (1 - candidate[j] * candidate[j]);
        d[3 * units + j] = (dh[j] * tanh_c[j] + g_out[j]) * (out[j] * (1 - out[j]));
        dc[j] = c * forget[j];
        dh[j] = 0;
    }
}

static TARGET void NAME(back_gru)(const NAME(back) *b)
{
    int64_t units = b->run->data->of.units;
    const T *old = NAME(at)(b->run, b->run->in[0], 0, b->before, b->row);
    const T *reset = NAME(made)(b, 1), *update = NAME(made)(b, 2), *candidate = NAME(made)(b, 3);
    const T *hu = NAME(made)(b, 4);
    const T *g_reset = NAME(by_it)(b, 1), *g_update = NAME(by_it)(b, 2), *g_candidate = NAME(by_it)(b, 3),
            *g_hu = NAME(by_it)(b, 4);
    T *restrict dh = b->dh, *restrict d = b->d, *restrict by = b->by;
    INDEPENDENT for (int64_t j = 0; j < units; j++)
    {
        T n = (dh[j] * (1 - update[j]) + g_candidate[j]) * (1 - candidate[j] * candidate[j]);
        d[j] = by[j] = (n * hu[j] + g_reset[j]) * (reset[j] * (1 - reset[j]));
        d[units + j] = by[units + j] =
            (dh[j] * (old[j] - candidate[j]) + g_update[j]) * (update[j] * (1 - update[j]));
        d[2 * units + j] = n;
        by[2 * units + j] = n * reset[j] + g_hu[j];
        dh[j] = dh[j] * update[j];
    }
}

/* The states' gradients of a row, with what comes to them at a place. */
static void NAME(take)(const recurrence_run *run, int64_t place, int64_t row, T *state)
{
    int64_t units = run->data->of.units;
    for (int s = 0; s < run->data->row.states; s++, state += units) {
        const T *g = NAME(at)(run, run->in[1], s, place, row);
        for (int64_t j = 0; j < units; j++)
            state[j] += g[j];
    }
}

/* The step of a row within its length, but for what comes through h U. */
static void NAME(back_step)(const recurrence_run *run, int64_t step, int64_t row, T *state, T *spare)
{
    static void (*const by[TN__RECUR_KINDS])(const NAME(back) *) = {
        [TN__RECUR_TANH] = NAME(back_plain), [TN__RECUR_RELU] = NAME(back_plain), [TN__RECUR_LSTM] = NAME(back_lstm),
        [TN__RECUR_GRU] = NAME(back_gru)};
    const tn__recurrence *of = &run->data->of;
    int64_t units = of->units, width = run->data->row.gates * units;
    bool apart = run->data->row.products == 2;
    T *d = (T *)run->out + (step * of->rows + row) * width, *hu = d + of->steps * of->rows * width;
    NAME(back) b = {run, tn__recurrence_before(of, step), tn__recurrence_after(of, step), row, state, state + units, d,
                    apart ? hu : spare};
    by[of->kind](&b);
}

/* What comes to the states of `count` rows, 1 or ROWS_AT_ONCE, through h U. */
static void NAME(back_product)(const recurrence_run *run, int64_t step, int64_t row, int64_t count, T *state)
{
    const tn__recurrence *of = &run->data->of;
    int64_t units = of->units, width = run->data->row.gates * units;
    const T *d = (const T *)run->out + (step * of->rows + row) * width, *u = (const T *)run->transposed;
    if (run->data->row.products == 2)
        d += of->steps * of->rows * width;
    if (count == 1)
        NAME(add_product)(state, d, u, width, units, units);
    else
        NAME(add_products)(state, 2 * units, d, width, u, width, units);
}

/* The gradients by the states that a row begins with. */
static void NAME(give)(const recurrence_run *run, int64_t row, const T *state)
{
    const tn__recurrence *of = &run->data->of;
    int64_t units = of->units, width = run->data->row.gates * units, all = run->data->row.products * of->steps;
    for (int s = 0; s < run->data->row.states; s++) {
        T *to = (T *)run->out + ((all + s) * of->rows + row) * width;
        memcpy(to, state + s * units, (size_t)units * sizeof(T));
        memset(to + units, 0, (size_t)(width - units) * sizeof(T));
    }
}

static void NAME(backward)(void *context, int64_t begin, int64_t end)
{
    recurrence_run *run = context;
    const tn__recurrence *of = &run->data->of;
    int products = run->data->row.products;
    int64_t units = of->units, width = run->data->row.gates * units, first = tn__recurrence_step(of, 0);
    const char *lengths = of->lengths ? (const char *)NAME(at)(run, run->in[0], run->data->row.blocks, 0, 0) : NULL;
    T *room = tn__calloc((size_t)(2 * (end - begin) + 1) * (size_t)units, sizeof(T)), *spare;
    if (!room) {
        run->no_memory = true;
        return;
    }
    spare = room + 2 * (end - begin) * units;
    for (int64_t i = of->steps; i-- > 0;) {
        int64_t step = tn__recurrence_step(of, i);
        for (int64_t row = begin; row < end; row++) {
            T *state = room + 2 * (row - begin) * units, *d = (T *)run->out + (step * of->rows + row) * width;
            NAME(take)(run, tn__recurrence_after(of, step), row, state);
            if (step < NAME(length)(run, lengths, row)) {
                NAME(back_step)(run, step, row, state, spare);
                continue;
            }
            for (int p = 0; p < products; p++)
                memset(d + p * of->steps * of->rows * width, 0, (size_t)width * sizeof(T));
        }
        for (int64_t row = begin, count; row < end; row += count) {
            int64_t longest = 0, shortest = of->steps; /* of the next rows */
            count = end - row < ROWS_AT_ONCE ? 1 : ROWS_AT_ONCE;
            for (int64_t r = row; r < row + count; r++) {
                int64_t length = NAME(length)(run, lengths, r);
                longest = length > longest ? length : longest;
                shortest = length < shortest ? length : shortest;
            }
            if (step >= shortest)
                count = 1; /* not of all of them */
            if (step < (count == 1 ? NAME(length)(run, lengths, row) : longest))
                NAME(back_product)(run, step, row, count, room + 2 * (row - begin) * units);
        }
    }
    for (int64_t row = begin; row < end; row++) {
        T *state = room + 2 * (row - begin) * units;
        NAME(take)(run, tn__recurrence_before(of, first), row, state);
        NAME(give)(run, row, state);
    }
    tn__free(room);
}

/* The weights but for the bias, transposed. */
static void NAME(transpose)(char *to, const char *from, int64_t rows, int64_t columns)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            ((T *)to)[j * rows + i] = ((const T *)from)[i * columns + j];
}
