# What `sifr plan` says of names that it does not know, of a config of a model that is known by its
# name alone, of what else would fit, and of CPU ranks where GPUs may be meant.
# label: short
. "$SOURCE/tests/support/expect.sh"
eight=$SOURCE/examples/eight_cores.json
plan() { expect "$1" "$SIFR" plan "${@:2}"; }
says() { grep -qF -- "$1" out || { cat out >&2; fail "not printed: $1"; }; }
complains() { grep -qF -- "$1" err || { cat err >&2; fail "no message: $1"; }; }

plan 1 --model gemma-4-E2B-itt
complains 'gemma-4-E2B-itt: no such file or folder, and no released model that is known by name (the nearest is google/gemma-4-E2B-it); give a model'
plan 1 --model LiquidAI/LFM2-1.3B
complains '(the nearest is LiquidAI/LFM2-1.2B)'
plan 1 --model nowhere
complains 'nowhere: no such file or folder, and no released model that is known by name; give a model'
complains 'or a name that `sifr plan` lists'
for model in google/gemma-4-26B-A4B Qwen3.5-35B-A3B LFM2-8B-A1B; do
    plan 1 --model $model
    complains "$model: no such file or folder, and by its name it has experts, which are not supported"
done
plan 1 --model tiny-A-model
complains 'no released model'

# Without a folder the command needs one.
small="--bf16 --seq-length 64 --per-device-train-batch-size 1 --machine $eight --threads 2"
plan 0 --model lfm2-350m $small --host-memory 32GiB --fit --output fit.json
says 'sifr train --config fit.json --model FOLDER --data PATH --output fit-run'
says 'known by its name alone: give a run --model FOLDER, as `hf download LiquidAI/LFM2-350M --local-dir FOLDER` fetches it'
mkdir folder
echo '{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 400,
 "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4}' >folder/config.json
plan 0 --model folder $small --host-memory 32GiB --fit --output fit.json
says 'sifr train --config fit.json --data PATH --output fit-run'
! grep -q FOLDER out || fail "a folder that is there is asked for"

# Nothing fits: what else there is, less what is given.
mkdir large
sed 's/"vocab_size": 400/"vocab_size": 64000/; s/"hidden_size": 64/"hidden_size": 512/' folder/config.json >large/config.json
wide="--model large $small --host-memory 24MiB --fit --output none.json"
plan 3 $wide
complains 'or more memory per rank, or a disk (--nvme), or train adapters (LoRA, QLoRA: docs/lora.md, docs/qlora.md)'
lora='{"r": 4, "target_modules": "all-linear"}'
plan 3 $wide --nvme 1GiB --lora "$lora"
complains 'or more memory per rank, or hold frozen weights in 4 bits (QLoRA: docs/qlora.md)'
plan 3 $wide --nvme 1GiB --lora "$lora" --quantization '{"load_in_4bit": true, "bnb_4bit_quant_type": "nf4"}'
grep -q 'or more memory per rank$' err || fail "$(cat err)"

# A module that is none: the name beside it is one that may be given.
plan 2 --model folder $small --lora '{"target_modules": ["w_q"]}'
complains 'no module of the model has such a name; names look like model.layers.0.self_attn.q_proj'

# Ranks on the CPU, where no GPU is here.
if ! "$SIFR" doctor 2>&1 | grep -q 'compute capability'; then
    plan 0 --model folder --seq-length 64 --world-size 2 --device-memory 24GiB
    complains '--device-memory: a plan of ranks on the CPU'
    plan 0 --model folder --seq-length 64 --world-size 2 --device-memory 24GiB --device cpu
    ! grep -q 'a plan of ranks on the CPU' err || fail "said where the CPU is asked for"
    plan 0 --model folder --seq-length 64 --world-size 2 --host-memory 24GiB
    ! grep -q 'a plan of ranks on the CPU' err || fail "said without --device-memory"
fi
