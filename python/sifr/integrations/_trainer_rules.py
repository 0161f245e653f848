"""The arguments of transformers' Trainer: which are refused, and sifr's config of the others. Nothing
here imports torch or transformers."""

from __future__ import annotations

import enum
import json
import logging
import math
import os
import tempfile
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn

from .. import _sifr
from .._base import UsageError
from .._config import Config

_log = logging.getLogger("sifr")


class Place(NamedTuple):
    """Where the arguments are used."""

    ranks: int = 1
    cpu: bool = True  #: the engine computes on the CPU


class Rule(NamedTuple):
    name: str
    broken: Callable[[Any, Place], Any]
    why: str  #: and what to do


def refuse(name: str, why: str) -> NoReturn:
    raise UsageError(f"SifrTrainer: {name}: {why}")


def _given(name: str) -> Callable[[Any, Place], Any]:
    return lambda args, place: getattr(args, name, None)


def _kwargs(args: Any) -> set[str]:
    given = getattr(args, "activation_checkpointing_kwargs", None) or {}
    return set(given) - {"use_reentrant"} if isinstance(given, Mapping) else {str(given)}


def _of_loader(name: str) -> Callable[[Any, Place], Any]:
    return lambda args, place: getattr(getattr(args, "accelerator_config", None), name, None)


def _no_object(given: Any) -> bool:
    """TrainingArguments reads text that begins as a JSON object does, and leaves other text."""
    if isinstance(given, str):
        return not given.startswith("{")
    return given is not None and not isinstance(given, Mapping)


def _check_numbers(args: Any) -> None:
    """All of them, whatever their name: what reads them takes NaN as not given."""
    for name, value in vars(args).items():
        if isinstance(value, float) and not math.isfinite(value):
            refuse(name, f"{value} is no finite number; give one, or leave it out")


_SLOW = "the model runs in sifr's own kernels; leave it out"
_STEPS = "an evaluation has the precision of the steps; leave it out"

#: What Trainer can and sifr cannot.
RULES = (
    Rule(
        "label_smoothing_factor",
        _given("label_smoothing_factor"),
        "label smoothing is not supported yet; leave it at 0",
    ),
    Rule(
        "neftune_noise_alpha",
        lambda args, place: getattr(args, "neftune_noise_alpha", None) is not None,
        "noise on embeddings is not supported yet; leave it out",
    ),
    Rule("use_liger_kernel", _given("use_liger_kernel"), _SLOW),
    Rule("torch_compile", _given("torch_compile"), _SLOW),
    Rule("torch_compile_backend", _given("torch_compile_backend"), _SLOW),
    Rule("torch_compile_mode", _given("torch_compile_mode"), _SLOW),
    Rule("deepspeed", _given("deepspeed"), "give DeepSpeed's config as sifr=, which reads its keys"),
    Rule(
        "fsdp",
        _given("fsdp"),
        'set zero_optimization.stage in sifr=: 3 for "full_shard", 2 for "shard_grad_op"',
    ),
    Rule(
        "auto_find_batch_size",
        _given("auto_find_batch_size"),
        "a step's memory is known before it runs; `sifr plan --fit` finds a batch size",
    ),
    Rule(
        "fp16",
        lambda args, place: getattr(args, "fp16", False) and place.cpu,
        'on the CPU bf16 is the faster one; for fp16 give sifr={"fp16": {"enabled": true}}',
    ),
    Rule("fp16_full_eval", _given("fp16_full_eval"), _STEPS),
    Rule("bf16_full_eval", _given("bf16_full_eval"), _STEPS),
    Rule(
        "average_tokens_across_devices",
        lambda args, place: place.ranks > 1
        and not getattr(args, "average_tokens_across_devices", True),
        "False: the loss is the mean over the labelled tokens of all ranks; leave it True",
    ),
    Rule(
        "predict_with_generate",
        _given("predict_with_generate"),
        "a prediction has logits; sifr.generate makes texts of the saved model",
    ),
    Rule(
        "debug",
        _given("debug"),
        "what it watches is a torch model that runs, and here none does; leave it out",
    ),
    Rule("optim_target_modules", _given("optim_target_modules"), "is not supported yet"),
    Rule("parallelism_config", _given("parallelism_config"), "sifr= says how ranks share the work"),
    Rule(
        "activation_checkpointing_kwargs",
        lambda args, place: _kwargs(args),
        "only use_reentrant is accepted, which has no effect; set sifr.recompute in sifr=",
    ),
    Rule(
        "train_sampling_strategy",
        lambda args, place: getattr(args, "train_sampling_strategy", None) == "batch_rebalance",
        "batch_rebalance: batches have one size here; random, sequential, group_by_length and sifr "
        "are supported",
    ),
    Rule(
        "eval_use_gather_object",
        lambda args, place: place.ranks > 1 and getattr(args, "eval_use_gather_object", False),
        "objects are not gathered between ranks yet; leave it out",
    ),
    Rule(
        "save_on_each_node",
        _given("save_on_each_node"),
        "checkpoints are one folder of all ranks; give a shared output_dir",
    ),
    Rule(
        "gradient_accumulation_kwargs",
        _of_loader("gradient_accumulation_kwargs"),
        "accelerate does not count the steps here; give gradient_accumulation_steps",
    ),
    Rule(
        "ddp_timeout",
        lambda args, place: getattr(args, "ddp_timeout", 1) <= 0,
        "is no time to wait; give seconds above 0",
    ),
    Rule(
        "lr_scheduler_kwargs",
        lambda args, place: _no_object(getattr(args, "lr_scheduler_kwargs", None)),
        "are no dict, nor JSON of one",
    ),
    Rule("split_batches", _of_loader("split_batches"), "is not supported yet; leave it out"),
    Rule("dispatch_batches", _of_loader("dispatch_batches"), "is not supported yet; leave it out"),
)


