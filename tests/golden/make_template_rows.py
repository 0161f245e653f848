#!/usr/bin/env python3
"""Makes tests/golden/template_rows.json: what transformers writes of rows that give their chat
template more than messages.

    python3 tests/golden/make_template_rows.py [--shared ../shared] [--axolotl FOLDER]

Needs `pip install transformers tokenizers jinja2`. Each case has a template, the run's variables, a
row and the text of apply_chat_template, called as TRL 1.16 calls it: with the row's tools and
documents, and chat_template_kwargs as further arguments. `shared` has the same of the template of
SmolLM3 beside the project, as bytes and an FNV-1a hash; its rows have a date of one day. `named` has of each template that sifr has under axolotl's name a hash
of the text and two renderings; --axolotl is its folder of templates (axolotl/utils/chat_templates/
templates of the wheel of 0.19.0, which needs no installation).
"""
import argparse, datetime, json, os
from transformers import PreTrainedTokenizerFast
from transformers.utils import chat_template_utils

HERE = os.path.dirname(os.path.abspath(__file__))
DAY = datetime.datetime(2024, 7, 26)


class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return DAY


chat_template_utils.datetime = Clock

TURNS = ("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
         "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
THINKS = ("{% if enable_thinking is not defined %}{% set enable_thinking = true %}{% endif %}"
          "<|im_start|>system\n{{ '/think' if enable_thinking else '/no_think' }}<|im_end|>\n" + TURNS)
SHOWS = "{{ style }}|{{ style is defined }}|{{ style is none }}|{{ level | default(3) }}\n" + TURNS
RAG = ("{% for d in documents or [] %}[{{ loop.index }} {{ d.title }}] {{ d.text }}\n{% endfor %}"
       "{{ documents is none }}\n" + TURNS)
CALLS = "{% for t in tools or [] %}{{ t | tojson }}\n{% endfor %}" + TURNS
TEMPLATES = {"turns": TURNS, "thinks": THINKS, "shows": SHOWS, "rag": RAG, "calls": CALLS}

ASKED = [{"role": "user", "content": "Two and two?"}, {"role": "assistant", "content": "Four."}]
BOOKS = [{"title": "Sums", "text": "Two and two are four."}, {"title": "B", "text": "é"}]
TOOLS = [{"type": "function", "function": {"name": "add", "parameters": {}}}]
CASES = [
    ("thinks", None, {}),
    ("thinks", None, {"chat_template_kwargs": {"enable_thinking": False}}),
    ("thinks", None, {"chat_template_kwargs": {"enable_thinking": None}}),
    ("thinks", None, {"chat_template_kwargs": {}}),
    ("thinks", {"enable_thinking": False}, {}),
    ("thinks", {"enable_thinking": False}, {"chat_template_kwargs": {"enable_thinking": True}}),
    ("shows", {"style": "run", "level": 1}, {"chat_template_kwargs": {"style": "row"}}),
    ("shows", None, {"chat_template_kwargs": {"style": None}}),
    ("shows", None, {"chat_template_kwargs": {"style": ["a", {"b": 1.5}]}}),
    ("shows", None, {"chat_template_kwargs": {"bos_token": "<b>"}}),
    ("rag", None, {}),
    ("rag", None, {"documents": BOOKS}),
    ("rag", None, {"chat_template_kwargs": {"documents": BOOKS[:1]}}),
    ("rag", {"documents": BOOKS}, {}),
    ("turns", None, {"documents": BOOKS}),
    ("calls", None, {"tools": TOOLS}),
    ("calls", None, {"chat_template_kwargs": {"tools": TOOLS}}),
]

NAMED = ["alpaca", "chatml", "deepseek_v2", "exaone", "gemma", "llama3", "metharme", "mistral_v1",
         "phi_3", "phi_35"]
LONG = [{"role": "system", "content": "Brief. "}] + ASKED + [
    {"role": "user", "content": " And three? "}, {"role": "assistant", "content": "\nSix. "}]


def text_of(tokenizer, template, usual, row):
    kwargs = {**(usual or {}), **row.get("chat_template_kwargs", {})}
    named = {"tools": row.get("tools"), "documents": row.get("documents"), **kwargs}
    return tokenizer.apply_chat_template(row["messages"], chat_template=template, tokenize=False,
                                         **named)


def hash_of(data, value=0xcbf29ce484222325):
    for byte in data:
        value = (value ^ byte) * 0x100000001b3 & (1 << 64) - 1
    return f"{value:016x}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shared")
    parser.add_argument("--axolotl")
    options = parser.parse_args()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=os.path.join(HERE, "finetune", "byte.json"), bos_token="<s>", eos_token="</s>")
    cases = []
    for name, usual, more in CASES:
        row = {"messages": ASKED, **more}
        cases.append({"template": name, "variables": usual, "row": row,
                      "text": text_of(tokenizer, TEMPLATES[name], usual, row)})
    out = {"templates": TEMPLATES, "cases": cases, "shared": [], "named": []}
    for name in NAMED if options.axolotl else []:
        with open(os.path.join(options.axolotl, name + ".jinja")) as f:
            template = f.read()
        texts = [text_of(tokenizer, template, None, {"messages": messages})
                 for messages in (ASKED, LONG[name == "gemma":])]
        out["named"].append({"name": name, "hash": hash_of(template.encode()), "texts": texts})
    if options.shared:
        file = "HuggingFaceTB-SmolLM3-3B.jinja"
        with open(os.path.join(options.shared, "data", "chat_templates", file)) as f:
            template = f.read()
        for more in ({}, {"chat_template_kwargs": {"enable_thinking": False}},
                     {"chat_template_kwargs": {"custom_instructions": "Terse."}}):
            row = {"messages": ASKED, **more}
            text = text_of(tokenizer, template, None, row).encode()
            out["shared"].append({"template": file, "row": row, "bytes": len(text),
                                  "hash": hash_of(text)})
    with open(os.path.join(HERE, "template_rows.json"), "w") as f:
        json.dump(out, f, indent=1, ensure_ascii=False)
        f.write("\n")


main()
