"""Rows as LLaMA-Factory reads them by dataset_info.json: what its own classes make prompts and
answers of (get_dataset_list, the converters of align_dataset, and Template.encode_multiturn, or
encode_oneturn of pairs).

    make_factory_rows.py LLAMAFACTORY    (the folder of the unpacked package)

Written: factory_rows.json. Each row has fields that LLaMA-Factory does not read.
"""
import importlib
import json
import os
import sys
import types

HERE = os.path.dirname(os.path.abspath(__file__))
source = open(os.path.join(HERE, "make_factory_templates.py"), encoding="utf-8").read()
made = {"__file__": os.path.join(HERE, "make_factory_templates.py"), "__name__": "templates"}
exec(compile(source.rsplit("\nmain()", 1)[0], "make_factory_templates.py", "exec"), made)
lf, tokenizer = made["lf"], made["byte_tokenizer"]()
converter = importlib.import_module("llamafactory.data.converter")
parser = importlib.import_module("llamafactory.data.parser")

INFO = {
    "plain": {"file_name": "plain.json"},
    "named": {"file_name": "named.jsonl", "columns": {
        "prompt": "q", "query": "about", "response": "a", "system": "sys", "history": "before"}},
    "bare": {"file_name": "bare.jsonl", "columns": {"prompt": "instruction", "response": "output"}},
    "asked": {"file_name": "bare.jsonl", "columns": {"query": "input", "response": "output"}},
    "turns": {"file_name": "turns.jsonl", "formatting": "sharegpt"},
    "talks": {"file_name": "talks.jsonl", "formatting": "sharegpt",
              "columns": {"messages": "talk", "system": "persona"}},
    "roles": {"file_name": "roles.jsonl", "formatting": "sharegpt",
              "columns": {"messages": "messages"},
              "tags": {"role_tag": "role", "content_tag": "content", "user_tag": "user",
                       "assistant_tag": "assistant", "system_tag": "system"}},
    "pairs": {"file_name": "pairs.jsonl", "ranking": True,
              "columns": {"prompt": "instruction", "query": "input", "chosen": "chosen",
                          "rejected": "rejected"}},
    "judged": {"file_name": "judged.jsonl", "ranking": True, "formatting": "sharegpt",
               "columns": {"messages": "conversations", "chosen": "chosen",
                           "rejected": "rejected"}},
}

ALPACA = [
    {"instruction": "Is it cold?", "input": "", "output": "No.", "system": "Lie.",
     "history": [["a", "b"]], "tools": "[]", "context": "Siberia", "label": False},
    {"instruction": "Sum up.", "input": "A text.\nOf lines.", "output": " Short. ",
     "system": "Be brief.", "system_prompt": "Shout.", "text": "Sum up. A text. Short."},
]


def turns(role, content, *said):
    return [{role: r, content: c} for r, c in said]


FILES = {
    "plain.json": ALPACA,
    "named.jsonl": [
        {"q": "And now?", "about": "the weather", "a": "Still.", "sys": "Be kind.",
         "before": [["Is it cold?", "No."], ["Sure?", "Yes."]], "instruction": "Never read.",
         "output": "Nor this.", "input": "Nor that.", "system": "Lie."},
        {"q": "Once more?", "about": "", "a": "No.", "sys": "", "before": None, "history": [["x", "y"]]},
    ],
    "bare.jsonl": [
        {"instruction": "One.", "input": "Two.", "output": "Three.", "history": [["a", "b"]]},
        {"instruction": "Four.", "input": "Five.", "output": "Six.", "system": "Lie."},
    ],
    "turns.jsonl": [
        {"conversations": turns("from", "value", ("human", "Hi."), ("gpt", "Ho."),
                                ("human", "He?"), ("gpt", "Ha.")),
         "system": "Never read.", "tools": "[{\"name\": \"f\"}]", "label": False},
        {"conversations": turns("from", "value", ("system", "Be kind."), ("human", "Hi."),
                                ("gpt", "Ho.")), "system": "Lie."},
    ],
    "talks.jsonl": [
        {"talk": turns("from", "value", ("human", "Hi."), ("gpt", "Ho.")), "persona": "A cat.",
         "system": "A dog.", "conversations": turns("from", "value", ("human", "x"), ("gpt", "y"))},
        {"talk": turns("from", "value", ("system", "A cow."), ("human", "Hi."), ("gpt", "Mu.")),
         "persona": "A cat.", "messages": [{"role": "user", "content": "x"}]},
    ],
    "roles.jsonl": [
        {"messages": turns("role", "content", ("system", "Be kind."), ("user", "Hi."),
                           ("assistant", "Ho.")), "system": "Lie.", "functions": "[{}]"},
        {"messages": turns("role", "content", ("user", "Hi."), ("assistant", "Ho."),
                           ("user", "He?"), ("assistant", "Ha.")), "tools": "[]"},
    ],
    "pairs.jsonl": [
        {"instruction": "Which?", "input": "A or B.", "chosen": "A.", "rejected": "B.",
         "prompt": "Never read.", "system": "Lie.", "question": "What?", "history": [["a", "b"]]},
        {"instruction": "Which one?", "input": "", "chosen": "C.", "rejected": "D.",
         "messages": [{"role": "user", "content": "x"}], "tools": "[]"},
    ],
    "judged.jsonl": [
        {"conversations": turns("from", "value", ("human", "Hi.")),
         "chosen": {"from": "gpt", "value": "Ho."}, "rejected": {"from": "gpt", "value": "Hu."},
         "prompt": "Never read.", "system": "Lie."},
        {"conversations": turns("from", "value", ("system", "Be kind."), ("human", "Hi."),
                                ("gpt", "Ho."), ("human", "He?")),
         "chosen": {"from": "gpt", "value": "Ha."}, "rejected": {"from": "gpt", "value": "Hu."}},
    ],
}


def text(ids):
    return tokenizer.decode(ids, clean_up_tokenization_spaces=False)


def rows_of(name, template):
    attr = parser.get_dataset_list([name], INFO)[0]
    args = types.SimpleNamespace(media_dir="")
    convert = converter.get_dataset_converter(attr.formatting, attr, args)
    file, out = FILES[INFO[name]["file_name"]], []
    columns = {k for row in file for k in row}
    for row in file:
        row = convert({c: row.get(c) for c in columns})  # as a table has it
        prompt, answers, system = row["_prompt"], row["_response"], row["_system"]
        if attr.ranking:
            both = [template.encode_oneturn(tokenizer, prompt + [a], system, None) for a in answers]
            out.append([[[text(a), text(b)]] for a, b in both])
        else:
            pairs = template.encode_multiturn(tokenizer, prompt + answers, system, None)
            out.append([[[text(a), text(b)] for a, b in pairs]])
    return out


template = lf.TEMPLATES["default"]
cases = {name: rows_of(name, template) for name in INFO}
json.dump({"versions": {"LLaMA-Factory": made["VERSION"]}, "template": "default", "info": INFO,
           "files": FILES, "rows": cases},
          open(os.path.join(HERE, "factory_rows.json"), "w", encoding="utf-8"),
          ensure_ascii=False, indent=0)
print(sum(len(r) for r in cases.values()), "rows of", len(cases), "sets")
