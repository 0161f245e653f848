#!/bin/sh
# in check
# The order of rooms: each directory of src/ includes only itself and those before it in the list,
# and config base alone; folders inside a room that lie side by side include each other in one
# direction only (a folder and the one that it lies in may do both); a backend's headers are included
# by that backend alone, since others ask its row (device/kinds.h); only cli/ prints, reads standard
# input or ends the process, but for base/assert.c, which holds the assertions of all; commands
# include what a program outside of sifr can, but for the files of a list, and so does the extension of
# the Python package; file names are unique in src/, tests/, bench/, scripts/ and python/ (a public
# header may have the name of the room that it opens).
set -eu
rooms="base device comm text formats config model data optim plan engine checkpoint convert infer train api cli"
backends="cpu cuda separate" # folders of device/
# Files of cli/ that include other rooms than base: of commands that look into the program itself, or
# make what a library's caller has by other means, and of launching.
inside="cmd_bench cmd_doctor cmd_init doctor_gpu inspect_describe measure_comm system_facts
    launch/launch launch/launch_choice launch/launch_command launch/watch_rank"
failed=0

# All that is compiled, or included by what is.
sources=
for kind in '[ch]' cu cuh inc def cc cpp; do sources="$sources --include=*.$kind"; done

# The form of an include: of the tree's own files the path from src/, so that the rest can be read;
# a GPU kernel's shim, which a test gives, is the one exception.
check_includes() {
    # shellcheck disable=SC2086 # several words
    (cd "$1" && ! grep -rnE $sources '^[[:space:]]*(#|%:)[[:space:]]*(include|import|embed)' . |
        grep -vE ':#include (<[^">]+>|"[a-z0-9_]+/[^".]+[^"]*")( .*)?$' |
        grep -v '^\./device/cuda/kernel\.h:.*"shim\.h"$') || {
        echo 'these are not written as #include "ROOM/FILE" or #include <FILE>'
        return 1
    }
    # shellcheck disable=SC2086
    (cd "$1" && ! grep -rnE $sources "^#include <($(echo "$rooms" | tr ' ' '|'))/" .) || {
        echo 'these include files of the tree in angle brackets'
        return 1
    }
}

# "FILE ROOM FOLDER-INCLUDED" of each private include. Public headers have no room.
includes() {
    # shellcheck disable=SC2086
    (cd "$1" && grep -rEo $sources '^#include "[a-z0-9_]+/[^"]+"' .) |
        sed -E 's,^\./([^:]+):#include "(.*)/[^/]+"$,\1 \2,' | grep -v ' sifr$'
}

