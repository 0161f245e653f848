# label: full
# GPUs of several hosts, which are network namespaces, each GPU played by a fake driver and NCCL by a
# fake, too: the bits of ranks of one host, also with copies of the state and pipeline stages across
# hosts; without NCCL, which is said once, through host memory; and an NCCL that fails on the way.
# not under sanitizers (MPI keeps what it took), timeout: 400
. "$SOURCE/tests/support/ranks.sh"
. "$SOURCE/tests/support/namespaces.sh"
program=$BUILD/tests/sifr_on_fake_gpu
case $(uname -m) in x86_64) ;; *) exit 77 ;; esac
hosts 4
awk 'BEGIN { for (i = 0; i < 200; i++) print "good bad food was were day the a very red big one two" }' >text
"$SIFR" tokenizer train --vocab-size 270 --data text --output tok >/dev/null 2>&1
cat >tiny.json <<'J'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 270,
 "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
 "num_key_value_heads": 1, "max_position_embeddings": 64, "tie_word_embeddings": true}
J
"$SIFR" init --config tiny.json --tokenizer tok --output model --seed 3 >/dev/null
config() { # STAGE [MORE KEYS]
    echo '{"train_batch_size": 4, '"${2:-}"' "bf16": {"enabled": true}, "zero_optimization": {"stage": '$1'},
           "sifr": {"collective_timeout": 60, "save_steps": 2}}' >ds.json
}
train() { # OUTPUT OPTION…
    local output=$1
    shift
    rm -rf "$output"
    timeout 120 ip netns exec h1 unshare --uts sh -c 'hostname h1; exec "$@"' h1 "$program" \
        train --config ds.json --model model --data text --seq-length 8 --max-steps 3 --threads 1 \
        --device cuda --output "$output" "$@" >out 2>err
}
bits() { cat "$1"/checkpoint-2/state-*.safetensors "$1"/model.safetensors | sha256sum; }
said() { [ "$(grep -cE -- "$2" err)" = "$1" ] || { cat out err; fail "not $1 lines with '$2'"; }; }
for ranks in 1 2; do # on a host
    for i in 1 2; do echo "h$i slots=$ranks"; done >hostfile
    for stage in 1 3; do
        [ "$ranks:$stage" != 2:1 ] || continue
        name="stage $stage on 2 hosts of $ranks"
        config $stage
        train one --ranks $((2 * ranks)) || { code=$?; cat out err; fail "$name: on one host: exit code $code"; }
        train linked --hostfile hostfile || { code=$?; cat out err; fail "$name: exit code $code"; }
        said 0 'host memory'
        cmp one/model.safetensors linked/model.safetensors || fail "$name: other bits"
        FAKE_GPU=nccl=0 train staged --hostfile hostfile || { code=$?; cat out err; fail "$name: exit code $code"; }
        said 1 'GPUs of several hosts, without NCCL \(NCCL .* was not found\): .* goes through host memory'
        cmp one/model.safetensors staged/model.safetensors || fail "$name, staged: other bits"
    done
done
# Stages on hosts of their own send through host memory; copies of the state exchange by NCCL.
for i in 1 2; do echo "h$i slots=2"; done >hostfile
config 3 '"train_micro_batch_size_per_gpu": 1,'
train one --ranks 1 || { code=$?; cat out err; fail "one rank: exit code $code"; }
for mesh in '--pipeline-stages 2' '--shard-size 2'; do
    train meshed --hostfile hostfile $mesh || { code=$?; cat out err; fail "$mesh: exit code $code"; }
    said $([ "$mesh" = '--shard-size 2' ] && echo 0 || echo 1) 'goes through host memory, each byte twice'
    cmp one/model.safetensors meshed/model.safetensors || fail "$mesh: other bits"
done
# Two stages of two hosts each: what they gather and add up goes by NCCL beside their sends.
for i in 1 2 3 4; do echo "h$i slots=1"; done >hostfile
for how in "" "nccl=0"; do
    FAKE_GPU=$how train meshed --hostfile hostfile --pipeline-stages 2 ||
        { code=$?; cat out err; fail "stages of two hosts: exit code $code"; }
    cmp one/model.safetensors meshed/model.safetensors || fail "stages of two hosts, $how: other bits"
done
FAKE_GPU=nccl_fails=2 train failed --hostfile hostfile --pipeline-stages 2 &&
    fail "NCCL failed beside stages, and the run goes on"
said 4 'sifr train: rank [0-3]: (NCCL: between hosts: (internal error|remote process exited)|.*rank [0-3] has ended)'
grep -q 'NCCL: between hosts: internal error' err || fail "stages without NCCL: $(cat err)"
for i in 1 2; do echo "h$i slots=1"; done >hostfile
FAKE_GPU=nccl_fails=5 train failed --hostfile hostfile && fail "NCCL failed, and the run goes on"
grep -q 'NCCL: between hosts: internal error' err || fail "not what NCCL says: $(cat err)"
# The other rank fails by itself, or sees that the first one has.
said 2 'sifr train: rank [01]: (NCCL: between hosts: (internal error|remote process exited)|.*rank [01] has ended)'
