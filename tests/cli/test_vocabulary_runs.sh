# label: full; timeout: 300, not under sanitizers (MPI keeps what it took)
# Tensor ranks that divide the vocabulary, as a user starts them: near one rank over 20 steps on 2
# and 4 ranks, of which some have no words; the first loss is that with whole words, to the bit; with
# ZeRO and stages beside them the bits of the same tensor ranks; what moved and the memory are what
# was planned; a run goes on with more or fewer ranks; adapters; what is refused.
. "$SOURCE/tests/support/ranks.sh"
tiny_model
sed 's/"vocab_size": 280/"vocab_size": 700/' tiny.json >wide.json
rm -r model
"$SIFR" init --config wide.json --tokenizer tok --output model --seed 3 >/dev/null
# settings SIZE STAGE [TENSOR KEYS] [MORE]: ds.json
settings() {
    cat >ds.json <<J
{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": $2},
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3}},
 "tensor_parallel": {"enabled": true, "size": $1${3:-}},
 "sifr": {"seq_length": 32, "max_steps": 20, "save_steps": 10, "eval_steps": 10}${4:-}}
J
}
split=', "vocab_parallel_lm_head": true' whole=', "vocab_parallel_lm_head": false'
train() { # RUN RANKS OPTION...
    run=$1 ranks=$2
    shift 2
    $launcher -np "$ranks" "$SIFR" train --config ds.json --model model --data text \
        --eval-data text --max-eval-windows 6 --json --output "$run" "$@" >out 2>err ||
        fail "$run: exit code $?"
}
# near RUN [ONE]: losses and norms of one/ within 1e-5 and 1e-4
near() {
    awk -F, 'FNR == 1 || $3 == "" { next } NR == FNR { loss[$1] = $3; norm[$1] = $4; next }
        { n++; a = $3 / loss[$1] - 1; b = $4 / norm[$1] - 1
          if (a * a > 1e-10 || b * b > 1e-8) { print "step " $1 ": " $3 " and " $4; bad = 1 } }
        END { exit bad || n != 20 }' "${2:-one}/metrics.csv" "$1/metrics.csv" >difference ||
        fail "$1: $(cat difference)"
}
planned() { groups | awk '$3 != $4 { exit 1 }' || fail "$run: other bytes than planned: $(groups)"; }
first_loss() { awk -F, 'NR == 2 { print $3 }' "$1/metrics.csv"; }
settings 1 0
train one 1
settings 2 0 "$whole"
train whole 2
grep -q '^tensor_parallel: 14 of 16 matrices' err || fail "whole: $(grep tensor_parallel err)"
settings 2 0
train two 2
grep -q '^tensor_parallel: 16 of 16 matrices' err || fail "two: $(grep tensor_parallel err)"
near two
planned
[ "$(first_loss two)" = "$(first_loss whole)" ] || fail "the first loss is not that with whole words"
# Beside the 4 sums a block: the embedding's, the gradient of the head's input, and statistics of
# 3 blocks of words, 7 and 1 more numbers a token, of 8 micro batches of 32 tokens, 20 steps. An
# evaluation, of which the plan knows nothing, is not counted.
want=$(((2 * 2 * 2 + 2) * 8 * 32 * 64 * 4 / 2 * 20 + 8 * 32 * 8 * 4 / 2 * 20))
groups | grep -E "^tensors (gathered|reduced)" >moved
awk -v want=$want '$3 != want { exit 1 }' moved || fail "moved: $(cat moved), not $want"
settings 2 3
train four 4
same four two
planned
settings 4 1 "$split" # three blocks: the last rank has no words
train wide 4
near wide
planned
settings 2 2 '' ', "pipeline": {"enabled": true, "stages": 2}, "bf16": {"enabled": true}'
train stages 4
settings 2 0 '' ', "bf16": {"enabled": true}'
train bf16 2
same stages bf16

# A table that is the head's, too, a cap on logits, and adapters on a frozen base.
sed 's/llama/gemma2/; s/Llama/Gemma2/; s/"tie_word_embeddings": false/"query_pre_attn_scalar": 16, "head_dim": 16/' \
    wide.json >gemma.json
"$SIFR" init --config gemma.json --tokenizer tok --output gemma --seed 3 >/dev/null
settings 1 0
train gemma-one 1 --model gemma
settings 2 0
train gemma-two 2 --model gemma
near gemma-two gemma-one
settings 2 1 '' ', "pipeline": {"enabled": true, "stages": 2}'
train gemma-four 4 --model gemma
same gemma-four gemma-two
lora='{"r": 4, "lora_alpha": 8, "target_modules": "all-linear"}'
settings 1 0
train lora-one 1 --model gemma --lora "$lora"
settings 2 3
train lora-four 4 --model gemma --lora "$lora"
near lora-four lora-one

# On with another number of tensor ranks.
on() { # NAME FROM SIZE STAGE RANKS [KEYS]
    cp -r "$2" "$1"
    rm -r "$1/checkpoint-20"
    settings "$3" "$4" "$6"
    train "$1" "$5" --resume
}
on fewer four 1 0 1 ''
near fewer
grep -q 'was made with .*divided vocabulary' err || fail "fewer: the difference is not said: $(cat err)"
on more one 4 2 4 "$split"
near more
on again four 2 1 2 ''
same again two
! grep -q 'results will differ' err || fail "again: $(cat err)"
"$SIFR" export wide/checkpoint-20 exported >out 2>err || fail "export"
cmp exported/model.safetensors wide/model.safetensors || fail "export: other weights"

# refused WORDS MORE MESSAGE [OPTION...]: with four ranks
refused() {
    settings 2 0 "$1" "$2"
    want=$3
    shift 3
    "$SIFR" plan --config ds.json --model model --world-size 4 "$@" >out 2>err && fail "$want: it runs"
    grep -q -- "$want" err || fail "$want: $(cat err)"
}
refused "$split" '' 'lm_head is true, but the model has no head over the words of its tokens' \
    --task sequence_classification
settings 2 0 "$split"
sed -i 's/"sifr": {/&"tp_exact": 2, /' ds.json
"$SIFR" plan --config ds.json --model model --world-size 4 >out 2>err && fail "tp_exact: it runs"
grep -q 'lm_head is true, but with sifr.tp_exact each rank has the whole vocabulary' err ||
    fail "tp_exact: $(cat err)"
settings 2 0 ', "vocab_parallel_ce_backend": "liger", "vocab_parallel_lm_head": null'
train liger 2
same liger two
