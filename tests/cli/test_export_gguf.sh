# `sifr export --format gguf`: the file, bad arguments, and a folder of pytorch_model.bin.
. "$SOURCE/tests/support/expect.sh"
llama=$SOURCE/tests/golden/gguf/Llama-3.2-tiny-Instruct
complains() {
    grep -qE -- "$1" err && [ "$(wc -l <err)" = 1 ] || { cat err; fail "no such line: $1"; }
}

expect 0 "$SIFR" export "$llama" a.gguf --format gguf --type q8_0
grep -qE '^a.gguf: [0-9,]+ parameters, [0-9.]+ KiB, from ' out || fail "$(cat out)"
[ "$(head -c 4 a.gguf)" = GGUF ] || fail "no GGUF file"
[ "$(ls)" = "$(printf 'a.gguf\nerr\nout')" ] || fail "more than the file: $(ls)"
expect 0 "$SIFR" export "$llama" b.gguf --format gguf
expect 0 "$SIFR" export "$llama" c.gguf --format gguf --type f16
cmp b.gguf c.gguf || fail "the default is f16"
cmp -s a.gguf b.gguf && fail "types make no difference"

expect 2 "$SIFR" export "$llama" a.gguf --format gguf
complains 'a.gguf: exists'
expect 2 "$SIFR" export "$llama" d.gguf --format gguf --type q4_0
complains '--type q4_0 is not supported \(supported: f32, f16, bf16, q8_0\)'
expect 2 "$SIFR" export "$llama" d --type f16
complains '--type f16 is for --format gguf'
expect 2 "$SIFR" export "$llama" d --format onnx
complains '--format onnx is not supported yet \(supported: hf, gguf, deepspeed-universal\)'
expect 1 "$SIFR" export nowhere d.gguf --format gguf
complains 'nowhere: no such file or folder'
expect 1 "$SIFR" export "$llama" nowhere/d.gguf --format gguf
complains 'nowhere/d.gguf'
# A folder without a tokenizer cannot become one file.
expect 2 "$SIFR" export "$SOURCE/tests/golden/torch/model" d.gguf --format gguf
complains 'has no tokenizer.json'
mkdir tuned
cp "$llama/config.json" tuned/config.json
: >tuned/adapter_model.safetensors
expect 2 "$SIFR" export tuned d.gguf --format gguf
complains 'tuned: an adapter, not a model; make a model folder of it first: sifr merge BASE tuned MERGED'
# What eval refuses, so does export: of these keys the converter knows nothing.
refused() { # KEY VALUE
    rm -rf strict
    cp -r "$llama" strict
    chmod -R u+w strict
    sed -i "s/\"$1\": [^,]*,//; 0,/{/s//{\"$1\": $2,/" strict/config.json
    expect 2 "$SIFR" eval --model strict --data "$SOURCE/README.md" --seq-length 8
    complains "$1"
    expect 2 "$SIFR" export strict d.gguf --format gguf
    complains "$1"
}
refused pretraining_tp 2
refused hidden_act '"relu"'
refused partial_rotary_factor 0.5
[ ! -e d.gguf ] && [ ! -e d ] || fail "something was left"

# What llama.cpp has otherwise for published models too is said, and the file is written.
expect 0 "$SIFR" export "$SOURCE/tests/golden/gguf/added" said.gguf --format gguf
for line in 'a text that begins with a blank gets other tokens' \
    'behind a special token this tokenizer puts no blank, llama.cpp one' \
    '--override-kv tokenizer.ggml.add_space_prefix=bool:false'; do
    grep -qF -- "$line" err || { cat err; fail "not said: $line"; }
done
cp -r "$SOURCE/tests/golden/gguf/mistral" window
chmod -R u+w window
sed -i 's/"sliding_window": null/"sliding_window": 16/' window/config.json
expect 0 "$SIFR" export window window.gguf --format gguf
grep -qF "\"sliding_window\" is 16; llama.cpp's llama has no window" err || { cat err; fail "window"; }
# tokenizer.json merges as the model learned: its order goes before the scores of tokenizer.model.
cp -r "$SOURCE/tests/golden/gguf/added" order
chmod -R u+w order
python3 - order/tokenizer.json <<'P'
import json, sys
t = json.load(open(sys.argv[1]))
t["model"]["merges"].reverse()
json.dump(t, open(sys.argv[1], "w"))
P
expect 0 "$SIFR" export order order.gguf --format gguf
grep -qF 'tokenizer.json merges in another order than tokenizer.model' err || { cat err; fail "order"; }
! cmp -s said.gguf order.gguf || fail "the order of merges makes no difference"
