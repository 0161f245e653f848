# label: short
# `sifr quickstart`: the config that it writes runs, for every kind of data; what does not fit goes
# to a disk; questions on a terminal (a pseudo-terminal of Python's), none without one; what is
# refused.
# timeout: 120
. "$SOURCE/tests/support/expect.sh"
. "$SOURCE/tests/support/chats.sh"
sifr() { "$SIFR" "$@"; }
says() { grep -qF -- "$1" out || { cat out err; fail "not said: $1"; }; }
complains() { [ "$(wc -l <err)" = 1 ] && grep -qF -- "$1" err || { cat err; fail "no one line with: $1"; }; }
holds() { grep -qF -- "$2" "$1" || { cat "$1"; fail "$1 does not hold: $2"; }; }

chat_model model qwen2 Qwen2ForCausalLM true
for ((i = 0; i < 200; i++)); do echo "the quick brown fox jumps over dog number $i"; done >text.txt
expect 0 sifr tokenize --tokenizer tok --data text.txt --output store
awk 'BEGIN {
    split("red blue green", colour, " ")
    for (i = 0; i < 32; i++)
        printf "{\"prompt\": \"Say %d\", \"chosen\": \"%s\", \"rejected\": \"no\"}\n", i, colour[i % 3 + 1]
}' >pairs.jsonl
awk 'BEGIN { print "text,label"; for (i = 0; i < 30; i++) print "it was " i % 3 "," i % 3 }' >labels.csv
awk 'BEGIN { for (i = 0; i < 20; i++) print "Ada PER\nwrites O\n" }' >words.conll
cat >encoder.json <<'J'
{"model_type": "bert", "architectures": ["BertForMaskedLM"], "vocab_size": 400, "hidden_size": 64,
 "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
 "max_position_embeddings": 512, "pad_token_id": 0}
J
expect 0 sifr init --config encoder.json --tokenizer tok --output encoder

# --- without a terminal nothing is asked, and the config runs: what is learned is found ---
start() { # NAME MODEL DATA KIND OPTION…
    local config=$1.json model=$2 data=$3 kind=$4
    shift 4
    expect 0 sifr quickstart --model "$model" --data "$data" --output "$config" "$@" </dev/null
    says "learns       $kind, sequences of "
    says "sifr train --config $config"
}
runs() { # NAME OPTION…
    local name=$1
    shift
    expect 0 sifr train --config "$name.json" --max-steps 2 "$@"
    [ -s "$name-run/model.safetensors" ] || [ -s "$name-run/adapter_model.safetensors" ] ||
        fail "$name: nothing trained"
}
start text model text.txt text && runs text
start store model store text && runs store
start pairs model pairs.jsonl preferences && runs pairs
start labels model labels.csv labels && runs labels
start encoder encoder labels.csv labels && runs encoder
holds labels.json '"seq_length": 64'
start tags encoder words.conll tags && runs tags
holds tags.json '"seq_length": 64'
start rows model chats.jsonl rows --ranks 2
says 'sifr train --config rows.json --ranks 2'
[ ! -s err ] || fail "standard error: $(cat err)"
runs rows --ranks 2
holds rows.json '"seq_length": 64'
holds rows.json '// tokens of a sequence; the longest row has 25'
start lora model chats.jsonl rows --train lora --yes && runs lora
holds lora.json '"target_modules":"all-linear"'
# Each key has a comment but those inside a section that has one, and no line is too long.
[ "$(awk 'length($0) > 100' rows.json | wc -l)" = 0 ] || fail "a line of more than 100 columns"
[ "$(grep -c '^ *// ' rows.json)" -gt 15 ] || fail "few comments: $(cat rows.json)"
# It is read as it was planned: no key means what another run would do.
expect 0 sifr plan --config rows.json --world-size 2 --json
grep -q '"fits": true' out || fail "the plan of the config: $(cat out)"
# What was there may have been edited.
cp rows.json first
start rows model chats.jsonl rows
says 'rows.json was there: it is kept as rows.json.old'
says 'result       in rows-run-2' # as the first has trained into rows-run
cp rows.json second
echo edited >>rows.json
start rows model chats.jsonl rows
says 'rows.json was there: it is kept as rows.json.old-2'
cmp first rows.json.old && sed '$d' rows.json.old-2 | cmp - second || fail "an earlier config is lost"
holds rows.json '"output": "rows-run-2"'

