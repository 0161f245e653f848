# label: full
# `sifr eval`, `score` and `classify` on a GPU that a fake driver plays, beside the CPU: losses,
# log-probabilities, the likeliest words and labels in fp32 and bf16; and what is said where the GPU
# is missing, too small or fails.
# timeout: 300, not under sanitizers
. "$SOURCE/tests/support/expect.sh"
gpu_program=${SIFR_GPU_PROGRAM:-$BUILD/tests/sifr_on_fake_gpu}
gpu() { "$gpu_program" "$@"; }
unset FAKE_GPU
# says FILE COUNT PATTERN: so many lines of it do
says() {
    [ "$(grep -cE -- "$3" "$1")" = "$2" ] || { cat out err; fail "$1: not $2 lines with '$3'"; }
}
quiet() { says err 0 'CPU|GPU|warning'; }
field() { sed -n "s/^ *\"$1\": \([^,]*\),*$/\1/p" "${2:-out}"; }
# near A B BOUND: files of numbers, line by line, at least one
near() {
    paste "$1" "$2" | awk -v most="$3" '
        NF != 2 { print "line " NR ": " $0; bad = 1 }
        { off = $1 - $2; if (off < 0) off = -off; if (!(off <= most)) { print "line " NR ": " $0; bad = 1 } }
        END { exit bad || NR == 0 }' || fail "$1 and $2 differ"
}
# numbers FILE TENSOR: fp32 of a safetensors file, one a line
numbers() {
    local size range
    size=$(od -An -tu8 -N8 "$1" | tr -d ' ')
    range=$(tail -c +9 "$1" | head -c "$size" |
        sed "s/.*\"$2\":{[^}]*\"data_offsets\":\[\([0-9]*\), *\([0-9]*\)\].*/\1 \2/")
    set -- "$1" "${range% *}" "${range#* }"
    od -An -v -w4 -tf4 -j $((8 + size + $2)) -N $(($3 - $2)) "$1" | tr -d ' '
}

awk 'BEGIN { for (i = 0; i < 60; i++) print "good bad food was were day the a very red big one two" }' >text
"$SIFR" tokenizer train --vocab-size 270 --data text --output tok >/dev/null 2>&1
cat >tiny.json <<'J'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 270,
 "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2,
 "num_key_value_heads": 1, "max_position_embeddings": 64, "tie_word_embeddings": true,
 "pad_token_id": 0}
J
"$SIFR" init --config tiny.json --tokenizer tok --output model --seed 3 >/dev/null

# --- eval: the CPU's loss; the device is said where it is a GPU ---
eval=(eval --model model --data text --seq-length 16 --max-windows 6 --batch-size 4 --threads 1)
for precision in fp32:1e-5 bf16:2e-2; do
    type=${precision%:*}
    expect 0 "$SIFR" "${eval[@]}" --precision "$type" --json
    [ "$(field device)" = '"cpu"' ] || fail "device: $(cat out)"
    field loss >cpu
    expect 0 gpu "${eval[@]}" --precision "$type" --json
    quiet
    [ "$(field device)" = '"cuda"' ] || fail "device: $(cat out)"
    field loss >on-gpu
    near cpu on-gpu "${precision#*:}"
    expect 0 gpu "${eval[@]}" --precision "$type" --device cuda
    says out 1 "^loss .* over 96 tokens in 6 windows of 16 \($type, sm_90\)$"
    expect 0 gpu "${eval[@]}" --precision "$type" --device cpu --json
    quiet
    [ "$(field device)" = '"cpu"' ] || fail "--device cpu: $(cat out)"
    field loss | cmp - cpu || fail "--device cpu is not the CPU"
done
expect 0 gpu "${eval[@]}" --device cpu
says out 1 '\(fp32\)$'
expect 2 gpu "${eval[@]}" --device gpu
says err 1 '^sifr eval: --device gpu is not supported \(supported: auto, cpu, cuda\)$'

# --- score: of each token, alone and with the likeliest words ---
for i in 0 1 2 3 4; do echo "{\"prompt\": \"the food $i\", \"completion\": \" was good bad $i\"}"; done >chats.jsonl
score=(score --model model --data chats.jsonl --seq-length 32 --batch-size 2 --threads 1)
for precision in fp32:1e-4 bf16:5e-2; do
    type=${precision%:*}
    for top in 0 7; do
        expect 0 "$SIFR" "${score[@]}" --precision "$type" --top-k $top --output cpu-$top
        expect 0 gpu "${score[@]}" --precision "$type" --top-k $top --output gpu-$top
        quiet
        says out 1 "^gpu-$top: [0-9]+ tokens of 5 rows.* \($type, sm_90\)$"
        numbers cpu-$top logprobs >cpu
        numbers gpu-$top logprobs >on-gpu
        near cpu on-gpu "${precision#*:}"
    done
    numbers cpu-7 top_logprobs >cpu
    numbers gpu-7 top_logprobs >on-gpu
    near cpu on-gpu "${precision#*:}"
