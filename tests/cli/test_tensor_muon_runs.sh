# label: full; timeout: 300, not under sanitizers (MPI keeps what it took)
# Muon on tensor ranks, as a user starts it: the losses of one rank within 1e-5 over 20 steps, the
# same bits at each ZeRO stage with data ranks beside them, in stages of a pipeline and with its
# state on a disk; a run goes on with more or fewer tensor ranks; what each axis moved is what was
# planned.
. "$SOURCE/tests/support/ranks.sh"
. "$SOURCE/tests/support/tensor_runs.sh"
tiny_model
muon='{"type": "Muon", "params": {"lr": 1e-2, "weight_decay": 0.1, "adam_lr": 3e-3}}'
go() { # RUN RANKS SIZE STAGE [OPTION...]
    settings "$3" "$4" "" "$muon"
    train "$1" "$2" --model "${model:-model}" "${@:5}"
}
go one 1 1 0
go two 2 2 0
near two one
for stage in 1 2 3; do
    go two-$stage 4 2 $stage
    same two-$stage two
    groups | awk '$3 != $4 { exit 1 }' || fail "other bytes than planned: $(groups)"
done
go stages 4 2 1 --pipeline-stages 2
same stages two
go four 4 4 0 # of the two kv heads two ranks have each
near four one
go eight 8 4 3
same eight four
mkdir -p swap
settings 2 3 "" "$muon"
sed -i 's/"stage": 3/&, "offload_optimizer": {"device": "nvme", "nvme_path": "swap"}/' ds.json
train swapped 4 --model model
same swapped two
for on in "1 0 1" "4 2 8"; do
    set -- $on
    rm -rf on
    cp -r two-3 on
    rm -r on/checkpoint-20
    go on "$3" "$1" "$2" --resume
    near on one
done
