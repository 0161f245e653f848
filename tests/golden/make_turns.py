#!/usr/bin/env python3
"""Writes turns/: which tokens of conversations are the assistant's, by released chat templates.

    pip install transformers trl mistral-common     # versions: see cases.json
    python make_turns.py --llama FOLDER     # llama.cpp's models/templates, of xllamacpp's sdist


`templates.jsonl.gz` has the templates of TRL's package (trl/chat_templates, Apache 2.0; each belongs
to its model's licence): those that models are released with, and the training forms that TRL's
SFTTrainer puts in their place, with {% generation %} marks. Ministral 3's is what
mistral-common (Apache 2.0) writes for its format, and llama.cpp's folder (MIT) has those that
Ministral 3 Reasoning and Gemma 4 31B are released with. `tokenizer.json` is a small one with
the special tokens of all. `cases.json` has ten conversations and of each template and conversation
the number and the hash of the ids, and which are the assistant's, by transformers'
apply_chat_template(return_assistant_tokens_mask=True):

- of a training form ("trl"): with that template itself;
- of a released template: with a copy into which the script puts TRL's marks and nothing else
  (MARKS), which must write the same text. Where the training form has the same ids, its mask must be
  the copy's, and "same" counts them. A training form that writes an end behind the last turn (GLM's)
  is cut there.

A conversation is null for which the template raises an error, or of whose calls it leaves out one
that says nothing else. TRL's form of Qwen2.5's template marks the newline behind
"<|im_start|>assistant" too, which the generation prompt has: of the released template it is left
out. Contents that are lists of parts go as
lists to roles for which the template writes them, and joined to others, as sifr does.
"""
import argparse, datetime, gzip, importlib, json, os

import transformers
import trl
from tokenizers import AddedToken, Tokenizer
from transformers import PreTrainedTokenizerFast
from transformers.utils import chat_template_utils

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "turns")
TRL = os.path.join(os.path.dirname(trl.__file__), "chat_templates")
DAY = datetime.datetime(2024, 7, 26)


class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return DAY


chat_template_utils.datetime = Clock

SPECIAL = """<|im_start|> <|im_end|> <|user|> <|assistant|> <|system|> <|observation|> [gMASK] <sop>
<|start|> <|message|> <|channel|> <|end|> <|return|> <|call|> <|turn> <turn|> <|channel> <channel|>
<|tool_call> <tool_call|> <|tool_response> <tool_response|> <|tool> <tool|> <|think|> <｜User｜>
<｜Assistant｜> <｜end▁of▁sentence｜> <｜tool▁calls▁begin｜> <｜tool▁calls▁end｜> <｜tool▁call▁begin｜>
<｜tool▁call▁end｜> <｜tool▁sep｜> <｜tool▁outputs▁begin｜> <｜tool▁outputs▁end｜> <｜tool▁output▁begin｜>
<｜tool▁output▁end｜> <start_of_turn> <end_of_turn> <|START_OF_TURN_TOKEN|> <|END_OF_TURN_TOKEN|>
<|USER_TOKEN|> <|CHATBOT_TOKEN|> <|SYSTEM_TOKEN|> <|START_RESPONSE|> <|END_RESPONSE|>
<|start_header_id|> <|end_header_id|> <|eot_id|> <|begin_of_text|> <end_of_utterance>
<|tool_call_start|> <|tool_call_end|> <|tool_response_start|> <|tool_response_end|>
<|tool_list_start|> <|tool_list_end|> [INST] [/INST] [TOOL_CALLS] [ARGS] [THINK] [/THINK]
[SYSTEM_PROMPT] [/SYSTEM_PROMPT] [AVAILABLE_TOOLS] [/AVAILABLE_TOOLS] [TOOL_RESULTS]
[/TOOL_RESULTS]""".split()
WORDS = ["<think>", "</think>", "<tool_call>", "</tool_call>"]


def make_tokenizer():
    with open(os.path.join(HERE, "finetune", "byte.json"), encoding="utf-8") as file:
        tokenizer = Tokenizer.from_str(file.read())
    tokenizer.add_special_tokens([t for t in SPECIAL if tokenizer.token_to_id(t) is None])
    tokenizer.add_tokens([AddedToken(w, normalized=False) for w in WORDS
                          if tokenizer.token_to_id(w) is None])
    os.makedirs(OUT, exist_ok=True)
    tokenizer.save(os.path.join(OUT, "tokenizer.json"))
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")


