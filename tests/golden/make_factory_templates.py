"""LLaMA-Factory's chat templates by their names, and texts that its own classes make with them.

    make_factory_templates.py LLAMAFACTORY    (the folder of the unpacked package)

Written: src/config/import/import_factory_templates.inc, the parts of each template whose text says what is
learned, and factory_templates.json, conversations as `Template.encode_multiturn` cuts them into
prompts and answers. Left out are templates with efficient_eos, whose labels have an end of turn
that the text does not have, and those with tokens by their ids.
"""
import importlib
import importlib.util
import json
import os
import sys
import types

import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(sys.argv[1], "llamafactory")
for name, path in (("llamafactory", ROOT), ("llamafactory.data", os.path.join(ROOT, "data"))):
    sys.modules[name] = types.ModuleType(name)  # without what their __init__ imports
    sys.modules[name].__path__ = [path]
if importlib.util.find_spec("torchaudio") is None:
    sys.modules["torchaudio"] = types.ModuleType("torchaudio")
lf = importlib.import_module("llamafactory.data.template")
VERSION = [f for f in os.listdir(sys.argv[1]) if f.startswith("llamafactory-")][0].split("-")[1]
VERSION = VERSION.replace(".dist", "")

PARTS = ("prefix", "system", "user", "assistant")
MARKS = {"bos_token": "\1", "eos_token": "\2"}


def part(template, name):
    """The slots as one text, with marks for bos, eos and the content; None: tokens by ids."""
    out = ""
    for slot in getattr(template, "format_" + name).slots:
        if isinstance(slot, dict):
            return None
        if isinstance(slot, set):
            mark = next(iter(slot))
            eos = mark == "eos_token" and template.replace_eos
            out += template.stop_words[0] if eos else MARKS.get(mark, "")  # others write nothing
        else:
            out += slot.replace("{{content}}", "\3")
    return out


def quote(text):
    out = ""
    for c in text:
        out += {"\n": "\\n", '"': '\\"', "\\": "\\\\", "\1": "\\001", "\2": "\\002",
                "\3": "\\003"}.get(c, c)
    return '"' + out + '"'


def row_of(name, template):
    if template.efficient_eos or "Glm47" in type(template).__name__:
        return None
    parts = [part(template, p) for p in PARTS]
    if None in parts or any("{{" in p for p in parts):
        return None
    kind = {"Template": "PLAIN", "Llama2Template": "IN_USER", "ReasoningTemplate": "THINKS"}
    thoughts = list(template.thought_words) if isinstance(template, lf.ReasoningTemplate) else []
    stops = [w for w in template.stop_words if w in "".join(parts)]
    return (kind[type(template).__name__], *parts, template.default_system, *(thoughts or ["", ""]),
            " ".join(stops))


def byte_tokenizer():
    """One token a byte, so that the pieces' ids are those of the whole."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    t = Tokenizer(models.BPE({c: i for i, c in enumerate(alphabet)}, []))
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    t.decoder = decoders.ByteLevel()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=t, bos_token="<s>", eos_token="</s>", pad_token="</s>")


USER = "user"
TALKS = {
    "short": (None, ["Is it cold?", "No."]),
    "system": ("Be brief.", ["Is it cold?", " No. \n", "And now?\n", "Yes {it} 'is' \"so\"."]),
}


def thoughtful(template, talk):
    """The same with thoughts in the answers but the first."""
    system, turns = talk
    first, second = template.thought_words
    return system, turns[:2] + [turns[2], first + "a\n\nb" + second + turns[3]] + \
        ["One more?", first + "c" + second + "\nFine.", "And?", "Done."]


def messages_of(turns):
    return [{"role": ("user", "assistant")[i % 2], "content": t} for i, t in enumerate(turns)]


def cut(name, talk, thinking=True, discard=False):
    template, tokenizer = lf.TEMPLATES[name], byte_tokenizer()
    if isinstance(template, lf.ReasoningTemplate):
        template.enable_thinking = thinking
        template.preserve_thinking = False
    if template.replace_eos:
        tokenizer.eos_token = template.stop_words[0]
    system, turns = talk
    arguments = (discard,) if discard else ()
    pairs = template.encode_multiturn(tokenizer, messages_of(turns), system, None, *arguments)
    text = lambda ids: tokenizer.decode(ids, clean_up_tokenization_spaces=False)
    return [[text(a), text(b)] for a, b in pairs]


def cases_of(name, template):
    out = {k: cut(name, v) for k, v in TALKS.items()}
    if isinstance(template, lf.ReasoningTemplate):
        talk = thoughtful(template, TALKS["system"])
        out["thoughts"] = cut(name, talk)
        out["thoughts off"] = cut(name, talk, thinking=False)
        out["thoughts last"] = cut(name, talk, discard=True)
        out["thoughts off, last"] = cut(name, talk, thinking=False, discard=True)
    return out


def main():
    rows, cases, left = {}, {}, []
    for name, template in sorted(lf.TEMPLATES.items()):
        row = row_of(name, template)
        if row is None:
            left.append(name)
            continue
        rows.setdefault(row, []).append(name)
        cases[name] = cases_of(name, template)
    with open(os.path.join(HERE, "../../src/config/import_factory_templates.inc"), "w",
              encoding="utf-8") as f:
        f.write(f"/* Made by tests/golden/make_factory_templates.py of LLaMA-Factory {VERSION} "
                "(Apache 2.0). */\n")
        for row, names in sorted(rows.items(), key=lambda item: item[1]):
            f.write(f"TEMPLATE({quote('|'.join(names))}, {row[0]},\n    "
                    + ",\n    ".join(quote(t) for t in row[1:]) + ")\n")
        f.write("\n/* Their labels, or tokens, are not those of a text. */\n")
        f.write("OTHERS(" + quote("|".join(left)) + ")\n")
    talks = {k: {"system": s, "turns": t} for k, (s, t) in TALKS.items()}
    for name, template in lf.TEMPLATES.items():
        if name in cases and isinstance(template, lf.ReasoningTemplate):
            system, turns = thoughtful(template, TALKS["system"])
            talks["thoughts of " + name] = {"system": system, "turns": turns}
    # Names that make the same of everything are stored once.
    grouped = {}
    for name, case in cases.items():
        grouped.setdefault(json.dumps(case), []).append(name)
    json.dump({"versions": {"LLaMA-Factory": VERSION, "transformers": transformers.__version__},
               "talks": talks,
               "cases": [{"names": n, "pairs": json.loads(c)} for c, n in grouped.items()]},
              open(os.path.join(HERE, "factory_templates.json"), "w", encoding="utf-8"),
              ensure_ascii=False, indent=0)
    print(len(cases), "names,", len(rows), "templates,", len(left), "left:", *left)


main()