def check_arguments(args: Any, place: Place) -> None:
    """Refuses, by name, arguments that sifr would not do."""
    _check_numbers(args)
    for rule in RULES:
        if rule.broken(args, place):
            refuse(rule.name, rule.why)


def check_trainer(
    *,
    compute_loss: bool,
    compute_loss_func: Any,
    optimizers: Any,
    optimizer_cls_and_kwargs: Any,
    model_init: Any,
) -> None:
    """The same of what a trainer is made with. `compute_loss`: its class has one of its own."""
    loss = "the loss is computed in the engine: the model's own, over labels"
    if compute_loss:
        refuse("compute_loss", f"is overridden, but {loss}")
    if compute_loss_func is not None:
        refuse("compute_loss_func", loss)
    if any(one is not None for one in optimizers or ()):
        refuse("optimizers", "the optimizer is the engine's: give optim, or sifr=")
    if optimizer_cls_and_kwargs is not None:
        refuse("optimizer_cls_and_kwargs", "the optimizer is the engine's: give optim, or sifr=")
    if model_init is not None:
        refuse("model_init", "is not supported yet; give the model")


def check_model(model: Any, own: Mapping[str, Any]) -> None:
    """One model, of two places that may say it."""
    other = own.get("model")
    if model is None or other is None:
        return
    if not isinstance(model, (str, os.PathLike)) or os.path.abspath(model) != os.path.abspath(other):
        shown = model if isinstance(model, (str, os.PathLike)) else type(model).__name__
        refuse("model", f"{shown}, but sifr.model is {other} in sifr=; give one")


def check_open(closed: bool) -> None:
    """Nothing begins anew with the folder's weights in silence."""
    if closed:
        refuse(
            "close",
            "it was closed, and its weights are gone; save_model() before close(), and make a new "
            "trainer of that folder",
        )


def check_resumed(folder: str, step: int, state: Mapping[str, Any], args: Any) -> None:
    """The two halves of a checkpoint are of one step. `state`: what the engine's half says."""
    stored = state.get("global_step", step)
    if stored != step:
        raise UsageError(
            f"resume_from_checkpoint: {folder}: trainer_state.json is of step {step}, and the "
            f"engine's state, in sifr/, of step {stored}; give a checkpoint that is of one step"
        )
    name = "gradient_accumulation_steps"
    before, now = state.get(name), getattr(args, name)
    if before is not None and before != now:
        _log.warning(
            "resume_from_checkpoint: %s: %s was %d, and is %d: steps are of other rows than before",
            folder, name, before, now,
        )  # fmt: skip


