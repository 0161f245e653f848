# Sourced by tests of state on disk and in 16 bits: a small Llama in llama/, its tokenizer in tok/,
# text, and a directory nvme/ for what lies on disk.
fail() { echo "FAILED: $1" >&2; cat err >&2 || :; exit 1; }
# The rank counts that can be run here: all of them with an MPI, else one.
ranks_of() { # COUNT...
    if "$SIFR" doctor --json | grep -q '"launcher": "'; then echo "$*"; else echo 1; fi
}
head -c 24000 "$SOURCE/docs/config.md" >text
"$SIFR" tokenizer train --vocab-size 300 --data text --output tok >log
cat >llama.json <<'J'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 300,
 "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 3, "num_attention_heads": 4,
 "num_key_value_heads": 2, "max_position_embeddings": 64, "tie_word_embeddings": true}
J
"$SIFR" init --config llama.json --tokenizer tok --output llama --seed 3 >log
mkdir nvme
# Cuts the file off under the process $run until that ends, for up to 60 s: once is not enough, since
# what is cut off after a step's last read is whole again with the next step's writes.
cut_off() { # FILE
    for _ in $(seq 3000); do
        truncate -c -s 8192 "$1" 2>/dev/null || :
        kill -0 $run 2>/dev/null || return 0
        sleep 0.02
    done
    fail "a file cut off is not noticed"
}
