# `sifr import`: the written config is what sifr train takes, standard error says where keys went,
# what would be another training is refused and nothing is written, the pickle too; docs/import.md's
# commands run.
. "$SOURCE/tests/support/expect.sh"
says() { grep -qE -- "$1" out err || { cat out err >&2; fail "no line like: $1"; }; }
run() { code=0; "$SIFR" "$@" >out 2>err || code=$?; }

cat >axolotl.yaml <<Y
base_model: model
micro_batch_size: 2
num_epochs: 1
learning_rate: 1e-3
sequence_len: 32
warmup_ratio: 0.25
cosine_min_lr_ratio: 0.1
bf16: auto
saves_per_epoch: 1
Y
run import --config axolotl.yaml ds.json
[ "$code" = 0 ] || fail "exit code $code: $(cat err)"
[ ! -s out ] || fail "standard output: $(cat out)"
says '^micro_batch_size = 2: sifr.per_device_train_batch_size$'
says '^saves_per_epoch = 1: not taken over: give a number of steps$'
says '^sifr import: axolotl.yaml, read as an axolotl config: 1 key not taken over$'
run import --config axolotl.yaml
cmp out ds.json || fail "standard output is another config"

# The run: a schedule that ends at a tenth, after a warm-up of a quarter of the steps.
head -c 4000 "$SOURCE/docs/config.md" >books.txt
"$SIFR" tokenizer train --vocab-size 270 --data books.txt --output tok >log
cat >model.json <<J
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 270,
 "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
 "num_key_value_heads": 2, "max_position_embeddings": 64, "tie_word_embeddings": false}
