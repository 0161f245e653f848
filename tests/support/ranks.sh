# Sourced by tests that start ranks of sifr: what find_mpi.sh sets, with $options in $launcher; a
# tiny model and text to train it on.
fail() {
    echo "$1" >&2
    tail -n 40 out err >&2 2>/dev/null || :
    exit 1
}
. "$SOURCE/tests/support/find_mpi.sh"
launcher="$launcher $options"

# The bits of a run's weights, and all columns of its metrics but speed, memory and time.
bits() { sha256sum <"$1/model.safetensors"; }
figures() { cut -d, -f1-5,7,10,12- "$1/metrics.csv"; }
# same DIRECTORY REFERENCE: the weights and figures of the one are those of the other
same() {
    [ "$(bits "$1")" = "$(bits "$2")" ] || fail "$1: other weights"
    figures "$2" >want.csv
    figures "$1" | diff want.csv - >difference || fail "$1: other figures: $(cat difference)"
}
# What each group of a mesh moved, as `sifr train --json` says in out: a line GROUP OPERATION BYTES
# PLANNED each.
groups() {
    awk '/"groups":/ { inside = 1; next }
        inside && /^      "[a-z]+": [{]/ { gsub(/[":{]/, ""); group = $1 }
        inside && /^        "[a-z]+": [{]/ { gsub(/[":{]/, ""); operation = $1 }
        inside && /"bytes":/ { gsub(",", "", $2); bytes = $2 }
        inside && /"planned":/ { gsub(",", "", $2); print group, operation, bytes, $2 }' out
}

# Makes model/, text and ds.json (global batch of 24, 10 steps) in the working directory.
tiny_model() {
    awk 'BEGIN {
        n = split("the cat sat on a mat and saw that dog run over my big red house", w, " ")
        s = 7
        for (line = 0; line < 1500; line++) {
            text = ""
            for (i = 0; i < 8; i++) {
                s = (s * 1103515245 + 12345) % 2147483648
                text = text (i ? " " : "") w[int(s / 65536) % n + 1]
            }
            print text "."
        }
    }' >text
    cat >tiny.json <<'J'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 280,
 "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 2, "num_attention_heads": 4,
 "num_key_value_heads": 2, "max_position_embeddings": 128, "tie_word_embeddings": false}
J
    "$SIFR" tokenizer train --vocab-size 280 --data text --output tok >/dev/null 2>&1
    "$SIFR" init --config tiny.json --tokenizer tok --output model --seed 3 >/dev/null
    cat >ds.json <<'J'
{"train_batch_size": 24, "train_micro_batch_size_per_gpu": 1,
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3}},
 "sifr": {"seq_length": 64, "max_steps": 10}}
J
}