# What a folder or a file lacks is an option, as of `sifr train`; a warning comes once.
cp -r model bare && rm bare/chat_template.jinja
expect 2 sifr quickstart --model bare --data chats.jsonl --output named.json </dev/null
complains 'or give --chat-template: a file, or a name (chatml, llama3, ...)'
start named bare chats.jsonl rows --chat-template chatml && runs named
grep -q im_start named-run/chat_template.jinja || fail "no template: $(ls named-run)"
awk 'BEGIN { for (i = 0; i < 20; i++) printf "{\"ask\": \"Say %d\", \"reply\": \"%d\", \"instruction\": \"no\"}\n", i, i }' >renamed.jsonl
expect 1 sifr quickstart --model model --data renamed.jsonl --output renamed.json </dev/null
complains '--data-fields'
start renamed model renamed.jsonl rows --data-fields prompt=ask completion=reply \
    --ignore-fields instruction && runs renamed
holds renamed.json '"data_fields": ['
sed 's/text,label/said,mood/' labels.csv >other.csv
start columns model other.csv labels --text-column said --label-column mood && runs columns
start one model chats.jsonl rows --seq-length 4096 --num-train-epochs 0.17
says ' for 1 step'
! grep -q ' 1 steps' out one.json || fail "not one: $(cat out)"
[ "$(grep -c 'seq_length 4096 is more than the 2048 tokens' err)" = 1 ] || fail "said twice: $(cat err)"

# --- a model that does not fit in memory: its state goes to a disk, in a folder that is made ---
sed 's/"hidden_size": 64/"hidden_size": 256/; s/"intermediate_size": 160/"intermediate_size": 640/
     s/"num_hidden_layers": 2/"num_hidden_layers": 6/' tiny.json >large.json
expect 0 sifr init --config large.json --tokenizer tok --output large
start disk large text.txt text --seq-length 16 --host-memory 48MiB
holds disk.json '"nvme_path": "disk-offload"'
says ' on disk; predicted '
runs disk
# A default hangs on another key here: overlap_comm is on at stage 3, where the plan says no.
for memory in 22GiB 24GiB; do
    rm -rf stage3*
    start stage3 model chats.jsonl rows --ranks 1000 --host-memory $memory
    ! grep -q '"stage": 3' stage3.json || grep -q '"overlap_comm": ' stage3.json ||
        fail "the config says less than the plan: $(cat stage3.json)"
done
rm -rf none-offload
expect 3 sifr quickstart --model large --data text.txt --host-memory 6MiB --output none.json </dev/null
complains 'nothing fits: a rank may take '
complains 'or train adapters alone with --train lora'
[ ! -e none.json ] && [ ! -e none-offload ] || fail "something is left of a plan that does not fit"

# --- on a terminal: a question for each option that is not given ---
cat >ask.py <<'P'
import os, pty, sys
answers, command = sys.argv[1].split("|"), sys.argv[2:]
pid, terminal = pty.fork()
if pid == 0:
    os.execv(command[0], command)
seen = ""
while True:
    try:
        piece = os.read(terminal, 4096)
    except OSError:  # its end, on Linux
        break
    if not piece:
        break
    seen += piece.decode()
    if seen.endswith(": ") and answers:
        os.write(terminal, (answers.pop(0) + "\n").encode())
    elif seen.endswith(": "):
        os.write(terminal, b"\x04")
print(seen)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
P
expect 0 python3 ask.py '|nowhere|model|nothing|chats.jsonl||lora|one|0|1|1GiB|asked.json' \
    "$SIFR" quickstart
