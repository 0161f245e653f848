"""The arguments of transformers' Trainer as sifr takes them, without transformers."""

import dataclasses
import json
import logging
import subprocess
import sys
from types import SimpleNamespace

import sifr
from sifr.integrations import _trainer_rules as rules
from sifr.integrations._among_ranks import check_launcher
from sifr.integrations._param_groups import ParamGroups
from trainer_refusals import ARGUMENTS, KEYS, OF_RANKS, raises

assert not {"torch", "transformers", "accelerate", "numpy"} & set(sys.modules), "imported too early"

#: Defaults of transformers 5.24's TrainingArguments.
DEFAULTS = dict(
    learning_rate=5e-5,
    per_device_train_batch_size=8,
    gradient_accumulation_steps=1,
    weight_decay=0.0,
    adam_beta1=0.9,
    adam_beta2=0.999,
    adam_epsilon=1e-8,
    max_grad_norm=1.0,
    bf16=False,
    fp16=False,
    seed=42,
    optim="adamw_torch_fused",
    optim_args=None,
    ddp_timeout=1800,
    lr_scheduler_type="linear",
    lr_scheduler_kwargs=None,
    warmup_steps=0,
    activation_checkpointing=False,
    label_smoothing_factor=0.0,
    neftune_noise_alpha=None,
    use_liger_kernel=False,
    torch_compile=False,
    deepspeed=None,
    fsdp=None,
    auto_find_batch_size=False,
    fp16_full_eval=False,
    bf16_full_eval=False,
    average_tokens_across_devices=True,
    sifr=None,
    seq_length=64,
)


Arguments = dataclasses.make_dataclass(
    "Arguments", [(name, object, dataclasses.field(default=value)) for name, value in DEFAULTS.items()]
)


def arguments(**more):
    made = Arguments(**{name: value for name, value in more.items() if name in DEFAULTS})
    for name, value in more.items():
        setattr(made, name, value)
    return made


def refusals():
    for name, value in ARGUMENTS.items():
        given = arguments(**{name: value})

        def check(given=given):
            rules.check_arguments(given, rules.Place())
            rules.config_of(given)

        raises(check, name)
    for name, value in OF_RANKS.items():
        given = arguments(**{name: value})
        rules.check_arguments(given, rules.Place(1))
        raises(lambda given=given: rules.check_arguments(given, rules.Place(2)), name)
    raises(
        lambda: rules.check_arguments(arguments(predict_with_generate=True), rules.Place()),
        "predict_with_generate",
    )
    for name in DEFAULTS:  # whatever the number, it is never taken as another
        for value in (float("nan"), float("inf"), float("-inf")):
            given = arguments(**{name: value})
            raises(lambda given=given: rules.check_arguments(given, rules.Place()), name, str(value))
    for name in ("split_batches", "dispatch_batches", "gradient_accumulation_kwargs"):
        given = arguments(accelerator_config=SimpleNamespace(**{name: {"num_steps": 4}}))
        raises(lambda given=given: rules.check_arguments(given, rules.Place()), name)
    rules.check_model("llama", {"model": "./llama"})
    rules.check_model(None, {"model": "llama"})
    raises(lambda: rules.check_model("llama", {"model": "other"}), "llama", "sifr.model is other")
    raises(lambda: rules.check_model(object(), {"model": "other"}), "sifr.model is other")
    rules.check_open(False)
    raises(lambda: rules.check_open(True), "closed", "save_model")
    rules.check_arguments(arguments(fp16=True), rules.Place(cpu=False))
    rules.check_arguments(arguments(), rules.Place())
    given = dict(
        compute_loss=False,
        compute_loss_func=None,
        optimizers=(None, None),
        optimizer_cls_and_kwargs=None,
        model_init=None,
    )
    rules.check_trainer(**given)
    for name, value in dict(
        compute_loss=True,
        compute_loss_func=len,
        optimizers=(None, 1),
        optimizer_cls_and_kwargs=(1, {}),
        model_init=len,
    ).items():
        raises(lambda name=name, value=value: rules.check_trainer(**{**given, name: value}), name)
    by_torchrun = {"WORLD_SIZE": "2", "LOCAL_RANK": "1"}
    raises(lambda: check_launcher(by_torchrun, 1), "torchrun", "mpirun")
    check_launcher(by_torchrun, 2)  # under mpirun, too
    check_launcher({}, 1)
    for key in KEYS:
        raises(lambda key=key: rules.config_of(arguments(sifr={"sifr": {key: 1}})), f"sifr.{key}")


def resumed():
    rules.check_resumed("checkpoint-2", 2, {}, arguments())  # of an older one
    rules.check_resumed("checkpoint-2", 2, {"global_step": 2}, arguments())
    raises(
        lambda: rules.check_resumed("checkpoint-2", 2, {"global_step": 1}, arguments()),
        "checkpoint-2", "step 2", "step 1",
    )  # fmt: skip


def told():
    """What has no effect is said, of what was given, and once: when the engine's config is made."""
    lines = []
    logging.getLogger("sifr").addHandler(h := logging.Handler(logging.WARNING))
    h.emit = lambda record: lines.append(record.getMessage())
    given = arguments(optim_args="amsgrad=True", optim="adamw_torch", warmup_steps=5.5)
    rules.config_of(given)
    assert not lines, lines
    made = rules.config_of(given, model="llama")
    logging.getLogger("sifr").removeHandler(h)
    assert len(lines) == 1 and lines[0].startswith('optim_args = "amsgrad=True": no effect'), lines
    assert made.resolve(1)["scheduler"]["params"]["num_warmup_steps"] == 5.5  # 5 steps, as Trainer's