# --- conversations ---

def user(content):
    return {"role": "user", "content": content}


def said(content, **more):
    return {"role": "assistant", "content": content, **more}


def call(name, **arguments):
    return {"id": "a0000000" + name[0], "type": "function",
            "function": {"name": name, "arguments": arguments}}


def result(name, content):
    return {"role": "tool", "tool_call_id": "a0000000" + name[0], "name": name, "content": content}


def tool(name):
    return {"type": "function", "function": {
        "name": name, "description": "Says the " + name + ".",
        "parameters": {"type": "object", "properties": {"where": {
            "type": "string", "description": "A place."}}, "required": ["where"]}}}


def parts(*texts):
    return [{"type": "text", "text": t} for t in texts]


SYSTEM = {"role": "system", "content": "Be brief."}
ROWS = [
    {"messages": [SYSTEM, user("Which colour?"), said("Blue.")]},
    {"messages": [user("Which colour?"), said("Blue."), user("Why?"), said("The sky is.")]},
    {"messages": [user("Two and two?"), said("Four.", reasoning_content="I add."),
                  user("And two?"), said("Six.", reasoning_content="I add\nonce more.")]},
    {"messages": [user("Two and two?"), said("<think>\nI add.\n</think>\n\nFour."),
                  user("And two?"), said("<think>\nI add.\n</think>\n\nSix.")]},
    {"messages": [SYSTEM, user("How is it there?"),
                  said("", reasoning_content="I ask.", tool_calls=[call("weather", where="Bern")]),
                  result("weather", "Rain, 4 degrees"),
                  said("It rains.", reasoning_content="Rain it is.")],
     "tools": [tool("weather")]},
    {"messages": [user("Time and weather?"),
                  said("", tool_calls=[call("weather", where="Bern")]),
                  result("weather", "Rain"), said("", tool_calls=[call("time", where="Bern")]),
                  result("time", "Noon"), said("Rain at noon."), user("Thanks."), said("Gladly.")],
     "tools": [tool("weather"), tool("time")]},
    {"messages": [user(parts("Hi ", "there")), said(parts("Hello ", "to you")),
                  user(parts("And ", " now?")), said("Now nothing.")]},
    {"messages": [SYSTEM, user("Grüezi 👋🏽"), said("  Grüezi,\n\nwas darf's sein?\n"),
                  user("Three?"), said("1. two\n2. three", thinking="I count: 1, 2."),
                  user("<think>?"), said("Not here.", thinking=" With blanks around \n")]},
    {"messages": [user("Two and two?"),
                  said([{"type": "thinking", "thinking": "I add."}, *parts("Four.")])]},
    {"messages": [{"role": "system", "content": parts("Be ", "brief.")}, user("How is it there?"),
                  said("", tool_calls=[call("weather", where="Bern")]),
                  result("weather", parts("Rain, ", " 4 degrees")), said("It rains.")],
     "tools": [tool("weather")]},
]


# --- templates ---

def read(name):
    with open(os.path.join(TRL, name + ".jinja"), encoding="utf-8") as file:
        return file.read()


def patch(template, *changes):
    for old, new in changes:
        assert old in template, old
        template = template.replace(old, new)
    return template


def training(name):
    return read(name + "_training")


BEGIN, END = "{%- generation %}", "{%- endgeneration %}"


def mark_qwen3(text, name):
    start = "'<|im_start|>' + message.role + '\\n"
    turn = next(line.strip() for line in text.split("\n")
                if "loop.index0 > ns.last_query_index" in line)
    end = """{{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}"""
    return patch(text, (start + "<think>", "'<think>"), ("{{- " + start + "' + content }}",
                 "{{- content }}"), (turn, "{{- " + start + "' }}" + BEGIN + turn),
                 (end, end.replace("}}", "}}" + END)))


def mark_deepseek(text, name):
    return training(name).replace(" | tojson", "")


def mark_distilled(text, name):
    answer = "{{'<｜Assistant｜>' + content + '<｜end▁of▁sentence｜>'}}"
    return patch(training(name), ("{{'<｜Assistant｜>' + message['content'] + '<｜end▁of▁sentence｜>'}}",
        "{% set content = message['content'] %}{% if '</think>' in content %}{% set content = "
        "content.split('</think>')[-1] %}{% endif %}" + answer))


