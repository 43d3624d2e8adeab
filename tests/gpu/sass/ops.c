/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The table of operations: what runs them, the class they are counted in, and the modifiers that
 * the function knows.  Any other modifier makes an instruction unknown.  An operation of the
 * uniform datapath, "U" and a name of the table or the name and "U", is the same function. */
#include "gpu/sass/ops.h"

#include <string.h>

#define FLOAT "FTZ SAT RN RM RP RZ"
#define COMPARE "EQ NE LT LE GT GE EQU NEU LTU LEU GTU GEU NUM NAN F T AND OR XOR FTZ"
#define MEMORY                                                                        \
    "E 64 128 U8 S8 U16 S16 CONSTANT STRONG WEAK GPU SYS CTA SM EL EF EU NA PRIVATE " \
    "LTC64B LTC128B LTC256B U"
#define ATOMICS                                                                    \
    "E ADD MIN MAX AND OR XOR EXCH CAS INC DEC 64 F32 F64 S32 U32 S64 U64 FTZ RN " \
    "STRONG WEAK GPU SYS CTA"
#define INTEGER "U8 S8 U16 S16 U32 S32 U64 S64 F16 F32 F64"

static const Op table[] = {
    { "FFMA", op_ffma, SASS_FFMA, FLOW_NONE, FLOAT },
    { "FMUL", op_fmul, SASS_FMUL, FLOW_NONE, FLOAT },
    { "FADD", op_fadd, SASS_FADD, FLOW_NONE, FLOAT },
    { "FSEL", op_fsel, SASS_FP, FLOW_NONE, "" },
    { "FSETP", op_fsetp, SASS_FP, FLOW_NONE, COMPARE },
    { "FSET", op_fset, SASS_FP, FLOW_NONE, COMPARE " BF" },
    { "FMNMX", op_fmnmx, SASS_FP, FLOW_NONE, "FTZ NAN" },
    { "FCHK", op_fchk, SASS_FP, FLOW_NONE, "DIVIDE" },
    { "DADD", op_dadd, SASS_FP, FLOW_NONE, "RN RM RP RZ" },
    { "DMUL", op_dmul, SASS_FP, FLOW_NONE, "RN RM RP RZ" },
    { "DFMA", op_dfma, SASS_FP, FLOW_NONE, "RN RM RP RZ" },
    { "DSETP", op_dsetp, SASS_FP, FLOW_NONE, COMPARE " MIN MAX" },
    { "HADD2", op_hadd2, SASS_FP, FLOW_NONE, "F32 SAT BF16_V2 MMA" },
    { "HMUL2", op_hmul2, SASS_FP, FLOW_NONE, "SAT BF16_V2 MMA" },
    { "HFMA2", op_hfma2, SASS_FP, FLOW_NONE, "SAT BF16_V2 MMA RELU" },
    { "MUFU", op_mufu, SASS_MUFU, FLOW_NONE, "RCP RSQ SQRT EX2 LG2 SIN COS TANH RCP64H RSQ64H" },
    { "F2F", op_f2f, SASS_MUFU, FLOW_NONE, "F16 F32 F64 BF16 RN RM RP RZ FTZ" },
    { "F2FP", op_f2fp, SASS_MUFU, FLOW_NONE, "F16 F32 BF16 PACK_AB" },
    { "F2I", op_f2i, SASS_MUFU, FLOW_NONE, INTEGER " FTZ TRUNC FLOOR CEIL NTZ" },
    { "I2F", op_i2f, SASS_MUFU, FLOW_NONE, INTEGER " RN RM RP RZ" },
    { "FRND", op_frnd, SASS_MUFU, FLOW_NONE, "F64 TRUNC FLOOR CEIL FTZ" },
    { "MOV", op_mov, SASS_INT, FLOW_NONE, "" },
    { "LDC", op_ldc, SASS_INT, FLOW_MEMORY, "64 U8 S8 U16 S16 U" },
    { "ULDC", op_mov, SASS_INT, FLOW_NONE, "64" },
    { "IMAD", op_imad, SASS_INT, FLOW_NONE, "MOV IADD SHL X U32 HI WIDE" },
    { "IADD3", op_iadd3, SASS_INT, FLOW_NONE, "X" },
    { "LEA", op_lea, SASS_INT, FLOW_NONE, "HI X SX32" },
    { "LOP3", op_lop3, SASS_INT, FLOW_NONE, "LUT" },
    { "PLOP3", op_plop3, SASS_INT, FLOW_NONE, "LUT" },
    { "SHF", op_shf, SASS_INT, FLOW_NONE, "L R W HI U32 S32 U64 S64" },
    { "ISETP", op_isetp, SASS_INT, FLOW_NONE, "EQ NE LT LE GT GE F T AND OR XOR U32 EX" },
    { "SEL", op_sel, SASS_INT, FLOW_NONE, "" },
    { "IMNMX", op_imnmx, SASS_INT, FLOW_NONE, "U32" },
    { "IABS", op_iabs, SASS_INT, FLOW_NONE, "" },
    { "POPC", op_popc, SASS_INT, FLOW_NONE, "" },
    { "FLO", op_flo, SASS_INT, FLOW_NONE, "U32 SH" },
    { "BREV", op_brev, SASS_INT, FLOW_NONE, "" },
    { "PRMT", op_prmt, SASS_INT, FLOW_NONE, "" },
    { "SGXT", op_sgxt, SASS_INT, FLOW_NONE, "U32 W" },
    { "BMSK", op_bmsk, SASS_INT, FLOW_NONE, "" },
    { "P2R", op_p2r, SASS_INT, FLOW_NONE, "" },
    { "R2P", op_r2p, SASS_INT, FLOW_NONE, "" },
    { "R2UR", op_r2ur, SASS_INT, FLOW_NONE, "" },
    { "S2R", op_s2r, SASS_INT, FLOW_MEMORY, "" },
    { "S2UR", op_s2r, SASS_INT, FLOW_MEMORY, "" },
    { "CS2R", op_cs2r, SASS_INT, FLOW_MEMORY, "32" },
    { "VOTE", op_vote, SASS_INT, FLOW_NONE, "ANY ALL EQ" },
    { "MATCH", op_match, SASS_INT, FLOW_NONE, "ANY ALL U64" },
    { "REDUX", op_redux, SASS_INT, FLOW_NONE, "SUM OR AND XOR MIN MAX S32" },
    { "B2R", op_b2r, SASS_INT, FLOW_NONE, "RESULT" },
    { "BMOV", op_bmov, SASS_INT, FLOW_MEMORY, "32 CLEAR" },
    { "QSPC", op_qspc, SASS_INT, FLOW_NONE, "E S" },
    { "SHFL", op_shfl, SASS_SHFL, FLOW_MEMORY, "IDX BFLY UP DOWN" },
    { "LDG", op_load, SASS_LDG, FLOW_MEMORY, MEMORY },
    { "LD", op_load, SASS_LDG, FLOW_MEMORY, MEMORY },
    { "STG", op_store, SASS_STG, FLOW_MEMORY, MEMORY },
    { "ST", op_store, SASS_STG, FLOW_MEMORY, MEMORY },
    { "LDS", op_load, SASS_LDS, FLOW_MEMORY, "64 128 U8 S8 U16 S16 U" },
    { "STS", op_store, SASS_STS, FLOW_MEMORY, "64 128 U8 U16" },
    { "LDL", op_load, SASS_LOCAL, FLOW_MEMORY, "64 128 U8 S8 U16 S16 LU" },
    { "STL", op_store, SASS_LOCAL, FLOW_MEMORY, "64 128 U8 U16" },
    { "ATOMG", op_atom, SASS_ATOM, FLOW_MEMORY, ATOMICS },
    { "ATOM", op_atom, SASS_ATOM, FLOW_MEMORY, ATOMICS },
    { "RED", op_atom, SASS_ATOM, FLOW_MEMORY, ATOMICS },
    { "ATOMS", op_atom, SASS_ATOM, FLOW_MEMORY, ATOMICS " CAST SPIN" },
    { "BSSY", NULL, SASS_SYNC, FLOW_SYNC, "" },
    { "BSYNC", NULL, SASS_SYNC, FLOW_SYNC, "" },
    { "BREAK", NULL, SASS_SYNC, FLOW_SYNC, "" },
    { "WARPSYNC", NULL, SASS_SYNC, FLOW_SYNC, "EXCLUSIVE" },
    { "BAR", NULL, SASS_SYNC, FLOW_SYNC, "SYNC RED ARV DEFER_BLOCKING POPC AND OR" },
    { "MEMBAR", op_nothing, SASS_SYNC, FLOW_NONE, "SC VC ALL GPU SYS CTA" },
    { "ERRBAR", op_nothing, SASS_SYNC, FLOW_NONE, "" },
    { "CCTL", op_nothing, SASS_SYNC, FLOW_NONE, "IVALL E C U" },
    { "DEPBAR", op_nothing, SASS_SYNC, FLOW_NONE, "LE" },
    { "YIELD", op_nothing, SASS_SYNC, FLOW_NONE, "" },
    { "NANOSLEEP", op_nothing, SASS_SYNC, FLOW_NONE, "" },
    { "NOP", NULL, SASS_SYNC, FLOW_NOP, "" },
    { "BRA", NULL, SASS_BRANCH, FLOW_BRANCH, "CONV DIV U" },
    { "BRX", NULL, SASS_BRANCH, FLOW_BRANCH, "" },
    { "CALL", NULL, SASS_BRANCH, FLOW_BRANCH, "REL ABS NOINC" },
    { "RET", NULL, SASS_BRANCH, FLOW_BRANCH, "REL ABS NODEC" },
    { "EXIT", NULL, SASS_BRANCH, FLOW_EXIT, "" },
    { "BPT", op_trap, SASS_SYNC, FLOW_MEMORY, "TRAP" },
};

static const Op *find(const char *name)
{
    for (size_t k = 0; k < sizeof table / sizeof *table; k++)
        if (strcmp(table[k].name, name) == 0)
            return &table[k];
    return NULL;
}

const Op *op_find(const char *name, bool *uniform)
{
    const size_t n = strlen(name);
    const Op *op = find(name);
    char other[32];

    *uniform = *name == 'U';
    if (op == NULL && *name == 'U')
        op = find(name + 1);
    if (op == NULL && n > 1 && n < sizeof other && name[n - 1] == 'U') { /* VOTEU */
        memcpy(other, name, n - 1);
        other[n - 1] = 0;
        op = find(other);
        *uniform = true;
    }
    return op;
}

const char *const sass_class_name[SASS_CLASSES] = {
    "FFMA", "FMUL", "FADD", "FP",  "MMA",   "MUFU/CVT", "INT",  "LDG",
    "STG",  "ATOM", "LDS",  "STS", "LOCAL", "SHFL",     "SYNC", "BRANCH",
};
