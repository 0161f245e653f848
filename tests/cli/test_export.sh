# `sifr export`: a checkpoint becomes the model folder that the run itself wrote at that step, byte
# for byte, whatever made it: 1, 2 and 4 ranks, ZeRO 0 and 3, fp32 and bf16, both families. Nothing
# is overwritten, a failure leaves nothing behind, a damaged checkpoint is refused, and memory is
# bounded.
# label: full; timeout: 600, not under sanitizers (MPI keeps what it took)
. "$SOURCE/tests/support/expect.sh"
says() { grep -qE -- "$1" out err || { cat out err >&2; fail "no line like: $1"; }; }
trap 'kill $(jobs -p) 2>/dev/null || :; wait || :' EXIT

head -c 24000 "$SOURCE/docs/config.md" >text
"$SIFR" tokenizer train --vocab-size 300 --data text --output tok >log
llama='"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 300,
    "hidden_size": 48, "intermediate_size": 104, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 64, "tie_word_embeddings": false'
model() { # NAME JSON
    echo "$2" >$1.json
    "$SIFR" init --config $1.json --tokenizer tok --output $1 --seed 3 >log
    echo "about $1" >$1/README.md
}
model llama-fp32 "{$llama}"
model llama-bf16 "{$llama, \"torch_dtype\": \"bfloat16\"}"
model gpt2-bf16 '{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 300,
    "n_embd": 48, "n_layer": 2, "n_head": 4, "n_positions": 64, "torch_dtype": "bfloat16"}'

config() { # STAGE BF16 MASTERS
    cat >ds.json <<J
{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1,
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3}}, "zero_optimization": {"stage": $1},
 "bf16": {"enabled": $2${3:-}},
 "sifr": {"seq_length": 32, "max_steps": 4, "save_steps": 2}}
J
}
train() { # OUTPUT MODEL RANKS OPTION…
    rm -rf "$1"
    "$SIFR" train --config ds.json --model "$2" --data text --output "$1" --ranks "$3" --threads 1 \
        "${@:4}" >log 2>err || { code=$?; cat err >&2; fail "$case: exit code $code"; }
}
# The same files with the same bytes, but for the run's own records.
same_folder() { # EXPORTED RUN
    local name
    for name in $(ls "$1"); do
        cmp "$1/$name" "$2/$name" || fail "$case: $name differs"
    done
    for name in model.safetensors config.json tokenizer.json README.md; do
        [ -f "$1/$name" ] || fail "$case: $name is missing"
    done
    [ ! "$(ls "$1" | grep -E 'sifr_config|metrics|trainer_state|latest|checkpoint|data')" ] ||
        fail "$case: records of the run are there: $(ls "$1")"
}
# A checkpoint as a model gives what its export gives.
losses() {
    rm -f loss-* text-*
    for path in run/checkpoint-4 four; do
        expect 0 "$SIFR" eval --model $path --data text --seq-length 32 --max-windows 3
        cp out loss-$(basename $path)
        expect 0 "$SIFR" eval --model $path --data text --seq-length 32 --max-windows 3 \
            --precision fp32
        cat out >>loss-$(basename $path)
        expect 0 "$SIFR" generate --model $path --prompt "the key" --max-new-tokens 8 --seed 4
        cp out text-$(basename $path)
    done
    cmp loss-checkpoint-4 loss-four || fail "$case: other losses: $(cat loss-*)"
    cmp text-checkpoint-4 text-four || fail "$case: other texts"
}
ranks=1 last=1
if "$SIFR" doctor --json | grep -q '"launcher": "'; then ranks="1 2 4" last=4; fi
masters=', "bf16_master_weights_and_grads": true, "bf16_optimizer_states": true'
for name in llama-fp32 llama-bf16 gpt2-bf16 masters; do
    for stage in 0 3; do
        bf16=false keep= from=$name
        [ $name = llama-fp32 ] || bf16=true
        [ $name != masters ] || keep=$masters from=llama-bf16
        config $stage $bf16 "$keep"
        for n in $ranks; do
            case $name in gpt2-* | masters) [ $stage-$n = 3-$last ] || continue ;; esac
            case="$name, stage $stage, $n ranks"
            train run $from $n
            rm -rf four two
            expect 0 "$SIFR" export run/checkpoint-4 four
            same_folder four run
            [ $n != $last ] || losses
            [ $stage-$n = 0-2 ] || [ $stage-$n = 3-4 ] || continue # at an earlier step
            expect 0 "$SIFR" export run/checkpoint-2/ two --format hf
            says '^two: .* parameters, .* of weights, from run/checkpoint-2/? \(step 2\)$'
            train short $from $n --max-steps 2
            same_folder two short
            cmp -s two/model.safetensors four/model.safetensors && fail "$case: of one step"
        done
    done
