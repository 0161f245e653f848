"""The model of a SifrTrainer: a folder, which the engine reads, and a module that describes it."""

from __future__ import annotations

import json
import os
import shutil
from typing import Any, NamedTuple

import torch
import transformers
from transformers.utils.import_utils import is_peft_available

from .._base import UsageError
from .._ranks import rank, try_together
from . import _trainer_batch as batches

_KINDS = {
    "ForCausalLM": batches.NEXT,
    "LMHeadModel": batches.NEXT,
    "ForMaskedLM": batches.SAME,
    "ForTokenClassification": batches.SAME,
    "ForSequenceClassification": batches.FIRST,
}


class Model(NamedTuple):
    module: Any  #: what Trainer and callbacks see
    folder: str | None  #: None: the module's weights become one, by `write`
    adapter: str | None  #: an adapter's folder that is trained on
    holds_values: bool  #: the module has values of its own, which no step changes
    peft: bool


def is_peft(module: Any) -> bool:
    if not is_peft_available():
        return False
    from peft import PeftModel

    return isinstance(module, PeftModel)


def _base(module: Any) -> Any:
    return module.get_base_model() if is_peft(module) else module


def _is_model_folder(path: Any) -> bool:
    return bool(path) and os.path.isfile(os.path.join(path, "config.json"))


def _class_of(config: Any, folder: str) -> Any:
    for name in config.architectures or ():
        found = getattr(transformers, name, None)
        if found is not None:
            return found
    raise UsageError(
        f"{folder}: config.json names no architecture that transformers has ({config.architectures});"
        " give a module in place of the folder"
    )


def _open_folder(path: str) -> Model:
    base, adapter = path, None
    settings = os.path.join(path, "adapter_config.json")
    if os.path.isfile(settings):
        with open(settings, encoding="utf-8") as file:
            base, adapter = json.load(file).get("base_model_name_or_path") or "", path
    if not _is_model_folder(base):
        raise UsageError(f"model: {base or path}: has no config.json; give a model folder")
    config = transformers.AutoConfig.from_pretrained(base)
    with torch.device("meta"):
        module = _class_of(config, base)(config)
    module.name_or_path = base
    return Model(module, base, adapter, False, False)


def find(model: Any, own: dict[str, Any]) -> Model:
    """Of what a SifrTrainer is given as its model; `own` is sifr='s section."""
    if isinstance(model, (str, os.PathLike)):
        return _open_folder(os.fspath(model))
    if not isinstance(model, torch.nn.Module):
        raise UsageError(f"model: a folder or a module is wanted, not {type(model).__name__}")
    if getattr(_base(model), "quantization_method", None) is not None:
        raise UsageError(
            "model: its weights are quantised; give the folder of the model as it was, with "
            'sifr={"sifr": {"quantization": {...}, "lora": {...}}}'
        )
    _check_parts(_base(model))
    empty = [name for name, one in model.named_parameters() if one.is_meta]
    named = own.get("model") or getattr(_base(model), "name_or_path", "")
    folder = named if _is_model_folder(named) else None
    if folder is not None and (empty or is_peft(model)):
        _compare_config(model, folder)
    if not empty:
        peft = is_peft(model)
        return Model(model, folder if peft else None, None, True, peft)
    if is_peft(model):
        raise UsageError(
            f"model: a PEFT model without values ({empty[0]} is on the meta device): give the base as "
            'a folder, and its LoraConfig as sifr={"sifr": {"lora": {...}}}'
        )
    if folder is None:
        raise UsageError(
            f"model: {empty[0]} is on the meta device, and {named!r} is no folder with its values; "
            "give the folder in place of the module, or its path as model.name_or_path"
        )
    return Model(model, folder, None, False, False)


def _check_parts(module: Any) -> None:
    """The engine computes what the config says: another function, or another class of a part, would
    count for nothing. Parts that the config does not make are left to what reads their weights."""
    if not isinstance(module, transformers.PreTrainedModel):
        return
    try:
        with torch.device("meta"):
            made = type(module)(module.config)
    except Exception:  # a class of one's own, which the engine refuses by its name
        return
    if getattr(module, "_loss_function", None) is not getattr(made, "_loss_function", None):
        raise UsageError(
            "model: its loss_function was replaced, but the loss is computed in the engine: the "
            "model's own, over labels"
        )
    own = dict(module.named_modules())
    for name, part in made.named_modules():
        mine = own.get(name)
        for inner in ("original_module", "base_layer"):  # within PEFT's
            mine = getattr(mine, inner, mine)
        where = f"model: {name or type(module).__name__}"
        if mine is not None and type(mine) is not type(part):
            raise UsageError(
                f"{where} is {type(mine).__name__}, and its config makes {type(part).__name__}, which "
                "the engine computes; leave it as it is, or change the config"
            )
        if mine is not None and "forward" in vars(mine) and not hasattr(mine, "_hf_hook"):
            raise UsageError(
                f"{where}: its forward was replaced, and the engine would not call it; leave it as "
                "the class has it"
            )


