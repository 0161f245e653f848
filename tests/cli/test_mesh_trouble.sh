# label: full; timeout: 400, not under sanitizers (MPI keeps what it took)
# Trouble in a mesh of stages, contexts and tensors: a rank of any axis that is killed or stopped
# ends all others in time, and the message names its stage, context and tensor. A weight that is no
# number, in one rank's part, and an overflow skip the steps that one rank skips.
. "$SOURCE/tests/support/stage_trouble.sh"
place_of() { # RANK
    echo "rank $1: stage $(($1 / 4)), context $(($1 / 2 % 2)), tensor $(($1 % 2))"
}
# mesh STAGES CONTEXTS TENSORS [SIFR [SECTIONS]]: ds.json
mesh() {
    cat >ds.json <<J
{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1, "gradient_clipping": 1.0,
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3}}, "zero_optimization": {"stage": 1},
 "pipeline": {"stages": $1}, "tensor_parallel": {"size": $3}${5:-},
 "sifr": {"seq_length": 32, "max_steps": 4, "logging_steps": 1,
          "context_parallel": {"size": $2}${4:-}}}
J
}

mesh 2 2 2 ', "collective_timeout": 20'
for rank in 1 2 5; do
    case="rank $rank killed"
    start
    lose $rank KILL
done
mesh 2 2 2 ', "collective_timeout": 4'
case="rank 3 stopped"
start
lose 3 STOP
# The others wait, each in a lane of its own: none is said to be idle.
! grep -E 'rank [0-24-7] has not been in a collective' err || fail "$case: a rank that waits is blamed"

# Two more tensor ranks than fit say so, with what does.
refused() { # MESSAGE RANKS
    ! "$SIFR" train --config ds.json --model tied --data store --output no --ranks $2 >out 2>err ||
        fail "not refused: $1"
    grep -q -- "$1" err || fail "$1: $(cat err)"
    [ ! -e no ] || fail "$1: something is written"
}
case="sizes that do not fit"
mesh 1 1 3
refused 'tensor_parallel.size is 3, which does not divide 4 ranks; give 2 or 4' 4
mesh 1 3 1
refused 'context_parallel.size is 3, which does not divide 4 ranks; give 2 or 4' 4

# The last value of a matrix: the second tensor rank's, of the second stage.
cat >poison.py <<'P'
import json, struct, sys
path, name = sys.argv[1:]
data = bytearray(open(path, "rb").read())
size = struct.unpack("<Q", data[:8])[0]
begin, end = json.loads(data[8:8 + size])[name]["data_offsets"]
data[8 + size + end - 4:8 + size + end] = struct.pack("<f", float("nan"))
open(path, "wb").write(data)
P
cp -r tied broken
python3 poison.py broken/model.safetensors model.layers.4.mlp.up_proj.weight
for ranks in 1 8; do
    case="no number, $ranks ranks"
    if [ $ranks = 1 ]; then mesh 1 1 1; else mesh 2 2 2; fi
    code=0
    "$SIFR" train --config ds.json --model broken --data store --output run$ranks --ranks $ranks \
        --threads 1 >out 2>err || code=$?
    [ $code = 1 ] || fail "$case: exit code $code"
    [ "$(grep -c 'skipped: the loss is not finite; the weights are unchanged' err)" = 4 ] &&
        grep -q 'all 4 steps were skipped: nothing was learned' err || fail "$case: $(cat err)"
done

# Overflows: the same steps are skipped, the scale comes down as on one rank.
fp16=', "fp16": {"enabled": true, "initial_scale_power": 32, "hysteresis": 1}'
skips() { grep -o "^step [0-9]* skipped: .*" out | head -10; }
for ranks in 1 8; do
    case="overflow, $ranks ranks"
    if [ $ranks = 1 ]; then mesh 1 1 1 "" "$fp16"; else mesh 2 2 2 "" "$fp16"; fi
    "$SIFR" train --config ds.json --model tied --data store --output scaled$ranks --ranks $ranks \
        --threads 1 --max-steps 24 >out 2>err || fail "$case: exit code $?: $(cat err)"
    skips >skipped$ranks
done
[ "$(wc -l <skipped1)" = 10 ] && cmp skipped1 skipped8 || fail "other steps are skipped"