J
"$SIFR" init --config model.json --tokenizer tok --output model --seed 1 >log
run train --config ds.json --data books.txt --output out-8 --max-steps 8 --threads 1
[ "$code" = 0 ] || fail "exit code $code: $(cat err)"
says 'warm-up: the first step has learning rate 0, as in the Hugging Face Trainer'
grep -q '"num_warmup_steps": 2.0' out-8/*.json || fail "no warm-up of 2 steps"

# Rows of text that run_clm.py joins: sequences, of which an epoch's last batch is a step.
for i in $(seq 20); do printf '{"text": "row number %s of some words"}\n' "$i"; done >texts.jsonl
printf '{"model_name_or_path": "model", "train_file": "texts.jsonl", "block_size": 32,
 "per_device_train_batch_size": 4, "num_train_epochs": 1, "validation_split_percentage": 0}' >clm.json
run import --config clm.json clm.ds.json
[ "$code" = 0 ] || fail "run_clm: exit code $code: $(cat err)"
run train --config clm.ds.json --output out-clm --threads 1
[ "$code" = 0 ] || fail "joined texts: exit code $code: $(cat err)"
says '^data: joined 20 texts into [0-9]+ sequences of 32 tokens; [0-9]+ tokens that fill none are left out$'
says '^data: an epoch of [0-9]+ sequences is [0-9]+ steps, the last one with [123] of 4$'
run train --config clm.ds.json --output out-none --packing
says '^sifr train: packing: sequences of joined texts are full; leave it out, or join_texts$'
run train --config clm.ds.json --output out-none --data books.txt
says '^sifr train: join_texts: books.txt is text or a token store, which has no rows; leave it out$'

# LLaMA-Factory's template beside the model folder's own, and its tokens in the tokenizer.
factory() { printf 'model_name_or_path: %s\nfinetuning_type: full\nlearning_rate: 1.0e-4\ntemplate: %s\n' \
    "$2" "$1" >factory.yaml; run import --config factory.yaml --overwrite factory.json "${@:3}"; }
factory empty model
[ "$code" = 0 ] && grep -q '"chat_template": "{% if' factory.json || fail "no template: $(cat err)"
says '^template = "empty": sifr.chat_template, the text of LLaMA-Factory 0.9.5$'
printf '{%% for m in messages %%}{{ m.content }}{%% endfor %%}' >model/chat_template.jinja
factory empty model
[ "$code" = 0 ] && ! grep -q chat_template factory.json || fail "its own stays: $(cat err)"
says "^template: the model folder's own chat template writes the same, and stays$"
printf '{%% for m in messages %%}{{ m.content | trim }}{%% endfor %%}' >model/chat_template.jinja
factory empty model
[ "$code" = 0 ] && grep -q chat_template factory.json || fail "another one: $(cat err)"
rm model/chat_template.jinja factory.json
factory qwen model
[ "$code" = 2 ] && [ ! -e factory.json ] || fail "a token is missing: exit code $code"
says 'sifr import: template: the tokenizer of model has no token <\|im_end\|>, which LLaMA-Factory adds'
factory qwen model --allow template
[ "$code" = 0 ] && grep -q im_start factory.json || fail "allowed: $(cat err)"
factory qwen someone/Qwen
says '^template: someone/Qwen is no folder here, so its tokens and its own chat template are not'

# Names of axolotl's templates: those that are here, and the others.
named() { printf 'base_model: model\nlearning_rate: 1.0e-4\nchat_template: %s\n' "$1" >named.yaml
    run import --config named.yaml --overwrite named.json "${@:2}"; }
for name in chatml tokenizer_default tokenizer_default_fallback_chatml; do
    named $name
    [ "$code" = 0 ] || fail "$name: $(cat err)"
done
rm named.json
for name in qwen3 qwen_25 tokenizer_default_fallbak_chatml; do
    named $name
    [ "$code" = 2 ] && [ ! -e named.json ] || fail "$name: exit code $code"
done
named qwen3
says '^sifr import: chat_template qwen3: axolotl.s template of this name is not here .*; or pass --allow chat_template to keep'
named qwen3 --allow chat_template
[ "$code" = 0 ] && ! grep -q qwen3 named.json || fail "allowed: $(cat err)"
says '^chat_template = "qwen3": left out, since it is allowed: '

# The file to write stands before --allow, whose words are keys.
run import --config named.yaml --allow chat_template swallowed.json
[ "$code" = 2 ] && [ ! -s out ] || fail "a swallowed path: exit code $code"
says '^sifr import: --allow swallowed.json: there is no such key; all words .* OUT stands before it$'

echo 'adapter: ia3' >>axolotl.yaml
run import --config axolotl.yaml other.json
[ "$code" = 2 ] || fail "LoRA: exit code $code"
says '^sifr import: axolotl.yaml: adapter is "ia3": lora and qlora are the only adapters supported yet; take the key out'
[ ! -e other.json ] || fail "a refused config is written"

# Written, and not yet complete for sifr train.
printf 'output_dir: o\nlr_scheduler_type: greedy\n' >args.yaml
run import --config args.yaml --overwrite other.json
[ "$code" = 2 ] || fail "greedy: exit code $code"
says '^sifr import: other.json: sifr.lr_scheduler_type is "greedy", which is not supported yet'
[ -s other.json ] || fail "nothing is written"

# Adapters that sifr train refuses: no rank, none beside weights in 4 bits, no product left.
refused_adapter() { # MESSAGE KEYS
    printf "model_name_or_path: model\ndataset_name: a.jsonl\nmax_length: 8\n$2\n" >adapter.yaml
    run import --config adapter.yaml --overwrite adapter.json
    [ "$code" = 2 ] || fail "$2: exit code $code"
    says "^sifr import: sifr\.$1"
}
refused_adapter 'lora: r 0 must be from 1' 'use_peft: true\nlora_r: 0'
refused_adapter 'quantization: weights in 4 bits are not trained' 'load_in_4bit: true'
refused_adapter 'lora: exclude_modules has all names of target_modules' \
    'use_peft: true\nlora_target_modules: [q_proj, v_proj]\nlora_exclude_modules: [v_proj, q_proj]'

printf 'PK\003\004' >training_args.bin
run import --config training_args.bin
[ "$code" = 2 ] || fail "pickle: exit code $code"
says '^sifr import: training_args.bin: is a pickle, which sifr does not run; make it JSON'
# What is there is left, unless it is what would be written, or empty.
keeps() { # FILE CONFIG MESSAGE
    cp "$1" kept
    run import --config "$2" "$1"
    [ "$code" = 2 ] || fail "$1: exit code $code"
    says "^sifr import: $1: $3"
    cmp "$1" kept || fail "$1 was replaced"
}
ln factory.yaml link.json
for file in factory.yaml ./factory.yaml link.json; do
    keeps $file factory.yaml 'it is the file of --config; name another for OUT$'
done
for file in model.json clm.json texts.jsonl tok/tokenizer.json ds.json; do
    keeps $file factory.yaml 'the file exists and is not the config made; name another for OUT, or give --overwrite$'
done
keeps ds.json ds.json 'it is the file of --config'
: >empty.json
run import --config factory.yaml empty.json
[ -s empty.json ] || fail "an empty file is not written"
printf 'deepspeed_config:\n  zero_stage: 2\ndistributed_type: DEEPSPEED\n' >accelerate.yaml
for time in once again; do
    run import --config accelerate.yaml accelerate.json
    [ "$code" = 0 ] || fail "$time: exit code $code"
done
sed -i 's/zero_stage: 2/zero_stage: 3/' accelerate.yaml
keeps accelerate.json accelerate.yaml 'the file exists and is not the config made'
run import --config accelerate.yaml accelerate.json --overwrite
[ "$code" = 0 ] && ! cmp -s accelerate.json kept || fail "--overwrite: exit code $code"
run import --config accelerate.yaml ./accelerate.yaml --overwrite
[ "$code" = 2 ] && grep -q zero_stage accelerate.yaml || fail "--overwrite replaces what is read"


run import --config nowhere.yaml
[ "$code" = 1 ] || fail "no file: exit code $code"
run import --config args.yaml a b
says '^sifr import: one file is written, not 2'

# A checkpoint of DeepSpeed becomes a model that is read, whatever its stage.
golden=$SOURCE/tests/golden/deepspeed
for case in stage0 stage1 stage2 stage3 universal; do
    run import --checkpoint "$golden/$case" --model "$golden" "from-$case"
    [ "$code" = 0 ] || fail "$case: exit code $code: $(cat err)"
    says '^from-.*, fp32, from .*step 3\)$'
    says "the optimizer's moments are not taken over"
    grep -q '"float32"' "from-$case/config.json" || fail "$case: another type in config.json"
    run inspect "from-$case"
    [ "$code" = 0 ] || fail "$case: $(cat err)"
done
mkdir trainer
cp -r "$golden/stage2/." "$golden/config.json" trainer/
run import --checkpoint trainer/global_step3 --model trainer from-tag
[ "$code" = 0 ] || fail "the folder of a tag: $(cat err)"
run import --checkpoint trainer from-trainer
[ "$code" = 0 ] || fail "config.json beside the checkpoint: $(cat err)"
cmp from-trainer/model.safetensors from-stage2/model.safetensors || fail "other weights"
run import --checkpoint trainer from-trainer
[ "$code" = 2 ] || fail "an existing folder: exit code $code"
says 'from-trainer: not empty, and nothing is overwritten'
refuses() { # CODE MESSAGE ARGUMENT…
    local wanted=$1 message=$2
    shift 2
    run import "$@"
    [ "$code" = "$wanted" ] || fail "exit code $code, not $wanted: $(cat err)"
    [ "$(wc -l <err)" = 1 ] || fail "not one line: $(cat err)"
    says "$message"
    [ ! -e new ] || fail "a refused import left something"
    [ -z "$(find . -maxdepth 1 -name 'new.tmp*')" ] || fail "a temporary folder is left"
}
refuses 2 'no config.json there; give the folder .*--model' --checkpoint "$golden/stage1" new
refuses 2 'one of --config FILE and --checkpoint DIR is needed'
refuses 2 'checkpoint writes one folder' --checkpoint trainer
refuses 2 'no checkpoint of DeepSpeed' --checkpoint model new
rm trainer/global_step3/zero_pp_rank_1_mp_rank_00_optim_states.pt
refuses 1 'saved by 3 ranks, but there are the files of 2' --checkpoint trainer new
mkdir dcp
: >dcp/.metadata
refuses 2 'DCP: .* not supported; convert it: python3 -m torch' --checkpoint dcp new
sed 's/"intermediate_size": 18/"intermediate_size": 20/' "$golden/config.json" >dcp/config.json
refuses 1 'the weights of the checkpoint with config.json of dcp: ' --checkpoint "$golden/stage3" \
    --model dcp new
