# A part of the covering set (support/covering.sh): each family once, each optimizer with several.
# `make soak` runs the whole.
# label: full; timeout: 300, not under sanitizers (MPI keeps what it took)
. "$SOURCE/tests/support/covering.sh"
for ((f = 0; f < ${#families[@]}; f++)); do
    cover $f $(((f + 4) % 5)) $((f % 6)) $((f % 11)) # DeBERTa: interleaved
done
echo "$cases cases, $refused refused alike"
