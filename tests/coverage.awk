# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# Reads the reports of `gcov -b -c`; prints one record a file of ours,
#     file NAME LINES LINES-HIT BRANCHES BRANCHES-TAKEN
# and one `uncovered NAME LINE` a line never run.  A line of a header that several objects include
# counts once, as hit when one of its copies is.
FNR == 1 { name = "" }

/^ *-: *0:Source:/ {
    sub(/^.*:Source:/, "")
    name = $0 ~ /^src\// ? $0 : ""
}

name == "" { next }

/^branch/ {
    key = name SUBSEP line SUBSEP $2
    if (!(key in taken)) {
        taken[key] = 0
        arms[name]++
    }
    if ($3 == "taken" && $4 > 0)
        taken[key] = 1
}

/^ *[-#=0-9*]+: *[0-9]+:/ {
    split($0, field, ":")
    count = field[1]
    line = field[2] + 0
    gsub(/[ *]/, "", count)
    if (line == 0 || count == "-")
        next
    key = name SUBSEP line
    if (!(key in hit)) {
        hit[key] = 0
        lines[name]++
    }
    if (count + 0 > 0)
        hit[key] = 1
}

END {
    for (key in hit) {
        split(key, field, SUBSEP)
        lines_hit[field[1]] += hit[key]
        if (!hit[key])
            print "uncovered", field[1], field[2]
    }
    for (key in taken) {
        split(key, field, SUBSEP)
        arms_taken[field[1]] += taken[key]
    }
    for (name in lines)
        print "file", name, lines[name], lines_hit[name] + 0, arms[name] + 0, arms_taken[name] + 0
}
