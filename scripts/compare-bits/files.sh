# shellcheck shell=bash
# Topic of compare-bits.sh: the bytes of what is written: init, export of checkpoints, GGUF of each
# type and family, universal checkpoints and imports of them, token stores, tokenizers.
made_anew() { # MODEL TOKENIZER
    run "$sifr" init --config "$1.json" --tokenizer "$2" --output new --seed 11
    digest new
}
gguf() { # FOLDER TYPE
    says "$sifr" export "$1" model.gguf --format gguf --type "$2"
    [ ! -e model.gguf ] || digest model.gguf
}
exported() { # RUN OPTION…: BASE's checkpoint
    run "$sifr" export "$1/checkpoint-2" hf "${@:2}"
    digest hf
}
universal() { # RUN
    run "$sifr" export "$1/checkpoint-2" ds --format deepspeed-universal
    digest ds
    run "$sifr" import --checkpoint ds back
    digest back
}
from_deepspeed() { # CASE
    run "$sifr" import --checkpoint "$tree/tests/golden/deepspeed/$1" --model "$tree/tests/golden/deepspeed" back
    digest back
}
tokenized() { # OPTION…
    run "$sifr" tokenizer train --data text --output new "$@"
    digest new
    run "$sifr" tokenize --tokenizer new --data text --output ids
    digest ids.bin ids.idx
}
for each in untied:tok gpt2:tok bert:words deberta:words; do
    compare "init ${each%:*}" made_anew "${each%:*}" "${each#*:}"
done
for type in f32 f16 bf16 q8_0; do
    for model in untied gpt2; do compare "gguf, $model, $type" gguf $model $type; done
done
for folder in "$tree"/tests/golden/gguf/*/; do
    compare "gguf, $(basename "$folder")" gguf "$folder" f16
done
compare "gguf, Llama 3, q8_0" gguf "$tree/tests/golden/gguf/Llama-3.2-tiny-Instruct" q8_0
(
    cd "$work/made" || exit
    steps=2 ds '"bf16": {"enabled": true}, "zero_optimization": {"stage": 3},' '"ema": {"decay": 0.9},'
    make "$old" train --config ds.json --model tied --data store --output run3 --ranks 2 --threads 1
    steps=2 ds
    make "$old" train --config ds.json --model gpt2 --data store --output run0 --threads 1
    steps=2 ds '' '"lora": {"r": 4},'
    make "$old" train --config ds.json --model untied --data store --output runs-lora --threads 1
    rm ds.json # each run writes its own
)
for run in run3 run0; do compare "export, $run" exported $run; done
compare "export, adapters" exported runs-lora
compare "export, the average" exported run3 --ema
compare "universal checkpoint" universal run0
for case in stage0 stage1 stage2 stage3 universal; do compare "import of DeepSpeed's $case" from_deepspeed $case; done
compare "tokenizer" tokenized --vocab-size 320
