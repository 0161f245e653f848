"""What the configs of tests/config/imports train under their own programs.

    make_import_judge.py AXOLOTL LLAMAFACTORY    (folders of the unpacked packages)

TRL, transformers and accelerate parse their files with their own classes; of axolotl and
LLaMA-Factory the defaults of their classes are read as text (as make_import_keys.py does), and
axolotl's schedules are its own module. Written: imports.json. A rate is that of the steps 0, 1, 50
and 99 of a run of 100 steps, or of those of max_steps, by the program's own schedule.
"""
import importlib.util
import json
import math
import os
import sys

import accelerate
import torch
import transformers
import trl
import yaml
from accelerate.commands.config.config_args import load_config_from_file
from transformers import HfArgumentParser, TrainingArguments, get_scheduler
from trl import DPOConfig, ModelConfig, ScriptArguments, SFTConfig

HERE = os.path.dirname(os.path.abspath(__file__))
FILES = os.path.join(HERE, "..", "config", "imports")
spec = importlib.util.spec_from_file_location("keys", os.path.join(HERE, "make_import_keys.py"))
source = open(spec.origin, encoding="utf-8").read().rsplit("\nmain()", 1)[0]
keys = {}
exec(compile(source, spec.origin, "exec"), keys)  # its readers of classes, without its main

AXOLOTL, FACTORY = sys.argv[1], sys.argv[2]
spec = importlib.util.spec_from_file_location(
    "schedulers", os.path.join(AXOLOTL, "src", "axolotl", "utils", "schedulers.py"))
schedulers = importlib.util.module_from_spec(spec)
spec.loader.exec_module(schedulers)

# The names that optimizers have in the programs, and as what they are built.
OPTIMIZERS = {"adamw_torch": "AdamW", "adamw_torch_fused": "AdamW", "paged_adamw_32bit": "AdamW",
              "adamw_8bit": "AdamW8bit", "paged_adamw_8bit": "AdamW8bit", "sgd": "SGD",
              "adafactor": "Adafactor", "lion_32bit": "Lion",
              "schedule_free_adamw": "AdamWScheduleFree"}


