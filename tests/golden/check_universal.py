#!/usr/bin/env python3
"""Checks that DeepSpeed goes on from what `sifr export --format deepspeed-universal` writes.

    DS_ACCELERATOR=cpu python3 tests/golden/check_universal.py build/sifr

Needs `pip install torch transformers deepspeed safetensors`; ranks run over gloo on the CPU. Makes a
small model, trains it, exports its checkpoint, and loads that into DeepSpeed's engine, at stages 1,
2 and 3, on 1 and 2 ranks, in one parameter group and in two. There, weights and both moments must
be those of sifr's checkpoint bit by bit, and step, counts and the next step's rate likewise. It
stores nothing: the suite compares what is written with what `sifr import` reads.
"""
import argparse, glob, json, os, subprocess, sys, tempfile
import torch
from safetensors import safe_open

HERE = os.path.abspath(__file__)
STEPS = 4
CASES = [(stage, ranks, groups) for stage in (1, 2, 3) for ranks in (1, 2) for groups in (1, 2)]
MODEL = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 300,
         "hidden_size": 48, "intermediate_size": 104, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64,
         "tie_word_embeddings": True, "bos_token_id": None, "eos_token_id": None}
SCHEDULER = {"type": "WarmupLR", "params": {"warmup_min_lr": 0, "warmup_max_lr": 3e-3,
                                            "warmup_num_steps": 10}}


def prepare(sifr):
    def run(*arguments):
        subprocess.run([sifr, *arguments], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
    with open("text", "w") as file:
        file.writelines(f"line {i % 37} of {i % 11} things.\n" for i in range(4000))
    with open("config.json", "w") as file:
        json.dump(MODEL, file)
    with open("ds.json", "w") as file:
        json.dump({"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1,
                   "optimizer": {"type": "AdamW", "params": {"lr": 3e-3, "weight_decay": 0.1}},
                   "scheduler": SCHEDULER, "zero_optimization": {"stage": 3},
                   "bf16": {"enabled": True},
                   "sifr": {"seq_length": 32, "max_steps": STEPS, "save_steps": STEPS}}, file)
    run("tokenizer", "train", "--vocab-size", "300", "--data", "text", "--output", "tok")
    run("init", "--config", "config.json", "--tokenizer", "tok", "--output", "model", "--seed", "3")
    run("train", "--config", "ds.json", "--model", "model", "--data", "text", "--output", "run",
        "--ranks", "2", "--threads", "1")
    run("export", f"run/checkpoint-{STEPS}", "universal", "--format", "deepspeed-universal")


def read_state():
    """What sifr's checkpoint holds: {part: {weight: tensor}}."""
    out = {"master": {}, "exp_avg": {}, "exp_avg_sq": {}}
    files = {}
    folder = f"run/checkpoint-{STEPS}"
    with open(os.path.join(folder, "manifest.json")) as file:
        manifest = json.load(file)
    for path in glob.glob(os.path.join(folder, "*.safetensors")):
        with safe_open(path, "pt") as opened:
            files[os.path.basename(path)] = {k: opened.get_tensor(k) for k in opened.keys()}
    for r in sorted(manifest["ranges"], key=lambda r: r["first"]):
        tensor = files[manifest["files"][r["file"]]["name"]][r["tensor"]]
        out[r["part"]].setdefault(r["weight"], []).append(tensor.flatten().float())
    return {part: {w: torch.cat(t) for w, t in weights.items()} for part, weights in out.items()}


def run_rank(stage, groups):
    import deepspeed
    from deepspeed.utils import safe_get_full_fp32_param, safe_get_full_optimizer_state
    from transformers import AutoModelForCausalLM
    deepspeed.init_distributed("gloo")
    model = AutoModelForCausalLM.from_pretrained("model")
    for parameter in model.parameters():
        parameter.data.zero_() # nothing may be right by chance
    parts = [[p for p in model.parameters() if p.dim() == 2],
             [p for p in model.parameters() if p.dim() == 1]]
    optimizer = torch.optim.AdamW(
        [{"params": p} for p in parts] if groups == 2 else sum(parts, []), lr=3e-3)
    engine, optimizer, _, scheduler = deepspeed.initialize(model=model, optimizer=optimizer, config={
        "train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": stage},
        "zero_allow_untested_optimizer": True, "zero_force_ds_cpu_optimizer": False,
        "bf16": {"enabled": True}, "scheduler": SCHEDULER, "checkpoint": {"load_universal": True}})
    path, _ = engine.load_checkpoint("universal")
    assert path, "not loaded"
    state = read_state()
    names = {id(p): n for n, p in engine.module.named_parameters()}
    for parameter in engine.module.parameters():
        name = names[id(parameter)]
        for part, value in (("master", safe_get_full_fp32_param(parameter)),
                            ("exp_avg", safe_get_full_optimizer_state(parameter, "exp_avg")),
                            ("exp_avg_sq", safe_get_full_optimizer_state(parameter, "exp_avg_sq"))):
            assert torch.equal(value.flatten().float().cpu(), state[part][name]), (name, part)
    steps = [s["step"] for s in engine.optimizer.optimizer.state.values() if "step" in s]
    assert steps and all(int(s) == STEPS for s in steps), steps
    assert engine.global_steps == STEPS and engine.skipped_steps == 0
    assert scheduler.last_batch_iteration == STEPS - 1
    rates = [g["lr"] for g in engine.optimizer.optimizer.param_groups]
    wanted = scheduler.get_lr()[0]
    assert all(abs(rate - wanted) <= 1e-12 for rate in rates), (rates, wanted)
    if stage < 3: # torch's AdamW wants the step as a tensor, which stage 3 would count in each group
        ids = torch.arange(8).reshape(1, 8)
        engine.backward(engine(input_ids=ids, labels=ids).loss)
        engine.step()


def launch(stage, ranks, groups):
    jobs = []
    for rank in range(ranks):
        environment = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks),
                           LOCAL_WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1",
                           MASTER_PORT="29518", DS_ACCELERATOR="cpu", OMP_NUM_THREADS="1")
        jobs.append(subprocess.Popen([sys.executable, HERE, "--rank", str(stage), str(groups)],
                                     env=environment))
    codes = [job.wait() for job in jobs]
    assert not any(codes), (stage, ranks, groups)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sifr", nargs="?")
    parser.add_argument("--rank", nargs=2, type=int)
    arguments = parser.parse_args()
    if arguments.rank:
        return run_rank(*arguments.rank)
    sifr = os.path.abspath(arguments.sifr)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        prepare(sifr)
        for path in glob.glob("universal/*/zero/*/*.pt"):
            torch.load(path, weights_only=True)
        for case in CASES:
            launch(*case)
            print("stage %d, %d ranks, %d groups: equal" % case)
        os.chdir("/")


if __name__ == "__main__":
    main()
