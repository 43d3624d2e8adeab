# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# cmake -DIN=file -DOUT=file.c -DNAME=identifier -P embed.cmake: a text file as a C string, a line a
# literal.
file(READ "${IN}" text)
string(REPLACE "\\" "\\\\" text "${text}")
string(REPLACE "\"" "\\\"" text "${text}")
string(REPLACE "\n" "\\n\"\n    \"" text "${text}")
file(WRITE "${OUT}.new" "extern const char ${NAME}[];\nconst char ${NAME}[] =\n    \"${text}\";\n")
execute_process(COMMAND "${CMAKE_COMMAND}" -E copy_if_different "${OUT}.new" "${OUT}")
