# Sourced by gpu-parts.sh: rates. Products and attention by shape, steps of models beside the machine
# file's prediction and beside PyTorch, the largest model.
h100=$SOURCE/examples/h100.json

ratio() { awk -v a="$1" -v b="$2" 'BEGIN { print b ? a / b : 0 }'; }

share() { # TOKENS_PER_S: of the file's bf16, by $operations a token
    awk -v r="$1" -v o="$operations" -v p="$(number bf16_operations_per_s "$h100")" \
        'BEGIN { printf "%.1f %%", 100 * r * o / p }'
}

# Trains NAME of figure_models; sets rate (tokens/s, the first two steps left out), predicted (of
# the machine file) and operations (of a token).
time_steps() { # NAME STEPS SEQUENCES LENGTH
    local code=0
    cat >ds.json <<J
{"train_batch_size": $3, "train_micro_batch_size_per_gpu": $3, "gradient_clipping": 1.0,
 "bf16": {"enabled": true}, "zero_optimization": {"stage": 1},
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-4}},
 "sifr": {"seq_length": $4, "max_steps": $2, "recompute": "none"}}
J
    [ -d "$1" ] || "$SIFR" init --config "$1.json" --tokenizer tok --output "$1" >/dev/null ||
        return 1
    "$program" plan --config ds.json --model "$1" --machine "$h100" --json >plan.json || return 1
    predicted=$(awk -v t=$(($3 * $4)) -v s="$(number step_s plan.json)" \
        'BEGIN { printf "%.0f", s ? t / s : 0 }')
    operations=$(ratio "$(number product_operations plan.json)" $(($3 * $4)))
    model=$1 threads=0 train_here "$1" $((PART_SECONDS - 2 - SECONDS)) "$program" --device cuda ||
        code=$?
    [ $code = 0 ] || return $code
    rate=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["step"] > 2 { s += 1 / $at["tokens_per_second"]; n++ }
        END { printf "%.0f", n ? n / s : 0 }' trained/metrics.csv)
    rm -rf trained
    [ "${rate:-0}" -gt 0 ] && return
    note "$1: failed: no step has a rate in metrics.csv"
    return 1
}

# Shapes of models, with text for LENGTH tokens and more.
figure_models() { # TOKENS
    awk -v n="$1" 'BEGIN { for (i = 0; 12 * i < n; i++) print "good bad food was were day the a", i }' \
        >text
    head -n 2000 text >some
    "$SIFR" tokenizer train --vocab-size 280 --data some --output tok >/dev/null 2>&1
    cat >gpt2.json <<'J'
{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 50257, "n_embd": 768,
 "n_layer": 12, "n_head": 12, "n_positions": 1024, "resid_pdrop": 0, "embd_pdrop": 0,
 "attn_pdrop": 0}
J
    llama llama-1b 2048 8192 16 32 8
    llama llama-3b 3072 8192 28 24 8
    llama tiny 48 104 2 4 2
}
llama() { # NAME WIDTH MLP LAYERS HEADS KV_HEADS
    cat >"$1.json" <<J
{"model_type": "llama", "architectures": ["LlamaForCausalLM"],
 "vocab_size": $([ "$1" = tiny ] && echo 280 || echo 128256), "hidden_size": $2,
 "intermediate_size": $3, "num_hidden_layers": $4, "num_attention_heads": $5,
 "num_key_value_heads": $6, "max_position_embeddings": 4096, "torch_dtype": "bfloat16",
 "tie_word_embeddings": $([ "$1" = tiny ] && echo false || echo true)}
J
}

steps_header() {
    echo '| steps in bf16 | tokens/s | share of the file'"'"'s bf16 | by the file, tokens/s |'
    echo '|---|---|---|---|'
}

# Steps of a model on $program: a row of tokens/s.
steps_of() { # STEPS SEQUENCES LENGTH NAME
    figure_models $(($1 * $2 * $3))
    time_steps "$4" "$1" "$2" "$3" || return
    echo "| sifr, $4, $2 x $3 | $rate | $(share "$rate") | $predicted |"
}

