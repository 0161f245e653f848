#!/usr/bin/env python3
"""Writes axolotl/cases.json: what axolotl's own chat_template strategy learns of rows of messages.

    pip install torch transformers trl colorama addict        # versions: see cases.json
    PYTHONPATH=AXOLOTL/src python make_axolotl.py AXOLOTL [--shared ../shared]

AXOLOTL is the folder of the unpacked source of axolotl. Its class (prompt_strategies/
chat_template.py) runs alone, loaded as a config loads it, without the rest of axolotl. A case has a
tokenizer and a template as in trl/cases.json (make_trl.py, whose rows, tokenizers and format of
sequences these are), the keys of a set (roles_to_train, train_on_eos, train_on_eot), eot_tokens,
train_on_inputs, rows, and of each row the number and the hash of its ids, and which are labels.
Rows that the template refuses, rows with a turn that is to learn and that the template does not
write, and those of which nothing is learned, are not there. With --shared
the same of published templates.
"""
import argparse, json, os

import make_trl
from make_trl import CALLED, DIALOGUES, TOOLS, TOKENIZERS, packed, say, turns
from axolotl.prompt_strategies.chat_template import load
from axolotl.utils.dict import DictDefault

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "axolotl")

CALL = {"type": "function", "function": {"name": "weather", "arguments": {"place": "Bern"}}}
ROWS = [{"messages": p + c} for p, c, _ in DIALOGUES] + [
    {"messages": turns("Blank behind ", " in front of it ", "ü", "é ", system=" odd ")},
    {"messages": turns("ends in a [", "] ends in ]", "[[", "zz")},
    {"messages": turns("emoji 👋🏽", "👋", "more 👋🏽👋", "🏽 ")},
    {"messages": turns("  ", " ", "\n", "\n\nok\n")},
    {"messages": turns("eos </s>", "</s> first", "</s>", "<|im_end|> inside")},
    {"messages": turns("Only asked", system="And told")},
    {"messages": turns("a")[:1] + [say("assistant", "b"), say("assistant", "c"), say("user", "d")]}]
FLAGS = [{"messages": [{**m, "train": flag} for m, flag in zip(m, flags)]} for m, flags in (
    (turns("ask", "yes", "again", "no", system="told"), (True, False, True, False, True)),
    (turns("ask", "yes", "again", "no"), (False, True, True, False)))] + [
    {"messages": [say("user", "ask"), {**say("assistant", "yes"), "train": False},
                  {**say("user", "again"), "train": True}, say("assistant", "no")]}]
CALLS = [{"messages": p + c, "tools": TOOLS} for p, c, _ in CALLED] + [
    {"messages": [say("user", "Weather?"), {**say("assistant", ""), "tool_calls": [CALL]},
                  say("tool", "{\"sky\": 2}"), say("assistant", "Rain.")], "tools": TOOLS},
    {"messages": [say("user", "Think"), {**say("assistant", "So."), "reasoning_content": "Why?"},
                  say("user", "On"), {**say("assistant", "Then."), "reasoning_content": "How?"}]}]

# keys of the set, and of the config
CHOICES = [({}, {}), ({"train_on_eos": "all"}, {}), ({"train_on_eos": "last"}, {}),
           ({"train_on_eos": "none"}, {}), ({"roles_to_train": ["user", "assistant"]}, {}),
           ({"roles_to_train": ["human"], "train_on_eos": "all"}, {}),
           ({"roles_to_train": ["system", "tool"], "train_on_eos": "last"}, {}),
           ({}, {"train_on_inputs": True})]
TURNS = [({}, {"eot_tokens": ["<|im_end|>"]}),
         ({"train_on_eot": "all", "train_on_eos": "none"}, {"eot_tokens": ["<|im_end|>"]}),
         ({"train_on_eot": "last"}, {"eot_tokens": ["<|im_end|>", "<|im_start|>"]}),
         ({"roles_to_train": [], "train_on_eos": "all"}, {"eot_tokens": ["<|im_end|>"]})]


def put_trimming():
    """The tokenizer of GPT-2's kind, whose tokens begin behind their blanks."""
    from tokenizers import processors
    from transformers import PreTrainedTokenizerFast
    path = os.path.join(make_trl.FINETUNE, "byte.json")
    with open(path, encoding="utf-8") as f:
        described = json.load(f)
    post = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=path, eos_token="</s>", pad_token="<|tool|>")
    tokenizer.backend_tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    TOKENIZERS["byte_trims"] = tokenizer
    assert described["pre_tokenizer"]
    return {"file": "byte.json", "config": {"eos_token": "</s>"}, "post_processor": post}


