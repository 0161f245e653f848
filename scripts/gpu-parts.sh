#!/bin/bash
# One part of scripts/gpu-check.sh, which starts it in an empty folder of its own:
#     gpu-parts.sh PART
# From the environment: SOURCE, BUILD, SIFR (the program), FAKE (empty on a real GPU) and
# SIFR_TEST_GPU. Exit code 0: passed, 77: not run; the last line that begins with
# "note: " says why, lines that begin with "| " are rows of the part's table.
set -u
tests=$BUILD/tests program=$SIFR
[ -z "$FAKE" ] || program=$tests/sifr_on_fake_gpu
failed=0

note() { echo "note: $*"; }
# Runs a test on the GPU; the others go on where it fails.
on_gpu() {
    echo "== $*"
    "$tests/$1" "${@:2}" && return
    note "$1 failed"
    failed=1
}

part_look() {
    "$SIFR" doctor --json || return 1
    ! command -v nvidia-smi >/dev/null || nvidia-smi || :
    ! command -v nvcc >/dev/null || nvcc --version | tail -n 1
}

# Kernels whose results are those of the CPU, or of the same source on the host, to the last bit.
part_bits() {
    on_gpu test_cuda_sums
    [ -z "$FAKE" ] || return
    on_gpu test_cuda_flat
    on_gpu test_cuda_rows
    on_gpu test_cuda_tuning
}

# Every kernel beside double precision, with operands in device memory.
part_ops() {
    if [ -n "$FAKE" ]; then
        on_gpu test_cuda_gemm gemm_rows_are_alone
        return
    fi
    for test in test_flat_ops test_row_ops test_cuda_gemm test_linear test_cuda_attention \
        test_attention_relative test_head_loss test_head_targets test_head_pairs \
        test_magnitude; do
        on_gpu $test
    done
}

part_golden() { on_gpu test_cuda_golden ${FAKE:+least}; }

part_runs() { on_gpu test_cuda_runs ${FAKE:+refused}; }

part_program() {
    export SIFR_GPU_SHORT=$FAKE
    [ -n "$FAKE" ] || export SIFR_GPU_PROGRAM=$SIFR
    "$SOURCE/tests/support/run-script.sh" "$SOURCE/tests/cli/test_gpu_runs.sh" || failed=1
}

part_repeat() { on_gpu test_gpu_repeat; }

# A model of three small blocks with text for it, and ds.json for a stage.
small_model() {
    awk 'BEGIN { for (i = 0; i < 400; i++) print "good bad food was were day the a very" }' >text
    "$SIFR" tokenizer train --vocab-size 280 --data text --output tok >/dev/null 2>&1
    cat >model.json <<'J'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 280,
 "hidden_size": 48, "intermediate_size": 104, "num_hidden_layers": 3, "num_attention_heads": 4,
 "num_key_value_heads": 2, "max_position_embeddings": 64, "tie_word_embeddings": false}
J
    "$SIFR" init --config model.json --tokenizer tok --output model --seed 3 >/dev/null
}
stage() { # STAGE
    cat >ds.json <<J
{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1, "gradient_clipping": 1.0,
 "bf16": {"enabled": true}, "zero_optimization": {"stage": $1},
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3}}, "sifr": {"seq_length": 32, "max_steps": 3}}
J
}

# same_weights NAME RANKS OPTION…: those of the runs before, in $first; 77: there is no launcher
same_weights() {
    local name=$1 n=$2 bits
    shift 2
    rm -rf trained
    if ! "$program" train --config ds.json --model model --data text --threads 1 --device cuda \
        --ranks "$n" --output trained "$@" >out 2>err; then
        if grep -q 'neither mpirun nor mpiexec' err; then
            note "no launcher of this program's MPI here; one rank ran: $name"
            return 77
        fi
        tail -n 5 err
        note "$name, $n ranks: $(tail -n 1 err)"
        return 1
    fi
    bits=$(sha256sum <trained/model.safetensors)
    : "${first:=$bits}"
    echo "| $name | $n ranks | ${bits:0:16} |"
    [ "$bits" = "$first" ] || { note "$name, $n ranks: other weights" && failed=1; }
}

# 1, 2, 4 and 8 ranks on one GPU at stages 0 to 3, copies of the state and pipeline stages: the same
# weights. Two ranks first where the host waits for transfers: if that passes and the next does not
# end, it is the GPU's waiting that fails.
part_ranks() {
    local first='' s n stages="0 1 2 3" ranks="1 2 4 8" most=4
    [ -z "$FAKE" ] || { stages="1 3" && ranks="1 2" && most=2; }
    small_model
    for s in $stages; do
        stage "$s"
        for n in $ranks; do
            [ "$s $n" != "${stages%% *} 2" ] ||
                SIFR_DEVICE_WAITS=host same_weights "stage $s, the host waits" "$n" || return
            same_weights "stage $s" "$n" || return
        done
    done
    [ -n "$FAKE" ] || same_weights "stage 3, two copies" $most --shard-size 2 || return
    same_weights "stage 3, two pipeline stages" $most --pipeline-stages 2
}

