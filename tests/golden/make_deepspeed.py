#!/usr/bin/env python3
"""Makes tests/golden/deepspeed/: checkpoints that DeepSpeed saved, and the weights in them.

    DS_ACCELERATOR=cpu python3 tests/golden/make_deepspeed.py

Needs `pip install torch transformers deepspeed safetensors`; ranks run over gloo on the CPU. Each
folder is that of a run of three steps: stages 0 to 3, some in bf16, with frozen weights and two
groups, and stage 1 as a universal checkpoint (DeepSpeed's ds_to_universal). `expected.safetensors`
beside `latest` has what DeepSpeed's own zero_to_fp32 makes of it, of the universal one that of its
source: without the tied head, which --inject_missing_state puts there in bf16. zero_to_fp32.py,
which DeepSpeed puts there, and of the universal one what is no weight are left out.
"""
import argparse, glob, json, os, shutil, subprocess, sys
import torch
from safetensors.torch import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "deepspeed")
CASES = {  # name: ranks, stage, bf16, frozen, groups
    "stage0": (1, 0, False, False, 1),
    "stage1": (2, 1, True, False, 2),
    "stage2": (3, 2, False, True, 1),
    "stage3": (5, 3, True, True, 2),
}


def make_model():
    from transformers import LlamaConfig, LlamaForCausalLM
    torch.manual_seed(7)
    return LlamaForCausalLM(LlamaConfig(
        vocab_size=23, hidden_size=12, intermediate_size=18, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=32,
        tie_word_embeddings=True))


def run_rank(name):
    import deepspeed
    ranks, stage, bf16, frozen, groups = CASES[name]
    deepspeed.init_distributed("gloo")
    model = make_model()
    if frozen:
        for part in (model.model.norm, model.model.layers[0].mlp.up_proj):
            for parameter in part.parameters():
                parameter.requires_grad = False
    trained = [p for p in model.parameters() if p.requires_grad]
    matrices = [p for p in trained if p.dim() > 1]
    parameters = [{"params": matrices}, {"params": [p for p in trained if p.dim() == 1],
                                         "weight_decay": 0.0}] if groups == 2 else trained
    optimizer = torch.optim.AdamW(parameters, lr=1e-2)
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config={
        "train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": stage},
        "zero_allow_untested_optimizer": True, "zero_force_ds_cpu_optimizer": False,
        "bf16": {"enabled": bf16}})
    for step in range(3):
        ids = torch.arange(8).reshape(1, 8) + step
        loss = engine(input_ids=ids, labels=ids).loss
        engine.backward(loss)
        engine.step()
    engine.save_checkpoint(os.path.join(OUT, name), tag="global_step3")


def launch(name):
    ranks = CASES[name][0]
    jobs = []
    for rank in range(ranks):
        environment = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks),
                           LOCAL_WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1",
                           MASTER_PORT="29517", DS_ACCELERATOR="cpu", OMP_NUM_THREADS="1")
        jobs.append(subprocess.Popen([sys.executable, __file__, "--rank", name], env=environment))
    for job in jobs:
        assert job.wait() == 0, name


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rank")
    arguments = parser.parse_args()
    if arguments.rank:
        return run_rank(arguments.rank)
    import deepspeed
    from deepspeed.utils.zero_to_fp32 import get_fp32_state_dict_from_zero_checkpoint
    shutil.rmtree(OUT, ignore_errors=True)
    os.makedirs(OUT)
    model = make_model()
    model.config.to_json_file(os.path.join(OUT, "config.json"))
    for name, (ranks, stage, *_) in CASES.items():
        folder = os.path.join(OUT, name)
        launch(name)
        if stage:
            state = get_fp32_state_dict_from_zero_checkpoint(folder)
        else:
            state = torch.load(os.path.join(folder, "global_step3", "mp_rank_00_model_states.pt"),
                               weights_only=False)["module"]
        state = {k: v.float().contiguous().clone() for k, v in state.items()
                 if k != "lm_head.weight" or not stage}
        save_file(state, os.path.join(folder, "expected.safetensors"))
        for path in glob.glob(os.path.join(folder, "*.py")):
            os.remove(path)
    universal = os.path.join(OUT, "universal")
    subprocess.check_call([sys.executable, "-m", "deepspeed.checkpoint.ds_to_universal",
                           "--input_folder", os.path.join(OUT, "stage1", "global_step3"),
                           "--output_folder", os.path.join(universal, "global_step3_universal"),
                           "--no_strict", "--inject_missing_state"])
    with open(os.path.join(universal, "latest_universal"), "w") as file:
        file.write("global_step3_universal")
    shutil.copy(os.path.join(OUT, "stage1", "expected.safetensors"), universal)
    for path in glob.glob(os.path.join(universal, "*", "zero", "*", "*.pt")):
        if not path.endswith("fp32.pt"):
            os.remove(path)
    with open(os.path.join(OUT, "index.json"), "w") as file:
        json.dump({"deepspeed": deepspeed.__version__, "torch": torch.__version__.split("+")[0],
                   "cases": [[n, c[0], c[1]] for n, c in CASES.items()] + [["universal", 0, -1]]},
                  file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
