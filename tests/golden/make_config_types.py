#!/usr/bin/env python3
"""Writes src/model/config_types.inc: the types of values that transformers' classes accept for keys
of config.json, of each model_type of docs/models.md and of the text models in folders with a tower.

    python make_config_types.py

A class checks its own keys (huggingface_hub's strict dataclasses); their letters are of its
annotations. Others that src/model/ names are tried with null, and have all other letters where it is
refused. Keys of the class that all derive from are not checked there. Says what null means where it is accepted and is
not what an absent key means: for whoever changes the readers.
"""
import dataclasses
import glob
import json
import os
import re
import textwrap
import types
import typing

import torch
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
LETTERS = {int: "i", float: "f", bool: "b", str: "s", list: "l", tuple: "l", dict: "o",
           type(None): "n"}
# Null opens there, and the model cannot compute with it, or loses its head.
NEVER_NULL = {"cohere": {"logit_scale", "layer_norm_eps"}, "cohere2": {"logit_scale"},
              "falcon": {"layer_norm_epsilon", "activation"},
              "glm": {"head_dim", "num_key_value_heads"}, "gemma3": {"tie_word_embeddings"},
              "phi": {"partial_rotary_factor"}, "stablelm": {"partial_rotary_factor"},
              "nemotron": {"partial_rotary_factor"}}
BASES = {"rope_theta", "rope_local_base_freq", "rotary_emb_base", "rotary_pct", "global_rope_theta",
         "local_rope_theta"}  # of rotary positions: the same
# Written by transformers and not read, of other files' checks, or of labels, which a run may give.
LEFT_OUT = {"transformers_version", "dtype", "text_config", "vision_config", "audio_config",
            "rope_parameters", "architectures", "id2label", "label2id", "num_labels",
            "problem_type", "chunk_size_feed_forward", "is_encoder_decoder", "output_hidden_states",
            "return_dict"}


def letters(kind):
    if kind is typing.Any:
        return set("ifbslon")
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return set().union(*map(letters, typing.get_args(kind)))
    if typing.get_origin(kind) is typing.Literal:
        return set().union(*(letters(type(value)) for value in typing.get_args(kind)))
    plain = typing.get_origin(kind) or kind
    return set(LETTERS.get(plain, "ifbslon" if plain in (typing.Required,) else "o"))


def written(kind, **keys):
    """The config's values; None where the class refuses the keys."""
    try:
        config = kind.from_dict({"model_type": kind.model_type, **keys})
        return json.loads(config.to_json_string(use_diff=False))
    except Exception:  # of many kinds: what matters is that it does not open
        return None


def named():
    """Words in quotes of the readers: among them all keys that they know."""
    keys = set()
    for path in glob.glob(os.path.join(ROOT, "src", "model", "**", "*.c"), recursive=True):
        with open(path) as f:
            keys |= set(re.findall(r'"([a-zA-Z_][a-zA-Z_0-9]{2,})"', f.read()))
    return keys


def of_class(kind, others):
    hints = typing.get_type_hints(kind, localns={"torch": torch})
    own = {f.name: letters(hints[f.name]) for f in dataclasses.fields(kind)}
    for key in NEVER_NULL.get(kind.model_type, set()):
        own[key] = own.get(key, {"v"}) - {"n"}
    usual = written(kind)
    for key in sorted((others | set(own) | set(kind.attribute_map)) - LEFT_OUT - {"model_type"}):
        if "n" not in own.get(key, "n"):
            continue
        null = written(kind, **{key: None})
        changed = {k: v for k, v in (null or usual).items() if v != usual.get(k)}
        # Null of a key that the class lets be null may only not suit the usual sizes.
        if null is None and key not in hints or changed and key in BASES:
            own[key] = {"v"}
        elif changed and changed != {key: None}:
            print(f"{kind.model_type}: {key} null: {json.dumps(changed)[:200]}")
        elif changed and key in usual:
            print(f"{kind.model_type}: {key} stays null, usually {usual[key]}")
    return {k: "".join(c for c in "vifbslon" if c in v) for k, v in own.items() if k not in LEFT_OUT}


def classes():
    with open(os.path.join(ROOT, "docs", "models.md")) as f:
        found = re.findall(r"^\| `([a-z0-9_-]+)` \|", f.read(), re.M)
    out = {}
    for name in found:
        if name not in CONFIG_MAPPING:
            continue
        kind = CONFIG_MAPPING[name]
        out[name] = kind
        text = kind.sub_configs.get("text_config") if kind.sub_configs else None
        own = getattr(text, "model_type", None)  # not of one that any model_type may have
        if own and own not in CONFIG_MAPPING or own and own.endswith("_text"):
            out.setdefault(own, text)
    return out


def main():
    transformers.logging.set_verbosity_error()
    others = named()
    rows = {name: of_class(kind, others) for name, kind in classes().items()}
    lines = ["/* Keys of transformers' classes and the types of their values (config_types.c). Made "
             "by", " * tests/golden/make_config_types.py from transformers "
             f"{transformers.__version__}. */"]
    for name, row in rows.items():
        text = " ".join(f"{k}:{v}" for k, v in sorted(row.items()))
        parts = textwrap.wrap(text, 88)
        parts = [f'"{p}{" " if i + 1 < len(parts) else ""}"' for i, p in enumerate(parts)]
        lines.append(f'TYPES("{name}",\n      ' + "\n      ".join(parts) + ")")
    with open(os.path.join(ROOT, "src", "model", "config_types.inc"), "w") as f:
        f.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