sanitizer_path() {
    local place
    for place in compute-sanitizer "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer"; do
        command -v "$place" && return
    done
    place=$(python3 -c 'import nvidia; print(list(nvidia.__path__)[0])' 2>/dev/null) || return 1
    find "$place" -name compute-sanitizer -type f 2>/dev/null | head -n 1 | grep .
}

# Op cases and one small step under each tool, each for its share of the time.
part_sanitizer() {
    local tool sanitizer code each=${SIFR_GPU_EACH:-14} missing=''
    sanitizer=$(sanitizer_path) || { note "no compute-sanitizer here" && return 77; }
    small_model
    stage 0
    export SIFR_DEVICE_CHECK=
    for tool in memcheck synccheck racecheck initcheck; do
        for what in test_cuda_sums step; do
            set -- "$tests/$what"
            [ $what != step ] || set -- "$program" train --config ds.json --model model \
                --data text --threads 1 --max-steps 1 --device cuda --output "trained-$tool"
            timeout "$each" "$sanitizer" --tool $tool --error-exitcode 9 "$@" >out 2>&1
            code=$?
            case $code in
            0) echo "| $tool | $what | passed |" ;;
            124) echo "| $tool | $what | not run: no end within $each s |" && missing=1 ;;
            *)
                echo "| $tool | $what | failed |"
                tail -n 20 out
                failed=1
                ;;
            esac
        done
    done
    [ -z "$missing" ] || note "some did not end in time"
}

# A number of a file of JSON, by its key: the first one.
number() { sed -n "s/^ *\"$1\": \([-+.0-9e]*\),*$/\1/p" "$2" | head -n 1; }

ratio() { awk -v a="$1" -v b="$2" 'BEGIN { print b ? a / b : 0 }'; }

# Trains NAME of figure_models for STEPS on $program; sets rate (tokens/s, the first two steps left
# out) and predicted (of the machine file).
time_steps() { # NAME STEPS SEQUENCES LENGTH
    local h100=$SOURCE/examples/h100.json
    cat >ds.json <<J
{"train_batch_size": $3, "train_micro_batch_size_per_gpu": $3, "gradient_clipping": 1.0,
 "bf16": {"enabled": true}, "zero_optimization": {"stage": 1},
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-4}},
 "sifr": {"seq_length": $4, "max_steps": $2, "recompute": "${recompute:-none}"}}
J
    [ -d "$1" ] || "$SIFR" init --config "$1.json" --tokenizer tok --output "$1" >/dev/null ||
        return 1
    "$program" plan --config ds.json --model "$1" --machine "$h100" --json >plan.json || return 1
    predicted=$(ratio $(($3 * $4)) "$(number step_s plan.json)")
    operations=$(ratio "$(number product_operations plan.json)" $(($3 * $4)))
    "$program" train --config ds.json --model "$1" --data text --device cuda --threads 0 \
        --output trained --json >out 2>err || { tail -n 5 err && return 1; }
    rate=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["step"] > 2 { s += 1 / $at["tokens_per_second"]; n++ }
        END { print n ? n / s : 0 }' trained/metrics.csv)
    rm -rf trained
}

# Shapes of models, with text enough for some steps.
figure_models() {
    awk 'BEGIN { for (i = 0; i < 12000; i++) print "good bad food was were day the a", i }' >text
    "$SIFR" tokenizer train --vocab-size 280 --data text --output tok >/dev/null 2>&1
    cat >gpt2.json <<'J'
{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 50257, "n_embd": 768,
 "n_layer": 12, "n_head": 12, "n_positions": 1024, "resid_pdrop": 0, "embd_pdrop": 0,
 "attn_pdrop": 0}
J
    llama llama-0.5b 896 4864 24 14 2
    llama llama-1b 2048 8192 16 32 8
    llama llama-3b 3072 8192 28 24 8
    llama llama-8b 4096 14336 32 32 8
    llama tiny 48 104 2 4 2
}
llama() { # NAME WIDTH MLP LAYERS HEADS KV_HEADS
    cat >"$1.json" <<J
{"model_type": "llama", "architectures": ["LlamaForCausalLM"],
 "vocab_size": $([ "$1" = tiny ] && echo 280 || echo 32000), "hidden_size": $2,
 "intermediate_size": $3, "num_hidden_layers": $4, "num_attention_heads": $5,
 "num_key_value_heads": $6, "max_position_embeddings": 4096, "torch_dtype": "bfloat16",
 "tie_word_embeddings": false}
J
}