check_rooms() {
    for at in "$1"/*/; do
        at=$(basename "$at")
        case " $rooms " in *" $at "*) ;; *) echo "src/$at/ is no room of the list"; return 1 ;; esac
    done
    includes "$1" | awk -v rooms="$rooms" '
        BEGIN { n = split(rooms, list, " "); for (i = 1; i <= n; i++) place[list[i]] = i }
        {
            split($1, from, "/"); split($2, to, "/")
            if (!(from[1] in place)) { print $1 ": src/" from[1] "/ is no room of the list"; bad = 1 }
            else if (from[1] == "config" && to[1] != "base" && to[1] != "config") {
                print $1 " includes " $2 "/: config includes base alone"; bad = 1
            } else if (place[to[1]] > place[from[1]] || !(to[1] in place)) {
                print $1 " includes " $2 "/, which comes after " from[1] "/"; bad = 1
            }
        }
        END { exit bad }' &&
    # Pairs of folders side by side, the included one first: tsort finds loops.
    includes "$1" | awk '
        {
            from = $1; sub("/[^/]*$", "", from); to = $2
            n = split(from, a, "/"); m = split(to, b, "/")
            for (i = 1; i <= n && i <= m && a[i] == b[i]; i++) ;
            if (i > n || i > m) next # one lies in the other
            x = y = ""
            for (j = 1; j <= i; j++) { x = x "/" a[j]; y = y "/" b[j] }
            print y, x
        }' | sort -u | tsort >/dev/null
}

# Also in sources for GPUs, which see the C headers that they share with the host.
check_backends() {
    for backend in $backends; do
        [ -d "$1/device/$backend" ] || { echo "src/device/$backend/ is not there"; return 1; }
        # shellcheck disable=SC2086
        (cd "$1" && ! grep -rn $sources "^#include \"device/$backend/" . |
            grep -v "^\./device/$backend/") || {
            echo "these include headers of the backend device/$backend/: ask device/kinds.h or" \
                "device/device.h"
            return 1
        }
    done
}

prints='\<(std(in|out|err)|getchar|__builtin_(trap|abort|unreachable))\>'
prints="$prints|\\<(v?d?printf|v?scanf|puts|putchar|perror|psignal)[[:space:]]*\\("
prints="$prints|\\<(at_?exit|(quick_|_)?exit|_Exit|abort|raise|kill)[[:space:]]*\\("
prints="$prints|\\<(read|write)[[:space:]]*\\([012],"

# Results, texts and lines of a log reach a caller by values and callbacks. An assertion that fails
# is the one exception.
check_silent() {
    # shellcheck disable=SC2086
    (cd "$1" && ! grep -rnE $sources --exclude-dir=cli "$prints" . |
        grep -vE '^\./base/assert\.c:|^[^:]+:[0-9]+: \* ') || {
        echo "these print, or end the process: only cli/ does"
        return 1
    }
}

# The C library's would be on or off by NDEBUG, apart from those of base/assert.h.
check_assertions() {
    # shellcheck disable=SC2086
    (cd "$1" && ! grep -rnE $sources '^#include <c?assert(\.h)?>|\<assert[[:space:]]*\(' .) || {
        echo "these use assert: take base_assert (base/assert.h)"
        return 1
    }
}

# Files of cli/ include sifr/, cli/ and base/ alone, but for those of $2, each of which has to.
check_commands() { # SRC INSIDE
    includes "$1" | awk -v inside="$2" '
        BEGIN { n = split(inside, list, " "); for (i = 1; i <= n; i++) free[list[i]] }
        !sub("^cli/", "", $1) { next }
        {
            file = $1; sub("\\.[ch]$", "", file); split($2, to, "/")
            if (to[1] == "base" || to[1] == "cli") next
            used[file]
            if (!(file in free)) {
                print "cli/" $1 " includes " to[1] "/: commands include sifr/, cli/ and base/ alone"
                bad = 1
            }
        }
        END {
            for (file in free) if (!(file in used)) {
                print "cli/" file " no longer includes other rooms: take it out of the list"
                bad = 1
            }
            exit bad
        }'
}

# The extension is a program outside of sifr: it includes sifr's public headers and its own.
check_python() { # FOLDER
    ! grep -rnE '^ *# *include *["<][^">]*/' "$1" --include='*.[ch]' |
        grep -vE 'include *<(sifr|sys)/[a-z_]+\.h>' || {
        echo "python/native includes sifr/ and its own headers alone"
        return 1
    }
}

check_names() {
    twice=$(find "$@" -name '*.[ch]' -o -name '*.sh' | sed 's,.*/,,' | sort | uniq -d)
    [ -z "$twice" ] || { echo "more than one file is called: $twice"; return 1; }
}

check_includes "$SOURCE/src" || failed=1
check_rooms "$SOURCE/src" || failed=1
check_backends "$SOURCE/src" || failed=1
check_silent "$SOURCE/src" || failed=1
check_assertions "$SOURCE/src" || failed=1
check_commands "$SOURCE/src" "$inside" || failed=1
check_python "$SOURCE/python/native" || failed=1
check_names "$SOURCE/src" "$SOURCE/tests" "$SOURCE/bench" "$SOURCE/scripts" "$SOURCE/python" ||
    failed=1

# That it can fail: a small tree with each fault.
mkdir -p bad/base bad/plan/pass bad/plan/price
echo '#include "plan/schedule.h"' >bad/base/up.c
! check_rooms bad >/dev/null || { echo "an include against the order is not found"; failed=1; }
mv bad/base/up.c bad/base/up.inc
! check_rooms bad >/dev/null || { echo "an include of a list against the order is not found"; failed=1; }
rm bad/base/up.inc
mkdir bad/quiet
! check_rooms bad >/dev/null || { echo "a folder that is no room is not found"; failed=1; }
rmdir bad/quiet
printf '#include "%s"\n' plan/a.h kinds.h >bad/base/form.c
! check_includes bad >/dev/null || { echo "an include without its room is not found"; failed=1; }
for line in '#include <stdio.h>' '#include "plan/schedule.h"' '#include <sys/uio.h>'; do
    echo "$line" >bad/base/form.c
    check_includes bad || { echo "refused: $line"; failed=1; }
