# label: speed, timeout: 400
# The short bench: shares of this machine's limits beside those kept for its kind. Below 65 % of one
# it fails, not sooner, since other work runs on the machines that tests run on; `make bench-short`
# fails below 90 %. Where nothing is kept for this kind of machine, it is skipped.
# not under sanitizers, runs alone
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
SIFR_BENCH_CACHE=$PWD/cache "$SOURCE/bench/run" short --build "$BUILD" --slack 0.35 >out 2>err ||
    { cat out err >&2; exit 1; }
cat out
if grep -q '^No figures are kept' out; then
    echo "skipped: bench/short.json keeps nothing for this kind of machine"
    exit 77
fi
