# The demo's curve: each column the mean of its steps, the axis from the least to the greatest.
fail() { echo "$1" >&2; cat out >&2; exit 1; }

for step in $(seq 1 64); do echo "{\"step\": $step, \"loss\": $((65 - step)).0, \"lr\": 0.5}"; done >m
echo '{"step": 64, "eval_loss": 99}' >>m
"$SOURCE/scripts/loss-curve.sh" m >out
[ "$(sed -n 2p out)" = ' 64.00 |***' ] || fail "the first columns are not at the top"
[ "$(sed -n 15p out | tr -d ' ')" = '1.00|***' ] || fail "the last columns are not at the bottom"
[ "$(sed -n '2,15p' out | tr -cd '*' | wc -c)" = 64 ] || fail "not one mark a column"
tail -n 1 out | grep -qE '^ +1 +64 step$' || fail "the steps' axis"

# A level loss and a single step are no division by zero.
echo '{"step": 7, "loss": 2.5}' >m
"$SOURCE/scripts/loss-curve.sh" m >out
grep -q '2.50 |\*' out || fail "a single step"
if "$SOURCE/scripts/loss-curve.sh" /dev/null >out 2>&1; then fail "nothing to draw is an error"; fi