done
for line in '#  include "train/a.h"' '#include  "train/a.h"' '#include"train/a.h"' ' #include "train/a.h"' \
    '#include <train/a.h>' '#include "../train/a.h"' '#include "train/../a.h"' '#include A_HEADER'; do
    echo "$line" >bad/base/form.c
    ! check_includes bad >/dev/null || { echo "not found: $line"; failed=1; }
done
rm bad/base/form.c
mkdir bad/config
echo '#include "device/device.h"' >bad/config/keys.c
! check_rooms bad >/dev/null || { echo "config's include of another room is not found"; failed=1; }
rm bad/config/keys.c
echo '#include "plan/price/b.h"' >bad/plan/pass/a.c
check_rooms bad || { echo "an include of a folder beside it is refused"; failed=1; }
echo '#include "plan/pass/a.h"' >bad/plan/price/b.c
! check_rooms bad 2>/dev/null || { echo "a circle of two folders is not found"; failed=1; }
mkdir -p bad/device/cpu bad/device/cuda bad/device/separate bad/engine
echo '#include "device/cuda/row.h"' >bad/device/cuda/own.c
check_backends bad || { echo "a backend's include of itself is refused"; failed=1; }
for at in engine device device/cpu; do
    echo '#include "device/cuda/row.h"' >bad/$at/leak.c
    ! check_backends bad >/dev/null || { echo "an include of a backend in $at/ is not found"; failed=1; }
    mv bad/$at/leak.c bad/$at/leak.def
    ! check_backends bad >/dev/null || { echo "an include of a list in $at/ is not found"; failed=1; }
    rm bad/$at/leak.def
done
mkdir bad/infer bad/cli
echo 'int n = snprintf(text, sizeof text, "%d", entries (1));' >bad/infer/quiet.c
echo 'printf("%d", 1);' >bad/cli/prints.c
echo 'abort();' >bad/base/assert.c
check_silent bad || { echo "a room that prints nothing is refused"; failed=1; }
for line in 'printf("%d", 1);' 'fwrite(text, 1, 2, stdout);' 'if (!p) abort();' 'return exit(1);' \
    'abort  ();' 'dprintf(2, "%d", 1);' 'write(1, text, 2);' 'read(0, text, 2);' 'c = getchar();' \
    'quick_exit(1);' 'raise(SIGABRT);' 'kill(getpid(), 9);' '__builtin_trap();' 'atexit(end);'; do
    echo "$line" >bad/infer/prints.c
    ! check_silent bad >/dev/null || { echo "not found in a library's room: $line"; failed=1; }
done
rm bad/base/assert.c
printf '#include "%s"\n' base/a.h cli/a.h sifr/a.h plan/a.h >bad/cli/flags.h
check_commands bad flags || { echo "an include that is listed is refused"; failed=1; }
! check_commands bad "" >/dev/null || { echo "an include of a room in cli/ is not found"; failed=1; }
! check_commands bad "flags x" >/dev/null || { echo "a list that is too long passes"; failed=1; }
rm bad/cli/flags.h
mkdir native
echo '#include <sifr/a.h>' >native/a.c
check_python native || { echo "an include of a public header is refused"; failed=1; }
for line in '#include "plan/a.h"' '# include <engine/a.h>'; do
    echo "$line" >native/b.c
    ! check_python native >/dev/null || { echo "not found in python/: $line"; failed=1; }
done
rm native/b.c
printf '_Static_assert(1, "");\n    base_assert(x > 0);\n' >bad/base/other.c
check_assertions bad || { echo "an assertion of base/assert.h is refused"; failed=1; }
for line in '    assert(x > 0);' '    assert (x > 0);' '#include <assert.h>' '#include <cassert>'; do
    echo "$line" >bad/base/plain.c
    ! check_assertions bad >/dev/null || { echo "not found in a room: $line"; failed=1; }
done
touch bad/plan/pass/same.c bad/base/same.c
! check_names bad >/dev/null || { echo "a name that is there twice is not found"; failed=1; }
exit $failed
