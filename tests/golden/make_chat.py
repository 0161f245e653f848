#!/usr/bin/env python3
"""Makes tests/golden/chat/: what transformers renders from chat templates.

    python3 tests/golden/make_chat.py [--shared ../shared]

Needs `pip install transformers jinja2` (made with 5.24.0 and 3.1.6). `cases.json` has templates of
our own, each with one construct or a few. Their conversations are in `conversations.json`. To add a
template, add a row with "conversation" and "template"; this script writes the rest: the text, or
the error. With --shared, `shared.json` gets lengths and FNV-1a hashes of what the templates that lie
beside the project render; they and their text are not stored.
"""
import argparse, datetime, glob, json, os
from transformers.utils import chat_template_utils

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "chat")
NOW = datetime.datetime(2026, 11, 24, 13, 5, 9)


class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return NOW


chat_template_utils.datetime = Clock


def hash_of(text):
    value = 0xcbf29ce484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001b3 & (1 << 64) - 1
    return f"{value:016x}"


def render(template, messages, tools, prompt, **variables):
    """The text and its spans, as apply_chat_template: members that are None are left out."""
    messages = [{k: v for k, v in m.items() if v is not None} for m in messages]
    texts, spans = chat_template_utils.render_jinja_template(
        conversations=[messages], tools=tools, chat_template=template,
        return_assistant_tokens_mask=True, add_generation_prompt=prompt, **variables)
    return texts[0], spans[0]


WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "The weather of a place, now or <later> & \"exactly\".",
    "parameters": {"type": "object", "properties": {
        "place": {"type": "string", "description": " A town, e.g. Zürich "},
        "days": {"type": "integer", "description": "How many days", "default": 3},
        "units": {"type": "string", "enum": ["metric", "imperial"], "description": "Units"},
        "tags": {"type": "array", "items": {"type": "string"}, "description": "Tags"},
        "more": {"type": "object", "additionalProperties": {"type": "number"}, "description": "x"},
        "either": {"type": ["string", "null"], "description": "a string or nothing"}},
        "required": ["place"]},
    "return": {"type": "number", "description": "The temperature."}}}
CLOCK = {"type": "function", "function": {
    "name": "clock", "description": "Says the time 🕐.",
    "parameters": {"type": "object", "properties": {}}}}
CALL = {"id": "abc123DEF", "type": "function",
        "function": {"name": "get_weather", "arguments": {"place": "Zürich 'west'", "days": 2}}}
CONVERSATIONS = {
    "user": [{"role": "user", "content": "What is a fish?"}],
    "system": [{"role": "system", "content": "  You are terse.\n"},
               {"role": "user", "content": "Name a colour."}],
    "turns": [{"role": "system", "content": "Be kind. /no_think"},
              {"role": "user", "content": "Hello, wörld! 你好 👋"},
              {"role": "assistant", "content": "Hi there.\n\nHow are you?"},
              {"role": "user", "content": "  Fine\t\nthanks.  "},
              {"role": "assistant", "content": "<think>\nhm\n</think>\n\nGood."},
              {"role": "user", "content": ""}],
    "no_system": [{"role": "user", "content": "1 < 2 & \"3\" > '2'"},
                  {"role": "assistant", "content": "Yes\\no"},
                  {"role": "user", "content": "Why?"},
                  {"role": "assistant", "content": "Because.", "reasoning_content": "I think."}],
    "tools": [{"role": "system", "content": "Use tools."},
              {"role": "user", "content": "Weather in Zürich?"},
              {"role": "assistant", "content": "", "tool_calls": [CALL]},
              {"role": "tool", "name": "get_weather", "tool_call_id": "abc123DEF",
               "content": "{\"temperature\": -3.5, \"sky\": \"☁\"}"},
              {"role": "assistant", "content": "It is -3.5 degrees."},
              {"role": "user", "content": "And now?"}],
    "two_calls": [{"role": "user", "content": "Both?"},
                  {"role": "assistant", "content": "Let me see.", "tool_calls": [
                      CALL, {"id": "zzzzzzzz9", "type": "function", "function": {
                          "name": "clock", "arguments": {}}}]},
                  {"role": "tool", "tool_call_id": "abc123DEF", "content": "cold"},
                  {"role": "tool", "tool_call_id": "zzzzzzzz9", "content": "late"}],
    "nulls": [{"role": "user", "content": "q", "name": None},
              {"role": "assistant", "content": None, "thinking": "aha", "tool_calls": None},
              {"role": "user", "content": "r"}],
    "parts": [{"role": "user", "content": [{"type": "text", "text": "one"},
                                           {"type": "image", "url": "x"},
                                           {"type": "text", "text": "two"}]}],
    "wrong_roles": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"},
                    {"role": "robot", "content": "c"}],
    "values": [{"role": "user", "content": "x", "n": 3, "f": 0.1, "neg": -7, "big": 1e300,
                "t": True, "nothing": [None, 1, "a", 2.5, {"k": [1]}],
                "quote": "it's \"so\" \\ \n\t\x07é\u200b",
                "map": {"b": 2, "a": 1, "C": 3}, "list": [3, 1, 2], "names": ["b", "A", "c", "a"],
                "items": "an item", "update": "u"},
               {"role": "assistant", "content": "y", "n": 1},
               {"role": "user", "content": "z", "n": 2}],
}
TOOLS = {"none": None, "one": [WEATHER], "two": [WEATHER, CLOCK]}

VARIABLES = {"bos_token": "<s>", "eos_token": "</s>", "extra": {"a": [1, None]}}

# What some of the templates beside the project ask for.
MORE = {"enable_thinking": False, "tools_in_user_message": False,
        "builtin_tools": ["code_interpreter", "search", "get_weather"]}


def make_cases():
    """The rows of cases.json anew: templates and conversations are its own, the rest is made."""
    with open(os.path.join(OUT, "cases.json"), encoding="utf-8") as file:
        rows = json.load(file)
    cases = []
    for row in rows:
        template, conversation = row["template"], row["conversation"]
        tools = "two" if "tools" in template else "none"
        prompt = len(cases) % 2 == 0
        case = {"conversation": conversation, "template": template, "tools": tools,
                "prompt": prompt}
        try:
            text, spans = render(template, CONVERSATIONS[conversation], TOOLS[tools], prompt,
                                 **VARIABLES)
            case["text"] = text
            if spans:
                case["spans"] = spans
        except Exception as error:
            case["error"] = type(error).__name__
        cases.append(case)
    return cases


def make_shared(folder):
    rows = []
    for path in sorted(glob.glob(os.path.join(folder, "data", "chat_templates", "*.jinja"))):
        with open(path, encoding="utf-8", newline="") as file:
            template = file.read()
        for conversation, messages in CONVERSATIONS.items():
            for tools in TOOLS:
                for prompt in (False, True):
                    for more, variables in enumerate(({}, MORE)):
                        row = [os.path.basename(path), conversation, tools, prompt, bool(more)]
                        try:
                            text, _ = render(template, messages, TOOLS[tools], prompt,
                                             bos_token="<s>", eos_token="</s>", **variables)
                            row += [len(text.encode()), hash_of(text)]
                        except Exception as error:
                            row += [-1, type(error).__name__]
                        rows.append(row)
    return rows


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
    arguments = parser.parse_args()
    os.makedirs(OUT, exist_ok=True)
    save("conversations.json", {"conversations": CONVERSATIONS, "tools": TOOLS,
                                "variables": VARIABLES, "more": MORE})
    save_rows("cases.json", make_cases())
    if arguments.shared:
        save_rows("shared.json", make_shared(arguments.shared))


if __name__ == "__main__":
    main()
