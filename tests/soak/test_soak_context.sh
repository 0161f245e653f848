# label: soak; timeout: 900
# The longest sequences that the planner finds for 1, 2 and 4 context ranks of one size are trained:
# a step each, in no more memory than the limit. One rank has no room for that of two.
. "$SOURCE/tests/support/ranks.sh"
tiny_model
. "$SOURCE/tests/support/long_context.sh"
cat text text text text >texts
for ranks in 1 2 4; do
    length=$(longest $ranks)
    [ $ranks != 1 ] || one=$length
    long_settings $ranks
    begun=$(date +%s)
    $launcher -np $ranks "$SIFR" train --config ds.json --model long --data texts --threads 1 \
        --seq-length "$length" --output run-$ranks >out 2>err || fail "$ranks: $(cat err)"
    took=$(($(date +%s) - begun))
    memory=$(sed -n 's/^done: .* memory .* planned, \([0-9.]*\) MiB measured.*/\1/p' out err)
    echo "$ranks ranks: $length tokens in $took s, $memory MiB measured of a rank"
    awk -v m="$memory" -v l="${limit%MiB}" 'BEGIN { exit !(m != "" && m <= l * 1.05) }' ||
        fail "$ranks: $memory MiB: $(cat err)"
    [ $took -lt 120 ] || echo "longer than two minutes"
done
at_least "four ranks" "$length" 3.2 "$one"
long_settings 1
"$SIFR" plan --config ds.json --model long --device-memory $limit --threads 1 \
    --seq-length $((2 * one)) >out 2>err || fail "plan: $(cat err)"
grep -q '^It does not fit' out || fail "$((2 * one)) fit on one rank"