share() { # TOKENS_PER_S OPERATIONS_PER_S
    awk -v r="$1" -v o="$operations" -v p="$2" 'BEGIN { printf "%.1f %%", 100 * r * o / p }'
}

# Steps of models on $program: rows of tokens/s.
steps_of() { # STEPS SEQUENCES LENGTH NAME…
    local steps=$1 sequences=$2 length=$3 bf16
    shift 3
    bf16=$(number bf16_operations_per_s "$SOURCE/examples/h100.json")
    echo "| steps of $sequences x $length tokens, bf16 | tokens/s | share of the file's bf16 |" \
        "by the file, tokens/s |"
    echo '|---|---|---|---|'
    for name; do
        time_steps "$name" "$steps" "$sequences" "$length" || return 1
        echo "| sifr, $name | $rate | $(share "$rate" "$bf16") | $predicted |"
        peer "$name" "$steps" "$sequences" "$length" "$bf16"
    done
}

# The same steps of PyTorch, where the part compares and python3 has it.
peer() { # NAME STEPS SEQUENCES LENGTH BF16
    [ -n "${compares:-}" ] || return 0
    if ! python3 -c 'import torch' 2>/dev/null; then
        echo "| PyTorch, $1 | not run: python3 has no torch | | |"
        return
    fi
    for way in eager compile; do
        if python3 "$SOURCE/bench/peers/train_gpu_torch.py" --config "$1.json" --steps "$2" \
            --sequences "$3" --length "$4" --way $way --device "${SIFR_PEER_DEVICE:-cuda}" \
            >peer 2>err; then
            rate=$(sed -n 's/^tokens_per_second //p' peer)
            echo "| PyTorch, $way, $1 | $rate | $(share "$rate" "$5") | |"
        else
            echo "| PyTorch, $way, $1 | failed: $(tail -n 1 err | tr '|' '/') | | |"
        fi
    done
}

part_speed() {
    local machine=$SOURCE/examples/h100.json
    "$tests/gpu_speed" "$(number bf16_operations_per_s "$machine")" \
        "$(number fp32_operations_per_s "$machine")" || return 1
    echo
    figure_models
    if [ -n "$FAKE" ]; then
        steps_of 4 2 32 tiny
    else
        steps_of 8 8 1024 gpt2 llama-0.5b
    fi
}

# Of --figures: beside PyTorch on the same GPU.
part_steps() {
    compares=1
    figure_models
    if [ -n "$FAKE" ]; then
        steps_of 4 2 32 tiny
    else
        steps_of 12 8 1024 gpt2 llama-1b
    fi
}

# Of --figures: the largest model of a row that trains with state, parameters and activations on the
# host.
part_largest() {
    local name largest=none
    figure_models
    cat >ds.json <<'J'
{"train_batch_size": 1, "train_micro_batch_size_per_gpu": 1, "gradient_clipping": 1.0,
 "bf16": {"enabled": true}, "optimizer": {"type": "AdamW", "params": {"lr": 3e-4}},
 "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"},
  "offload_param": {"device": "cpu"}},
 "sifr": {"seq_length": 32, "max_steps": 2, "recompute": "unit", "offload_activations": "cpu"}}
J
    [ -n "$FAKE" ] || sed -i 's/"seq_length": 32/"seq_length": 2048/' ds.json
    echo '| trained with all on the host | parameters | tokens/s | GPU memory, GB |'
    echo '|---|---|---|---|'
    for name in tiny llama-1b llama-3b llama-8b; do
        [ -z "$FAKE" ] || [ $name = tiny ] || break
        if ! "$SIFR" init --config $name.json --tokenizer tok --output model --seed 3 --json \
            >init.json 2>err || ! "$program" train --config ds.json --model model --data text \
            --device cuda --output trained --json >out 2>err; then
            note "$name: $(tail -n 1 err)"
            break
        fi
        echo "| $name | $(number parameters init.json) | $(number tokens_per_second out) |" \
            "$(awk -v b="$(number planned_bytes out)" 'BEGIN { print b / 1e9 }') |"
        largest=$name
        rm -rf model trained
    done
    [ $largest != none ]
}

case ${1:-} in
look) part_look || exit $? ;;
bits) part_bits ;;
ops) part_ops ;;
golden) part_golden ;;
runs) part_runs ;;
program) part_program ;;
repeat) part_repeat ;;
ranks) part_ranks || exit $? ;;
sanitizer) part_sanitizer || exit $? ;;
speed) part_speed || exit $? ;;
steps) part_steps || exit $? ;;
largest) part_largest || exit $? ;;
*) echo "gpu-parts.sh: no part ${1:-}" >&2 && exit 2 ;;
esac
exit $failed
