#!/bin/sh
# in check
# The gate of the library (base/inside.h):
# - each call of the public headers begins by entering it, with a look at what it was given: NULL in
#   place of a handle or of a result is refused by name, or gives nothing;
# - a function of the program is called outside of it;
# - threads begin in base/thread.c, which enters it.
set -eu

# Calls of the headers in $1/include that the files of $1/src define without it. Those with a status
# have `error`, which says what is NULL; sifr_version has nothing to enter for.
forgotten() {
    grep -rhoE 'SIFR_API [^;(]*\bsifr_[a-z_0-9]+\(' "$1/include" | sed 's/.*[ *]//' | sort -u >public
    find "$1/src" -name '*.c' -exec awk '
        match($0, /^[a-z].*[ *]sifr_[a-z_0-9]+\(/) {
            name = substr($0, RSTART, RLENGTH)
            gate = name ~ /^sifr_status / ? "BASE_ENTER\\(error, " : "BASE_(ENTER_OR\\(|ENTER_VOID\\(|INSIDE;)"
            sub(/.*[ *]/, "", name)
        }
        name && /^    / && open { if ($0 !~ "^    " gate) print name; name = "" }
        { open = name && / \{$/ }' {} + | grep -vx 'sifr_version(' | sort -u >without
    comm -12 public without
}

# Lines of $1/src/api that call through a pointer beside what belongs to it, `user`, and no BASE_OUT.
called_inside() {
    grep -rnE '(->|\.)[a-z]+\(([a-z]+(->|\.))+user[,)]' "$1/src/api" | grep -v 'BASE_OUT(' || :
}

mkdir -p wrong/include wrong/src/api
{
    printf 'SIFR_API sifr_status %s\n' 'sifr_a(int *out);' 'sifr_b(int *out,' 'sifr_c(int *out);'
    printf 'SIFR_API %s\n' 'int sifr_d(int *of);' 'const char *sifr_e(' 'void sifr_f(int *of);'
} >wrong/include/a.h
{
    printf '%s {\n    %s\n}\n' 'sifr_status sifr_a(int *out)' 'BASE_ENTER(error, out);' \
        'sifr_status sifr_b(int *out,
                   int *error)' '*out = 1;' 'sifr_status sifr_c(int *out)' 'BASE_INSIDE;' \
        'int sifr_d(int *of)' 'BASE_ENTER_OR(0, of);' 'const char *sifr_e(void)' 'return "e";' \
        'void sifr_f(int *of)' 'if (!of) return;'
} >wrong/src/a.c
[ "$(forgotten wrong | tr '\n' ' ')" = "sifr_b( sifr_c( sifr_e( sifr_f( " ] || {
    echo "not found: sifr_b, sifr_c, sifr_e, sifr_f" >&2
    exit 1
}
printf '%s\n' '    o->step(o->user, &step);' '    BASE_OUT(o->step(o->user, &step));' >wrong/src/api/a.c
[ "$(called_inside wrong | wc -l)" = 1 ] || { echo "a call inside is not found" >&2; exit 1; }

forgotten "$SOURCE" >found
[ "$(wc -l <public)" -gt 150 ] || { echo "only $(wc -l <public) calls found" >&2; exit 1; }
[ ! -s found ] || { echo "without BASE_ENTER: $(tr '\n' ' ' <found)" >&2; exit 1; }
called_inside "$SOURCE" >found
[ ! -s found ] || { echo "without BASE_OUT: $(cat found)" >&2; exit 1; }
grep -rlE '\b(pthread_create|thrd_create)\(' "$SOURCE/src" | grep -v 'src/base/thread\.c$' >found || :
[ ! -s found ] || { echo "starts a thread without base/thread.h: $(cat found)" >&2; exit 1; }
