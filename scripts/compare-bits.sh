#!/bin/bash
# Whether this tree trains the same bits as another commit: compare-bits.sh BASE
# Builds BASE in a worktree of its own and this tree as it is, has both programs train the matrix of
# the same-bits tests on this machine (models x precisions x ZeRO stages x ranks, step orders,
# recomputation, threads, keys of transfers, offload, tiles, 16-bit sums), and compares the hashes of
# the final weights. The models, the tokenizer and the tokens are those that BASE makes. Prints a
# line for each run that differs, then "N the same, N different"; exit code 1 where any differs.
# shellcheck disable=SC2086 # names and counts, without blanks
set -eu
[ $# = 1 ] || { sed -n '2,7s/^# //p' "$0" >&2; exit 2; }
tree=$(cd "$(dirname "$0")/.." && pwd)
base=$(git -C "$tree" rev-parse --verify "$1^{commit}")
work=$(mktemp -d "${TMPDIR:-/tmp}/sifr-bits.XXXXXX")
clean() {
    git -C "$tree" worktree remove --force "$work/tree" 2>/dev/null || :
    rm -rf "$work"
}
trap clean EXIT
trap 'exit 130' INT TERM

build() { # SOURCE BUILD
    if ! { cmake -S "$1" -B "$2" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
        -DCMAKE_C_FLAGS_RELWITHDEBINFO="-O3 -g -DNDEBUG" -DSIFR_TESTS=OFF &&
        ninja -C "$2" sifr; } >"$work/log" 2>&1; then
        tail -n 20 "$work/log" >&2
        exit 1
    fi
}
git -C "$tree" worktree add --quiet --detach "$work/tree" "$base"
build "$work/tree" "$work/base"
build "$tree" "$work/this"
old=$work/base/sifr new=$work/this/sifr

cd "$work"
head -c 24000 "$work/tree/docs/config.md" >text
"$old" tokenizer train --vocab-size 300 --data text --output tok >log
"$old" tokenize --tokenizer tok --data text --output store >log
model() { # NAME JSON
    echo "$2" >"$1.json"
    "$old" init --config "$1.json" --tokenizer tok --output "$1" --seed 3 >log
}
llama='"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 300,
    "hidden_size": 48, "intermediate_size": 104, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 64'
model untied "{$llama, \"tie_word_embeddings\": false}"
model tied "{$llama, \"tie_word_embeddings\": true}"
model gpt2 '{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 300,
    "n_embd": 48, "n_layer": 3, "n_head": 4, "n_positions": 64}'

keys() { # what steers the transfers, and must not change a result
    case $1 in
    0) echo ', "stage3_prefetch_bucket_size": 0, "overlap_comm": false' ;;
    1) echo ', "stage3_prefetch_bucket_size": 5e7, "stage3_max_reuse_distance": 1e9,
        "stage3_param_persistence_threshold": 10000, "reduce_bucket_size": 5e8' ;;
    2) echo ', "stage3_prefetch_bucket_size": 40000, "stage3_max_live_parameters": 60000,
        "stage3_param_persistence_threshold": 16000, "reduce_bucket_size": 20000' ;;
    3) echo ', "sub_group_size": 1000, "stage3_param_persistence_threshold": 20000' ;;
    esac
}
config() { # STAGE KEYS PRECISION SUMS [MORE OF zero_optimization]
    cat >ds.json <<J
{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1, "gradient_clipping": 1.0,
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3, "weight_decay": 0.01}},
 "scheduler": {"type": "WarmupLR", "params": {"warmup_min_lr": 1e-3, "warmup_num_steps": 4}},
 "bf16": {"enabled": $([ "$3" = bf16 ] && echo true || echo false)},
 "fp16": {"enabled": $([ "$3" = fp16 ] && echo true || echo false), "initial_scale_power": 18},
 "data_types": {"grad_accum_dtype": "$4"}, "zero_optimization": {"stage": $1$(keys "$2")${5:-}},
 "sifr": {"seq_length": 32, "max_steps": 4}}
J
}
hash_of() { # PROGRAM RANKS OPTION...: of the weights that it trains
    local program=$1 ranks=$2
    shift 2
    rm -rf out
    "$program" train --config ds.json --data store --output out --ranks "$ranks" "$@" >log 2>&1 ||
        { echo "failed: $(tail -n 3 log)"; return; }
    sha256sum <out/model.safetensors
}
same=0 different=0
compare() { # WHAT RANKS OPTION...
    local what=$1 here there
    shift
    there=$(hash_of "$old" "$@")
    here=$(hash_of "$new" "$@")
    case $here$there in
    *failed:*) ;;
    *) [ "$here" != "$there" ] || { same=$((same + 1)); return 0; } ;;
    esac
    different=$((different + 1))
    echo "different: $what: $1 ranks: before $there, now $here"
}

orders=(batch unit) recomputes=(none unit) names=(tied untied gpt2) counts=(1 2 4 8)
precisions=(fp32 bf16 fp16)
for m in 0 1 2; do
    for s in 0 1 2 3; do
        for r in 0 1 2 3; do
            order=${orders[$(((2 * m + 2 * s + 3 * r) / 2 % 2))]} key=$(((m + s + r) % 4))
            recompute=${recomputes[$(((m + 3 * s) % 2))]} threads=$(((3 * m + s) / 2 % 2 + 1))
            config $s $key ${precisions[m]} fp32
            compare "${names[m]} ${precisions[m]}, stage $s, $order, keys $key, $recompute" \
                ${counts[r]} --model ${names[m]} --step-order $order --recompute $recompute \
                --threads $threads
        done
    done
done
for each in 0:1:batch 2:2:unit 3:4:batch; do
    IFS=: read -r stage ranks order <<<"$each"
    config $stage 0 bf16 bf16
    compare "16-bit sums, stage $stage, $order" $ranks --model untied --step-order $order
done
disk=', "offload_optimizer": {"device": "nvme", "nvme_path": "swap"}'
param=', "offload_param": {"device": "nvme", "nvme_path": "swap"}'
mkdir swap
for each in 0:1:fp32:untied 1:2:bf16:tied 2:2:fp16:gpt2 3:4:bf16:untied; do
    IFS=: read -r stage ranks precision name <<<"$each"
    more=$disk
    [ $stage != 3 ] || more=$disk$param
    config $stage 0 $precision fp32 "$more"
    compare "state on disk, stage $stage, $precision, $name" $ranks --model $name
done
config 3 1 fp32 fp32 # no power of two: right, and the same as before on as many
sed -i 's/"train_batch_size": 8/"train_batch_size": 9/' ds.json
compare "stage 3, fp32, untied" 3 --model untied
echo "$same the same, $different different: $(git -C "$tree" rev-parse --short HEAD) beside ${base::7}"
[ $different = 0 ]
