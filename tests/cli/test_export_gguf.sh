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
# A lone tokenizer.model is as sentencepiece has it, which llama.cpp does, unless
# tokenizer_config.json asks for a class of transformers, which merges by the order of ids: the
# refusal names the way out.
mkdir lone
python3 - lone/tokenizer.model <<'P'
import struct, sys
def field(number, data):
    return bytes([number << 3 | 2, len(data)]) + data
pieces = [("<unk>", 0, 2), ("<s>", 0, 3), ("</s>", 0, 3)]
pieces += [(f"<0x{b:02X}>", 0, 6) for b in range(256)]
pieces += [("▁▁", -1e9, 1), ("▁t", -1, 1), ("▁b", -2, 1)]
pieces += [(c, -10 - i, 1) for i, c in enumerate("▁abcdefghijklmnopqrstuvwxyz")]
out = b""
for text, score, kind in pieces:
    piece = field(1, text.encode()) + b"\x15" + struct.pack("<f", score) + bytes([0x18, kind])
    out += field(1, piece)
out += field(2, b"\x18\x02\x98\x02\x01") + field(3, field(1, b"identity") + b"\x18\x01\x20\x00\x28\x01")
open(sys.argv[1], "wb").write(out)
P
echo '{"tokenizer_class": "LlamaTokenizer"}' >lone/tokenizer_config.json
cat >lone.json <<'J'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 289, "hidden_size": 32,
 "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2, "bos_token_id": 1,
 "eos_token_id": 2, "max_position_embeddings": 64, "tie_word_embeddings": false}
J
expect 0 "$SIFR" init --config lone.json --tokenizer lone --output class
expect 2 "$SIFR" export class class.gguf --format gguf
complains 'cannot carry this tokenizer, but what sentencepiece gives: without "tokenizer_class" in'
rm class/tokenizer_config.json
expect 0 "$SIFR" export class class.gguf --format gguf