says 'This has no default: give one, or Ctrl-C to end.'
says 'nowhere: no such file or folder'
says 'nothing: '
[ "$(grep -c 'Model folder: ' out)" = 3 ] || fail "the model is asked again for the data: $(cat out)"
says 'ranks: '
says 'give 1 or more'
says 'What is learned: text, rows, preferences, labels or tags [rows]: '
says 'What is trained: all weights, or adapters beside them (all, lora) [all]: '
holds asked.json '"output": "asked-run"'
holds asked.json '"lora": {'
expect 0 python3 ask.py '||||' "$SIFR" quickstart --model model --data chats.jsonl --output few.json
[ "$(grep -c 'Model folder' out)" = 0 ] || fail "what is given is asked"
runs few
# What cannot be used is asked again at once, and what was given is looked at before any question.
expect 0 python3 ask.py '|0|lora|||model|text.txt|model/config.json|again.json' \
    "$SIFR" quickstart --model model --data text.txt
[ "$(grep -c 'What is trained' out)" = 2 ] || fail "asked once: $(cat out)"
grep -A1 'What is trained' out | grep -qF -- '--train 0: give all or lora' || fail "later: $(cat out)"
[ "$(grep -c 'Config to write' out)" = 4 ] || fail "asked other than four times: $(cat out)"
says '--output model: a folder; name a file'
says '--output text.txt: a file of the data to learn from; give another'
says '--output model/config.json: a file of the model; give another'
holds again.json '"lora": {'
for option in '--run rows-run' '--learn x' '--train x' '--output model' '--learning-rate x'; do
    expect 2 python3 ask.py 'model' "$SIFR" quickstart $option
    [ "$(grep -c 'Model folder' out)" = 0 ] || fail "$option: asked before it is refused"
done
expect 2 python3 ask.py 'model' "$SIFR" quickstart
says 'the answers ended before the questions; nothing was written'

# --- refused: one line with the remedy ---
refused() { # CODE MESSAGE OPTION…
    local code=$1 message=$2
    shift 2
    expect "$code" sifr quickstart --output bad.json "$@" </dev/null
    complains "$message"
    [ ! -e bad.json ] || fail "a config in spite of: $message"
}
refused 2 '--model DIR: a model folder is needed; questions are asked on a terminal alone' --data text.txt
refused 2 '--data PATH is needed' --model model
refused 2 '--learn songs: give auto, text, rows' --model model --data text.txt --learn songs
refused 2 '--train some: give all or lora' --model model --data text.txt --train some
refused 2 '--learn preferences: the rows have no rejected answer' --model model --data chats.jsonl --learn preferences
refused 2 '--learn rows: the rows have a chosen and a rejected answer' --model model --data pairs.jsonl --learn rows
for option in --seq-length --ranks --ranks-per-host --host-memory --device-memory; do
    refused 2 "$option 0: give 1 or more, or leave it out for the default" --model model --data text.txt $option 0
done
refused 2 '--learning-rate 0: nothing would be learned' --model model --data text.txt --learning-rate 0
refused 2 '--num-train-epochs 1e9: give at most 100000' --model model --data text.txt --num-train-epochs 1e9
expect 2 sifr quickstart --model model --data text.txt --num-train-epochs -1 </dev/null
complains 'must be a number > 0 or "auto", not -1'
! grep -q 'its default is' err || fail "the config's default is another: $(cat err)"
# A folder for the run that `sifr train` would refuse.
mkdir -p full empty locked
touch full/mine file
refused 2 '--run full: holds files, perhaps a run; give a new or empty folder' --model model --data text.txt --run full
refused 2 '--run rows-run: holds files, perhaps a run' --model model --data text.txt --run rows-run
refused 2 '--run file: not a folder' --model model --data text.txt --run file
refused 1 '--run file/run: cannot look into it: Not a directory' --model model --data text.txt --run file/run
refused 2 '--run model/.: the model folder itself' --model model --data text.txt --run model/.
refused 2 "--run is empty: name the run's folder" --model model --data text.txt --run ''
chmod 500 locked
[ -w locked ] || refused 2 '--run locked/run: cannot be made in locked' --model model --data text.txt --run locked/run
ln -s nothing dangling
refused 2 '--run dangling: a link to what is not there' --model model --data text.txt --run dangling
refused 2 '--run dangling/run: cannot be made in dangling' --model model --data text.txt --run dangling/run
refused 2 "--run $(printf 'b\377-run'): not UTF-8" --model model --data text.txt --run "$(printf 'b\377-run')"
refused 2 "--output $(printf 'b\377'): not UTF-8" --model model --data text.txt --output "$(printf 'b\377')"
for run in chk.json ./chk.json/ empty/../chk.json chk.json/run; do
    refused 2 "--run $run: in the way of the config, chk.json" --model model --data text.txt --output chk.json --run $run
