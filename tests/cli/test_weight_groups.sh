# `no_decay`, `layer_decay` and `groups`: what `sifr plan` and a run say of them, the same bits on
# four ranks, what a resumed run says, and patterns that are refused.
# label: full, not under sanitizers (MPI keeps what it took)
. "$SOURCE/tests/support/small_llama.sh"
llama_model llama 48 2 false
says() { grep -qE -- "$1" out err || { cat out err >&2; fail "no line like: $1"; }; }

config() { # STAGE SIFR
    cat >ds.json <<J
{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1,
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3, "weight_decay": 0.1}},
 "zero_optimization": {"stage": $1}, "sifr": {"seq_length": 32, "max_steps": 4$2}}
J
}

# --- what is said ---
config 0 ', "no_decay": "transformers"'
expect 0 "$SIFR" plan --config ds.json --model llama
says 'trains 16 weights of 72,576 parameters with weight decay 0.1$'
says 'trains 5 weights of 240 parameters with no weight decay'
train_llama 0 decay 1
says '^weight_decay 0.1 applies to the trained weights that are neither biases nor of norms'
config 0 ', "layer_decay": 0.5, "groups": [{"match": "lm_head.*", "lr": 6e-3}]'
expect 0 "$SIFR" plan --config ds.json --model llama
says 'trains 1 weight of 14,400 parameters with 2 times the learning rate and weight decay 0.1'
says 'trains 1 weight of 14,400 parameters with 0.125 times the learning rate and weight decay 0.1'
config 0 ', "layer_decay": 0.5, "no_decay": "transformers", "groups": [{"match": "*mlp*", "lr_scale": 3}]'
expect 0 "$SIFR" plan --config ds.json --model llama
says 'trains 9 groups of weights with 0.125 to 1.5 times the learning rate and weight decay from 0 to 0.1'

# --- the same bits on four ranks, also after a resume ---
groups=', "no_decay": "transformers", "layer_decay": 0.7, "groups": [{"match": "*mlp*", "lr_scale": 3, "weight_decay": 0.5}]'
config 0 "$groups"
train_llama 0 one 1
config 3 "$groups"
train_llama 0 four 4
cmp one/model.safetensors four/model.safetensors || fail "stage 3 on 4 ranks differs"
train_llama 0 cut 4 --max-steps 2
config 1 "$groups"
train_llama 0 cut 2 --resume
cmp one/model.safetensors cut/model.safetensors || fail "a resumed run differs"
if grep -q 'was made with' out err; then fail "$(cat out err)"; fi
cmp -s one/model.safetensors decay/model.safetensors && fail "the groups change nothing"

# --- other groups on a resume are said ---
config 1 ', "no_decay": "none", "layer_decay": 0.7'
train_llama 0 cut 1 --resume --max-steps 5
says 'was made with no_decay "transformers"'
says 'was made with groups '

# --- which weights decay is nothing where none does ---
none() { config "$@" && sed -i 's/"weight_decay": 0.1/"weight_decay": 0/' ds.json; }
none 0 ', "no_decay": "transformers"'
train_llama 0 idle 1 --max-steps 2
none 0 ', "no_decay": "none"'
train_llama 0 idle 1 --resume
if grep -q 'was made with' out err; then fail "$(cat out err)"; fi
train_llama 0 whole 1
cmp idle/model.safetensors whole/model.safetensors || fail "no_decay without decay differs"

# --- refused ---
config 0 ', "groups": [{"match": "*.nothing.*", "lr_scale": 2}]'
train_llama 2 no 1
says 'optimizer groups: no weight.s name matches "\*\.nothing\.\*"; names look like '
expect 2 "$SIFR" plan --config ds.json --model llama
says 'optimizer groups: no weight.s name matches'
config 0 ', "freeze": ["*mlp*"], "groups": [{"match": "*mlp.up*", "lr_scale": 2}]'
train_llama 2 no 1
says '"\*mlp\.up\*" matches only weights that are frozen'
[ ! -e no ] || fail "a refused run left its output"