# --- the config ---

#: What the import of a Trainer's config takes of these arguments.
_TAKEN = (
    "learning_rate",
    "per_device_train_batch_size",
    "gradient_accumulation_steps",
    "weight_decay",
    "adam_beta1",
    "adam_beta2",
    "adam_epsilon",
    "max_grad_norm",
    "bf16",
    "fp16",
    "seed",
    "optim",
    "optim_args",
    "ddp_timeout",
)
_SCHEDULE = ("lr_scheduler_type", "lr_scheduler_kwargs", "warmup_steps")
#: Schedules that follow an evaluation: torch's own sets the rate of each step.
OUTSIDE = ("reduce_lr_on_plateau", "greedy")
#: Keys of sifr's section that are the Trainer's business.
TRAINERS = (
    "output resume data dataset data_type data_fields ignore_fields chat_template "
    "chat_template_kwargs chat_template_date train_on roles_to_train train_on_eos train_on_eot "
    "eot_tokens join_texts group_by_length skip_bad_rows max_samples drop_long_rows "
    "validation_split preference distill text_column pair_column label_column mlm_probability "
    "no_special_tokens max_steps num_train_epochs eval_data eval_steps eval_on_start "
    "max_eval_windows save_steps save_total_limit logging_steps trace trace_steps"
).split()


def _plain(value: Any, name: str) -> Any:
    """As JSON has it: a number of numpy is one, too."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): _plain(one, f"{name}.{key}") for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one, name) for one in value]
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        return value.item()
    raise UsageError(f"{name}: is {type(value).__name__}; give text, a number, a list or a dict")


def is_outside(args: Any) -> bool:
    return _plain(args.lr_scheduler_type, "lr_scheduler_type") in OUTSIDE


def own_config(given: Any) -> dict[str, Any]:
    """What sifr= gives: a dict, or the file of one."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return {str(key): _plain(value, f"sifr={key}") for key, value in given.items()}
    if not isinstance(given, (str, os.PathLike)):
        raise UsageError(f"sifr: is {type(given).__name__}; give a dict, or a file of JSON")
    try:
        with open(given, encoding="utf-8") as file:
            read = json.load(file)
    except (OSError, ValueError) as error:
        raise UsageError(f"sifr: {given}: {error}; give a dict, or a file of JSON") from None
    if not isinstance(read, dict):
        raise UsageError(f"sifr: {given}: is no JSON object")
    return read


#: Keys of sifr= that say what an argument says. An argument at its default leaves it to them.
_SAID_BY = {
    "learning_rate": ("optimizer.params.lr", "sifr.learning_rate"),
    "per_device_train_batch_size": (
        "train_micro_batch_size_per_gpu",
        "sifr.per_device_train_batch_size",
    ),
    "gradient_accumulation_steps": (
        "gradient_accumulation_steps",
        "sifr.gradient_accumulation_steps",
    ),
    "weight_decay": ("optimizer.params.weight_decay",),
    "adam_beta1": ("optimizer.params.betas",),
    "adam_beta2": ("optimizer.params.betas",),
    "adam_epsilon": ("optimizer.params.eps",),
    "max_grad_norm": ("gradient_clipping",),
    "bf16": ("bf16.enabled",),
    "fp16": ("fp16.enabled",),
    "seed": ("sifr.seed",),
    "optim": ("optimizer.type",),
    "ddp_timeout": ("sifr.collective_timeout",),
    "lr_scheduler_type": ("scheduler.type", "sifr.lr_scheduler_type"),
    "warmup_steps": ("scheduler.type", "sifr.warmup_steps", "sifr.warmup_ratio"),
}


def _says(own: Any, path: str) -> bool:
    for key in path.split("."):
        own = own.get(key) if isinstance(own, Mapping) else None
    return own not in (None, "auto")


def _is_default(args: Any, name: str) -> bool:
    known = getattr(type(args), "__dataclass_fields__", {}).get(name)
    return known is not None and _plain(getattr(args, name), name) == _plain(known.default, name)


