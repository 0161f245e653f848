#!/usr/bin/env python3
"""Makes tests/golden/finetune/: what transformers makes of rows to fine-tune on.

    python3 tests/golden/make_finetune.py [--shared ../shared] [--trl FOLDER]

Needs `pip install transformers tokenizers jinja2`; --trl is TRL's folder of chat templates
(trl/chat_templates of its wheel, which needs no installation). `rows.json` has 20 conversations and
rows of the other forms, `byte.json` and `piece.json` are small tokenizers with the tokens of chat
templates, `templates.json` the templates of our own. `expected.json` has of each template, tokenizer
and row the text, the ids, and which of them transformers' assistant mask has. With --shared,
`shared.json` gets counts and FNV-1a hashes: texts of the files in data/sft through the ten
templates of data/chat_templates and, with --trl, masks: by TRL's training templates where it has
one of the same text, else by copies of the templates into which the script puts marks. A row counts
as refused where the template raises, and where the difference of renderings cannot tell its turns.

Masks are those of apply_chat_template(return_assistant_tokens_mask=True): the tokens from that of a
span's first character to that of its last. TRL's template for Qwen2.5 has the newline behind
"<|im_start|>assistant" in its span, which the generation prompt has too: that one is left out here.
"""
import argparse, datetime, glob, json, os
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers.utils import chat_template_utils

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "finetune")
DAY = datetime.datetime(2024, 7, 26)


class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return DAY


chat_template_utils.datetime = Clock

