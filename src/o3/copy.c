/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Copies of operands with channels side by side, for programs that run over the channels of an item
 * many times: they read and write the copy, and the operand once. */
#include "o3/o3_int.h"

#include <string.h>

bool o3_is_turned(const O3Operand *o)
{
    bool turned = false;

    for (int s = 0; s < o->irreps.n; s++)
        turned = turned || (o->irreps.at[s].ir.l > 0 && o->irreps.at[s].mul > 1);
    return turned && o->layout == O3_MUL_IR;
}

O3Operand o3_turned(const O3Operand *o, const char *buf)
{
    O3Operand c = *o;

    c.buf = buf;
    c.layout = O3_IR_MUL;
    return c;
}

void o3_put_temp(Text *out, const O3Operand *o, Type type)
{
    text_f(out, "temp %s ", type == T_f64 ? "f64" : "f32");
    o3_put_buf(out, o);
    text_char(out, '\n');
}

void o3_put_copy(Text *out, O3Operand to, O3Operand from, const char *row)
{
    char slot[3] = "s", channel[3] = "u", component[3] = "m";
    bool own = strlen(to.row) == 1 && to.row[0] - 'A' + 'a' == row[0]; /* the axis' own variable */

    slot[1] = channel[1] = component[1] = (char)(to.axis[0] - 'A' + 'a');
    to.at = from.at = row;
    text_f(out, "for %s%s%s, %s, %s, %s: ", row, own ? "" : " in ", own ? "" : to.row, slot,
           component, channel);
    o3_put_load(out, &to, slot, channel, component);
    text_str(out, " = ");
    o3_put_load(out, &from, slot, channel, component);
    text_char(out, '\n');
}