def _source(args: Any, own: dict[str, Any]) -> dict[str, Any]:
    names = _TAKEN if is_outside(args) else _TAKEN + _SCHEDULE
    left = [
        name
        for name, paths in _SAID_BY.items()
        if _is_default(args, name) and any(_says(own, path) for path in paths)
    ]
    source = {name: _plain(getattr(args, name), name) for name in names if name not in left}
    if is_outside(args):
        source["lr_scheduler_type"] = "constant"
    if getattr(args, "activation_checkpointing", getattr(args, "gradient_checkpointing", False)):
        source["gradient_checkpointing"] = True
    return {name: value for name, value in source.items() if value is not None}


def _import(
    source: dict[str, Any], own: dict[str, Any], told: list[str] | None = None
) -> dict[str, Any]:
    """By `sifr import`, which has the table of the Trainer's arguments. Two values for one thing are
    refused. Of arguments in `told` a warning says that they have no effect, where that is so."""
    with tempfile.TemporaryDirectory(prefix="sifr-arguments-") as folder:
        path, config = (os.path.join(folder, name) for name in ("arguments.json", "sifr.json"))
        if own:
            source = {**source, "deepspeed": config}
            with open(config, "w", encoding="utf-8") as file:
                json.dump(own, file)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(source, file)
        try:
            text, lines = _sifr.import_config(path, "trainer")
        except UsageError as error:
            said = str(error).replace(path, "SifrTrainer").replace(config, "sifr=")
            raise UsageError(said.replace("pass --allow KEY", "leave it out of sifr=")) from None
    for line in lines:
        if line.endswith("gives another value"):
            raise UsageError(f"SifrTrainer: {line.replace('the DeepSpeed config', 'sifr=')}; give one")
        name, _, rest = line.partition(" = ")
        idle = name in (told or ()) and ": no effect here" in rest
        _log.log(logging.WARNING if idle else logging.DEBUG, "%s", line)
    made: dict[str, Any] = json.loads(text)
    return made


def _check_own(own: dict[str, Any]) -> None:
    section = own.get("sifr", {})
    for key in section if isinstance(section, Mapping) else ():
        if key.split(".")[0] in TRAINERS:
            raise UsageError(
                f"sifr.{key}: is the Trainer's business here: its arguments and data sets say it; "
                "leave it out of sifr="
            )


def _check_used(config: dict[str, Any], args: Any, ranks: int) -> None:
    """What Trainer itself reads has to be the same on both sides."""
    resolved = Config(config).resolve(ranks)
    for key, name in (
        ("train_micro_batch_size_per_gpu", "per_device_train_batch_size"),
        ("gradient_accumulation_steps", "gradient_accumulation_steps"),
    ):
        if resolved[key] != getattr(args, name):
            raise UsageError(
                f"{name}: {getattr(args, name)}, but sifr= makes {key} {resolved[key]} with "
                f"{ranks} rank{'s' if ranks > 1 else ''}; give the same, or leave the key out"
            )
    if (resolved.get("pipeline") or {}).get("stages", 0) not in (0, 1):
        raise UsageError("pipeline.stages: is not supported under the Trainer yet; leave it out")


def config_of(args: Any, ranks: int = 1, model: str | None = None, cpu: bool = False) -> Config:
    """The engine's config: of the arguments, and sifr= over them."""
    own = own_config(args.sifr)
    _check_own(own)
    source = _source(args, own)
    engines = model is not None  # the config that is used, of several that are looked at
    told = [n for n in source if engines and n != "optim" and not _is_default(args, n)]
    made = _import(source, own, told)
    section = made.setdefault("sifr", {})
    length = args.seq_length
    if length is not None and section.get("seq_length", length) != length:
        raise UsageError(
            f"seq_length: {length}, but sifr.seq_length is {section['seq_length']} in sifr=; give one"
        )
    if length is not None:
        section["seq_length"] = length
    if "seq_length" not in section:
        raise UsageError("seq_length: give it: rows are padded to so many tokens")
    if cpu and section.get("device", "auto") == "auto":
        section["device"] = "cpu"
    if model is not None:
        section["model"] = model
    _check_used(made, args, ranks)
    return Config(made)
