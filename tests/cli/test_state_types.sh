# Optimizer state in bf16, as a user has it: the same bits at every stage, on 1, 2 and 4 ranks, with
# state on disk and across a resume elsewhere; checkpoints in the types of the state; what does not
# go together; bytes a parameter in the plan. label: full; timeout: 200
# not under sanitizers (MPI keeps what it took)
. "$SOURCE/tests/support/disk_runs.sh"
ranks=$(ranks_of 1 2 4)
config() { # STAGE MASTERS MOMENTS [OFFLOAD [OTHER KEYS]]
    cat >ds.json <<J
{"train_batch_size": 4, "train_micro_batch_size_per_gpu": 1,
 "bf16": {"enabled": true, "bf16_master_weights_and_grads": $2, "bf16_optimizer_states": $3},
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "weight_decay": 0.01}},
 "zero_optimization": {"stage": $1, "offload_optimizer": {${4:-}}, "sub_group_size": 5000},
 "sifr": {"seq_length": 32, "save_steps": 3} ${5:-}}
J
}
disk='"device": "nvme", "nvme_path": "nvme"'
train() { # OUTPUT RANKS OPTION...
    "$SIFR" train --config ds.json --model llama --data text --output "$1" --ranks $2 --threads 1 \
        --max-steps 6 "${@:3}" >log 2>err
}
same() { cmp "$1/model.safetensors" "$2/model.safetensors" || fail "$3: other weights"; }
refused() { # CODE WORDS
    code=0
    train refused 1 || code=$?
    [ $code = $1 ] && grep -q "$2" err && [ "$(wc -l <err)" = 1 ] || fail "exit code $code, not: $2"
}
types() { # DIRECTORY: of master weights and moments, as the checkpoint has them
    head -c 100000 "$1"/checkpoint-6/state-00001-*.safetensors | tr -d '\0' | tr '}' '\n' |
        sed -n 's/.*"\(master\|exp_avg\|exp_avg_sq\)\/.*"dtype":"\([A-Z0-9]*\)".*/\1 \2/p' | sort -u |
        tr '\n' ' '
}

