# The covering set of family x schedule x tier x optimizer (support/covering.sh): plan and two steps.
# label: soak; timeout: 2400, not under sanitizers (MPI keeps what it took)
. "$SOURCE/tests/support/covering.sh"
for ((f = 0; f < ${#families[@]}; f++)); do
    for ((o = 0; o < ${#optimizers[@]}; o++)); do
        cover $f $(((f + o) % 5)) $(((f + o) % 6)) $o
    done
done
f=${#families[@]} s=${#schedules[@]} t=${#tiers[@]} o=${#optimizers[@]}
[ ${#met[@]} = $((f * s + f * t + f * o + s * t + s * o + t * o)) ] || fail "pairs: ${#met[@]}"
echo "$cases cases, $refused refused alike"
