# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# Programs for the tests of GPU text, each under a name of its own.  To be sourced.

# named FILE NAME: the program under this name.
named() { sed -E "s/^program [A-Za-z0-9_]+/program $2/" "$1"; }

# add NAME SCHEDULE: program NAME, on standard input, and its schedule join the list; so does its
# gradient, if there is one and SCHEDULE is empty.
add() {
    local file=$programs/$1.weft
    cat >"$file.in"
    [ -s "$file.in" ] || { rm "$file.in"; return; }
    named "$file.in" "$1" >"$file"
    rm "$file.in"
    printf '%s\t%s\n' "$1" "$2" >>"$programs/list"
    [ -z "$2" ] || return 0
    "$weft" grad "$file" >"$file.in" 2>/dev/null && named "$file.in" "d_$1" >"$programs/d_$1.weft" &&
        printf 'd_%s\t\n' "$1" >>"$programs/list"
    rm -f "$file.in"
}

# gpu_programs DIR WEFT: every example, every operator with each of its types and options, SpMM and
# SDDMM in every format, tensor products; DIR/list has a line "NAME<tab>SCHEDULE" for each.
gpu_programs() {
    programs=$1 weft=$2
    local file op option options format n=0
    rm -rf "$programs"
    mkdir -p "$programs"
    : >"$programs/list"
    for file in examples/*.weft; do add "$(basename "$file" .weft)" "" <"$file"; done
    for op in $("$weft" list ops | awk '{ print $1 }'); do
        "$weft" op "$op" | add "op_$op" ""
        options=$("$weft" op "$op:?" 2>&1 | sed -E 's/.*it takes//; s/ [a-z]+=N//g; s/\<arg\>/arg:max/')
        case $op in segment_*) options=${options/arg:max/arg} ;; esac
        for option in $options; do
            "$weft" op "$op:$option" 2>/dev/null | add "op_${op}_${option//[^a-z0-9]/_}" ""
        done
    done
    for format in "csr()" "csc()" "coo()" "dcsr()" "ell(0)" "sell(2, 4)" "bsr(2, 2)" "dbsr(2, 3)" \
        "sr_bcrs(2, 2)" "dia()" "band(2, 1)" "n_m(2, 4)" "csf()" "ragged()" "padded_csr(3)" \
        "hyb(2, 2)" "hyb3(2, 1)" "band_rest(1)" "blocks_rest(2, 2, 2)"; do
        for op in spmm sddmm; do
            "$weft" op $op | add "${op}_in_${format%%(*}" "format E $format"
        done
    done
    # all phases of a composed format in one launch
    "$weft" op spmm | add spmm_in_hyb_merged "format E hyb(1, 7); merge C.init $(printf 'c.b0_%d ' 0 1 2 3 4 5 6 7)c.long0 each 8"
    "$weft" op spmm | add spmm_in_hyb2_merged "format E hyb(2, 2); merge C.init $(printf 'c.b%d_%d ' 0 0 0 1 0 2 1 0 1 1 1 2)c.long0 c.long1 each 5"
    for op in "8x0e+8x1o 0e+1o 8x0e+8x1o" "32x0e+32x1o+32x2e 0e+1o+2e 32x0e+32x1o+32x2e --mode uvu --weights item" \
        "8x0e+8x1o 0e+1o 8x0e+8x1o --mode uvw --weights shared --type f64" \
        "16x0e+16x1o 0e+1o 16x0e+16x1o --mode uvu --weights item --layout ir_mul"; do
        n=$((n + 1))
        add "tp_$n" "" < <("$weft" tp $op)
    done
}
