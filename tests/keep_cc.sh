#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# A C compiler that keeps the libraries it makes, for tests/mutate.sh: most mutants emit the C of most
# kernels as the code does, and a kernel is compiled once for all of them.  It is called by the names of the
# compilers, from a folder that comes first on the PATH:
#
#   DIR/use/cc    gives the library of an equal call, or compiles and keeps it
#   DIR/fill/cc   compiles and keeps it
#
# Equal calls have the same compiler, the same words but for the output, and the same text of the source.
# Only what is compiled without a word of the compiler is kept, in DIR/kept.
set -u
dir=${0%/*} name=${0##*/} PATH=${PATH#*:}
out='' source='' words=() many=0
for ((i = 1; i <= $#; i++)); do
    word=${!i}
    case $word in
    -o) i=$((i + 1)) out=${!i} ;;
    - | *.c) source=$word many=$((many + 1)) ;;
    *) words+=("$word") ;;
    esac
done
case " $* " in *' -shared '*) ;; *) many=0 ;; esac
[ $many = 1 ] && [ -n "$out" ] || exec "$name" "$@"

kept=${dir%/*}/kept new=${dir%/*}/kept/new.$$.$RANDOM
trap 'rm -f "$new".*' EXIT
trap 'exit 143' TERM INT HUP
if [ "$source" = - ]; then cat >"$new.c"; else cp "$source" "$new.c"; fi
key=$({ type -P "$name" && printf '%s\n' "${words[@]}" && cat "$new.c"; } | sha256sum)
key=$kept/${key%% *}
if [ "${dir##*/}" = use ] && cp "$key" "$out" 2>/dev/null; then exit 0; fi
"$name" "$@" <"$new.c" >"$new.log" 2>&1
code=$?
if [ $code = 0 ] && [ ! -s "$new.log" ]; then cp "$out" "$new.so" && mv "$new.so" "$key"; fi
cat "$new.log" >&2
exit $code
