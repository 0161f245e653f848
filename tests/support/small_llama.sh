# Sourced by tests of runs of one small Llama model: `text` to learn from, and its tokenizer in tok/.
. "$SOURCE/tests/support/expect.sh"
head -c 24000 "$SOURCE/docs/config.md" >text
"$SIFR" tokenizer train --vocab-size 300 --data text --output tok >log

# A model folder with random weights: llama_model NAME HIDDEN LAYERS TIED
llama_model() {
    cat >$1.json <<J
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 300,
 "hidden_size": $2, "intermediate_size": $(($2 * 2 + 8)), "num_hidden_layers": $3,
 "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64,
 "tie_word_embeddings": $4}
J
    "$SIFR" init --config $1.json --tokenizer tok --output $1 --seed 3 >log
}

# llama/ by ds.json, which has to end with exit code CODE: train_llama CODE OUTPUT RANKS OPTION…
train_llama() {
    expect "$1" "$SIFR" train --config ds.json --model llama --data text --output "$2" \
        --ranks "$3" --threads 1 "${@:4}"
}

# As train_llama for the stage STAGE of ds.json, with all state on a disk that can be there:
# train_on_disk STAGE OUTPUT RANKS OPTION…
train_on_disk() {
    local disk='{"device": "nvme", "nvme_path": "."}' more=
    case $1 in 3) more=", \"offload_param\": $disk" ;; esac
    sed -i "s/\"stage\": $1/&, \"offload_optimizer\": $disk, \"sub_group_size\": 5000$more/" ds.json
    case $1-$3 in
    [01]-1 | [23]-*) set -- "$@" --offload-gradients nvme ;;
    esac
    train_llama 0 "${@:2}"
    [ -z "$(find . -name 'sifr-swap*')" ] || fail "files are left behind"
}