done
refused 2 '--run empty: in the way of the config, empty/q.json' --model model --data text.txt --output empty/q.json --run empty
[ ! -e chk.json ] && [ ! -e empty/q.json ] || fail "a config in the run's place"
# What the run reads is not replaced, by whatever path; nor is it put aside.
cp -r model kept
mkdir texts && cp text.txt texts && ln -s texts/text.txt link.txt && ln model/config.json hard.json
echo '{}' >machine.json
find model text.txt texts link.txt hard.json -type f | sort | xargs cksum >before
for file in text.txt ./model/../text.txt "$PWD/text.txt"; do
    refused 2 "--output $file: a file of the data to learn from" --model model --data text.txt --output "$file"
done
for data in texts 'tex*/*.txt' ./link.txt; do
    refused 2 '--output link.txt: a file of the data' --model model --data "$data" --output link.txt
done
for file in model/config.json ./texts/../model/tokenizer.json hard.json; do
    refused 2 "--output $file: a file of the model" --model model --data text.txt --output $file
done
refused 2 '--output texts: a folder; name a file' --model model --data text.txt --output texts
refused 2 '--output machine.json: the file of --machine' --model model --data text.txt --machine machine.json --output machine.json
refused 2 '--output is empty: name the config to write' --model model --data text.txt --output ''
refused 2 '--output no/where.json: no is no folder that can be written' --model model --data text.txt --output no/where.json
find model text.txt texts link.txt hard.json -type f | sort | xargs cksum | cmp - before || fail "something is replaced"
[ -z "$(find . -name 'text.txt.old' -o -name 'config.json.old')" ] || fail "something is put aside"
# A config that was made before may lie beside the model and the data.
start model/beside model text.txt text && start model/beside model text.txt text
rm model/beside*
start empty model text.txt text --run empty
start below model text.txt text --run new/below/run
# What a terminal would act on is shown, and not sent: in lines, in the command, in messages.
odd=$(printf 'o\033]0;owned\007\ndd')
cp text.txt "$odd.txt"
expect 0 sifr quickstart --model model --data "$odd.txt" --output "$odd.json" </dev/null
says 'data         o\x1b]0;owned\x07\x0add.txt, '
says 'sifr train --config "$(printf '\''o\033]0;owned\007\012dd.json'\'')"'
! LC_ALL=C grep -q $'\033\|\007' out "$odd.json" || fail "a sequence is sent: $(cat -v out)"
eval "$(grep -o 'sifr train --config .*' out) --max-steps 2" >log 2>&1 || fail "the command: $(cat log)"
echo "printf %s $(grep -o '"$(printf.*' out)" >shown.sh
[ "$(sh shown.sh)" = "$odd.json" ] || fail "the command in sh: $(cat -v shown.sh)"
refused 1 'no [2Jwhere: no such file or folder' --model "$(printf 'no\033[2Jwhere')" --data text.txt
echo '{"foo": 1}' >odd.jsonl
refused 1 'odd.jsonl: row 1, line 1: no known form: its fields are foo' --model model --data odd.jsonl
refused 1 'nowhere: no such file or folder' --model nowhere --data text.txt
echo a >short.txt
refused 1 'too few' --model model --data short.txt
refused 2 '--ranks: 1000000000 is not in 1 to 4096' --model model --data text.txt --ranks 1000000000
refused 1 'or --max-steps; a step has a sequence of each rank, so fewer --ranks help too' \
    --model model --data text.txt --ranks 4096
