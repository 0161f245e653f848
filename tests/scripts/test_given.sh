#!/bin/sh
# in check
# Each call of the public headers that returns a status begins with a look at what it was given
# (BASE_GIVEN): NULL in place of a handle or of a result is refused by name.
set -eu

# Calls of the headers in $1/include that the files of $1/src define without it.
forgotten() {
    grep -rhoE 'SIFR_API sifr_status sifr_[a-z_0-9]+\(' "$1/include" | sed 's/.* //' | sort -u >public
    find "$1/src" -name '*.c' -exec awk '
        match($0, /^sifr_status sifr_[a-z_0-9]+\(/) { name = substr($0, 13, RLENGTH - 12) }
        name && /^    / && !/BASE_TRY\(BASE_GIVEN\(error, / && open { print name; name = "" }
        name && open { name = "" }
        { open = name && / \{$/ }' {} + | sort -u >without
    comm -12 public without
}

mkdir -p wrong/include wrong/src
printf 'SIFR_API sifr_status %s\n' 'sifr_a(int *out);' 'sifr_b(int *out,' >wrong/include/a.h
printf 'sifr_status sifr_%s {\n    %s\n}\n' 'a(int *out)' 'BASE_TRY(BASE_GIVEN(error, out));' \
    'b(int *out,
                   int *error)' '*out = 1;' >wrong/src/a.c
[ "$(forgotten wrong)" = "sifr_b(" ] || { echo "sifr_b is not found" >&2; exit 1; }

forgotten "$SOURCE" >found
[ "$(wc -l <public)" -gt 70 ] || { echo "only $(wc -l <public) calls found" >&2; exit 1; }
[ ! -s found ] || { echo "without BASE_GIVEN: $(tr '\n' ' ' <found)" >&2; exit 1; }
