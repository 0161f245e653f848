# label: speed, timeout: 400
# The short bench: shares of this machine's limits beside those kept for its kind. Half of one may be
# lost here, since other work runs on the machines that tests run on; `make bench-short` is stricter.
# not under sanitizers, runs alone
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
SIFR_BENCH_CACHE=$PWD/cache "$SOURCE/bench/run" short --build "$BUILD" --slack 0.5 >out 2>err ||
    { cat out err >&2; exit 1; }
cat out
