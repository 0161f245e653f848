#!/usr/bin/env python3
"""Makes tests/golden/chat/: what transformers renders from chat templates.

    python3 tests/golden/make_chat.py [--shared ../shared]

Needs `pip install transformers jinja2` (made with 5.23.0 and 3.1.6). `cases.json` has templates of our
own, each with one construct or a few, and their output; a case without "text" is one that raises an
error. `conversations.json` has the conversations. With --shared, `shared.json` gets lengths and
FNV-1a hashes of what the templates that lie beside the project render; they and their text are not
stored.
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
    """The text and its spans, as apply_chat_template does it: members that are None are left out."""
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
                                           {"type": "image", "url": "x"}, {"type": "text", "text": "two"}]}],
    "wrong_roles": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"},
                    {"role": "robot", "content": "c"}],
    "values": [{"role": "user", "content": "x", "n": 3, "f": 0.1, "neg": -7, "big": 1e300, "t": True,
                "nothing": [None, 1, "a", 2.5, {"k": [1]}], "quote": "it's \"so\" \\ \n\t\x07é\u200b",
                "map": {"b": 2, "a": 1, "C": 3}, "list": [3, 1, 2], "names": ["b", "A", "c", "a"],
                "items": "an item", "update": "u"},
               {"role": "assistant", "content": "y", "n": 1},
               {"role": "user", "content": "z", "n": 2}],
}
TOOLS = {"none": None, "one": [WEATHER], "two": [WEATHER, CLOCK]}

# (conversation, template); tools: "two" where the template says tools.
CASES = [
    # whitespace
    ("user", "a\n{% if true %}\nb\n{% endif %}\nc\n"),
    ("user", "a  {%- if true %}  b  {%- endif -%}  \n\n c"),
    ("user", "  {% if true %}\n  x\n  {% endif %}\n  y"),
    ("user", "\t {%+ if true %}\n x{% endif +%}\n y"),
    ("user", "  {# c #}\n  a {# c #} b\n{#- c -#}\n  c {#+ d +#}\n e"),
    ("user", "x {{- ' a ' -}} y {{ 'b' }}\n{{ 'c' }}\n\n"),
    ("user", "line\r\nother\rthird\r\n\r\n{{ 'a\r\nb' }}"),
    ("user", "{% raw %}\n  {{ x }} {% if %}\n  {% endraw %}\n z"),
    ("user", "a {%- raw -%}  {{ y }}  {%- endraw -%}  b"),
    ("user", "\n\n  {%- for x in [1, 2] %}\n  {{ x }}\n  {%- endfor %}\n\n"),
    ("user", "{% for x in 'ab' -%}\n  {{ x }},\n{%- endfor -%}\n."),
    ("user", "{{ '{% x %}' }}{{ \"}}\" }}{{ {'a': {'b': '}'}}['a']['b'] }}"),
    ("user", "\u00a0 {%- if true %}nbsp{% endif -%} \u3000 z"),
    ("user", "{{'a'}}{{- 'b' }} {{ 'c' -}} \n d"),
    # literals
    ("user", "{{ 1 }} {{ 1_000 }} {{ 1.5 }} {{ 1e3 }} {{ 2.5e-7 }} {{ 1e16 }} {{ 1e22 }} {{ 0.1 + 0.2 }}"),
    ("user", "{{ true }} {{ True }} {{ none }} {{ None }} {{ false }} {{ [] }} {{ () }} {{ (1,) }} {{ {} }}"),
    ("user", "{{ 'a\\n\\t\\x41\\u00e9\\U0001F600\\'\\\"\\\\\\101\\q\\\n!' }}{{ 'a' \"b\" 'c' }}"),
    ("user", "{{ [1, 'a', none, true, 1.0, [2], (3, 4), {'k': 'v', 2: 3}] }}"),
    ("values", "{{ messages[0].quote }}|{{ [messages[0].quote] }}"),
    ("values", "{{ messages[0].nothing }} {{ messages[0].map }} {{ messages[0].big }}"),
    ("user", "{{ [\"it's\", 'say \"x\"', 'both \\' \"', '\\x00\\x1f\\x7f\\u2028'] }}"),
    ("user", "{{ 1, 2 }} {{ (1, 2)[1] }} {{ 'é' ~ 1 ~ none ~ missing ~ [1] }}"),
    # operators
    ("user", "{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ -2 ** 2 }}"),
    ("user", "{{ 1 + 2 * 3 - 4 }} {{ (1 + 2) * 3 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 2 ** 3 ** 2 }}"),
    ("user", "{{ 'a' * 3 }} {{ 2 * 'ab' }} {{ [1] * 3 }} {{ 'a' + 'b' }} {{ [1] + [2] }} {{ 'x' * -1 }}"),
    ("user", "{{ true + 1 }} {{ +3 }} {{ -3 }} {{ - 2 + 1 }} {{ -true }}"),
    ("user", "{{ 1 == 1.0 }} {{ 1 == true }} {{ '1' == 1 }} {{ [1, [2]] == [1, [2]] }} {{ (1,) == [1] }} {{ {'a': 1, 'b': 2} == {'b': 2, 'a': 1} }}"),
    ("user", "{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 'a' < 'b' }} {{ 'Z' < 'a' }} {{ [1, 2] < [1, 3] }} {{ 2 >= 2 != 3 }}"),
    ("user", "{{ 1 in [1, 2] }} {{ 3 not in [1, 2] }} {{ 'a' in 'cat' }} {{ 'k' in {'k': 1} }} {{ '' in '' }} {{ 1 in missing }}"),
    ("user", "{{ not true }} {{ not '' }} {{ 1 and 0 }} {{ 0 or 'x' }} {{ not 1 == 2 }} {{ true and not false or false }}"),
    ("user", "{{ 'y' if true else 'n' }} {{ 'y' if false else 'n' }} [{{ 'y' if false }}] {{ 1 if 0 else 2 if 0 else 3 }}"),
    ("user", "{{ missing == none }} {{ missing == other }} {{ missing is defined }} {{ missing or 'd' }} [{{ missing }}]"),
    ("user", "{{ missing.x }}"), ("user", "{{ missing + 1 }}"), ("user", "{{ 'a' + 1 }}"), ("user", "{{ 1 / 0 }}"),
    ("user", "{{ missing() }}"), ("user", "{{ none.x }}|{{ none[0] }}|{{ 5[0] }}"), ("user", "{{ 1 < 'a' }}"),
    ("user", "{{ missing|length }} {{ missing|list }} {{ missing|join }} {% for x in missing %}x{% else %}e{% endfor %}"),
    ("user", "{% for x in none %}{% endfor %}"), ("user", "{{ none|length }}"), ("user", "{{ 5|length }}"),
    # attributes, items, slices
    ("values", "{{ messages[0]['role'] }} {{ messages[0].role }} {{ messages[-1].content }} {{ messages.0.n }} {{ messages[9] is defined }}"),
    ("values", "{{ messages[0].items is callable }} {{ messages[0]['items'] }} {{ messages[0].update is defined }} {{ messages[0]['update'] }}"),
    ("values", "{{ messages[0].list[::-1] }} {{ messages[0].list[1:] }} {{ messages[0].list[:-1] }} {{ messages[0].list[-2:] }} {{ messages[0].list[::2] }}"),
    ("user", "{{ 'abcdef'[::-1] }} {{ 'abcdef'[1:4] }} {{ 'abcdef'[-3:] }} {{ 'abcdef'[4:1:-1] }} {{ 'abcdef'[::2] }} {{ 'añb你c'[1:4] }} {{ 'añb你c'[::-1] }}"),
    ("user", "{{ 'abc'[0] }}{{ 'abc'[-1] }}{{ 'a你c'[1] }}{{ 'abc'[5] is defined }}|{{ 'abc'[10:] }}|{{ 'abc'[-10:2] }}|{{ 'abc'[2:-10:-1] }}"),
    ("user", "{{ (1, 2, 3)[:2] }} {{ [1, 2, 3][3:] }} {{ [1, 2, 3][none:none:none] }} {{ 'x'[:] }} {{ [0, 1, 2, 3, 4][-2::-2] }}"),
    ("user", "{{ [1][::0] }}"), ("values", "{{ messages[0][1:] }}"), ("user", "{{ missing[1:] }}"),
    ("user", "{{ {'a': 1}.a }} {{ {'a': 1}['a'] }} {{ {1: 'x'}[1] }} {{ {1: 'x'}[true] }} {{ {'a': 1}.b is defined }} {{ {none: 2}[none] }}"),
    ("user", "{{ ''.__class__ is defined }} {{ [].append is defined }} {{ 'a'.upper is defined }} {{ {}.pop is defined }}"),
    ("user", "{{ [].append(1) }}"), ("user", "{{ ''.__class__.__mro__ }}"), ("user", "{{ {}.update({'a': 1}) }}"),
    # loops
    ("turns", "{% for m in messages %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }};{% endfor %}"),
    ("turns", "{% for m in messages %}{{ loop.previtem.role if loop.previtem }}<{{ m.role }}>{{ loop.nextitem.role if loop.nextitem is defined }} {% endfor %}"),
    ("turns", "{% for m in messages if m.role == 'user' %}{{ loop.index }}/{{ loop.length }} {{ m.content }}{{ ',' if not loop.last }}{% endfor %}"),
    ("turns", "{% for m in messages if m.role == 'user' %}{{ loop.last }} {{ loop.previtem is defined }} {{ loop.nextitem.content if loop.nextitem is defined }}|{% endfor %}"),
    ("turns", "{%- for m in messages if m.role == 'nobody' -%}x{%- else -%} none {%- endfor -%}"),
    ("turns", "{% for i in range(3) %}{% for j in range(i) %}{{ loop.index }}{% else %}-{% endfor %}{{ loop.index }} {% endfor %}"),
    ("user", "{% for i in range(10) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 5 %}{% break %}{% endif %}{{ i }}{% else %}never{% endfor %}"),
    ("user", "{% for i in range(3) %}{% for j in 'abc' %}{% if j == 'b' %}{% break %}{% endif %}{{ i }}{{ j }}{% endfor %}.{% endfor %}"),
    ("user", "{% for k, v in {'a': 1, 'b': [2]}.items() %}{{ k }}={{ v }};{% endfor %}{% for k in {'x': 1} %}{{ k }}{% endfor %}"),
    ("user", "{% for a, b in [(1, 2), [3, 4], 'xy'] %}{{ a }}{{ b }} {% endfor %}"),
    ("user", "{% for a, b in [(1, 2, 3)] %}{% endfor %}"),
    ("user", "{% for x in [1, 2, 3] %}{{ loop.cycle('odd', 'even') }} {% endfor %}"),
    ("user", "{{ range(3)|list }} {{ range(1, 8, 3)|list }} {{ range(5, 0, -2)|list }} {{ range(3)|length }} {{ range(5)[1] }} {{ range(3)[::-1]|list }} {{ range(0) | list }}"),
    ("user", "{% for i in range(200000) %}{% endfor %}"), ("user", "{{ range(1, 2, 0) }}"), ("user", "{{ range('a') }}"),
    ("user", "{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = x + i %}{{ x }} {% endfor %}{{ x }}"),
    ("user", "{% set ns = namespace(n=0, s='') %}{% for i in range(5) %}{% set ns.n = ns.n + i %}{% set ns.s = ns.s ~ i %}{% endfor %}{{ ns.n }} {{ ns.s }} {{ ns['n'] }} {{ ns.other is defined }}"),
    ("user", "{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a + ns.b }}{% set ns.found = false %}{{ ns.found }}"),
    ("user", "{% set x = {} %}{% set x.a = 1 %}"), ("user", "{% set ns = namespace() %}{% set ns._x = 1 %}"),
    ("user", "{% if true %}{% set y = 5 %}{% endif %}{{ y }} {% if missing %}{% elif 1 == 1 %}elif{% else %}else{% endif %}"),
    ("user", "{% for loop_item in [1] %}{% if loop.first and loop.last %}only{% endif %}{% endfor %}"),
    ("user", "{% set ns = namespace(on=true) %}{% for i in range(6) if ns.on %}{% if i == 2 %}{% set ns.on = false %}{% endif %}{{ i }}{% endfor %}"),
    ("user", "{% set ns = namespace(on=true) %}{% for i in range(6) if ns.on %}{% if i == 2 %}{% set ns.on = false %}{% endif %}{{ i }}{{ loop.last }}{% endfor %}"),
    # set, macros, blocks
    ("user", "{% set a, b = 1, [2] %}{{ a }}{{ b }}{% set c = 1, 2 %}{{ c }}"),
    ("user", "{% set text %}\n a {{ 1 + 1 }}\n{% endset %}[{{ text }}] {% set t | trim | upper %}  hey {% endset %}[{{ t }}]"),
    ("user", "{% set z = 1 %}{% set text %}{% set z = 2 %}{{ z }}{% endset %}{{ text }}{{ z }}"),
    ("user", "{% macro m(a, b=2, c=a) %}<{{ a }},{{ b }},{{ c }}>{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(c=5, a=4) }}{{ m() }}"),
    ("user", "{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(5) }}{{ f(2)|length }}{{ f.name }}"),
    ("user", "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}"), ("user", "{% macro m(a) %}{% endmacro %}{{ m(x=2) }}"),
    ("user", "{% set g = 'G' %}{% macro m() %}{{ g }}{% set g = 'L' %}{{ g }}{% endmacro %}{{ m() }}{{ g }}{% set g = 'H' %}{{ m() }}"),
    ("user", "{% macro wrap(t) %}[{{ t }}:{{ caller() }}]{% endmacro %}{% call wrap('x') %}in {{ 1 }}{% endcall %}"),
    ("user", "{% macro each(xs) %}{% for x in xs %}{{ caller(x, loop.index) }}{% endfor %}{% endmacro %}{% call(v, i=0) each('ab') %}({{ i }}{{ v }}){% endcall %}"),
    ("user", "{% filter upper | replace('A', 'b') %}banana {{ 'c' }}{% endfilter %}"),
    ("turns", "{% for m in messages %}{% if m.role == 'assistant' %}A:{% generation %}{{ m.content }}!{% endgeneration %}\n{% else %}{{ m.content }}\n{% endif %}{% endfor %}"),
    ("turns", "{% for m in messages %}{{ '<' ~ m.role ~ '>' }}{%- generation -%}  {{ m.content | trim }}  {%- endgeneration -%} \n{% endfor %}"),
    ("user", "{% set x = 1 %}{% generation %}{% set x = 2 %}é{{ x }}{% endgeneration %}{{ x }}"),
    # tests
    ("values", "{% for v in messages[0].nothing %}{{ v is none }}{{ v is string }}{{ v is number }}{{ v is integer }}{{ v is float }}{{ v is mapping }}{{ v is sequence }}{{ v is iterable }}{{ v is boolean }} {% endfor %}"),
    ("user", "{{ 3 is odd }}{{ 4 is even }}{{ 9 is divisibleby 3 }}{{ 9 is divisibleby(2) }}{{ 1 is eq 1 }}{{ 1 is ne 2 }}{{ 1 is lt 2 }}{{ 2 is ge 2 }}{{ 1 is in [1] }}{{ 'a' is equalto 'a' }}{{ true is true }}{{ false is false }}{{ 1 is true }}"),
    ("user", "{{ 'AB' is upper }}{{ 'ab' is lower }}{{ 'Ab' is upper }}{{ 'a' is not defined }}{{ x is undefined }}{{ none is sameas none }}{{ 1 is not none }}{{ range is callable }}{{ x is not defined and 1 }}"),
    ("user", "{{ 1 is defined and x is not defined or y is defined }} {{ (1 is string) == false }} {{ x is iterable }} {{ x is string }} {{ 'a' is iterable }}"),
    # filters
    ("values", "{{ messages[0].list|sort }} {{ messages[0].list|sort(reverse=true) }} {{ messages[0].names|sort }} {{ messages[0].names|sort(case_sensitive=true) }} {{ messages|sort(attribute='n')|map(attribute='n')|list }}"),
    ("values", "{{ messages[0].map|dictsort }} {{ messages[0].map|dictsort(true) }} {{ messages[0].map|dictsort(false, 'value') }} {{ messages[0].map|dictsort(reverse=true) }} {{ messages[0].map|items|list }}"),
    ("values", "{{ messages|selectattr('role', 'equalto', 'user')|map(attribute='content')|join(', ') }} {{ messages|rejectattr('n', 'gt', 1)|list|length }} {{ messages|selectattr('f')|list|length }} {{ messages|selectattr('f', 'defined')|list|length }}"),
    ("values", "{{ [1, 2, 3, 4]|select('even')|list }} {{ [1, 0, 2]|select|list }} {{ [1, 2, 3]|reject('equalto', 2)|list }} {{ ['a', 'B']|map('upper')|join }} {{ ['a-b']|map('replace', '-', '+')|list }} {{ [[1, 2], [3]]|map('first')|list }}"),
    ("values", "{{ messages|map(attribute='f', default='none')|join(',') }} {{ messages|map(attribute='map.a', default=0)|list }} {{ messages|first|length }} {{ (messages|last).content }} {{ messages|map(attribute='role')|unique|list }}"),
    ("user", "{{ '  a b '|trim }}|{{ 'xxaxx'|trim('x') }}|{{ 'abc'|upper }}|{{ 'ÀB'|lower }}|{{ 'hello wORLD-x (y'|title }}|{{ 'hELLO'|capitalize }}|{{ 'straße ﬁ'|upper }}|{{ 'ΑΣ ΑΣΑ'|lower }}"),
    ("user", "{{ 'a,b'|replace(',', '; ') }} {{ 'aaa'|replace('a', 'b', 2) }} {{ 5|replace(5, 6) }} {{ 'abc'|replace('', '-') }} {{ 'abc'|reverse }} {{ [1, 2]|reverse|list }} {{ 'abc'|list }} {{ 'abc'|first }}{{ 'abc'|last }}"),
    ("user", "{{ missing|default('d') }} {{ ''|default('d') }} {{ ''|default('d', true) }} {{ none|d('x') }} {{ none|d('x', boolean=true) }} {{ 0|default(1) }} [{{ missing|default }}]"),
    ("user", "{{ '42'|int }} {{ 'x'|int }} {{ 'x'|int(7) }} {{ '3.9'|int }} {{ 3.9|int }} {{ ' 5 '|int }} {{ 'ff'|int(base=16) }} {{ '1.5'|float }} {{ 'x'|float }} {{ true|int }} {{ -3|abs }} {{ 2.5|abs }}"),
    ("user", "{{ 2.567|round(1) }} {{ 2.5|round }} {{ 3.5|round }} {{ 2.1|round(0, 'ceil') }} {{ 2.9|round(method='floor') }} {{ 5|round }} {{ 2.675|round(2) }} {{ 1e-5 }} {{ 123456789.123 }}"),
    ("user", "{{ [1, 2, 3]|sum }} {{ [{'a': 1}, {'a': 2}]|sum(attribute='a') }} {{ [3, 1, 2]|min }} {{ ['b', 'A']|max }} {{ []|first is defined }} {{ [1.5, 1]|sum(start=1) }} {{ ['b', 'A']|min }} {{ []|max is defined }}"),
    ("user", "{{ 'a\nb\n\nc'|indent }}|{{ 'a\nb'|indent(2, true) }}|{{ 'a\n\nb'|indent(width='> ', blank=true) }}|{{ 'a'|string }}{{ 1|string + 'x' }}{{ 'a'|safe }}"),
    ("user", "{{ {'b': [1, 2.5, true, none, 'é\"\\n\\x01<&>'], 'a': {}, 'c': []}|tojson }}"),
    ("user", "{{ {'b': [1, {'x': []}], 'a': {}}|tojson(indent=2) }} {{ {'é': '😀\\x7f'}|tojson(ensure_ascii=true) }} {{ {'b': 1, 'a': 2}|tojson(sort_keys=true) }} {{ [1, {'a': 2}]|tojson(separators=(',', ':')) }}"),
    ("user", "{{ {1: 2, true: 3, none: 4, 1.5: 5}|tojson }} {{ 'x'|tojson }} {{ (1, 2)|tojson }} {{ 1e20|tojson }} {{ [[], {}]|tojson(indent=0) }} {{ [1]|tojson(indent='--') }}"),
    ("user", "{{ missing|tojson }}"), ("user", "{{ range(3)|tojson }}"), ("user", "{{ [1]|nosuch }}"), ("user", "{{ 1 is nosuch }}"),
    ("user", "{{ [1, 2]|join(missing) }} {{ [[1], none]|join('-') }} {{ 'abc'|join('.') }} {{ [{'a': 1}]|join(attribute='a') }} {{ {'x': 1}|join }}"),
    ("user", "{{ 'b' ~ 'a'|upper }} {{ ('b' ~ 'a')|upper }} {{ -1|abs }} {{ 1 + 2|string|length }} {{ 'x'.upper()|lower }}"),
    ("tools", "{{ tools|tojson }}"), ("tools", "{{ tools[0]|tojson(indent=4) }}"), ("tools", "{{ messages[2]|tojson }} {{ tools is none }} {{ documents is none }}"),
    ("tools", "{% for t in tools %}{% set t = t.function %}{{ t.name }}: {% for n, p in t.parameters.properties|items %}{{ n }}={{ p.description|trim }}{{ ', ' if not loop.last }}{% endfor %}\n{% endfor %}"),
    # string methods
    ("user", "{{ ' a '.strip() }}|{{ 'xay'.strip('xy') }}|{{ '\\n\\na\\n'.lstrip('\\n') }}|{{ ' a '.rstrip() }}|{{ 'ab'.upper() }}{{ 'AB'.lower() }}|{{ \"they're bill's x\".title() }}|{{ 'aB c'.capitalize() }}"),
    ("user", "{{ 'a,b,,c'.split(',') }} {{ ' a  b c '.split() }} {{ 'a b c d'.split(' ', 2) }} {{ ' a  b  c '.split(none, 1) }} {{ 'a,b,c'.rsplit(',', 1) }} {{ ' a b  c '.rsplit(maxsplit=1) }} {{ ''.split() }} {{ ''.split(',') }} {{ 'a</think>b'.split('</think>')[-1] }}"),
    ("user", "{{ 'abc'.startswith('ab') }} {{ 'abc'.endswith(('x', 'c')) }} {{ 'abc'.replace('b', 'x') }} {{ 'aaa'.replace('a', 'b', 1) }} {{ ', '.join(['a', 'b']) }} {{ 'ab\ncd\r\ne'.splitlines() }} {{ 'a\nb\n'.splitlines(true) }}"),
    ("user", "{{ 'añbñ'.find('ñ') }} {{ 'abab'.rfind('ab') }} {{ 'abc'.find('x') }} {{ 'abcabc'.count('bc') }} {{ 'aaa'.count('aa') }} {{ 'ab'.index('b') }} {{ 'a=b=c'.partition('=') }} {{ 'a=b=c'.rpartition('=') }} {{ 'abc'.partition('x') }}"),
    ("user", "{{ '12'.isdigit() }} {{ 'ab'.isalpha() }} {{ 'a1'.isalnum() }} {{ '  '.isspace() }} {{ 'AB'.isupper() }} {{ 'ab'.islower() }} {{ 'unhappy'.removeprefix('un') }} {{ 'file.txt'.removesuffix('.txt') }} {{ ''.isdigit() }}"),
    ("user", "{{ 'abc'.index('x') }}"), ("user", "{{ 'a'.split('') }}"), ("user", "{{ ','.join([1]) }}"),
    ("user", "{{ {'a': 1}.get('a') }} {{ {}.get('b') }} {{ {}.get('b', 2) }} {{ {'a': 1}.keys()|list }} {{ {'a': 1}.values()|list }} {{ {'a': 1}.items()|list }} {{ {'a': 1}.items()|length }} {{ [1, 2, 1].count(1) }} {{ [1, 2].index(2) }}"),
    # functions
    ("user", "{{ raise_exception('no: ' ~ 1) }}"), ("user", "{{ dict(a=1, b='x') }} {{ dict({'c': 3}, a=1) }} {{ dict() }}"),
    ("user", "{{ strftime_now('%d %b %Y') }} {{ strftime_now('%A, %B %-d %H:%M:%S %p %I %j %y %%') }} [{{ strftime_now('%Z') }}]"),
    ("user", "{% if strftime_now is defined %}yes{% endif %} {{ bos_token }}{{ eos_token }} {{ extra.a }} {{ add_generation_prompt }}"),
    ("nulls", "{% for m in messages %}{{ m|tojson }}\n{% endfor %}{{ messages[1].content is defined }} {{ messages[1].reasoning_content }} {{ 'tool_calls' in messages[1] }}"),
    ("parts", "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content if p.type == 'text' %}{{ p['text'] }}{{ ' ' if not loop.last }}{% endfor %}{% endif %}{% endfor %}"),
    # what a template cannot be
    ("user", "{% if true %}x"), ("user", "{% for %}"), ("user", "{{ 1 +"), ("user", "{{ 'a }}"), ("user", "{# x"),
    ("user", "{% endfor %}"), ("user", "{{ (1 }}"), ("user", "{{ ] }}"), ("user", "{% raw %}x"), ("user", "{{ a b }}"),
    ("user", "{{ }}"), ("user", "{% break %}"), ("user", "{% set 1 = 2 %}"), ("user", "{% set true = 2 %}"), ("user", "{{ x is a is b }}"),
    ("user", "{% if x %}{% else %}{% elif y %}{% endif %}"), ("user", "{{ 1 ? 2 }}"), ("user", "{% unknown %}"), ("user", "{{ f(a=1, 2) }}"),
    ("user", "} } %} #} }} { {{ '{' }} { % }"), ("user", "{{ 'x' }}}"), ("user", ""), ("user", "\n"), ("user", "\n\n"),
    # things that real templates do
    ("turns", "{% for message in messages %}{{'<|' + message['role'] + '|>' + '\n' + message['content'] | trim + '<|end|>\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}"),
    ("turns", "{%- set loop_messages = messages[1:] if messages[0].role == 'system' else messages -%}\n{%- set ns = namespace(last=loop_messages|length - 1) -%}\n{%- for m in loop_messages[::-1] -%}{%- set index = (loop_messages|length - 1) - loop.index0 -%}{%- if m.role == 'user' and ns.last == loop_messages|length - 1 -%}{%- set ns.last = index -%}{%- endif -%}{{ index }}{%- endfor -%}\n{{ ns.last }}"),
    ("wrong_roles", "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate') }}{% endif %}{% endfor %}"),
    ("two_calls", "{% for m in messages %}{% if m.tool_calls is defined %}{% for c in m.tool_calls %}{% set c = c.function %}{{ c.name }}({% for k, v in c.arguments.items() %}{{ k }}={{ v|tojson }}{% if not loop.last %}, {% endif %}{% endfor %}){{ '\\n' }}{% endfor %}{% elif m.role == 'tool' and loop.previtem.role != 'tool' %}T{% endif %}{% endfor %}"),
]
VARIABLES = {"bos_token": "<s>", "eos_token": "</s>", "extra": {"a": [1, None]}}

# What some of the templates beside the project ask for.
MORE = {"enable_thinking": False, "tools_in_user_message": False,
        "builtin_tools": ["code_interpreter", "search", "get_weather"]}


def make_cases():
    cases = []
    for conversation, template in CASES:
        tools = "two" if "tools" in template else "none"
        prompt = len(cases) % 2 == 0
        case = {"template": template, "conversation": conversation, "tools": tools, "prompt": prompt}
        try:
            text, spans = render(template, CONVERSATIONS[conversation], TOOLS[tools], prompt, **VARIABLES)
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


def save(name, value, **how):
    with open(os.path.join(OUT, name), "w", encoding="utf-8") as file:
        json.dump(value, file, ensure_ascii=False, **how)
        file.write("\n")


def save_rows(name, rows):
    with open(os.path.join(OUT, name), "w", encoding="utf-8") as file:
        file.write("[\n" + ",\n".join(json.dumps(r, ensure_ascii=False) for r in rows) + "\n]\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shared")
    arguments = parser.parse_args()
    os.makedirs(OUT, exist_ok=True)
    save("conversations.json", {"conversations": CONVERSATIONS, "tools": TOOLS, "variables": VARIABLES, "more": MORE}, indent=1)
    save_rows("cases.json", make_cases())
    if arguments.shared:
        save_rows("shared.json", make_shared(arguments.shared))


if __name__ == "__main__":
    main()