for form in false:true false:false true:false true:true; do
    masters=${form%:*} moments=${form#*:} one=$masters-$moments
    config 0 $masters $moments
    train $one 1 || fail "$form"
    have=$(types $one)
    want=F32 moment=F32
    [ $masters = false ] || want=BF16
    [ $moments = false ] || moment=BF16
    [ "$have" = "exp_avg $moment exp_avg_sq $moment master $want " ] || fail "$form: saved as $have"
    [ $form = false:false ] && continue
    cmp -s $one/model.safetensors llama/model.safetensors && fail "$form: nothing was learned"
    runs="2:2:disk 4:3:"
    [ $form = true:true ] && runs="1:3:disk 2:0: 2:1: 2:2: 2:3:disk 4:1:disk 4:2:disk 4:3:"
    for run in $runs; do
        IFS=: read -r n stage offload <<<"$run"
        case " $ranks " in *" $n "*) ;; *) continue ;; esac
        config $stage $masters $moments "${offload:+$disk}"
        rm -rf other
        also=
        [ "$offload" != disk ] || [ $stage -lt 2 ] || also="--offload-gradients nvme --step-order unit"
        train other $n $also || fail "$form, $n ranks, stage $stage"
        same other $one "$form, $n ranks, stage $stage, $offload"
    done
    # from step 3 on, by other ranks
    config 3 $masters $moments
    last=${ranks##* }
    rm -rf other
    train other $last --max-steps 3 || fail "$form: the first half"
    config 1 $masters $moments "$disk"
    train other 1 --resume --offload-gradients nvme || fail "$form: the second half"
    grep -q 'resumed from checkpoint-3' log err || fail "$form: not resumed"
    same other $one "$form, resumed"
done
for one in true-true true-false false-true; do
    cmp -s $one/model.safetensors false-false/model.safetensors && fail "$one changes nothing"
done
[ -z "$(ls nvme)" ] || fail "left behind: $(ls nvme)"

# --- the model that is saved is one that the program reads, and as good ---
loss() { "$SIFR" eval --model $1 --data text --seq-length 32 --json | sed -n 's/.*"loss": \([0-9.]*\).*/\1/p'; }
awk -v wide="$(loss false-false)" -v narrow="$(loss true-true)" -v first="$(loss llama)" \
    'BEGIN { exit !(narrow > 0 && narrow < first - 0.1 && (narrow - wide) ^ 2 < 0.05 ^ 2) }' ||
    fail "losses: $(loss llama), $(loss false-false), $(loss true-true)"

# --- other types than it was made with ---
cp -r true-true refused
config 0 true false
code=0
train refused 1 --max-steps 7 --resume || code=$?
[ $code = 2 ] && grep -q 'checkpoint-6: has exp_avg in bf16, but this run keeps it in fp32; set bf16' err ||
    fail "exit code $code: other types are not refused"
rm -r refused

# --- what does not go together ---
config 0 true true "" ', "data_types": {"grad_accum_dtype": "fp32"}'
refused 2 'bf16.bf16_master_weights_and_grads is true, which keeps gradients in bf16, but data_types.grad_accum_dtype is fp32; leave one of them out'
config 0 true true "" ', "communication_data_type": "fp32"'
refused 2 'sums kept in 16 bits are sent in that type'
sed 's/"bf16"/"fp16"/; s/bf16_master/fp16_master/; s/, "bf16_optimizer_states": true//' ds.json >fp16.json
mv fp16.json ds.json
refused 2 'fp16.fp16_master_weights_and_grads is true, which is not supported yet'

# --- bytes a parameter: 2 of parameters, and so many of state; gradients apart ---
mkdir large
cat >large/config.json <<'J'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 32000,
 "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 24, "num_attention_heads": 16,
 "num_key_value_heads": 16, "max_position_embeddings": 2048, "tie_word_embeddings": false}
J
at_most() { # CLASS
    awk -v class="\"$1\":" '$1 == "\"at_most\":" { inside = 1 }
        inside && /": \{$/ { now = index($0, class) } inside && now && /"bytes":/ { printf "%.0f", $2; exit }' json
}
for form in false:false:4:8:4 false:true:4:4:4 true:false:0:8:2 true:true:0:4:2; do
    IFS=: read -r masters moments of_masters of_moments of_gradients <<<"$form"
    config 0 $masters $moments
    "$SIFR" plan --config ds.json --model large --per-device-train-batch-size 4 --json >json 2>err ||
        fail "$form: plan"
    parameters=$(sed -n 's/^  "parameters": \([0-9]*\).*/\1/p' json)
    check() { # CLASS BYTES_A_PARAMETER: these, and what padding takes, in thousandths
        thousandths=$(($(at_most "$1") * 1000 / parameters))
        [ $thousandths -ge $(($2 * 1000)) ] && [ $thousandths -le $(($2 * 1001 + ${3:-0})) ] ||
            fail "$form: $1 take $thousandths thousandths of a byte a parameter, not $2 bytes"
    }
    check parameters 2
    check 'master weights' $of_masters
    check moments $of_moments
    # and sums of squares; where sums have 16 bits, one unit's is still made in fp32
    check gradients $of_gradients $([ $of_gradients = 4 ] && echo 8 || echo 508)
    grep -q "\"master_weights\": \"$([ $masters = true ] && echo bf16 || echo fp32)\"" json &&
        grep -q "\"moments\": \"$([ $moments = true ] && echo bf16 || echo fp32)\"" json ||
        fail "$form: the types are not said"
    "$SIFR" plan --config ds.json --model large >plan 2>err || fail "$form: plan"
    [ $masters = false ] || grep -q '^model .* without fp32 master weights' plan || fail "$form: $(cat plan)"
    [ $moments = false ] || grep -q '^model .*, moments in bf16$' plan || fail "$form: $(cat plan)"
done
