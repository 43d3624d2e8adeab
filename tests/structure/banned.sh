#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# banned.sh ROOT: functions that must not be called, in comments and strings of no interest.
. "$(dirname "$0")/lib.sh"

# calls NAMES WHY TEXT: in the bare text there is no call of one of the names, alone or as a pointer.
calls() {
    local hits
    hits=$(grep -E "(^|[^A-Za-z0-9_>.])($1)[[:space:]]*\(" "$tmp/$3")
    [ -z "$hits" ] || bad "$hits
    banned: $2"
}

# words NAMES WHY TEXT: the names do not occur at all.
words() {
    local hits
    hits=$(grep -E "(^|[^A-Za-z0-9_>.])($1)([^A-Za-z0-9_]|$)" "$tmp/$3")
    [ -z "$hits" ] || bad "$hits
    banned: $2"
}

# The bare text of src and cli, of src alone, and of src without the table of OS calls and without
# emit/plan.h and emit/host.h, which are text of emitted programs: they have no library and no table.
scratch
mapfile -t files < <(c_files src cli)
bare "${files[@]}" >"$tmp/both"
grep -F "$root/src/" "$tmp/both" >"$tmp/src"
grep -vF -e "$root/src/base/os.c:" -e "$root/src/emit/plan.h:" -e "$root/src/emit/host.h:" "$tmp/src" >"$tmp/no_os"

words 'system|popen|wordexp' "a shell; spawn with an argument vector" both
words '[vfs]*scanf|strtok|strtok_r|gets' "readers use one bounded cursor" both
words 'atoi|atol|atoll|atof' "no error is seen: num_parse" both
words 'strcpy|strcat|stpcpy|sprintf|vsprintf' "unbounded: snprintf, memcpy" both
words 'alloca|__builtin_alloca' "unbounded stack" both
words 'tmpnam|mktemp|tempnam' "a race: open with O_EXCL" both
part "dangerous functions"

calls 'abort|exit|_exit|_Exit|quick_exit|raise|kill' "the library gives a status" src
calls 'printf|vprintf|puts|putchar|perror' "the library never prints" src
words 'stdout|stderr|stdin' "the library never prints" src
part "the library neither ends the process nor prints"

calls 'malloc|calloc|realloc|free|strdup|strndup|asprintf|vasprintf|aligned_alloc|posix_memalign' \
    "memory comes from the table of OS calls (base/os.c)" no_os
calls 'open|openat|creat|read|pread|write|pwrite|close|fsync|rename|unlink|fopen|fdopen|freopen|mmap|stat|fstat' \
    "files go through the table of OS calls (base/os.c)" no_os
part "every OS call is in base/os.c"
finish
