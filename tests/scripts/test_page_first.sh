# label: short
# The first pages, each in a folder of its own, with a model of two small layers.
# timeout: 300
. "$SOURCE/tests/support/page.sh"
. "$SOURCE/tests/support/chats.sh"
chat_model Qwen2.5-0.5B-Instruct qwen2 Qwen2ForCausalLM true
first() { # NAME
    mkdir "$1"
    cp -r Qwen2.5-0.5B-Instruct chats.jsonl "$1"
    cd "$1" || exit 1
    page "$1"
    cd .. || exit 1
}
first quickstart
first fine-tune-on-a-cpu
first does-it-fit
first resume-on-other-gpus

# What the last page says stays the same stays so without a word.
cd resume-on-other-gpus
rm -r tuned
"$SIFR" train --config ds.json --ranks 2 >log 2>&1
rm -r tuned/checkpoint-6
echo checkpoint-3 >tuned/latest
"$SIFR" train --config ds.json --resume >log 2>&1
! grep warning log || fail "the resume of the page is another run: $(grep warning log)"