SETS = []


def number_of(rows):
    if rows not in SETS:
        SETS.append(rows)
    return SETS.index(rows)


def case(out, kind, template, text, rows, given, whole, **more):
    tokenizer = TOKENIZERS[kind]
    tokenizer.chat_template = text
    flags = {"message_field_training": "train"} if rows is FLAGS else {}
    config = DictDefault({"sequence_len": 2048, "train_on_inputs": False, **whole})
    strategy = load(tokenizer, config, {"type": "chat_template", **flags, **given})
    taken, made, lost = [], [], []
    find, known = strategy.find_turn, strategy.prompter.chat_template_msg_variables

    def find_turn(turns, turn_idx, **more):
        turn, span = turns[turn_idx], find(turns=turns, turn_idx=turn_idx, **more)
        learned = turn.get("training", turn["role"] in strategy.roles_to_train)
        if span == (-1, -1) and learned and not strategy.train_on_inputs and turn["content"].strip():
            lost.append(turn)
        return span

    strategy.find_turn = find_turn
    for row in rows:
        # Its analysis of the template misses a loop over an expression, and so the calls.
        if "tool_calls" in text and "tool_calls" not in known and "tool_calls" in json.dumps(row):
            continue
        lost.clear()
        try:
            result = strategy.tokenize_prompt(json.loads(json.dumps(row)))
        except Exception as error:  # the template's own
            print("refused:", template, type(error).__name__, str(error)[:70])
            continue
        if lost:  # a learned turn that the template does not write: here it is refused
            print("not written:", template, lost[0]["role"])
            continue
        mask = "".join("0" if label == -100 else "1" for label in result["labels"])
        assert all(label in (-100, i) for label, i in zip(result["labels"], result["input_ids"]))
        taken.append(row)
        if "1" in mask[1:]:
            made.append(packed(result["input_ids"], mask))
    if made:
        out.append({"tokenizer": kind, "template": template, **given, **whole, **more,
                    "rows": number_of(taken), "sequences": made})


def chat_cases(out, template, text, kind, choices=CHOICES, **more):
    for given, whole in choices:
        case(out, kind, template, text, ROWS, given, whole, **more)
    for rows in (FLAGS, CALLS):
        for given, whole in (CHOICES[0], CHOICES[6]):
            case(out, kind, template, text, rows, given, whole, **more)
    for given, whole in TURNS:
        if "<|im_end|>" in text and choices is CHOICES:
            case(out, kind, template, text, ROWS, given, whole, **more)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("axolotl")
    parser.add_argument("--shared")
    given = parser.parse_args()
    os.makedirs(OUT, exist_ok=True)
    make_trl.transformers.utils.logging.set_verbosity_error()
    tokenizers, templates, cases = make_trl.make_tokenizers(), make_trl.own_templates(), []
    tokenizers["byte_trims"] = put_trimming()
    some = [CHOICES[1], CHOICES[4]]
    for name in ("chatml_bare", "ends_bare", "moves", "thinks_bare"):
        chat_cases(cases, name, templates[name], "byte_named" if name == "moves" else "byte")
    for name in ("trims_bare", "thinks_marked"):
        chat_cases(cases, name, templates[name], "byte", some)
    for kind in ("byte_trims", "piece_bos"):
        for name in ("chatml_bare", "ends_bare", "trims_bare", "moves"):
            chat_cases(cases, name, templates[name], kind, some)
    for name in ("Qwen-Qwen3-0.6B", "mistralai-Mistral-Nemo-Instruct-2407", "google-gemma-2-2b-it",
                 "meta-llama-Llama-3.1-8B-Instruct") if given.shared else ():
        with open(os.path.join(given.shared, "data", "chat_templates", name + ".jinja"),
                  encoding="utf-8", newline="") as f:
            chat_cases(cases, name, f.read(), "byte_named", some, published=True)
    with open(os.path.join(given.axolotl, "VERSION")) as f:
        versions = {"axolotl": f.read().strip(), "transformers": make_trl.transformers.__version__}
    parts = {"versions": versions, "tokenizers": tokenizers, "templates": templates, "sets": SETS,
             "cases": cases}
    make_trl.OUT = OUT
    make_trl.save("cases.json", parts)
    print(len(cases), "cases,", sum(len(c["sequences"]) for c in cases), "sequences")


if __name__ == "__main__":
    main()
