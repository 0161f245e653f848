# label: full
# Ranks that were not given the same: a rank with another config, model, data, program or kernels is
# found at the start and named with what differs, by one line, before anything is written.
# not under sanitizers (MPI keeps what it took), timeout: 300
. "$SOURCE/tests/support/ranks.sh"
tiny_model
sed 's/"lr": 3e-3/"lr": 2e-3/' ds.json >other.json
cp -r model model2
size=$(stat -c %s model2/model.safetensors)
printf '\1\2\3' | dd of=model2/model.safetensors bs=1 seek=$((size - 9)) conv=notrunc 2>/dev/null
sed 's/\<cat\>/dog/' text >text2
cp "$SIFR" sifr2
printf x >>sifr2

# ranks WORD…: three ranks, the second with WORD… in place of the command
train() { echo "$1 train --config $2 --model $3 --data $4 --output run --threads ${5:-1}"; }
usual=$(train "$SIFR" ds.json model text)
ranks() {
    code=0
    rm -rf run
    timeout 120 $launcher -n 1 $usual : -n 1 "$@" : -n 1 $usual >out 2>err || code=$?
}
differs() { # WHAT TEXT COMMAND…
    local what=$1 text=$2
    shift 2
    ranks "$@"
    [ "$code" = 2 ] || fail "$what: exit code $code"
    [ "$(grep -c '^sifr train: ' err)" = 1 ] || fail "$what: not said once"
    grep -q "^sifr train: $what: differs on rank 1 from the other ranks (of 3)" err ||
        fail "$what is not named, or not the rank"
    grep -qF "$text" err || fail "$what: no '$text'"
    [ ! -e run/metrics.csv ] && [ ! -e run/model.safetensors ] || fail "$what: output was begun"
}
differs config 'on rank 1 optimizer.params.lr is 0.002' $(train "$SIFR" other.json model text)
differs model 'on rank 1 values (hash) is' $(train "$SIFR" ds.json model2 text)
differs data 'on rank 1 tokens (hash) is' $(train "$SIFR" ds.json model text2)
differs program 'on rank 1 build is' $(train ./sifr2 ds.json model text)
differs machine 'on rank 1 kernels is' env ONEDNN_MAX_CPU_ISA=SSE41 $usual

# Labels of a new head that the data name: the shape of the model follows from them.
printf 'text,label\ncat,1\ndog,0\n' >a.csv
printf 'text,label\ncat,1\ndog,0\nmat,2\n' >b.csv
cp -r model padded
sed -i 's/"model_type"/"pad_token_id": 0, "model_type"/' padded/config.json
sed 's/"sifr": {/"sifr": {"task": "sequence_classification", /' ds.json >labels.json
text=$usual
usual=$(train "$SIFR" labels.json padded a.csv)
differs model 'on rank 1 labels (hash) is' $(train "$SIFR" labels.json padded b.csv)
usual=$text

# The number of threads may differ.
ranks $(train "$SIFR" ds.json model text 2)
[ "$code" = 0 ] || fail "other threads: exit code $code"

# What a rank cannot read is its own failure, and ends all.
ranks $(train "$SIFR" absent.json model text)
[ "$code" = 1 ] || [ "$mpich" ] && [ "$code" != 0 ] || fail "a config that is not there: exit code $code"
grep -q '^sifr train: rank 1: absent.json: ' err || fail "the rank is not named"