done

# The device of a run's config, where no flag gives another.
echo '{"sifr": {"device": "cpu"}}' >run.json
expect 0 gpu "${score[@]}" --config run.json --output by-config
says out 1 '\(fp32\)$'
expect 0 gpu "${score[@]}" --config run.json --device auto --output by-flag
says out 1 '\(fp32, sm_90\)$'

# --- labels: scores of a file, and answers ---
sed 's/LlamaForCausalLM/LlamaForSequenceClassification/; s/"pad_token_id"/"num_labels": 3, &/' \
    tiny.json >classes.json
"$SIFR" init --config classes.json --tokenizer tok --output classes --seed 4 >/dev/null
awk 'BEGIN { print "label\ttext"; for (i = 0; i < 9; i++) print "LABEL_" i % 3 "\tthe day " i " was red" }' >rows.tsv
rows=(eval --model classes --data rows.tsv --seq-length 24 --threads 1 --precision fp32 --json)
expect 0 "$SIFR" "${rows[@]}"
{ field loss && field accuracy; } >cpu
expect 0 gpu "${rows[@]}"
{ field loss && field accuracy; } >on-gpu
near cpu on-gpu 1e-5
answers() { tr -c '0-9.e\n-' '\n' <out | grep '\.'; }
classify=(classify --model classes --data rows.tsv --threads 1 --precision fp32 --json)
expect 0 "$SIFR" "${classify[@]}"
answers >cpu
expect 0 gpu "${classify[@]}" --device cuda
quiet
answers >on-gpu
near cpu on-gpu 1e-5

# --- no GPU: auto says so once and is the CPU, cuda ends ---
expect 0 "$SIFR" "${eval[@]}"
cp out by-cpu
export FAKE_GPU=devices=0
for command in eval score classify; do
    declare -n words=$command
    more=()
    [ $command != score ] || more=(--output none)
    expect 0 gpu "${words[@]}" "${more[@]}"
    says err 1 "^sifr $command: device auto: the CPU, which is many times slower than a GPU: NVIDIA's driver .*sees no GPU"
    says err 1 'CPU|GPU|warning'
    rm -f none
    expect 1 gpu "${words[@]}" "${more[@]}" --device cuda
    says err 1 "^sifr $command: device cuda: NVIDIA's driver .*sees no GPU"
    [ "$(wc -l <err)" = 1 ] || fail "more than a line: $(cat err)"
    [ ! -s out ] && [ ! -e none ] || fail "a result beside the error"
done
expect 0 gpu "${eval[@]}"
cmp out by-cpu || fail "auto is not the CPU"

# --- too little memory, a GPU that fails, memory that is not pinned, no cuBLASLt ---
refused() { # CODE PATTERN
    expect "$1" gpu "${eval[@]}"
    says err 1 "^sifr eval: $2"
    [ "$(wc -l <err)" = 1 ] || fail "more than a line: $(cat err)"
    [ ! -s out ] || fail "a result beside the error"
}
FAKE_GPU=memory=200000
refused 3 'memory: a rank takes [0-9.]+ [KM]iB of the GPU \(.*\), and [0-9.]+ KiB are free for it; nvidia-smi lists .*; try a smaller batch or seq-length$'
FAKE_GPU=context=2
refused 3 'memory: Fake GPU .*nvidia-smi'
FAKE_GPU=launches=9,error=719
refused 1 '.*CUDA_ERROR_LAUNCH_FAILED 719 .*start it again$'
unset FAKE_GPU
expect 0 gpu "${eval[@]}" --precision bf16
cp out pinned
FAKE_GPU=pinned=0 expect 0 gpu "${eval[@]}" --precision bf16
says err 1 '^sifr eval: warning: the system refused to pin [0-9.]+ [KM]iB of host memory: .* about twice as long'
cmp out pinned || fail "unpinned memory: another loss"
SIFR_TEST_NO_CUBLASLT=1 expect 0 gpu "${eval[@]}" --precision bf16
says err 1 '^sifr eval: warning: .*cuBLASLt'
