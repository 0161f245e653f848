# flops_profiler as a user runs it: parameters and multiply-accumulates are those of the shapes, of a
# rank its half; the table in a file; what cannot be written, and a step that is not run.
. "$SOURCE/tests/support/small_llama.sh"
llama_model llama 32 2 true
config() { # MORE
    cat >ds.json <<J
{"train_batch_size": 4, "train_micro_batch_size_per_gpu": 1,
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}},
 "flops_profiler": {"enabled": true$1}, "sifr": {"seq_length": 16, "max_steps": 3}}
J
}
has() { grep -q -- "$1" "${2:-out}" || fail "no '$1' in $(cat "${2:-out}")"; }

# 4 x 16 tokens; q_proj is 32 x 32, mlp.up_proj 72 x 32; the embedding has 300 x 32.
config ""
train_llama 0 one 1
has '^Profile Summary at step 2 (profile_step 1), of the first rank:$'
has '^micro batches a step: *4$'
[ "$(grep -c 'Profile Summary' out)" = 1 ] || fail "$(cat out)"
has 'linear model.layers.1.self_attn.q_proj.weight: 1.02 K = .*% Params, 65.54 KMACs = .*% MACs, .*s = .*% latency, .*FLOPS$'
has 'linear model.layers.0.mlp.up_proj.weight: 2.3 K = .*, 147.46 KMACs = '
has '^  embedding: 9.6 K = '
has "^    MACs        - {'layers.[01]': '"
has '^fwd flops per rank: *[1-9]'
train_llama 0 two 2
has '^data parallel size: *2$'
has 'linear model.layers.1.self_attn.q_proj.weight: 1.02 K = .*% Params, 32.77 KMACs = '
train_llama 0 stages 2 --pipeline-stages 2
has 'linear model.layers.0.self_attn.q_proj.weight: 1.02 K = .*% Params, 65.54 KMACs = '

config ', "output_file": "new/table", "detailed": false, "top_modules": 3, "profile_step": 0'
train_llama 0 file 1
has '^flops_profiler: step 1 is in new/table$'
has '^Profile Summary at step 1 (profile_step 0),' new/table
has "^    params      - {'layers.0': '10.05 K', 'layers.1': '10.05 K', 'embedding': '9.6 K'}$" new/table
! grep -q 'Detailed' new/table || fail "$(cat new/table)"

config ', "profile_step": 9'
train_llama 0 late 1
has 'flops_profiler.profile_step 9: that step was not run, so nothing was counted' err
config ', "output_file": "text/table"'
for ranks in 1 2; do
    train_llama 2 refused $ranks
    has 'flops_profiler.output_file: text: cannot create the directory: .*; give a path in a folder' err
    [ ! -e refused ] || fail "a refused run left $(find refused)"
done
