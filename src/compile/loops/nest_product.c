/* SPDX-License-Identifier: MIT */
/* Facts of a nest's product: its extents, and how many tiles it is cut in. */
#include "compile/loops/nest.h"

tn__product_extents tn__product_extents_of(const tn__nest *nest)
{
    const tn__nest_product *p = &nest->product;
    tn__product_extents e = {1, 1, 1, nest->access[p->access[0]].gather_extent};
    for (int l = 0; l < nest->loop_count; l++)
        *(l == p->row_loop ? &e.rows : l == p->column_loop ? &e.columns : &e.batch) *= nest->extent[l];
    return e;
}

int64_t tn__product_tiles_down(const tn__nest *nest)
{
    int64_t tiles = tn__parts(tn__product_extents_of(nest).rows, nest->product.tile.rows);
    return tiles ? tiles : 1; /* what is reduced over no rows at all has a result, too */
}

int64_t tn__product_tiles_across(const tn__nest *nest)
{
    const tn__product_tile *t = &nest->product.tile;
    int64_t tiles = tn__parts(tn__product_extents_of(nest).columns, t->columns);
    return tiles ? tiles : 1;
}

int64_t tn__product_blocks(const tn__nest *nest)
{
    return tn__product_extents_of(nest).batch * tn__product_tiles_down(nest) * tn__product_tiles_across(nest);
}
