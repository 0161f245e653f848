# label: soak; timeout: 600
# The published config of PowerSGD as it is, past its 1,000 plain steps: the wire falls there to the
# bytes of the formula, the loss goes on falling, and a run killed behind that step goes on with the
# same bits.
. "$SOURCE/tests/support/ranks.sh"
tiny_model
cat >ds.json <<'J'
{"train_batch_size": 4, "train_micro_batch_size_per_gpu": 1,
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}},
 "compression": {"type": "powerSGD", "params": {"matrix_approximation_rank": 2, "start_compressing_after_step": 1000}},
 "sifr": {"seq_length": 32, "max_steps": 1040, "save_steps": 1010}}
J
train() {
    run=$1
    shift
    $launcher -np 2 "$SIFR" train --config ds.json --model model --data text --json --output "$run" \
        "$@" >out 2>err || fail "$run: exit code $?"
}
bytes() { awk '/"bytes":/ { gsub(",", "", $2); b = $2 } /"planned":/ { sum += b; bad += b != $2 }
    END { print sum; exit bad }' out || fail "$run: other bytes than planned"; }
train all
whole=$(bytes)
# Of 1,000 steps all elements in whole blocks of two ranks, there and back; then 40 compressed ones
# of these matrices: a table and a head, two blocks of 4 products, 2 of which have 2 kv heads, and 3 of
# an MLP; the rest are 5 norms.
dense=$(awk 'BEGIN { print 2 * 4 * 129024 / 2 }')
left=$((2 * (280 + 280 + 2 * (64 + 32 + 32 + 64 + 160 + 160 + 64))))
right=$((2 * (64 + 64 + 2 * (64 + 64 + 64 + 64 + 64 + 64 + 160))))
compressed=$((2 * 4 * (left + right + 5 * 64) / 2))
want=$((1000 * dense + 40 * compressed))
[ "$whole" = "$want" ] || fail "moved $whole bytes, by the formula $want"
awk -F, 'NR > 1 { if ($1 > 950 && $1 <= 1000) a += $3; if ($1 > 1000 && $1 <= 1040) b += $3 }
    END { exit !(b / 40 < a / 50 * 1.02) }' all/metrics.csv || fail "the loss does not go on falling"
cp -r all killed
rm -r killed/checkpoint-1040
train killed --resume
same killed all
