# in check, not under sanitizers
# What sifr has written down of Open MPI's and MPICH's ABI is what their <mpi.h> says, where it is
# installed: types, constants, prototypes; a program that is linked with an MPI shares it with sifr. A
# wrong word is found. What has neither ABI is refused.
fail() { cat out 2>/dev/null; echo "$1" >&2; exit 1; }
try() { # WRAPPER HEADER…: the check, and its word
    local headers=$2
    # shellcheck disable=SC2046 # words of a command line
    cc -std=gnu17 -w -Werror=incompatible-pointer-types -DABI_HEADER="\"$headers\"" -I. \
        -I"$SOURCE/src" -I"$SOURCE/include" "$SOURCE/tests/comm/mpi_abi_check.c" -o check \
        "$BUILD/libsifr.a" $("$1" -show | grep -oE -- '-(I|L|l|W)[^ ]+') >out 2>&1 &&
        ./check >out 2>&1
}
unset SIFR_MPI
count=0
for mpi in openmpi:open_mpi mpich:mpich; do
    wrapper=mpicc.${mpi%:*} header=abi_${mpi#*:}.h
    command -v "$wrapper" >/dev/null || continue
    count=$((count + 1))
    try "$wrapper" "comm/mpi_library/$header" || fail "$header is not what $wrapper compiles"
    echo "$header: as $wrapper has it"
    for fault in 's/ABI_ANY_SOURCE = -/&1/' 's/int source, tag/int tag, source/' \
        's/ompi_mpi_byte/ompi_mpi_char/; s/0x4c00010d/0x4c000101/'; do
        sed "$fault" "$SOURCE/src/comm/mpi_library/$header" >wrong.h
        try "$wrapper" wrong.h && fail "not found in $header: $fault"
    done
done
[ $count -gt 0 ] || echo "neither mpicc.openmpi nor mpicc.mpich is here: nothing to compare with"

# A library with another ABI, and one that lacks a function.
advice() { # SOURCE: what doctor says of it
    cc -shared -fPIC -w "$1" -o libmpi.so.12 && SIFR_MPI=$PWD/libmpi.so.12 "$SIFR" doctor >out
}
sed -nE 's/^ *F\((MPI_[A-Za-z_]+),.*/int \1(char *text) { return 0; }/p' \
    "$SOURCE/src/comm/mpi_library/mpi_functions.h" >fake.c
advice fake.c
grep -q 'SIFR_MPI: .*/libmpi.so.12 (.*) is not supported yet (supported: Open MPI' out || fail "another ABI"
grep -v MPI_Get_count fake.c >lacks.c
advice lacks.c
grep -q 'libmpi.so.12 has no MPI_Get_count, so it is no MPI 3; give the file' out || fail "a missing function"
# Cut short, the loader would map what is not there: SIGBUS.
head -c 5000 libmpi.so.12 >short && mv short libmpi.so.12
SIFR_MPI=$PWD/libmpi.so.12 "$SIFR" doctor >out || fail "cut short: exit code $?"
grep -q 'SIFR_MPI: .*/libmpi.so.12: is cut short; install that MPI again' out || fail "cut short: $(cat out)"
sed 's/\(MPI_Get_library_version\).*/\1(char *text) { strcpy(text, "MPICH Version: 9"); return 0; }/' fake.c >mpich.c
advice mpich.c
grep -q '^MPI  *MPICH Version: 9' out || fail "MPICH by its words"
