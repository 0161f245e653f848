# For the tests that build the tree another way, in a folder of their own below the build folder,
# and run a suite there. Sourced.

# Leaves the processors to the tests that run beside this one, but for what they do not use.
beside() {
    renice -n 10 $$ >/dev/null
}

# Sets `options` for a build that takes longer to compile than to run. All C except kernels is
# compiled without optimisation: sanitizers see no less there. Kernels, one source for all
# instruction sets, are compiled for the plain set and for the best of this machine.
quick() {
    options=("-DCMAKE_C_FLAGS_DEBUG=-O0 -g1"
        "-DSIFR_KERNEL_SETS=$("$SOURCE/scripts/kernel-sets.sh" "$SIFR")")
}

# inner_build FOLDER PRESET TARGET [CMAKE OPTION]…: configures and builds the target (all: everything);
# sets `inner` to the folder, in that of the build. Tests that share a folder give it the same
# options, or each builds the other's tree anew.
inner_build() {
    local preset=$2 target=$3
    inner=$BUILD/$1
    shift 3
    cmake -S "$SOURCE" --preset "$preset" -B "$inner" \
        "-DSIFR_KERNEL_SETS=plain;avx2;avx512;avx512_bf16" "$@" >configure.log 2>&1 ||
        { cat configure.log; return 1; }
    ninja -C "$inner" -j "${BUILD_JOBS:-2}" "$target" >build.log 2>&1 || { tail -n 60 build.log; return 1; }
}

# inner_test CTEST ARGUMENT…: runs the tests there; prints what failed and the count.
inner_test() {
    ctest --test-dir "$inner" --no-tests=error --output-on-failure \
        --test-output-size-passed 1000000 --output-junit results.xml "$@" >test.log 2>&1 || :
    "$SOURCE/scripts/test-summary.sh" "$inner/results.xml" >summary || { cat test.log summary; return 1; }
    cat summary
}
