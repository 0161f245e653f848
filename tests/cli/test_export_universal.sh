# `sifr export --format deepspeed-universal`: fp32 weights, moments and steps of a checkpoint under
# the model's own names, whatever ranks made it; `sifr import` reads the weights back, bit by bit.
# That DeepSpeed goes on from it is what tests/golden/check_universal.py compares.
. "$SOURCE/tests/support/expect.sh"
says() { grep -qE -- "$1" out err || { cat out err >&2; fail "no line like: $1"; }; }
seq 1 2000 | awk '{ print "line", $1 % 37, "of", $1 % 11, "things." }' >text
"$SIFR" tokenizer train --vocab-size 300 --data text --output tok >log
cat >llama.json <<'J'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 300,
 "hidden_size": 48, "intermediate_size": 104, "num_hidden_layers": 2, "num_attention_heads": 4,
 "num_key_value_heads": 2, "max_position_embeddings": 64, "tie_word_embeddings": true}
J
cat >gpt2.json <<'J'
{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 300, "n_embd": 48,
 "n_layer": 1, "n_head": 4, "n_positions": 64}
J
for model in llama gpt2; do
    "$SIFR" init --config $model.json --tokenizer tok --output $model --seed 3 >log
done
train() { # OUTPUT MODEL OPTIMIZER BF16 OPTION…
    cat >ds.json <<J
{"train_batch_size": 4, "train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3},
 "optimizer": {"type": "$3", "params": {"lr": 3e-3}}, "bf16": {"enabled": $4},
 "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 10}},
 "sifr": {"seq_length": 32, "max_steps": 4, "save_steps": 4}}
J
    expect 0 "$SIFR" train --config ds.json --model "$2" --data text --output "$1" --threads 1 \
        "${@:5}"
}
universal() { # RUN DEST
    expect 0 "$SIFR" export "$1/checkpoint-4" "$2" --format deepspeed-universal
    says "^$2: .* parameters, .* of fp32 weights and moments, from $1/checkpoint-4 \(step 4\)$"
    [ "$(cat "$2/latest_universal")" = global_step4_universal ] || fail "another tag"
}
# tensor FILE NAME: hash of a tensor's bytes in a safetensors file
tensor() {
    local size place
    size=$(od -An -tu8 -N8 "$1" | tr -d ' ')
    place=$(tail -c +9 "$1" | head -c "$size" | grep -o "\"$2\": *{[^}]*}" |
        grep -o '\[[0-9]*, *[0-9]*\]}' | tr -d '[]} ') || fail "no $2 in $1"
    tail -c +$((9 + size + ${place%,*})) "$1" | head -c $((${place#*,} - ${place%,*})) | sha256sum
}
# stored FILE: hash of the tensor's bytes in a file of torch.save: its size, and where it is
stored() {
    local name extra bytes
    name=$(grep -abo archive/data/0 "$1" | head -n 1 | cut -d : -f 1)
    extra=$(od -An -tu2 -j $((name - 2)) -N 2 "$1" | tr -d ' ')
    bytes=$(od -An -tu8 -j $((name + 18)) -N 8 "$1" | tr -d ' ')
    tail -c +$((name + 15 + extra)) "$1" | head -c "$bytes" | sha256sum
}

# Of two ranks in fp32, where the model folder has the masters themselves.
train two llama AdamW false --ranks 2
universal two from-two
expect 0 "$SIFR" import --checkpoint from-two back
expect 0 "$SIFR" export two/checkpoint-4 hf
cmp back/model.safetensors hf/model.safetensors || fail "other weights"
[ -e from-two/tokenizer.json ] || fail "no tokenizer beside the checkpoint"
[ ! -e from-two/trainer_state.json ] || fail "a run's own records are copied"
zero=from-two/global_step4_universal/zero
[ ! -e "$zero/lm_head.weight" ] || fail "a tied head is a parameter of its own"
[ "$(ls $zero/model.norm.weight | tr '\n' ' ')" = "exp_avg.pt exp_avg_sq.pt fp32.pt step.pt " ] ||
    fail "$(ls $zero/model.norm.weight)"
[ "$(stored $zero/model.norm.weight/step.pt)" = "$(printf '\0\0\200\100' | sha256sum)" ] ||
    fail "the step is not 4.0"
cmp from-two/global_step4_universal/*mp_rank_00_model_states.pt || fail "two counts"

# Of one rank the masters and moments are whole tensors: they come as they are. Frozen ones have no
# moments. Names are the model's own, where the folder leaves out a part of them.
train one gpt2 AdamW true --freeze '*.wpe.*'
universal one from-one
zero=from-one/global_step4_universal/zero
state=one/checkpoint-4/state-00001-of-00001.safetensors
for name in transformer.wte.weight transformer.h.0.attn.c_attn.weight transformer.ln_f.bias; do
    for part in master=fp32 exp_avg=exp_avg exp_avg_sq=exp_avg_sq; do
        [ "$(stored "$zero/$name/${part#*=}.pt")" = "$(tensor $state "${part%=*}/$name")" ] ||
            fail "$name: another $part"
    done
done
universal one/../one again
diff -r from-one again || fail "not the same bytes again"

# --- what is refused, and leaves nothing behind ---
before=$(ls -A | grep -vxE 'out|err')
unchanged() { [ "$(ls -A | grep -vxE 'out|err')" = "$before" ] || fail "left behind: $(ls -A)"; }
expect 2 "$SIFR" export llama new --format deepspeed-universal
says '^sifr export: llama: a model folder has no state of an optimizer; name a checkpoint'
expect 2 "$SIFR" export one/checkpoint-4 back --format deepspeed-universal
says 'back: not empty, and nothing is overwritten'
expect 2 "$SIFR" export one/checkpoint-4 new --format deepspeed-universal --type f16
says 'type f16 is for --format gguf'
printf x | dd of=$state bs=1 seek=$(($(stat -c %s $state) - 5)) conv=notrunc 2>/dev/null
expect 1 "$SIFR" export one/checkpoint-4 new --format deepspeed-universal
says 'has checksum .*, but .* in the manifest'
unchanged
train sgd llama SGD false
expect 2 "$SIFR" export sgd/checkpoint-4 new --format deepspeed-universal
says 'state of another optimizer \(.*\) than Adam.*, which alone a universal checkpoint .* holds; '
[ ! -e new ] || fail "a refused export left something"
sed -i 's/"sifr": {/&"lora": {"r": 2, "target_modules": ["q_proj"]}, /' ds.json
expect 0 "$SIFR" train --config ds.json --model llama --data text --output lora --threads 1
expect 2 "$SIFR" export lora/checkpoint-4 new --format deepspeed-universal
says 'lora/checkpoint-4: adapters in a universal checkpoint of DeepSpeed are not supported; export'
[ ! -e new ] || fail "a refused export left something"