# The same steps of PyTorch, where python3 has it. It takes half of the sequences where they do not
# fit, and ends by itself a little before its time.
peer_of() { # WAY STEPS SEQUENCES LENGTH NAME SECONDS
    local name="PyTorch $1, $5" rate shape code=0
    if ! command -v python3 >/dev/null || ! python3 -c \
        'import importlib.util as u, sys; sys.exit(u.find_spec("torch") is None)' 2>/dev/null; then
        note "python3 has no torch"
        echo "| $name, $3 x $4 | not run: python3 has no torch | | |"
        return 77
    fi
    within "$6" python3 "$SOURCE/bench/peers/train_gpu_torch.py" --config "$5.json" --steps "$2" \
        --sequences "$3" --length "$4" --way "$1" --device "${SIFR_PEER_DEVICE:-cuda}" \
        --seconds $(($6 - 2)) >peer 2>err || code=$?
    cat peer
    sed -n 's/^\(torch .*\)/ran: \1/p; s/^\(no memory for .*\)/notice: \1/p' peer
    rate=$(sed -n 's/^tokens_per_second \([0-9]*\).*/\1/p' peer)
    shape=$(sed -n 's/^steps .*, \([0-9]* x [0-9]*\) tokens$/\1/p' peer)
    if [ "$rate" ]; then
        echo "| $name, ${shape:-$3 x $4} | $rate | | |"
        return
    fi
    tail -n 20 err
    note "$name: $(grep . err | tail -n 1 | grep . || echo "no end within $6 s")"
    echo "| $name, $3 x $4 | failed | | |"
    return 1
}

part_speed() {
    local code=0 most=$((PART_SECONDS / 2))
    within $most "$tests/gpu_speed" "$(number bf16_operations_per_s "$h100")" \
        "$(number fp32_operations_per_s "$h100")" bf16 || code=$?
    if [ $code != 0 ]; then
        failed=1
        echo "speed rates" >>"$GPU_STATE/failed"
        case $code in
        124 | 137) note "rates of products and attention: no end within $most s" ;;
        *) note "rates of products and attention: failed with exit code $code" ;;
        esac
    fi
    echo
    steps_header
    if [ -n "$FAKE" ]; then set -- 4 2 32 tiny; else set -- 8 64 1024 gpt2; fi
    steps_of "$@" && return
    echo "speed steps" >>"$GPU_STATE/failed"
    return 1
}

part_peer() { peer_alone eager; }

# Of --figures: a Llama of 1B beside PyTorch on the same GPU.
part_llama() {
    local begun=$SECONDS code=0
    steps_header
    if [ -n "$FAKE" ]; then set -- 4 2 32 tiny; else set -- 8 8 2048 llama-1b; fi
    steps_of "$@" || code=1
    peer_of eager "$@" $((PART_SECONDS - (SECONDS - begun) - 1)) || [ $? = 77 ] || code=1
    return $code
}

part_compile() { peer_alone compile; }
peer_alone() { # WAY
    figure_models 1
    steps_header
    if [ -n "$FAKE" ]; then set -- "$1" 4 2 32 tiny; else set -- "$1" 12 64 1024 gpt2; fi
    peer_of "$@" $((PART_SECONDS - 1))
}

