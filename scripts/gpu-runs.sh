# Sourced by gpu-parts.sh: a run with an end, what it says of itself, a small model to train.

note() { echo "note: $*"; }

# What answers a failure of a part; it stands in that part's row.
answer() { # PART WORD…
    echo "$*" >>"$GPU_STATE/answers"
    echo "answer: $*"
}

within() { # SECONDS COMMAND…: exit code 124 or 137: no end
    timeout -k 2 "$@"
}

# A number or a text of a file of JSON, by its key: the first one.
number() { sed -n "s/^ *\"$1\": \([-+.0-9e]*\),*$/\1/p" "$2" | head -n 1; }
text_of() { sed -n "s/^ *\"$1\": \"\(.*\)\",*$/\1/p" "$2" | head -n 1; }

near() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && b != "" && a - b < 0.05 && b - a < 0.05) }'; }

# train_here NAME SECONDS PROGRAM OPTION…: trains by ds.json the model in `model`, or in $model, on
# `text`; prints what ran and what was warned of. What it printed is left in out and err.
train_here() {
    local name=$1 most=$2 program=$3 code=0
    shift 3
    rm -rf trained
    within "$most" "$program" train --config ds.json --model "${model:-model}" --data text \
        --threads "${threads:-1}" --output trained --json "$@" >out 2>err || code=$?
    say_ran out
    sed -n 's/^sifr train: warning: /notice: /p' err
    case $code in
    0) return ;;
    124 | 137) note "$name: no end within $most s" ;;
    *) note "$name: $( (grep '^sifr ' err || grep . err) | grep -v ': warning: ' | tail -n 1)" ;;
    esac
    tail -n 5 err
    return $code
}

# Of a run's JSON, as the programs of tests say it.
say_ran() { # JSON
    [ -s "$1" ] && grep -q '"ran": {' "$1" || return 0
    local products waits why own exchange
    products=$(text_of products "$1") own=$(number own_products "$1")
    why=$(text_of own_why "$1") waits=$(text_of waits "$1")
    case $products in
    '') ;;
    own:*) echo "ran: products own $own (${products#own: })" ;;
    *) echo "ran: products $products $(number library_products "$1"), own $own${why:+ ($why)}" ;;
    esac
    why=$(text_of waits_why "$1")
    case $waits in
    'words and host') echo "ran: waits words $(number word_waits "$1"), host" \
        "$(number host_waits "$1")${why:+ ($why)}" ;;
    words) echo "ran: waits words $(number word_waits "$1")" ;;
    host) echo "ran: waits host $(number host_waits "$1")${why:+ ($why)}" ;;
    none) echo "ran: waits none" ;;
    esac
    why=$(text_of exchange_why "$1") exchange=$(text_of exchange "$1")
    [ ! "$exchange" ] || echo "ran: exchange $exchange${why:+ ($why)}"
    case $(sed -n 's/^ *"pinned": \(true\|false\),*$/\1/p' "$1") in
    true) echo "ran: memory pinned" ;;
    false) echo "ran: memory $(number unpinned_bytes "$1") bytes not pinned" ;;
    esac
}

# A model of three small blocks with text for it.
small_model() {
    awk 'BEGIN { for (i = 0; i < 400; i++) print "good bad food was were day the a very" }' >text
    "$SIFR" tokenizer train --vocab-size 280 --data text --output tok >/dev/null 2>&1
    cat >model.json <<'J'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 280,
 "hidden_size": 48, "intermediate_size": 104, "num_hidden_layers": 3, "num_attention_heads": 4,
 "num_key_value_heads": 2, "max_position_embeddings": 64, "tie_word_embeddings": false}
J
    rm -rf model
    "$SIFR" init --config model.json --tokenizer tok --output model --seed 3 >/dev/null
}
# ds.json for a stage.
stage() { # STAGE STEPS
    cat >ds.json <<J
{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1, "gradient_clipping": 1.0,
 "bf16": {"enabled": true}, "zero_optimization": {"stage": $1},
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3}},
 "sifr": {"seq_length": 32, "max_steps": $2}}
J
}