def groups():
    one = SimpleNamespace(requires_grad=True)
    make = lambda: [{"params": [one], "lr": 1.0, "weight_decay": 0.1}]  # noqa: E731
    made = ParamGroups(make(), "sifr=")
    assert made.rate([{**make()[0], "lr": 2.0, "initial_lr": 1.0}]) == 2.0
    for name, value in dict(weight_decay=0.5, betas=(0.5, 0.5), params=[]).items():
        raises(lambda name=name, value=value: made.rate([{**make()[0], name: value}]), name, "only lr")
    raises(lambda: made.rate(make() * 2), "a group was added")
    one.requires_grad = False
    raises(lambda: made.rate(make()), "requires_grad", "only lr")


def values(ranks=1, **more):
    return rules.config_of(arguments(**more), ranks).resolve(ranks)


def mapped():
    found = values()
    assert found["optimizer"]["type"] == "AdamW" and found["optimizer"]["params"]["lr"] == 5e-5
    assert found["gradient_clipping"] == 1.0 and found["train_micro_batch_size_per_gpu"] == 8
    assert found["sifr"]["seq_length"] == 64 and found["sifr"]["recompute"] == "none"
    found = values(
        2,
        max_grad_norm=0.5,
        weight_decay=0.1,
        activation_checkpointing=True,
        gradient_accumulation_steps=3,
        bf16=True,
        lr_scheduler_type="cosine",
        warmup_steps=0.1,
        adam_beta2=0.95,
        optim="lion_32bit",
        seed=7,
        ddp_timeout=60,
    )
    assert found["gradient_clipping"] == 0.5 and found["train_batch_size"] == 48
    params = found["optimizer"]["params"]
    assert found["optimizer"]["type"] == "Lion" and params["betas"] == [0.9, 0.95], params
    assert params["weight_decay"] == 0.1 and found["sifr"]["no_decay"] == "transformers"
    assert found["sifr"]["recompute"] == "unit" and found["bf16"]["enabled"]
    assert found["scheduler"]["type"] == "cosine", found["scheduler"]
    assert found["scheduler"]["params"]["num_warmup_steps"] == 0.1, found["scheduler"]
    assert found["sifr"]["seed"] == 7 and found["sifr"]["collective_timeout"] == 60
    assert values(max_grad_norm=0.0)["gradient_clipping"] == 0
    # A schedule that follows evaluations is torch's; the engine's own stays as it is.
    found = values(lr_scheduler_type="reduce_lr_on_plateau", lr_scheduler_kwargs={"patience": 1})
    assert found["scheduler"]["type"] == "constant", found["scheduler"]
    # sifr= counts, but for what Trainer itself goes by.
    own = {"zero_optimization": {"stage": 3}, "sifr": {"seq_length": 32, "threads": 2}}
    found = values(2, sifr=own, seq_length=None)
    assert found["zero_optimization"]["stage"] == 3 and found["sifr"]["threads"] == 2
    assert found["sifr"]["seq_length"] == 32
    with open("own.json", "w") as file:
        json.dump(own, file)
    assert values(2, sifr="own.json", seq_length=None)["zero_optimization"]["stage"] == 3
    raises(lambda: values(sifr=own), "seq_length", "64", "32")
    own = {"gradient_clipping": 0.5, "sifr": {"seed": 3}, "optimizer": {"params": {"lr": 1e-3}}}
    found = values(sifr=own)
    assert found["gradient_clipping"] == 0.5 and found["sifr"]["seed"] == 3
    assert found["optimizer"]["params"]["lr"] == 1e-3
    raises(lambda: values(sifr=own, seed=4), "seed", "another value")
    raises(lambda: values(sifr=own, max_grad_norm=0.25), "max_grad_norm")
    raises(lambda: values(sifr={"bf16": {"enabled": True}}, fp16=True), "fp16")
    own = {"optimizer": {"params": {"weight_decay": 0.1}}}
    raises(lambda: values(sifr=own, weight_decay=0.2), "weight_decay", "another value")
    raises(lambda: values(sifr={"sifr": {}}, seq_length=None), "seq_length", "give it")
    raises(
        lambda: values(sifr={"train_micro_batch_size_per_gpu": 4}), "per_device_train_batch_size", "4"
    )
    raises(lambda: values(sifr="nowhere.json"), "nowhere.json")
    raises(lambda: values(sifr=5), "sifr: is int")  # not a file's number
    raises(lambda: values(sifr={"sifr": {"threads": {1}}}), "sifr=sifr.threads", "set")

    class Scalar:  # as numpy's
        shape = ()
        item = lambda self: 2  # noqa: E731

    found = values(sifr={"sifr": {"threads": Scalar()}}, weight_decay=Scalar())
    assert found["sifr"]["threads"] == 2 and found["optimizer"]["params"]["weight_decay"] == 2
    raises(lambda: values(2, sifr={"pipeline": {"stages": 2}}), "pipeline.stages")
    raises(lambda: values(sifr={"zero_optimisation": {}}), "zero_optimi")


def is_lazy():
    """Only the integration's own module imports what it is for, and says what is missing."""
    text = "import sifr.integrations.transformers"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert done.returncode == 0 or "No module named" in done.stderr, done.stderr
    text = "import sifr, sifr.integrations, sys; assert not {'torch', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", text], check=True)


assert sifr.size() == 1
refusals()
resumed()
told()
groups()
mapped()
is_lazy()
