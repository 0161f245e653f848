# State on disk whose update the next step carries out: the same losses, evaluations, weights and
# checkpoints as in memory, on one, two and four ranks, across a resume; and the trace shows the disk
# beside the forward pass.
# label: full; timeout: 200, not under sanitizers (MPI keeps what it took)
. "$SOURCE/tests/support/disk_runs.sh"
sed 's/"num_hidden_layers": 3/"num_hidden_layers": 8/' llama.json >deep.json
"$SIFR" init --config deep.json --tokenizer tok --output deep --seed 3 >log
config() { # STAGE DEVICE
    cat >ds.json <<J
{"train_batch_size": 16, "bf16": {"enabled": true}, "gradient_clipping": 0.5,
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "weight_decay": 0.01}},
 "zero_optimization": {"stage": $1, "sub_group_size": 20000,
                       "offload_optimizer": {"device": "$2", "nvme_path": "nvme"}},
 "sifr": {"seq_length": 64, "save_steps": 3, "eval_steps": 2, "eval_data": "text",
           "max_eval_windows": 16}}
J
}
train() { # OUTPUT RANKS OPTION...
    "$SIFR" train --config ds.json --model deep --data text --output "$1" --ranks $2 --threads 1 \
        "${@:3}" >log 2>err || fail "$*"
}
states() { cat "$1"/checkpoint-"$2"/state-*.safetensors | sha256sum; }
losses() { grep -o '"\(loss\|eval_loss\|grad_norm\)": [^,}]*' "$1/trainer_state.json"; }
same() { # DIRECTORY REFERENCE WHAT
    cmp "$1/model.safetensors" "$2/model.safetensors" || fail "$3: other weights"
    for step in 3 5; do
        [ "$(states "$1" $step)" = "$(states "$2" $step)" ] || fail "$3: other state at step $step"
    done
}
for n in $(ranks_of 1 2 4); do
    for stage in 1 2; do
        config $stage none
        train memory $n --max-steps 5
        config $stage nvme
        "$SIFR" plan --config ds.json --model deep --world-size $n --dump >plan
        [ "$(grep -c "update .*(of the step before)" plan)" -gt 8 ] || fail "$n ranks, stage $stage: nothing is deferred"
        train disk $n --max-steps 5
        same disk memory "$n ranks, stage $stage"
        losses memory >there
        [ "$(losses disk | tee here | wc -l)" -gt 8 ] && cmp here there ||
            fail "$n ranks, stage $stage: other losses"
        # From the checkpoint in the middle.
        rm -r disk/checkpoint-5 disk/model.safetensors
        train disk $n --max-steps 5 --resume
        same disk memory "$n ranks, stage $stage, resumed"
        [ -z "$(ls nvme)" ] || fail "left behind: $(ls nvme)"
        rm -r disk memory
    done
done

# What moves for the update of the step before moves while the forward pass computes.
config 1 nvme
train traced 1 --max-steps 4 --eval-steps 0 --save-steps 0 --trace t.json --trace-steps 3
awk '
function value(key) { return match($0, "\"" key "\":[0-9.e+-]*") ? substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) + 0 : -1 }
/"name":"forward / && value("tid") == 0 {
    if (!first || value("ts") < first) first = value("ts")
    if (value("ts") + value("dur") > last) last = value("ts") + value("dur")
}
/"name":"(read|write) [^"]* of the step before"/ && value("tid") > 0 { from[n] = value("ts"); to[n++] = value("ts") + value("dur") }
END {
    for (i = 0; i < n; i++) beside += from[i] > first && to[i] < last
    printf "%d transfers of the step before, %d beside the forward pass\n", n, beside
    exit !(n > 20 && beside > n / 2)
}' t.json || fail "the trace shows nothing beside the forward pass"
"$BUILD/trace_picture" t.json >drawn || fail "the trace is not drawn"
for track in "disk reads" "disk writes"; do
    grep -q "^rank 0 *$track *|.*[iw]" drawn || { cat drawn; fail "no $track in the picture"; }
done
