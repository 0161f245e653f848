# label: full
# timeout: 1800, not under sanitizers, runs alone
# Both compilers, with all optimisation, find nothing to warn of.
for compiler in gcc clang; do
    cmake -S "$SOURCE" --preset release -B "$BUILD/warnings-$compiler" -DSIFR_WERROR=ON \
        -DCMAKE_C_COMPILER=$compiler >configure.log 2>&1 || { cat configure.log; exit 1; }
    ninja -C "$BUILD/warnings-$compiler" -j "${BUILD_JOBS:-2}" >build.log 2>&1 ||
        { tail -n 60 build.log; exit 1; }
done