def mark_gemma4(text, name):
    thought = "{{- '<|channel>thought\\n' + thinking_text + '\\n<channel|>' -}}"
    content, end = "{{- captured_content -}}", "{{- '<turn|>\\n' -}}"
    if content not in text:  # it is written where it is read
        first = "{%- if message['content'] is string -%}\n                {%- if role == 'model' -%}"
        behind = "{%- if ns.prev_message_type == 'tool_call' and not ns_tr_out.flag -%}"
        text = patch(text, (first, "{%- set captured_content -%}" + first),
                     (behind, "{%- endset -%}" + content + behind))
    calls = next(line.strip() for line in text.split("\n") if "for tool_call in message" in line)
    called = "{%- set ns.prev_message_type = 'tool_call' -%}"
    only = "{%- if role == 'model' -%}" + BEGIN + "@" + END + "{%- else -%}@{%- endif -%}"
    return patch(text, (thought, BEGIN + thought + END), (calls, BEGIN + calls),
                 (called, END + called), (end, only.replace("@", end)),
                 (content, only.replace("@", content)))


def mark_ministral(text, name):
    refuses = next(line for line in text.split("\n") if "Assistant message must have a" in line)
    begin, end = refuses + "\n        {%- endif %}\n", "{{- eos_token }}\n\n    {#- Tool"
    return patch(text, (begin, begin + BEGIN), (end, end.replace("}}", "}}" + END)))


MARKS = {"ministral_3": mark_ministral, "qwen3": mark_qwen3, "qwen3_5_think": mark_qwen3, "qwen3_5_nothink": mark_qwen3,
         "qwen3_6": mark_qwen3, "qwen3_8": mark_qwen3, "deepseekv3": mark_deepseek,
         "deepseek_r1_distill": mark_distilled, "gemma4": mark_gemma4,
         "gemma4_v4": mark_gemma4, "gemma4_v5": mark_gemma4}
LLAMA = {"google-gemma-4-31B-it": mark_gemma4,
         "mistralai-Ministral-3-14B-Reasoning-2512": mark_ministral}
MARKS.update(LLAMA)


def make_ministral():
    """Version 13 of Mistral's formats, with thoughts and images."""
    made = importlib.import_module("mistral_common.integrations.chat_templates.template_generator")
    tokens = importlib.import_module("mistral_common.tokens.tokenizers.base")
    return made.build_chat_template(made.TemplateConfig(
        version=tokens.TokenizerVersion.v13, image_support=True, thinking_support=True,
        use_special_token_variables=True))


# --- what transformers makes of them ---

def render(tokenizer, template, row):
    return tokenizer.apply_chat_template(row["messages"], tools=row.get("tools"), tokenize=False,
                                         chat_template=template)


def encode(tokenizer, template, row):
    out = tokenizer.apply_chat_template(row["messages"], tools=row.get("tools"), return_dict=True,
                                        chat_template=template, return_assistant_tokens_mask=True)
    return out["input_ids"], out["assistant_masks"]


def takes_lists(tokenizer, template, role, tools):
    lists = parts("sifr_one", "sifr_two")
    messages = [user("a"), said("b")]
    if role == "user":
        messages[0] = user(lists)
    elif role == "assistant":
        messages[1] = said(lists)
    elif role == "system":
        messages.insert(0, {"role": "system", "content": lists})
    elif role == "tool":
        messages = [user("a"), said("", reasoning_content="b", tool_calls=[call("c", d="e")]),
                    result("c", lists)]
    try:
        text = render(tokenizer, template, {"messages": messages, "tools": tools})
    except Exception:
        return False
    return "sifr_one" in text and "sifr_two" in text and not any(
        q + "sifr_one" + q in text for q in "'\"")


def join(tokenizer, template, row):
    """With the contents as sifr gives them to the template."""
    out = []
    for message in row["messages"]:
        content = message.get("content")
        if isinstance(content, list) and all("text" in p for p in content) and not takes_lists(tokenizer, template, message["role"],
                                                         row.get("tools")):
            message = {**message, "content": "".join(p["text"] for p in content)}
        out.append(message)
    return {**row, "messages": out}


def hash_of(ids):
    value = 0xcbf29ce484222325
    for byte in b"".join(i.to_bytes(4, "little") for i in ids):
        value = (value ^ byte) * 0x100000001b3 % (1 << 64)
    return f"{value:016x}"


