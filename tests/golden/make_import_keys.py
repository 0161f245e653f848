"""The keys that other programs know, with their defaults, as tables of src/config/import/.

    make_import_keys.py AXOLOTL LLAMAFACTORY OUT    (folders of the unpacked packages)

TRL, transformers and accelerate are imported; the classes of axolotl and LLaMA-Factory are read as
text, since they need GPUs' libraries. Written: OUT/import_known_PROGRAM.inc, with the versions. A
default that is no plain value is null; a key that has several defaults, by class, has a row each.
"""
import ast
import dataclasses
import enum
import json
import os
import re
import sys

import accelerate
import transformers
import trl
from accelerate.commands.config.config_args import ClusterConfig
from trl.experimental.orpo import ORPOConfig
from trl.scripts.utils import DatasetMixtureConfig

NOTHING = object()


def plain(value):
    if isinstance(value, enum.Enum):
        value = value.value
    if isinstance(value, (bool, int, float, str)) or value is None:
        return value
    return value if value in ([], {}) else None


def of_class(cls):
    out = []
    for f in dataclasses.fields(cls):
        value = None if f.default is dataclasses.MISSING else plain(f.default)
        out.append((f.name, value))
    return out


def constant(node):
    """The value of a node; NOTHING where it is none."""
    try:
        return plain(ast.literal_eval(node))
    except (ValueError, SyntaxError, TypeError):
        return NOTHING


def default_of(node):
    """Of `x: T = 3`, `= field(default=3)`, `= Field(3, …)`."""
    if node is None:
        return None
    if isinstance(node, ast.Call):
        for word in node.keywords:
            if word.arg == "default":
                value = constant(word.value)
                return None if value is NOTHING else value
        if node.args and getattr(node.func, "id", "") == "Field":
            value = constant(node.args[0])
            return None if value is NOTHING or value is Ellipsis else value
        return None
    value = constant(node)
    return None if value is NOTHING else value


def read_classes(folder, end=".py"):
    """Of every class in the files below the folder: its bases and its fields."""
    classes = {}
    for top, _, files in sorted(os.walk(folder)):
        for name in sorted(files):
            if not name.endswith(end):
                continue
            with open(os.path.join(top, name), encoding="utf-8") as file:
                tree = ast.parse(file.read())
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef):
                    bases = [getattr(b, "id", getattr(b, "attr", "")) for b in node.bases]
                    fields = [(item.target.id, default_of(item.value)) for item in node.body
                              if isinstance(item, ast.AnnAssign)
                              and isinstance(item.target, ast.Name)]
                    classes.setdefault(node.name, (bases, fields))
    return classes


def fields_of(classes, name, seen=None):
    """A class's fields, its bases' first; one that is said again has the last default."""
    if name not in classes:
        return {}
    bases, own = classes[name]
    out = {}
    for base in reversed(bases):
        if base != name:
            out.update(fields_of(classes, base))
    out.update(own)
    return out


def write(out, program, what, rows):
    seen, lines = set(), ["KNOWN(\"\", %s)\n" % json.dumps(what)]
    for key, value in sorted(rows, key=lambda r: (r[0], json.dumps(r[1]))):
        text = json.dumps(value)
        if (key, text) in seen or not key.isidentifier() or key.startswith("_"):
            continue
        seen.add((key, text))
        lines.append("KNOWN(%s, %s)\n" % (json.dumps(key), json.dumps(text)))
    with open(os.path.join(out, "import_known_%s.inc" % program), "w", encoding="utf-8") as file:
        file.write("/* Keys of a program's classes, with their defaults; the first row says whose\n"
                   " * they are. Made by tests/golden/make_import_keys.py. */\n")
        file.writelines(lines)


def main():
    axolotl, factory, out = sys.argv[1:]
    trainer = of_class(transformers.TrainingArguments)
    write(out, "trainer", "transformers %s" % transformers.__version__, trainer)
    rows = []
    for cls in (trl.SFTConfig, trl.DPOConfig, ORPOConfig, trl.ModelConfig, trl.ScriptArguments,
                DatasetMixtureConfig):
        rows += of_class(cls)
    write(out, "trl", "TRL %s" % trl.__version__, rows)
    write(out, "accelerate", "accelerate %s" % accelerate.__version__,
          of_class(ClusterConfig))
    with open(os.path.join(axolotl, "VERSION"), encoding="utf-8") as file:
        version = file.read().strip()
    classes = read_classes(os.path.join(axolotl, "src", "axolotl"))
    known = dict(fields_of(classes, "AxolotlInputConfig"))
    plugins = read_classes(os.path.join(axolotl, "src", "axolotl", "integrations"), "args.py")
    for name in sorted(plugins):
        known.update({k: v for k, v in fields_of(plugins, name).items() if k not in known})
    write(out, "axolotl", "axolotl %s" % version, known.items())
    classes = read_classes(os.path.join(factory, "llamafactory", "hparams"))
    rows = list(trainer)
    rows += of_class(transformers.Seq2SeqTrainingArguments)
    for name in ("ModelArguments", "DataArguments", "FinetuningArguments", "TrainingArguments",
                 "GeneratingArguments"):
        rows += fields_of(classes, name).items()
    v1 = read_classes(os.path.join(factory, "llamafactory", "v1", "config"))
    later = []
    for name in ("ModelArguments", "DataArguments", "TrainingArguments", "SampleArguments"):
        later += fields_of(v1, name).items()
    version = [f for f in os.listdir(factory) if f.startswith("llamafactory-")][0].split("-")[1]
    version = version.replace(".dist", "")
    write(out, "factory", "LLaMA-Factory %s" % version, rows)
    write(out, "factory_v1", "LLaMA-Factory %s's v1" % version, later)


main()