def kind(module: Any) -> str:
    """How its labels stand."""
    base = _base(module)
    name = type(base).__name__
    found = next((where for end, where in _KINDS.items() if name.endswith(end)), None)
    if found is None:
        raise UsageError(
            f"model: {name} is not supported yet (supported: classes that end with "
            f"{', '.join(_KINDS)})"
        )
    if found != batches.FIRST:
        return found
    if getattr(base.config, "problem_type", None) not in (None, "single_label_classification"):
        raise UsageError(
            f"problem_type: {base.config.problem_type} is not supported yet under the Trainer; "
            "`sifr train` trains it"
        )
    mappings = transformers.models.auto.modeling_auto
    decoders = mappings.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    encoders = mappings.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    model_type = base.config.model_type
    last = model_type in decoders and model_type not in encoders
    return batches.LAST if last else batches.FIRST


def frozen(module: Any) -> list[str] | None:
    """Names of weights whose module says that they are not trained; None: there are none."""
    names = [name for name, one in module.named_parameters() if not one.requires_grad]
    return names or None


#: What of a module's config may differ from its folder's.
_FREE = (
    "_name_or_path transformers_version use_cache dtype torch_dtype architectures pad_token_id "
    "bos_token_id eos_token_id id2label label2id _attn_implementation attn_implementation"
).split()


def _compare_config(module: Any, folder: str) -> None:
    """The engine reads the folder's config.json."""
    own = _base(module).config.to_dict()
    stored = transformers.AutoConfig.from_pretrained(folder).to_dict()
    for key in sorted(set(own) | set(stored)):
        if key not in _FREE and own.get(key) != stored.get(key):
            raise UsageError(
                f"model: config.{key} is {own.get(key)!r} in the module and {stored.get(key)!r} in "
                f"{folder}, which the engine reads; make both the same"
            )


def write(model: Model, output: str) -> tuple[str, str | None]:
    """Folder and adapter for the engine to read; of a module with values, from those. Of all ranks."""
    if not model.holds_values:
        assert model.folder is not None
        return model.folder, model.adapter
    base = model.folder or os.path.join(output, "_sifr_model")
    adapter = os.path.join(output, "_sifr_adapter") if model.peft else None

    def put() -> None:
        if rank() != 0:
            return
        if adapter is not None:
            shutil.rmtree(adapter, ignore_errors=True)
            model.module.save_pretrained(adapter)
        if model.folder is None:
            shutil.rmtree(base, ignore_errors=True)
            _save_base(model, base)
        else:
            _compare_base(model.module, base)

    try_together(put)
    return base, adapter


def _compare_base(module: Any, folder: str) -> None:
    """The engine reads the folder: what was changed in the module since would be lost. The first row
    of each weight decides."""
    from safetensors import safe_open

    names = ((name.replace(".base_layer", ""), one) for name, one in _base(module).named_parameters())
    mine = {name: one.detach() for name, one in names if "lora_" not in name}
    for file in sorted(name for name in os.listdir(folder) if name.endswith(".safetensors")):
        with safe_open(os.path.join(folder, file), "pt") as stored:
            for name in set(stored.keys()) & set(mine):
                part, own = stored.get_slice(name), mine[name]
                same = tuple(part.get_shape()) == tuple(own.shape)
                if not same or not torch.equal(part[:1].to(own.dtype), own[:1].cpu()):
                    raise UsageError(
                        f"model: {name} of the PEFT model's base is another than in {folder}, which "
                        "the engine reads; save the base, and load the model from there"
                    )


def _save_base(model: Model, folder: str) -> None:
    if not model.peft:
        model.module.save_pretrained(folder)
        return
    raise UsageError(
        "model: the base of a PEFT model has to be a folder on this machine; load it by from_pretrained"
        "(FOLDER), or give the base as a folder and its LoraConfig as "
        'sifr={"sifr": {"lora": {...}}}'
    )


# --- values back into the module ---


def fill(model: Model, folder: str) -> Any:
    """The values of a folder that the engine wrote, into the module."""
    if os.path.isfile(os.path.join(folder, "adapter_config.json")) and not model.peft:
        raise UsageError(
            "materialise: the engine trains adapters, and the module is their base; load both by "
            "peft.PeftModel.from_pretrained(base, folder) from what save_model() writes"
        )
    if model.peft:
        from peft import set_peft_model_state_dict
        from safetensors.torch import load_file

        values = load_file(os.path.join(folder, "adapter_model.safetensors"))
        set_peft_model_state_dict(model.module, values)
        return model.module
    loaded = type(model.module).from_pretrained(folder)
    if model.holds_values:
        with torch.no_grad():
            mine = model.module.state_dict()
            for name, value in loaded.state_dict().items():
                mine[name].copy_(value)
        return model.module
    _take_over(model.module, loaded)
    return model.module


def _take_over(module: Any, loaded: Any) -> None:
    """Parameters and buffers in place of those on the meta device; what is tied stays so."""
    for name, part in loaded.named_modules():
        own = module.get_submodule(name)
        for key, value in part._parameters.items():
            own._parameters[key] = value
        for key, value in part._buffers.items():
            own._buffers[key] = value