def sequence(ids, mask):
    """[tokens, hash of the ids, tokens without a label, with one, without …]"""
    runs, now = [0], 0
    for bit in mask:
        if bit != now:
            runs, now = runs + [0], bit
        runs[-1] += 1
    return [len(ids), hash_of(ids), *runs]


def is_lost(tokenizer, template, text, row):
    silent = [{k: v for k, v in m.items() if k != "tool_calls"} if not m["content"] else m
              for m in row["messages"]]
    try:
        return silent != row["messages"] and text == render(tokenizer, template,
                                                            {**row, "messages": silent})
    except Exception:
        return False


def training_case(tokenizer, name, templates):
    text = templates[name]
    out = []
    for row in ROWS:
        row = join(tokenizer, text, row)
        try:
            lost = is_lost(tokenizer, text, render(tokenizer, text, row), row)
            out.append(None if lost else sequence(*encode(tokenizer, text, row)))
        except Exception:
            out.append(None)
    return {"form": name, "trl": True, "sequences": out}


def released_case(tokenizer, name, templates):
    text, theirs = templates[name], templates.get(name + "_training")
    marked = MARKS[name](text, name) if name in MARKS else theirs
    same, out = 0, []
    for row in ROWS:
        row = join(tokenizer, text, row)
        try:
            plain = render(tokenizer, text, row)
        except Exception:
            plain = None
        if plain is None or is_lost(tokenizer, text, plain, row):
            out.append(None)
            continue
        ids, mask = encode(tokenizer, marked, row)
        count = len(encode(tokenizer, text, row)[0])
        if name == "glm4moe":
            assert render(tokenizer, marked, row)[:len(plain)] == plain
            ids, mask = ids[:count], mask[:count]
        else:
            assert render(tokenizer, marked, row) == plain, (name, row)
        if theirs:
            try:
                their_ids, their_mask = encode(tokenizer, theirs, row)
            except Exception:
                their_ids = None
            if their_ids and their_ids[:count] == ids:
                assert their_mask[:count] == mask, (name, row)
                same += 1
        if name == "qwen2_5":
            mask = [int(m and mask[i - 1]) for i, m in enumerate(mask)]
        out.append(sequence(ids, mask))
    return {"form": name, **({"same": same} if theirs else {}), "sequences": out}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--llama", required=True)
    given = parser.parse_args()
    transformers.utils.logging.set_verbosity_error()
    tokenizer = make_tokenizer()
    names = sorted(n[:-6] for n in os.listdir(TRL) if n.endswith(".jinja"))
    templates = {n: read(n) for n in names}
    names.append("ministral_3")
    templates["ministral_3"] = make_ministral()
    for name in LLAMA:
        with open(os.path.join(given.llama, name + ".jinja"), encoding="utf-8") as file:
            templates[name] = file.read()
        names.append(name)
    cases = []
    for name in names:
        if name.endswith("_training"):
            cases.append(training_case(tokenizer, name, templates))
        elif "{% generation" in templates[name] or "{%- generation" in templates[name]:
            cases.append({**training_case(tokenizer, name, templates), "trl": False})
        elif name + "_training" in templates or name in MARKS:
            cases.append(released_case(tokenizer, name, templates))
    with open(os.path.join(OUT, "templates.jsonl.gz"), "wb") as file:
        with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as packed:
            for name, text in templates.items():
                packed.write((json.dumps({"name": name, "text": text}, ensure_ascii=False) + "\n").encode())
    described = {"file": "../turns/tokenizer.json", "post_processor": None,
                 "config": {"bos_token": "<s>", "eos_token": "</s>"}}
    golden = {"versions": {m.__name__: m.__version__ for m in (transformers, trl)},
              "tokenizer": described, "rows": ROWS, "cases": cases}
    with open(os.path.join(OUT, "cases.json"), "w", encoding="utf-8") as file:
        file.write("{\n" + ",\n".join(
            f"{json.dumps(k)}: " + ("[\n" + ",\n".join(json.dumps(c, ensure_ascii=False) for c in v)
                                    + "\n]" if isinstance(v, list) else json.dumps(v))
            for k, v in golden.items()) + "\n}\n")
    for case in cases:
        print(case["form"], case.get("same"), sum(s is not None for s in case["sequences"]))


if __name__ == "__main__":
    main()