# What NVIDIA's profiler says of three kernels of sifr's own: how busy they keep the GPU.
part_ncu() {
    local kernel each=$((PART_SECONDS / 3)) value
    command -v ncu >/dev/null || { note "no ncu here" && return 77; }
    export SIFR_CUDA_PRODUCTS=own
    echo "ran: products own (asked for)"
    echo '| kernel | us | busy multiprocessors, % | of its memory rate, % |'
    echo '|---|---|---|---|'
    for kernel in gemm_nt_bf16 attention_forward_bf16_64 attention_backward_keys_bf16_64; do
        within $each ncu --clock-control none --csv --launch-skip 2 --launch-count 1 \
            --kill yes --kernel-name "sifr_$kernel" --metrics "$(ncu_metrics)" \
            "$tests/gpu_speed" 0 0 bf16 >profile 2>err
        value=$(ncu_values profile)
        if [ "$value" ]; then
            echo "| $kernel | $value |"
        elif grep -q ERR_NVGPUCTRPERM profile err; then
            note "this machine lets only its administrator use ncu (ERR_NVGPUCTRPERM)"
            return 77
        else
            echo "| $kernel | failed: ncu says nothing of it | | |"
            tail -n 5 profile err
            note "$kernel: $(grep -h '^==ERROR== ' profile err | head -n 1 | grep . ||
                echo "ncu said nothing of it within $each s")"
            failed=1
        fi
    done
}
ncu_names="gpu__time_duration.sum sm__throughput.avg.pct_of_peak_sustained_elapsed
    gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
ncu_metrics() { echo "$ncu_names" | tr -s ' \n' , | sed 's/,$//'; }
# Of ncu's CSV: its last column has the value, that before it the unit, then the metric's name.
ncu_values() { # FILE
    local name
    for name in $ncu_names; do
        sed -n "s/.*\"$name\",\"\([a-z%]*\)\",\"\([0-9.,]*\)\".*/\1 \2/p" "$1" | head -n 1 |
            awk '{ gsub(",", "", $2); v = $2
                if ($1 == "nsecond" || $1 == "ns") v /= 1000
                else if ($1 == "msecond" || $1 == "ms") v *= 1000
                printf "%.1f\n", v }'
    done | paste -sd '|' - | sed 's/|/ | /g'
}

# Of --figures: a model that trains with state, parameters and activations on the host. It is ended
# after its steps: its checkpoint would take longer.
part_largest() {
    local name=llama-3b pid
    [ -z "$FAKE" ] || name=tiny
    figure_models 9000
    cat >ds.json <<'J'
{"train_batch_size": 1, "train_micro_batch_size_per_gpu": 1, "gradient_clipping": 1.0,
 "bf16": {"enabled": true}, "optimizer": {"type": "AdamW", "params": {"lr": 3e-4}},
 "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"},
  "offload_param": {"device": "cpu"}},
 "sifr": {"seq_length": 32, "max_steps": 1000, "recompute": "unit", "offload_activations": "cpu"}}
J
    [ -n "$FAKE" ] || sed -i 's/"seq_length": 32/"seq_length": 2048/' ds.json
    echo '| trained with all on the host | parameters | tokens/s | GPU memory |'
    echo '|---|---|---|---|'
    "$SIFR" init --config $name.json --tokenizer tok --output model --seed 3 --json >init.json ||
        return 1
    "$program" train --config ds.json --model model --data text --threads 0 --output trained \
        --device cuda >out 2>err &
    pid=$!
    while kill -0 $pid 2>/dev/null && [ "$(wc -l <trained/metrics.csv 2>/dev/null || echo 0)" -lt 4 ] &&
        [ $SECONDS -lt $((PART_SECONDS - 2)) ]; do sleep 0.1; done
    kill -KILL $pid 2>/dev/null
    sed -n 's/^sifr train: warning: /notice: /p' err
    if [ "$(wc -l <trained/metrics.csv 2>/dev/null || echo 0)" -lt 4 ]; then
        note "$name: no third step: $(cat out err | grep . | tail -n 1)"
        return 1
    fi
    echo "ran: state, parameters and activations in host memory"
    echo "| $name | $(number parameters init.json) |" \
        "$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } { r = $at["tokens_per_second"] }
            END { printf "%.0f", r }' trained/metrics.csv) |" \
        "$(cat out err | sed -n 's/^step: .* memory \([0-9.]* [A-Za-z]*\).*/\1/p' | head -n 1) |"
}