CHATML = """{%- for m in messages %}
{{- '<|im_start|>' + m.role + '\\n' }}
{%- if m.role == 'assistant' %}{% MARK %}{{ m.content }}
{%- for c in m.tool_calls or [] %}{{ '<call>' + c.function.name + ' ' + (c.function.arguments | tojson) + '</call>' }}{% endfor %}
{{- '<|im_end|>\\n' }}{% ENDMARK %}{% else %}{{ m.content + '<|im_end|>\\n' }}{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""
ENDS = """{%- for m in messages %}
{%- if m.role == 'assistant' %}{{ '<|assistant|>\\n' }}{% MARK %}{{ m.content + '<|end|>\\n' }}{% ENDMARK %}
{%- else %}{{ '<|' + m.role + '|>\\n' + m.content + '<|end|>\\n' }}{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% elif messages[-1].role == 'assistant' %}{% MARK %}{{ eos_token }}{% ENDMARK %}{% else %}{{ eos_token }}{% endif %}"""
TRIMS = """{{- bos_token }}{% for m in messages %}{% if m.role == 'assistant' %}{{ '[A]' }}{% MARK %}{{ m.content | trim + eos_token }}{% ENDMARK %}{% else %}{{ '[U]' + m.content | trim + '[/U]' }}{% endif %}{% endfor %}
{%- if add_generation_prompt %}{{ '[A]' }}{% endif %}"""


def with_marks(template, marks):
    for word, mark in (("{% MARK %}", "{% generation %}"), ("{% ENDMARK %}", "{% endgeneration %}")):
        template = template.replace(word, mark if marks else "")
    return template


TEMPLATES = {"chatml": CHATML, "ends": ENDS, "trims": TRIMS}


def turns(*texts, system=None):
    messages = [{"role": "system", "content": system}] if system is not None else []
    return messages + [{"role": "user" if i % 2 == 0 else "assistant", "content": t}
                       for i, t in enumerate(texts)]


def call(name, **arguments):
    return {"role": "assistant", "content": "", "tool_calls": [
        {"type": "function", "function": {"name": name, "arguments": arguments}}]}


CONVERSATIONS = [
    turns("What is two and two?", "Four."),
    turns("Name a colour.", "Blue.", system="Answer in one word."),
    turns("Hello!", "Hello, how can I help?", "Tell me a joke.", "Why did the cat sit? It was tired."),
    turns("Hi", "Hi.", "How are you?", "Well, thanks.", "Good.", "Yes.", system="Be brief."),
    turns("Grüße aus Zürich", "Grüezi! 你好 👋🏽", system="Du bist höflich."),
    turns("  spaces around  ", "  kept as they are  "),
    turns("A list please", "- one\n- two\n\n1. three\n"),
    turns("Code?", "```c\nint main(void) {\n\treturn 0;\n}\n```"),
    turns("", "An empty question."),
    turns("An empty answer?", ""),
    turns("Same", "Same", "Same", "Same"),
    turns("Ends with an emoji", "Bye 👨‍👩‍👧‍👦"),
    turns("What does <|im_end|> mean?", "It ends a turn: <|im_end|>"),
    turns("Quote \"this\" & <that>", "'\"quoted\"' \\ back\\slash"),
    turns("Long " * 60, "Answer " * 80),
    turns("Only asked"),
    turns("First", "Second", "And not answered"),
    [{"role": "user", "content": "Weather in Bern?"}, call("weather", place="Bern", days=2),
     {"role": "tool", "content": "{\"sky\": \"☁\"}"}, {"role": "assistant", "content": "Cloudy."}],
    [{"role": "system", "content": "Use tools."}, {"role": "user", "content": "The time?"},
     call("clock"), {"role": "tool", "content": "12:30"},
     {"role": "assistant", "content": "Half past twelve."}, {"role": "user", "content": "Thanks"},
     {"role": "assistant", "content": "Any time."}],
    [{"role": "user", "content": "a"}, {"role": "user", "content": "b"},
     {"role": "assistant", "content": "c"}, {"role": "assistant", "content": "d"}],
]
OTHERS = [
    {"instruction": "Add.", "input": "1 2", "output": "3"},
    {"instruction": "Say hi.", "input": "", "output": "hi", "system": "Terse."},
    {"instruction": "And?", "response": "so", "history": [["Why?", "Because."]]},
    {"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]},
    {"system": "S", "conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"},
                                      {"from": "human", "value": "r"}, {"from": "gpt", "value": "b"}]},
    {"prompt": turns("asked", "answered", "again"),
     "completion": [{"role": "assistant", "content": "yes"}]},
    {"messages": [{"role": "user", "content": [{"type": "text", "text": "one "},
                                               {"type": "text", "text": "two"}]},
                  {"role": "assistant", "content": "three"}]},
]


def hash_of(data, value=0xcbf29ce484222325):
    for byte in data:
        value = (value ^ byte) * 0x100000001b3 & (1 << 64) - 1
    return value


def plain_text(content):
    if not isinstance(content, list):
        return content
    return "".join(part.get("text", part.get("value")) for part in content)


ROLES = {"human": "user", "gpt": "assistant", "system": "system", "observation": "tool"}


def turn_of(turn):
    if turn["from"] != "function_call":
        return {"role": ROLES[turn["from"]], "content": turn["value"]}
    calls = json.loads(turn["value"])
    calls = calls if isinstance(calls, list) else [calls]
    return {"role": "assistant", "content": "",
            "tool_calls": [{"type": "function", "function": c} for c in calls]}


def conversation_of(row):
    """Messages, tools, and how many messages are a prompt."""
    if "messages" in row:
        return [{**m, "content": plain_text(m["content"])} for m in row["messages"]], None, 0
    system = [{"role": "system", "content": row["system"]}] if row.get("system") else []
    if "conversations" in row:
        tools = json.loads(row["tools"]) if row.get("tools") else []
        tools = [{"type": "function", "function": t} for t in tools]
        return system + [turn_of(t) for t in row["conversations"]], tools or None, 0
    if "prompt" in row:
        return row["prompt"] + row["completion"], None, len(row["prompt"])
    past = [m for q, a in row.get("history", []) for m in turns(q, a)]
    asked = row["instruction"] + ("\n" + row["input"] if row.get("input") else "")
    return system + past + turns(asked, row.get("output", row.get("response"))), None, 0


def render(template, messages, tools, prompt=False):
    messages = [{k: v for k, v in m.items() if v is not None} for m in messages]
    texts, spans = chat_template_utils.render_jinja_template(
        conversations=[messages], tools=tools, chat_template=template, add_generation_prompt=prompt,
        return_assistant_tokens_mask=True, bos_token="<s>", eos_token="</s>")
    return texts[0], spans[0]


def mask_of(encoding, spans):
    mask = [0] * len(encoding.ids)
    for begin, end in spans:
        if begin == end:
            continue
        first, last = encoding.char_to_token(begin), encoding.char_to_token(end - 1)
        # A character of several tokens is in the mask with all of them, and what a token took with
        # it, as some special tokens do with blanks behind them, counts for that token.
        while last is None:
            end -= 1
            last = encoding.char_to_token(end - 1)
        while last + 1 < len(mask) and encoding.offsets[last + 1] == encoding.offsets[last]:
            last += 1
        for i in range(first, last + 1):
            mask[i] = 1
    return mask


def spans_of(marked, row):
    messages, tools, prompt = conversation_of(row)
    text, spans = render(marked, messages, tools)
    if prompt:
        before = len(render(marked, messages[:prompt], tools, True)[0])
        spans = [s for s in spans if s[0] >= before]
    return text, spans


def train_tokenizers():
    texts = [m["content"] for c in CONVERSATIONS for m in c] * 3
    special = ["<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|end|>", "<|assistant|>", "<|user|>",
               "<|system|>", "<|tool|>"]
    byte = Tokenizer(models.BPE())
    byte.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    byte.decoder = decoders.ByteLevel()
    byte.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=400, special_tokens=special, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    # As Phi-3's: blanks as U+2581, one put in front, bytes for what is unknown, special tokens that
    # take the blanks behind them.
    fallback = [f"<0x{i:02X}>" for i in range(256)]
    piece = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    piece.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    piece.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(),
                                       decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    piece.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=480, show_progress=False, special_tokens=["<unk>"] + fallback))
    piece.add_special_tokens([AddedToken(s, normalized=False, rstrip=s.startswith("<|"))
                              for s in special])
    byte.save(os.path.join(OUT, "byte.json"), pretty=False)
    piece.save(os.path.join(OUT, "piece.json"), pretty=False)
    return {"byte": byte, "piece": piece}


def make_own():
    rows = [{"messages": c} for c in CONVERSATIONS] + OTHERS
    expected = []
    tokenizers = train_tokenizers()
    for name, template in TEMPLATES.items():
        marked = with_marks(template, True)
        for number, row in enumerate(rows):
            try:
                text, spans = spans_of(marked, row)
            except Exception as error:
                expected.append([name, "", number, type(error).__name__])
                continue
            for kind, tokenizer in tokenizers.items():
                encoding = tokenizer.encode(text, add_special_tokens=False)
                mask = "".join(str(b) for b in mask_of(encoding, spans))
                expected.append([name, kind, number, text, encoding.ids, mask])
    save("rows.json", rows)
    save("templates.json", {n: {"marked": with_marks(t, True), "bare": with_marks(t, False)}
                            for n, t in TEMPLATES.items()})
    save_rows("expected.json", expected)


SHARED = ["alpaca_en_demo.json", "axolotl_conversation_sharegpt.json", "glaive_toolcall_en_demo.json",
          "torchtune_alpaca_tiny.json", "v1_sft_demo.jsonl"]
TRAINING = {"Qwen-Qwen2.5-7B-Instruct": ("qwen2_5", "gpt2"), "google-gemma-2-2b-it": ("gemma", "gpt2"),
            "microsoft-Phi-3.5-mini-instruct": ("phi3_5", "phi3-mini")}



def patch(template, *changes):
    for old, new in changes:
        assert old in template, old
        template = template.replace(old, new)
    return template


def marked_llama(template):
    header = "{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- generation %}"
    first = "{%- if not (message.role == 'ipython'"
    tool = '{%- elif message.role == "tool" or'
    return patch(
        template, ("{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}", ""),
        (first, "{%- if message.role == 'assistant' and 'tool_calls' not in message %}" + header +
         "{{- message.content | trim + '<|eot_id|>' }}{%- endgeneration %}" +
         first.replace("if", "elif", 1)),
        ("tool_calls[0].function %}", "tool_calls[0].function %}" + header),
        (tool, "{%- endgeneration %}" + tool))


def marked_qwen3(template):
    start = "'<|im_start|>' + message.role + '\\n"
    turn = "{%- if loop.index0 > ns.last_query_index %}"
    end = """{{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}"""
    return patch(
        template, (start + "<think>", "'<think>"), ("{{- " + start + "' + content }}", "{{- content }}"),
        (turn, "{{- " + start + "' }}{%- generation %}" + turn),
        (end, end.replace("}}", "}}{%- endgeneration %}")))


def marked_hermes(template):
    start, end = "{{- '<|im_start|>assistant\n' }}{%- generation %}", "<|im_end|>\n' }}"
    first, tool = '{%- if message.role == "user" or', '\n    {%- elif message.role == "tool" %}'
    return patch(
        template,
        (first, '{%- if message.role == "assistant" and message.tool_calls is not defined %}' +
         start + "{{- message.content + '" + end + "{%- endgeneration %}" +
         first.replace("if", "elif", 1)),
        ("""{{- '<|im_start|>' + message.role }}""", start),
        ("""{{- '\n<tool_call>""", """{{- ('' if loop.first else '\n') + '<tool_call>"""),
        (end + tool, end + "{%- endgeneration %}" + tool))


def marked_smol(template):
    start, end = '{{ "<|im_start|>assistant\\n" + ', 'content.lstrip("\\n") + "<|im_end|>\\n" }}'
    begin, think = '{{ "<|im_start|>assistant\\n" ', '"<think>\\n\\n</think>\\n" '
    inside = "}}{%- generation -%}{{ " + end + "{%- endgeneration -%}"
    return patch(template, (start + end, begin + inside),
                 (start + think + "+ " + end, begin + "+ " + think + inside))


def marked_nemo(template):
    text, call = '{{- message["content"] + eos_token}}', '{{- "[TOOL_CALLS][" }}'
    end = '{%- elif message["role"] == "assistant" %}'
    return patch(template, (text, "{%- generation %}" + text + "{%- endgeneration %}"),
                 (call, "{%- generation %}" + call), (end, "{%- endgeneration %}" + end))


MARKS = {"HuggingFaceTB-SmolLM3-3B": marked_smol,
         "NousResearch-Hermes-3-Llama-3.1-8B-tool_use": marked_hermes,
         "Qwen-Qwen3-0.6B": marked_qwen3, "meta-llama-Llama-3.1-8B-Instruct": marked_llama,
         "meta-llama-Llama-3.2-3B-Instruct": marked_llama,
         "meta-llama-Llama-3.3-70B-Instruct": marked_llama,
         "mistralai-Mistral-Nemo-Instruct-2407": marked_nemo}


def read_rows(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if path.endswith(".jsonl"):
        return [json.loads(line) for line in text.split("\n") if line.strip()]
    rows = json.loads(text)
    return rows if isinstance(rows, list) else [rows]


def make_texts(folder):
    """[template, file, rows, rows that the template refuses, hash of all texts]"""
    out = []
    for path in sorted(glob.glob(os.path.join(folder, "data", "chat_templates", "*.jinja"))):
        with open(path, encoding="utf-8", newline="") as file:
            template = file.read()
        for name in SHARED:
            rows, refused, value = read_rows(os.path.join(folder, "data", "sft", name)), 0, None
            for row in rows:
                messages, tools, _ = conversation_of(row)
                try:
                    text, _ = render(template, messages, tools)
                    value = hash_of(text.encode() + b"\0", *([value] if value else []))
                except Exception:
                    refused += 1
            out.append([os.path.basename(path), name, len(rows), refused, f"{value or 0:016x}"])
    return out


FILES = ("v1_sft_demo.jsonl", "torchtune_alpaca_tiny.json", "axolotl_conversation_sharegpt.json",
         "glaive_toolcall_en_demo.json", "own")


def make_masks(folder, trl):
    """[template, tokenizer, file, rows, refused, tokens, learned, hash of ids and masks]"""
    out = []
    for name in [*TRAINING, *MARKS]:
        training, kind = TRAINING.get(name, (None, "gpt2"))
        with open(os.path.join(folder, "data", "chat_templates", name + ".jinja"), encoding="utf-8",
                  newline="") as file:
            plain = file.read()
        if training:
            with open(os.path.join(trl, training + "_training.jinja"), encoding="utf-8") as file:
                marked = file.read()
        else:
            marked = MARKS[name](plain)
        other = None
        if name == "Qwen-Qwen3-0.6B":  # TRL's keeps all thoughts: another text where there are some
            with open(os.path.join(trl, "qwen3_training.jinja"), encoding="utf-8") as file:
                other = file.read()
        tokenizer = Tokenizer.from_file(os.path.join(folder, "data", "tok", kind, "tokenizer.json"))
        shared = 0
        for file in FILES:
            rows = ([{"messages": c} for c in CONVERSATIONS] if file == "own"
                    else read_rows(os.path.join(folder, "data", "sft", file)))
            refused = tokens = learned = same = 0
            value = 0xcbf29ce484222325
            for row in rows:
                try:
                    text, spans = spans_of(marked, row)
                except Exception:
                    refused += 1
                    continue
                messages, tools, _ = conversation_of(row)
                assert text == render(plain, messages, tools)[0]
                if other:
                    theirs, their_spans = spans_of(other, row)
                    assert theirs != text or their_spans == spans
                    same += theirs == text
                if training == "qwen2_5":
                    spans = [(b + 1, e) for b, e in spans]
                encoding = tokenizer.encode(text, add_special_tokens=False)
                mask = mask_of(encoding, spans)
                tokens, learned = tokens + len(mask), learned + sum(mask)
                for i, m in zip(encoding.ids, mask):
                    value = hash_of(i.to_bytes(4, "little") + bytes([m]), value)
            shared += same
            out.append([name + ".jinja", kind, file, len(rows), refused, tokens, learned,
                        f"{value if refused < len(rows) else 0:016x}"])
        assert not other or shared
    return out


def save(name, value):
    with open(os.path.join(OUT, name), "w", encoding="utf-8") as file:
        json.dump(value, file, ensure_ascii=False, indent=1)
        file.write("\n")


def save_rows(name, rows):
    with open(os.path.join(OUT, name), "w", encoding="utf-8") as file:
        file.write("[\n" + ",\n".join(json.dumps(r, ensure_ascii=False) for r in rows) + "\n]\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shared")
    parser.add_argument("--trl")
    arguments = parser.parse_args()
    os.makedirs(OUT, exist_ok=True)
    make_own()
    if arguments.shared:
        masks = make_masks(arguments.shared, arguments.trl) if arguments.trl else []
        save_rows("shared.json", [{"texts": r} for r in make_texts(arguments.shared)] +
                  [{"masks": r} for r in masks])


if __name__ == "__main__":
    main()
