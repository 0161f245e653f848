# `sifr plan --fit` where a config's batch, axis or key leaves only some sizes and stages: it looks
# among those, and refuses with the reason where there are none.
# label: short
. "$SOURCE/tests/support/expect.sh"
machine=$SOURCE/examples/eight_cores.json
plan() { # CODE RANKS CONFIG OPTION…
    echo "$3" >ds.json
    expect "$1" "$SIFR" plan --config ds.json --model folder --machine "$machine" --threads 1 \
        --world-size "$2" --host-memory 4GiB "${@:4}"
}
says() { grep -qE -- "$1" out || { cat out >&2; fail "not printed: $1"; }; }
complains() { grep -qF -- "$1" err || { cat err >&2; fail "no message: $1"; }; }
mkdir folder
echo '{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 400, "hidden_size": 64,
 "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 8}' >folder/config.json

# Preferences: a rank has whole pairs, with --fit and without.
pairs() { # GLOBAL MICRO MORE
    echo '{"train_batch_size": '"$1"', "train_micro_batch_size_per_gpu": '"$2${3:-}"',
     "sifr": {"seq_length": 32, "preference": {"loss_type": "sigmoid"}}}'
}
even='it counts sequences, and a preference has two, the chosen answer and the rejected one; give an even number'
plan 2 1 "$(pairs 1 '"auto"')" --fit
complains "train_micro_batch_size_per_gpu 1: $even"
plan 2 1 "$(pairs 3 '"auto"')" --fit
complains "train_micro_batch_size_per_gpu 3: $even"
plan 2 4 "$(pairs 4 '"auto"')" --fit
complains "train_micro_batch_size_per_gpu 1: $even"
plan 2 4 "$(pairs 4 1)"
complains "train_micro_batch_size_per_gpu 1: $even"
plan 0 2 "$(pairs 4 1)" --fit --output fit.json
says '^chosen .* micro batch 2,'
says 'cannot be planned'
plan 0 2 "$(pairs 4 2)"
# Where an axis may be chosen, ranks that share sequences have more of them.
plan 0 4 "$(pairs 4 '"auto"' ', "tensor_parallel": {"size": "auto"}')" --fit --output fit.json
says '^chosen .* tensor ranks [24], .*micro batch [24],'
plan 2 3 "$(pairs 3 '"auto"' ', "pipeline": {"stages": "auto"}')" --fit
complains "$even"

# Sizes that the shape refuses: a micro batch of one sequence is none of those that can be had.
tensors() { # GLOBAL MICRO MORE
    echo '{"train_batch_size": '"$1"', "train_micro_batch_size_per_gpu": '"$2${3:-}"', "tensor_parallel": {"size": 3},
     "sifr": {"seq_length": 32}}'
}
plan 0 3 "$(tensors 3 3)" --fit --output fit.json
says '^chosen .*tensor ranks 3, micro batch 3, accumulation 1'
plan 0 6 "$(tensors 6 '"auto"' ', "pipeline": {"stages": 2}')" --fit --output fit.json
says '^chosen .*pipeline stages 2, tensor ranks 3, micro batch [36],'
plan 2 3 "$(tensors 1 1)" --fit
complains 'a sum of 32 x 64 values is not divided among 3 ranks; give a sequence length or a micro batch that is a multiple of the ranks'

# A schedule with a micro batch for each stage, which the batch in one piece has not.
turns='"pipeline": {"stages": 2, "schedule": "interleaved"}, "sifr": {"seq_length": 32}}'
plan 0 2 '{"train_batch_size": 8, "train_micro_batch_size_per_gpu": "auto", '"$turns" --fit --output fit.json
says '^chosen .*pipeline stages 2, micro batch [124], accumulation [248],'
says 'cannot be planned'
plan 2 2 '{"train_batch_size": 1, "train_micro_batch_size_per_gpu": "auto", '"$turns" --fit
complains 'gradient_accumulation_steps'

# Keys of ZeRO++ are given, and the stage is not: one in which they act.
codes() { # STAGE KEY
    echo '{"train_batch_size": 12, "train_micro_batch_size_per_gpu": "auto",
     "zero_optimization": {"stage": '"$1, $2"'}, "sifr": {"seq_length": 32}}'
}
for stage in '"auto"' 3; do
    plan 0 4 "$(codes "$stage" '"zero_quantized_weights": true')" --fit --output fit.json
    says '^chosen +ZeRO stage 3,'
    plan 0 4 "$(codes "$stage" '"zero_hpz_partition_size": 2')" --fit --output fit.json
    says '^chosen +ZeRO stage 3, zero_hpz_partition_size 2,'
done
plan 0 4 "$(codes '"auto"' '"zero_quantized_gradients": true')" --fit --output fit.json
says '^chosen +ZeRO stage [23],'
plan 0 2 "$(codes '"auto"' '"zero_hpz_partition_size": 2')" --fit --output fit.json # all ranks: no copy
plan 0 1 "$(codes '"auto"' '"zero_quantized_weights": true')" --fit --output fit.json
plan 2 3 "$(codes '"auto"' '"zero_hpz_partition_size": 2')" --fit
complains 'zero_hpz_partition_size 2: 3 ranks share the state'

# PowerSGD makes sums inexact: it is proposed on slow links, at a stage that gathers nothing, and is
# neither chosen nor proposed elsewhere.
sed 's/"host_bytes_per_s": 5e9/"host_bytes_per_s": 1e6/' "$machine" >slow.json
machine=slow.json
flat='{"train_batch_size": 4, "train_micro_batch_size_per_gpu": 1, "sifr": {"seq_length": 32}'
plan 0 4 "$flat}" --fit --output fit.json
says '^would pay +compression powerSGD with matrix_approximation_rank 2 at ZeRO stage 0: predicted .* not chosen'
! grep -q powerSGD fit.json || fail "it was chosen"
plan 0 4 "$flat"', "compression": {"type": "powerSGD", "params": {"matrix_approximation_rank": 2}}}' --fit --output fit.json
! grep -q 'would pay' out || fail "proposed where it is given"
plan 0 1 "$flat}" --fit --output fit.json
! grep -q 'would pay' out || fail "proposed to a single rank"

# Stages divide ranks of which the batch is no multiple: it stays.
plan 0 4 '{"train_batch_size": 6, "pipeline": {"stages": 2}, "sifr": {"seq_length": 60}}' --fit \
    --output fit.json
grep -q '"train_batch_size": 6,' fit.json || fail "another batch: $(grep batch fit.json)"

# Of the axes that may be chosen, the search begins with one that the model goes with.
sed 's/"num_attention_heads": 8/"num_attention_heads": 7, "head_dim": 8/' folder/config.json >seven
mv seven folder/config.json
plan 0 3 '{"train_batch_size": 8, "pipeline": {"stages": "auto"},
 "sifr": {"seq_length": 30, "context_parallel": {"size": "auto"}}}' --fit --output fit.json
says '^chosen .*pipeline stages 3'
