#!/usr/bin/env python3
"""Writes trl/: what TRL's own SFTTrainer, DPOTrainer and ORPOTrainer make of rows that are hard to
cut, and the losses of three steps on some of them.

    pip install torch transformers trl        # versions: see cases.json
    python make_trl.py [--shared ../shared]

`cases.json` has the versions, templates and tokenizers of our own (those of finetune/ with another
post-processor), and of each case its trainer, tokenizer, template, max_length, rows, and what the
trainer's own dataset preparation and collator make of the rows: of each sequence the number and the
hash of its ids, and which are labels (`packed`). The rows of a case are the set of its number.
Preferences have two sequences a row, the chosen answer's first. Rows of which
TRL's trainer leaves nothing to learn are not there; ORPOTrainer keeps such rows, whose loss is no
number, so the script leaves them out. With --shared the same of published templates, whose texts
lie in shared/data/chat_templates: these cases have "published".

`steps.txt` has three steps of a tiny model, each on all rows of a file: run, step, key, value. The
files are text.jsonl, chat.jsonl and those of preferences, text_pairs.jsonl and chat_pairs.jsonl;
the model is that of preference/ (make_preferences.py) with chat_template.jinja or, in runs of
dropout, on text_pairs.jsonl, the GPT-2 that is made here, whose dropout TRL switches off.
"""
import argparse, datetime, json, os, random, shutil, tempfile
from itertools import groupby

import jinja2
import torch
import transformers
import trl
from datasets import Dataset
from tokenizers import Tokenizer
from transformers import (GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM,
                          PreTrainedTokenizerFast)
from transformers.utils import chat_template_utils
from trl.experimental.orpo import ORPOConfig, ORPOTrainer

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "trl")
FINETUNE = os.path.join(HERE, "finetune")
DAY = datetime.datetime(2024, 7, 26)


class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return DAY


chat_template_utils.datetime = Clock


def around(front, behind):
    pieces = [{"SpecialToken": {"id": t, "type_id": 0}} for t in front]
    pieces += [{"Sequence": {"id": "A", "type_id": 0}}]
    pieces += [{"SpecialToken": {"id": t, "type_id": 0}} for t in behind]
    return pieces


def processor(ids, front, behind):
    return {"type": "TemplateProcessing", "single": around(front, behind),
            "pair": around(front, behind) + [{"Sequence": {"id": "B", "type_id": 0}}],
            "special_tokens": {t: {"id": t, "ids": [ids(t)], "tokens": [t]}
                               for t in [*front, *behind]}}


# name: file of finetune/, tokens in front and behind, beginning-of-text token
KINDS = {"byte": ("byte.json", [], [], None), "byte_both": ("byte.json", ["<s>"], ["</s>"], "<s>"),
         "byte_named": ("byte.json", [], [], "<s>"), "piece_bos": ("piece.json", ["<s>"], [], "<s>")}
TOKENIZERS = {}