done

# --- the result opens; so does a folder ---
case="the last run"
expect 0 "$SIFR" eval --model four --data text --seq-length 32 --max-windows 3
expect 0 "$SIFR" train --config ds.json --model four --data text --output again --threads 1
expect 0 "$SIFR" export four five
same_folder five four
expect 0 "$SIFR" export run six # the model of its last step
same_folder six run
rm run/model.safetensors
expect 0 "$SIFR" export run seven
says 'run: holds no model yet; using its newest checkpoint-4'
cmp seven/model.safetensors four/model.safetensors || fail "another checkpoint was taken"
expect 0 "$SIFR" eval --model run --data text --seq-length 32 --max-windows 3
says '^sifr eval: run: holds no model yet; using its newest checkpoint-4$'
# Of a run that went on, the model is old.
cp -r four old
cp -r run/checkpoint-4 old/checkpoint-4
echo '{"global_step": 3}' >old/trainer_state.json
expect 0 "$SIFR" export old eight
says 'old: its model is of step 3; using checkpoint-4, which is newer'

# --- a checkpoint by itself ---
mkdir alone
cp -r run/checkpoint-4 alone/kept
expect 1 "$SIFR" export alone/kept nine
says 'alone/kept: there is no config.json in this checkpoint, nor in .*/alone;'
cp four/config.json four/tokenizer.json alone/kept
expect 0 "$SIFR" export alone/kept nine
cmp nine/model.safetensors four/model.safetensors || fail "other weights"
[ "$(ls nine | tr '\n' ' ')" = "config.json model.safetensors tokenizer.json " ] || fail "$(ls nine)"

# --- what is refused, and leaves nothing behind ---
before=$(ls -A)
expect 2 "$SIFR" export run/checkpoint-4 four
says '^sifr export: four: not empty, and nothing is overwritten'
expect 2 "$SIFR" export run/checkpoint-4 ds.json
says 'ds.json: not a folder'
expect 2 "$SIFR" export run/checkpoint-4 new --format onnx
says '^sifr export: --format onnx is not supported yet \(supported: hf, gguf, deepspeed-universal\)$'
expect 2 "$SIFR" export run/checkpoint-4
says 'two paths are needed, SOURCE and DEST, not 1'
expect 1 "$SIFR" export nowhere new
says nowhere
for file in alone/kept/state-00001-of-*.safetensors; do
    cp "$file" whole
    printf x | dd of="$file" bs=1 seek=$(($(stat -c %s "$file") - 5)) conv=notrunc 2>/dev/null
    expect 1 "$SIFR" export alone/kept new
    says 'state-00001-of-.*: has checksum .*, but .* in the manifest'
    cp whole "$file"
done
rm whole
sed -i 's/"step": 4/"step": 5/' alone/kept/manifest.json
expect 1 "$SIFR" export alone/kept new
says 'manifest.json: has checksum'
[ "$(ls -A)" = "$before" ] || fail "left behind: $(ls -A)"
mkdir empty
expect 0 "$SIFR" export run/checkpoint-4 empty
cmp empty/model.safetensors four/model.safetensors || fail "into an empty folder: other weights"

# --- memory: 50 MB of weights, 150 MB of state, and no more than some MB of memory ---
model large "{$(echo "$llama" | sed 's/"vocab_size": 300/"vocab_size": 130000/')}"
config 0 false
train run large 1 --max-steps 1
(ulimit -d 24000 && exec "$SIFR" export run/checkpoint-1 large-1 >out 2>err) ||
    fail "memory is not bounded: $(cat err)"
cmp large-1/model.safetensors run/model.safetensors || fail "large: other weights"
