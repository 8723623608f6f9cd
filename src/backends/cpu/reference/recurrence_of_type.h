/* SPDX-License-Identifier: MIT */
/*
 * Recurrent networks for one type and one set of instructions; included once for each. The includer defines
 *     T, NAME(name)     the type, and a function's name for both
 *     TARGET            the functions' attribute
 *     MULTIPLY_ADD      a b + c
 * and gets NAME(forward) and NAME(backward), loops over rows for tn__cpu_for.
 */

/* to[j] += sum over k of a[k] w[k][j]: m rows of w, of n numbers. Four at once, so that sums are loaded less often. */
static TARGET void NAME(add_product)(T *restrict to, const T *restrict a, const T *restrict w, int64_t m, int64_t n)
{
    int64_t k = 0;
    for (; k + 4 <= m; k += 4, w += 4 * n) {
        const T a0 = a[k], a1 = a[k + 1], a2 = a[k + 2], a3 = a[k + 3];
        for (int64_t j = 0; j < n; j++) {
            T sum = MULTIPLY_ADD(a1, w[n + j], MULTIPLY_ADD(a0, w[j], to[j]));
            to[j] = MULTIPLY_ADD(a3, w[3 * n + j], MULTIPLY_ADD(a2, w[2 * n + j], sum));
        }
    }
    for (; k < m; k++, w += n) {
        const T a0 = a[k];
        for (int64_t j = 0; j < n; j++)
            to[j] = MULTIPLY_ADD(a0, w[j], to[j]);
    }
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
    T *hu = tn__alloc((size_t)width * sizeof(T));
    if (!hu) {
        run->no_memory = true;
        return;
    }
    NAME(begin)(run, begin, end - begin);
    for (int64_t i = 0; i < of->steps; i++) {
        int64_t step = tn__recurrence_step(of, i), before = tn__recurrence_before(of, step),
                after = tn__recurrence_after(of, step);
        for (int64_t row = begin; row < end; row++) {
            if (of->bias)
                memcpy(hu, w + units * width, (size_t)width * sizeof(T));
            else
                memset(hu, 0, (size_t)width * sizeof(T));
            NAME(add_product)(hu, NAME(at)(run, run->out, 0, before, row), w, units, width);
            by[of->kind].spread(run, after, row, x + (step * of->rows + row) * width, hu);
        }
        by[of->kind].finish(run, before, after, begin, (end - begin) * units);
        for (int64_t row = begin; row < end && lengths; row++)
            if (step >= NAME(length)(run, lengths, row))
                NAME(stay)(run, before, after, row);
    }
    tn__free(hu);
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

/* The step of a row within its length. */
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
    NAME(add_product)(state, apart ? hu : d, (const T *)run->transposed, width, units);
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