def rates(kind, rate, warmup, total, kwargs, make=None):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=rate)
    make = make or (lambda o: get_scheduler(kind, o, warmup, total, kwargs))
    schedule = make(optimizer)
    out, wanted = [], (0, 1, total // 2, total - 1)
    for step in range(total):
        if step in wanted:
            out.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    return out


def warm(steps, ratio, total):
    if steps and steps >= 1:
        return int(steps)
    return math.ceil((steps or ratio or 0) * total)


def adapter(r, alpha, dropout, targets, **more):
    if isinstance(targets, str) and targets not in ("all", "all-linear"):
        targets = [t.strip() for t in targets.split(",")]
    if targets == "all":
        targets = "all-linear"
    out = {"r": r, "alpha": alpha, "dropout": dropout, "targets": targets}
    out.update({k: v for k, v in more.items() if v})
    return out


def total_of(steps):
    return steps if steps and steps > 0 else 100


def listing(model=None, paths=None, samples=0, held_out=0, packing=False, by_length=False,
            labels="assistant", length=None, micro=8, accumulation=1, epochs=3, max_steps=-1,
            precision="fp32", optimizer="AdamW", decay=0.0, betas=(0.9, 0.999), clip=1.0,
            rate=None, lora=None, codes=None, loss="next", beta=None, long_rows="cut", turns=None):
    out = {"model": model, "paths": paths or [], "samples": samples, "held_out": held_out,
           "packing": bool(packing), "by_length": bool(by_length), "labels": labels,
           "turns": turns, "length": length, "long_rows": long_rows, "micro": micro, "accumulation": accumulation,
           "precision": precision, "optimizer": optimizer, "decay": decay, "clip": clip,
           "rates": rate, "adapter": lora, "codes": codes, "loss": loss, "beta": beta}
    if max_steps and max_steps > 0:
        out["steps"] = max_steps
    else:
        out["epochs"] = epochs
    if optimizer in ("AdamW", "AdamW8bit", "Lion", "AdamWScheduleFree"):
        out["betas"] = list(betas)
    return out


def typed(args):
    return "fp16" if args.fp16 else "bf16" if args.bf16 else "fp32"


# The names that earlier versions had, as their messages say.
EARLIER = {"max_seq_length": "max_length", "evaluation_strategy": "eval_strategy",
           "torch_dtype": "dtype"}


def parse(classes, given):
    """By the program's own parser; keys that it has no more are put aside."""
    fields = {f.name for c in classes for f in keys["dataclasses"].fields(c)}
    given = {EARLIER.get(k, k): v for k, v in given.items()}
    known = {k: v for k, v in given.items() if k in fields and v is not None or k == "max_length"}
    for key, value in known.items():
        if isinstance(value, dict):
            known[key] = json.dumps(value)
    known.setdefault("output_dir", "o")
    known["report_to"] = []
    known["use_cpu"] = True
    for key in ("fsdp", "tf32", "torch_compile", "bf16_full_eval"):  # what needs a GPU, and no more
        known.pop(key, None)
    known = {k: v for k, v in known.items() if k in fields}
    args = HfArgumentParser(classes).parse_dict(known)
    return args, {k: v for k, v in given.items() if k not in fields}


def of_training(args, ratio):
    total = total_of(args.max_steps)
    kwargs = args.lr_scheduler_kwargs or {}
    warmup = warm(args.warmup_steps, ratio, total)
    return dict(micro=args.per_device_train_batch_size,
                accumulation=args.gradient_accumulation_steps, epochs=args.num_train_epochs,
                max_steps=args.max_steps, precision=typed(args),
                optimizer=OPTIMIZERS[getattr(args.optim, "value", args.optim)],
                decay=args.weight_decay, betas=(args.adam_beta1, args.adam_beta2),
                clip=args.max_grad_norm,
                by_length=args.train_sampling_strategy == "group_by_length",
                rate=rates(args.lr_scheduler_type, args.learning_rate, warmup, total, kwargs))


def of_trainer(given):
    (args,), rest = parse([TrainingArguments], given)
    return listing(model=rest.get("model_name_or_path"),
                   paths=[rest["train_file"]] if "train_file" in rest else [],
                   length=rest.get("block_size"), **of_training(args, rest.get("warmup_ratio", 0)))


def of_trl(given):
    pairs = "beta" in given
    config = DPOConfig if pairs else SFTConfig
    (script, args, model), rest = parse([ScriptArguments, config, ModelConfig], given)
    out = of_training(args, rest.get("warmup_ratio", 0))
    lora = codes = None
    if model.use_peft:
        lora = adapter(model.lora_r, model.lora_alpha, model.lora_dropout,
                       model.lora_target_modules, rslora=model.use_rslora,
                       saved=model.lora_modules_to_save)
    if model.load_in_4bit:
        codes = {"type": model.bnb_4bit_quant_type, "twice": model.use_bnb_nested_quant}
    if pairs:
        labels = "assistant"
    else:  # completion_only_loss null: of rows of prompt and completion
        labels = "all" if args.completion_only_loss is False else "completion"
        if args.assistant_only_loss:
            labels = "assistant_turns" if labels == "all" else "assistant_only"
    loss = args.loss_type if isinstance(args.loss_type, str) else args.loss_type[0]
    return listing(model=model.model_name_or_path,
                   paths=[script.dataset_name] if script.dataset_name else [],
                   labels=labels, length=args.max_length, packing=getattr(args, "packing", False),
                   lora=lora, codes=codes, loss=loss if pairs else "next",
                   beta=args.beta if pairs else None, **out)


def of_accelerate(path):
    config = load_config_from_file(path)
    deepspeed, fsdp = config.deepspeed_config or {}, config.fsdp_config or {}
    out = {"precision": {"no": "fp32"}.get(config.mixed_precision, config.mixed_precision),
           "stage": 0, "optimizer_on": "none", "parameters_on": "none", "accumulation": 1,
           "clip": 1.0}
    if deepspeed:
        out.update(stage=deepspeed["zero_stage"],
                   optimizer_on=deepspeed.get("offload_optimizer_device", "none"),
                   parameters_on=deepspeed.get("offload_param_device", "none"),
                   accumulation=deepspeed.get("gradient_accumulation_steps", 1),
                   clip=deepspeed.get("gradient_clipping", 1.0))
    elif fsdp:
        shards = fsdp.get("fsdp_reshard_after_forward", fsdp.get("fsdp_sharding_strategy"))
        out["stage"] = 3 if shards in (True, "FULL_SHARD") else 2
    return out


def turns_of(have):
    """Of sets of messages the keys of their turns, with the defaults of StrategyLoader."""
    out = []
    for d in have["datasets"]:
        if d.get("type") == "chat_template":
            eos = d.get("train_on_eos") or "turn"
            roles = d.get("roles_to_train") or ["assistant"]
            out.append([None if have["train_on_inputs"] else roles, eos, d.get("train_on_eot") or eos])
    return out or None


def of_axolotl(given):
    classes = keys["read_classes"](os.path.join(AXOLOTL, "src", "axolotl"))
    have = dict(keys["fields_of"](classes, "AxolotlInputConfig"))
    have.update({k: v for k, v in given.items() if v is not None})
    pairs = have["rl"] is not None
    total = total_of(have["max_steps"])
    if have["warmup_steps"] is not None:
        warmup = have["warmup_steps"]
    elif have["warmup_ratio"] is not None:
        warmup = max(int(have["warmup_ratio"] * total), 0)
    else:
        warmup = min(int(0.03 * total), 100)
    warmup = 2 if warmup == 1 else warmup
    rate, kind, make = have["learning_rate"], have["lr_scheduler"], None
    if kind == "cosine" and have["cosine_min_lr_ratio"] is not None:
        def make(o):
            return schedulers.get_cosine_schedule_with_min_lr(
                o, num_warmup_steps=warmup, num_training_steps=total,
                min_lr_ratio=have["cosine_min_lr_ratio"])
    precision = "fp16" if have["fp16"] else "bf16" if have["bf16"] else "fp32"
    lora = codes = None
    if have["adapter"]:
        targets = "all-linear" if have["lora_target_linear"] else have["lora_target_modules"]
        lora = adapter(have["lora_r"], have["lora_alpha"], have["lora_dropout"] or 0, targets,
                       rslora=have["peft_use_rslora"], saved=have["lora_modules_to_save"])
    if have["load_in_4bit"]:
        codes = {"type": "nf4", "twice": True}
    longer = {"truncate": "cut"}.get(have["excess_length_strategy"], "out")
    return listing(model=have["base_model"], long_rows=longer, paths=[d["path"] for d in have["datasets"]],
                   held_out=have["val_set_size"] or 0, packing=have["sample_packing"],
                   by_length=have["group_by_length"] if "group_by_length" in given else False,
                   labels="all" if have["train_on_inputs"] else "assistant", turns=turns_of(have),
                   length=have["sequence_len"], micro=have["micro_batch_size"],
                   accumulation=have["gradient_accumulation_steps"] or 1,
                   epochs=have["num_epochs"], max_steps=have["max_steps"], precision=precision,
                   optimizer=OPTIMIZERS[have["optimizer"]], decay=have["weight_decay"] or 0,
                   betas=(have["adam_beta1"] or 0.9, have["adam_beta2"] or 0.999),
                   clip=have["max_grad_norm"] if have["max_grad_norm"] is not None else 1.0,
                   rate=rates(kind, rate, warmup, total, have["lr_scheduler_kwargs"] or {}, make),
                   lora=lora, codes=codes,
                   loss={"dpo": "sigmoid", "orpo": "orpo"}[have["rl"]] if pairs else "next",
                   beta=(have["rl_beta"] or have["orpo_alpha"] or 0.1) if pairs else None)


def of_factory(given):
    classes = keys["read_classes"](os.path.join(FACTORY, "llamafactory", "hparams"))
    have = {}
    for name in ("GeneratingArguments", "FinetuningArguments", "DataArguments", "ModelArguments"):
        have.update(keys["fields_of"](classes, name))
    have.update({k: v for k, v in given.items() if v is not None})
    (args,), _ = parse([TrainingArguments], given)
    pairs = have["stage"] == "dpo"
    lora = codes = None
    if have["finetuning_type"] == "lora":
        alpha = have["lora_alpha"] or have["lora_rank"] * 2
        saved = have["additional_target"]
        lora = adapter(have["lora_rank"], alpha, have["lora_dropout"], have["lora_target"],
                       rslora=have["use_rslora"], saved=saved.split(",") if saved else None)
    if have["quantization_bit"]:
        codes = {"type": have["quantization_type"], "twice": have["double_quantization"]}
    labels = "last" if have["mask_history"] else "all" if have["train_on_prompt"] else "assistant"
    out = of_training(args, have.get("warmup_ratio", 0))
    packed = have["neat_packing"] or (have["packing"] and have["stage"] != "pt")
    return listing(model=have["model_name_or_path"], paths=have["dataset"].split(","),
                   samples=have["max_samples"] or 0, held_out=have["val_size"], packing=packed,
                   labels=labels, length=have["cutoff_len"], lora=lora, codes=codes,
                   loss=have["pref_loss"] if pairs else "next",
                   beta=have["pref_beta"] if pairs else None, **out)


# What no config of sifr trains, and why; all others must be taken over.
REFUSED = {
    "acc-fp8.yaml": "products in fp8",
    "ax-eaft.yaml": "the EAFT loss, and Spectrum's choice of layers",
    "hf-neftune.yaml": "noise on embeddings, label smoothing, optimizers on some products, the best "
                       "of the checkpoints",
    "lf-merge.yaml": "it merges an adapter, and trains nothing",
    "lf-packed.yaml": "packs whose rows see each other, PiSSA, LoRA+, GaLore",
    "trl-bco.yaml": "two losses with weights",
}


def main():
    version = [f for f in os.listdir(FACTORY) if f.startswith("llamafactory-")][0]
    out = {"versions": {"TRL": trl.__version__, "transformers": transformers.__version__,
                        "accelerate": accelerate.__version__,
                        "axolotl": open(os.path.join(AXOLOTL, "VERSION")).read().strip(),
                        "LLaMA-Factory": version.split("-")[1].replace(".dist", "")},
           "files": {}}
    for name in sorted(os.listdir(FILES)):
        path = os.path.join(FILES, name)
        with open(path, encoding="utf-8") as file:
            loader = yaml.SafeLoader
            loader.add_implicit_resolver(  # 1e-5 is a number for the programs' parsers
                "tag:yaml.org,2002:float",
                keys["re"].compile(r"^[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"), list("-+0123456789"))
            given = yaml.load(file, loader)
        if name in REFUSED:
            out["files"][name] = {"refused": REFUSED[name]}
            continue
        program = name.split("-")[0]
        out["files"][name] = {
            "ax": of_axolotl, "hf": of_trainer, "trl": of_trl, "lf": of_factory,
            "acc": lambda _: of_accelerate(path)}[program](given)
    with open(os.path.join(HERE, "imports.json"), "w", encoding="utf-8") as file:
        json.dump(out, file, indent=1, sort_keys=True)
        file.write("\n")


main()