def make_tokenizers():
    out = {}
    for name, (file, front, behind, bos) in KINDS.items():
        with open(os.path.join(FINETUNE, file), encoding="utf-8") as f:
            described = json.load(f)
        ids = Tokenizer.from_file(os.path.join(FINETUNE, file)).token_to_id
        post = processor(ids, front, behind) if front or behind else None
        described["post_processor"] = post
        config = {"eos_token": "</s>", **({"bos_token": bos} if bos else {})}
        path = os.path.join(tempfile.mkdtemp(), "tokenizer.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(described, f)
        TOKENIZERS[name] = PreTrainedTokenizerFast(tokenizer_file=path, pad_token="<|tool|>", **config)
        out[name] = {"file": file, "config": config, "post_processor": post}
    return out


# A template that has the system prompt and the tools in the last question, as Mistral's, and one
# that leaves out the thoughts of earlier turns and puts empty ones into the last, as Qwen3's.
MOVES = """{%- set ns = namespace(last=0, system='') %}
{%- for m in messages %}{% if m.role == 'user' %}{% set ns.last = loop.index0 %}{% elif m.role == 'system' %}{% set ns.system = m.content %}{% endif %}{% endfor %}
{{- bos_token }}
{%- for m in messages %}
{%- if m.role == 'user' %}
{%- if loop.index0 == ns.last and tools %}{{ '[TOOLS]' + (tools | tojson) + '[/TOOLS]' }}{% endif %}
{{- '[INST]' + (ns.system + '\\n\\n' if loop.index0 == ns.last and ns.system else '') + m.content + '[/INST]' }}
{%- elif m.role == 'assistant' %}{{ m.content + eos_token }}{% elif m.role == 'tool' %}{{ '[RESULT]' + m.content + '[/RESULT]' }}{% endif %}
{%- endfor %}"""
THINKS = """{%- set ns = namespace(last=0) %}
{%- for m in messages %}{% if m.role == 'user' %}{% set ns.last = loop.index0 %}{% endif %}{% endfor %}
{%- if tools %}{{ '<|im_start|>system\\nTools: ' + (tools | tojson) + '<|im_end|>\\n' }}{% endif %}
{%- for m in messages %}
{{- '<|im_start|>' + m.role + '\\n' }}
{%- if m.role == 'assistant' %}
{%- set answer = m.content.split('</think>')[-1].lstrip('\\n') %}
{%- set thought = m.content.split('</think>')[0].split('<think>')[-1].strip('\\n') if '</think>' in m.content else '' %}
{%- MARK %}
{%- if loop.index0 > ns.last and (loop.last or thought) %}{{ '<think>\\n' + thought + '\\n</think>\\n\\n' }}{% endif %}
{{- answer + '<|im_end|>' }}
{%- ENDMARK %}
{{- '\\n' }}
{%- else %}{{ m.content + '<|im_end|>\\n' }}{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""


def own_templates():
    with open(os.path.join(FINETUNE, "templates.json"), encoding="utf-8") as f:
        finetune = json.load(f)
    out = {f"{name}_{form}": finetune[name][form] for name in ("chatml", "ends", "trims")
           for form in ("bare", "marked")}
    out["moves"] = MOVES
    out["thinks_bare"] = THINKS.replace("{%- MARK %}\n", "").replace("{%- ENDMARK %}\n", "")
    out["thinks_marked"] = THINKS.replace("MARK", "generation").replace("ENDgen", "endgen")
    return out


# --- rows ---

TEXTS = [
    ("Answer: ", "Blue."), ("Say a colour:", " red"), ("Two and two is", ""), ("", "All of it"),
    ("blank ", " blank"), ("line\n", "\nline"), ("What", "ever"), ("Grü", "ße aus Zürich"),
    ("  ", "  "), ("<s>typed", " in front"), ("typed", " behind</s>"), ("in</s>", "side</s> "),
    ("only", "</s>"), ("</s>", "after the end"), ("<s>", "<s>"), ("tab\t", "\tafter"),
    ("ends in emoji 👋", "🏽 goes on"), ("A list please\n\n- ", "one\n- two"), ("", ""),
    ("Hello, how can I", " help? "),
]
SPEECH = "Hello, how can I help? Tell me a joke. Why did the cat sit? It was tired. Grüezi! Half " \
         "past twelve. Any time. Kept as they are, 1. three - two. int main(void) { return 0; }"


def cuts():
    draw = random.Random(5)
    out = []
    for _ in range(62):
        first = draw.randrange(len(SPEECH) - 24)
        text = SPEECH[first:first + 12 + draw.randrange(12)]
        at = draw.randrange(1, len(text))
        out.append((text[:at], text[at:]))
    return out


BORDER = "one two three four five"


def borders():  # around a border of 16 tokens, one byte more each
    return [((BORDER * 4)[:n], " ok then, yes", " no") for n in range(3, 52, 2)]


def say(role, content):
    return {"role": role, "content": content}


def turns(*texts, system=None):
    messages = [say("system", system)] if system is not None else []
    return messages + [say("user" if i % 2 == 0 else "assistant", t) for i, t in enumerate(texts)]


def answers(*texts):
    return [say("assistant" if i % 2 == 0 else "user", t) for i, t in enumerate(texts)]


# prompt, an answer, another: the first alone are rows of prompt and completion
DIALOGUES = [
    (turns("What is two and two?"), answers("Four."), answers("Five.")),
    (turns("Name a colour.", system="Answer in one word."), answers("Blue."), answers("Blueish")),
    (turns("Hello!"), answers("Hello, how can I help?", "Tell me a joke.", "Why did the cat sit?"),
     answers("What?", "A joke.", "No.", "Please!", "No.")),
    (turns("a", "b", "c", system="Be brief."), answers("d", "e", "f"), answers("g")),
    (turns("Think", "<think>\nold\n</think>\n\nfirst", "again"),
     answers("<think>\nnew\n</think>\n\nsecond"), answers("second")),
    (turns("Think"), answers("<think>\none\n</think>\n\n1", "More", "<think>\ntwo\n</think>\n\n2"),
     answers("1", "More", "2")),
    (turns("An empty answer?"), answers(""), answers("No")),
    (turns(""), answers("An empty question."), answers("")),
    (turns("  blanks  "), answers("  kept  "), answers("kept")),
    (turns("What does <|im_end|> mean? <s></s>"), answers("It ends a turn: <|im_end|></s>"),
     answers("<s>")),
    (turns("Same"), answers("Same", "Same", "Same"), answers("Same", "Same", "Other")),
    (turns("Long " * 20), answers("Answer " * 20), answers("Answer")),
]
CALLED = [(turns("Weather in Bern?"), [say("assistant", "CALL weather"), say("tool", "{\"sky\": 1}"),
                                       say("assistant", "Cloudy.")], answers("Wet.")),
          (turns("The time?", system="Use tools."), answers("CALL clock", "Go on", "12:30"),
           answers("12"))]
TOOLS = [{"type": "function", "function": {"name": "weather", "description": "The sky over a place.",
                                           "parameters": {"type": "object", "properties": {
                                               "place": {"type": "string"}}}}}]
# The prompt ends with what the assistant says, which ORPOTrainer lets the answers go on with.
GOING_ON = [(turns("Go on", "As I said "), answers("and more"), answers("no")),
            (turns("Go on", "And so  "), [say("user", "on?"), say("assistant", "Yes")],
             [say("user", "on?"), say("assistant", "No")])]
CHATS = [p + c for p, c, _ in DIALOGUES] + [turns("Only asked"), turns("a", "b", "c")]


def completions(pairs):
    return [{"prompt": p, "completion": c} for p, c in pairs]


def preferences(triples):
    return [{"prompt": p, "chosen": c, "rejected": r} for p, c, r in triples]


def whole(triples):
    return [{"chosen": p + c, "rejected": p + r} for p, c, r in triples]


def others(pairs):  # each with the completion of the next row as the rejected answer
    return [(p, c, pairs[(i + 1) % len(pairs)][1]) for i, (p, c) in enumerate(pairs)
            if c != pairs[(i + 1) % len(pairs)][1]]


def with_tools(rows):
    return [{**r, "tools": json.dumps(TOOLS)} for r in rows]


# --- TRL ---

def tiny(folder=tempfile.mkdtemp()):  # DPOTrainer reads its reference from the folder
    torch.manual_seed(1)
    LlamaForCausalLM(LlamaConfig(vocab_size=1024, hidden_size=8, intermediate_size=8,
                                 num_hidden_layers=1, num_attention_heads=1, pad_token_id=0,
                                 max_position_embeddings=2048, eos_token_id=1)).save_pretrained(folder)
    return LlamaForCausalLM.from_pretrained(folder)


def arguments(kind, **more):
    return kind(output_dir=tempfile.mkdtemp(), report_to=[], use_cpu=True, bf16=False,
                gradient_checkpointing=False, save_strategy="no", **more)


def make_trainer(name, rows, tokenizer, model, **more):
    kinds = {"sft": (trl.SFTTrainer, trl.SFTConfig), "dpo": (trl.DPOTrainer, trl.DPOConfig),
             "orpo": (ORPOTrainer, ORPOConfig)}
    trainer, config = kinds[name]
    return trainer(model=model, args=arguments(config, **more),
                   train_dataset=Dataset.from_list(rows), processing_class=tokenizer)


def sequences(name, trainer, row):
    """[ids, which are labels], without padding, of the trainer's own collator."""
    batch = trainer.data_collator([row])
    if name == "sft":
        parts = [(batch["input_ids"][0], batch["attention_mask"][0], batch["labels"][0] != -100)]
    elif name == "dpo":
        parts = [(batch["input_ids"][i], batch["attention_mask"][i], batch["completion_mask"][i])
                 for i in range(2)]
    else:
        parts = [(batch[f"{s}_input_ids"][0], batch[f"{s}_attention_mask"][0],
                  batch[f"{s}_labels"][0] != -100) for s in ("chosen", "rejected")]
    out = []
    for ids, there, labels in parts:
        count = int(there.sum())
        assert bool(there[:count].all())
        out.append([ids[:count].tolist(), "".join(str(int(b)) for b in labels[:count])])
    return out


REFUSED = {}


def prepare(name, rows, tokenizer, **more):
    """The rows that TRL can take, and the sequences that it makes of them."""
    try:
        trainer = make_trainer(name, rows, tokenizer, tiny(), **more)
    except (ValueError, RuntimeError, KeyError, NameError, jinja2.TemplateError) as error:
        if len(rows) == 1:
            REFUSED[str(error)[:90]] = REFUSED.get(str(error)[:90], 0) + 1
            return [], []
        taken, out = [], []
        for row in rows:  # TRL stops at a row that it cannot take
            more_taken, more_out = prepare(name, [row], tokenizer, **more)
            taken, out = taken + more_taken, out + more_out
        return taken, out
    made = [sequences(name, trainer, kept) for kept in trainer.train_dataset]
    return rows, [s for m in made if all("1" in mask[1:] for _, mask in m) for s in m]


def hash_of(data):
    value = 0xcbf29ce484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001b3 & (1 << 64) - 1
    return value


def packed(ids, mask):
    """[tokens, FNV-1a hash of the ids as 32 bits, tokens without a label, with one, without …]"""
    data = b"".join(i.to_bytes(4, "little") for i in ids)
    runs = [0] if mask[0] == "1" else []
    return [len(ids), f"{hash_of(data):016x}", *runs, *(len(list(g)) for _, g in groupby(mask))]


SETS = []


def number_of(rows):
    if rows not in SETS:
        SETS.append(rows)
    return SETS.index(rows)


def case(out, name, kind, template, text, rows, length=1024, train_on="assistant", **more):
    tokenizer = TOKENIZERS[kind]
    tokenizer.chat_template = text
    taken, made = prepare(name, rows, tokenizer, max_length=length, **more)
    print(name, kind, template, len(rows), "rows,", len(taken), "taken,", len(made), "sequences",
          flush=True)
    if made:
        out.append({"trainer": name, "tokenizer": kind, "template": template, "max_length": length,
                    "train_on": train_on, "rows": number_of(taken),
                    "sequences": [packed(*m) for m in made]})


def text_cases(out):
    for kind in KINDS:
        rows = TEXTS + (cuts() if kind in ("byte", "piece_bos") else [])
        case(out, "sft", kind, None, None, completions(rows))
        case(out, "dpo", kind, None, None, preferences(others(rows)))
        case(out, "orpo", kind, None, None, preferences(others(rows)))
    case(out, "sft", "byte", None, None, completions(TEXTS[:6]), train_on="all",
         completion_only_loss=False)
    case(out, "sft", "byte_both", None, None, [{"text": p + c} for p, c in TEXTS if p + c])
    implicit = [r for r in whole(others(TEXTS)) if r["chosen"] != r["rejected"]]
    for name in ("dpo", "orpo"):
        case(out, name, "byte", None, None, implicit)
        case(out, name, "byte", None, None, preferences(borders()), 16)
    case(out, "sft", "byte", None, None, completions([b[:2] for b in borders()]), 16)
    case(out, "sft", "piece_bos", None, None, completions([b[:2] for b in borders()]), 16)


def chat_cases(out, template, text, kind):
    pairs = [(p, c) for p, c, _ in DIALOGUES]
    case(out, "sft", kind, template, text, completions(pairs))
    case(out, "dpo", kind, template, text, preferences(DIALOGUES))
    case(out, "orpo", kind, template, text, preferences(DIALOGUES))
    case(out, "dpo", kind, template, text, preferences(GOING_ON))
    case(out, "orpo", kind, template, text, preferences(GOING_ON))
    called = with_tools(completions([(p, c) for p, c, _ in CALLED]))
    case(out, "sft", kind, template, text, called)
    case(out, "dpo", kind, template, text, with_tools(preferences(CALLED)))


def own_chat_cases(out, templates):
    for template, text in templates.items():
        chat_cases(out, template, text, "byte_named" if template == "moves" else "byte")
    text = templates["chatml_marked"]
    for length in (20, 28, 36):
        case(out, "sft", "byte", "chatml_marked", text,
             completions([(p, c) for p, c, _ in DIALOGUES]), length)
        case(out, "dpo", "byte", "chatml_marked", text, preferences(DIALOGUES), length)
    case(out, "dpo", "byte", "chatml_bare", templates["chatml_bare"], whole(DIALOGUES))
    case(out, "orpo", "byte", "chatml_bare", templates["chatml_bare"], whole(DIALOGUES))
    case(out, "orpo", "byte_both", "chatml_bare", templates["chatml_bare"], preferences(DIALOGUES))
    case(out, "dpo", "piece_bos", "chatml_bare", templates["chatml_bare"], preferences(DIALOGUES))
    for name in ("chatml_marked", "ends_marked", "trims_marked"):
        case(out, "sft", "byte_named", name, templates[name], [{"messages": m} for m in CHATS],
             assistant_only_loss=True)
    case(out, "sft", "byte", "chatml_bare", templates["chatml_bare"],
         [{"messages": m} for m in CHATS], train_on="all")
    case(out, "sft", "piece_bos", "ends_marked", templates["ends_marked"],
         [{"messages": m} for m in CHATS + [turns("é", " é in front"), turns("a", "\nb")]],
         assistant_only_loss=True)
    for name in ("chatml_marked", "ends_marked", "trims_marked", "thinks_marked"):
        assistant_cases(out, name, templates[name])


def assistant_cases(out, template, text):
    """Rows of prompt and completion of which the assistant's tokens alone are learned: those of the
    completion, or of both."""
    pairs = [(p, c) for p, c, _ in DIALOGUES + GOING_ON] + [(p[:1], p[1:] + c) for p, c, _ in DIALOGUES]
    called = with_tools(completions([(p, c) for p, c, _ in CALLED]))
    for train_on, more in (("assistant_only", {}), ("assistant_turns", {"completion_only_loss": False})):
        for rows, length in ((completions(pairs), 1024), (completions(pairs), 36), (called, 1024)):
            case(out, "sft", "byte_named", template, text, rows, length, train_on,
                 assistant_only_loss=True, **more)


def published_cases(out, folder):
    for name in ("Qwen-Qwen3-0.6B", "mistralai-Mistral-Nemo-Instruct-2407", "Qwen-Qwen2.5-7B-Instruct",
                 "meta-llama-Llama-3.1-8B-Instruct", "google-gemma-2-2b-it", "HuggingFaceTB-SmolLM3-3B"):
        with open(os.path.join(folder, "data", "chat_templates", name + ".jinja"), encoding="utf-8",
                  newline="") as f:
            text = f.read()
        made = []
        chat_cases(made, name, text, "byte_named")
        for c in made:
            c["published"] = True
        out += made


# --- three steps ---

STEPS, BETA, RATE, LENGTH = 3, 0.5, 3e-3, 96


def make_gpt2():
    torch.manual_seed(3)
    folder = os.path.join(OUT, "gpt2")
    config = GPT2Config(vocab_size=400, n_embd=16, n_layer=2, n_head=2, n_positions=128,
                        resid_pdrop=0.3, embd_pdrop=0.3, attn_pdrop=0.3, initializer_range=0.2,
                        pad_token_id=0, bos_token_id=None, eos_token_id=1)
    GPT2LMHeadModel(config).float().save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(os.path.join(HERE, "preference", "model", name), folder)


def run_steps(out, run, rows, folder, kind, micro, **more):
    name = run.split("_")[0]
    tokenizer = TOKENIZERS["byte"]
    tokenizer.pad_token = "<s>"
    model = kind.from_pretrained(os.path.join(OUT, folder), dtype=torch.float32)
    trainer = make_trainer(name, rows, tokenizer, model, max_length=LENGTH, max_steps=STEPS,
                           learning_rate=RATE, lr_scheduler_type="constant", optim="adamw_torch",
                           weight_decay=0.0, max_grad_norm=1.0, logging_steps=1,
                           logging_strategy="steps", per_device_train_batch_size=micro,
                           gradient_accumulation_steps=len(rows) // micro, **more)
    assert len(trainer.train_dataset) == len(rows)
    trainer.train()
    logs = [x for x in trainer.state.log_history if "loss" in x]
    keys = ("loss", "grad_norm", "rewards/chosen", "rewards/rejected", "rewards/margins")
    for i, step in enumerate(logs):
        out += [f"{run} {i + 1} {k} {float(step[k]):.9g}\n" for k in keys if k in step]


def make_steps(templates):
    out = []
    tokenizer = TOKENIZERS["byte"]
    tokenizer.chat_template = templates["chatml_marked"]
    with open(os.path.join(OUT, "chat_template.jinja"), "w", encoding="utf-8") as f:
        f.write(tokenizer.chat_template)
    llama = ("../preference/model", LlamaForCausalLM)
    merged = others([t for t in cuts() if len(t[0]) > 2][:8])
    dialogues = [d for d in DIALOGUES if d[1] and d[2]][:8]
    rows = {"text": completions([d[:2] for d in merged]), "text_pairs": preferences(merged),
            "chat": completions([d[:2] for d in dialogues]), "chat_pairs": preferences(dialogues)}
    for file, lines in rows.items():
        with open(os.path.join(OUT, file + ".jsonl"), "w", encoding="utf-8") as f:
            f.writelines(json.dumps(r, ensure_ascii=False) + "\n" for r in lines)
    for what in ("text", "chat"):
        pairs = rows[what + "_pairs"]
        run_steps(out, "sft_" + what, rows[what], *llama, 8)
        run_steps(out, "dpo_" + what, pairs, *llama, 8, beta=BETA)
        # The cross entropy is a mean over a micro batch's tokens: with one pair it is the pair's.
        run_steps(out, "orpo_" + what, pairs, *llama, 1, beta=BETA)
    gpt2 = ("gpt2", GPT2LMHeadModel)
    run_steps(out, "dpo_dropout", rows["text_pairs"], *gpt2, 8, beta=BETA)
    run_steps(out, "orpo_dropout", rows["text_pairs"], *gpt2, 1, beta=BETA)
    with open(os.path.join(OUT, "steps.txt"), "w") as f:
        f.writelines(out)


def save(path, value):
    with open(os.path.join(OUT, path), "w", encoding="utf-8") as f:
        f.write("{\n" + ",\n".join(
            f"{json.dumps(k)}: " + ("[\n" + ",\n".join(json.dumps(c, ensure_ascii=False) for c in v)
                                    + "\n]" if isinstance(v, list)
                                    else json.dumps(v, ensure_ascii=False))
            for k, v in value.items()) + "\n}\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shared")
    given = parser.parse_args()
    os.makedirs(OUT, exist_ok=True)
    transformers.utils.logging.set_verbosity_error()
    tokenizers, templates, cases = make_tokenizers(), own_templates(), []
    make_gpt2()
    make_steps(templates)
    text_cases(cases)
    own_chat_cases(cases, templates)
    if given.shared:
        published_cases(cases, given.shared)
    print("refused by TRL:", json.dumps(REFUSED, indent=1))
    save("cases.json", {"versions": {m.__name__: m.__version__ for m in (torch, transformers, trl)},
                        "tokenizers": tokenizers, "templates": templates, "sets": SETS, "cases": cases})


if __name__ == "__main__":
    main()
