"""Tokenizers, generation and chats; test_python_text.sh made what the program says."""

import json
import os
import threading

import sifr

gpt2 = os.environ["GPT2"]


def raises(kind, words, call, *args, **named):
    try:
        call(*args, **named)
    except kind as error:
        assert words in str(error), f"{error} lacks {words}"
        return
    raise AssertionError(f"no {kind.__name__} with {words}")


# --- tokenizers ---
text = "The sea is wide – и глубоко 🌊."
with sifr.Tokenizer(gpt2) as t:
    ids = t.encode(text)
    assert t.decode(ids) == text and t.decode(tuple(ids)) == text and max(ids) < t.vocab_size
    pieces = list(t.pieces(ids))
    assert "".join(pieces) == text and "�" not in "".join(pieces)
    assert t.id("no such token") is None and t.eos is not None and t.is_special(t.eos)
    said = t.render_chat([{"role": "user", "content": "Hi"}], chat_template="chatml")
    assert said == "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n", said
    raises(sifr.UsageError, "template", t.render_chat, [{"role": "user", "content": "Hi"}])
    raises(TypeError, "", t.encode, 3)
    raises(TypeError, "", t.decode, ["a"])
    raises(OverflowError, "", t.decode, [2**40])
    raises(sifr.Error, "", t.decode, [2**31 - 1])
    half = t._tokenizer.decoder(False)
    raises(sifr.UsageError, "close that first", t.close)
    half.close()
raises(sifr.UsageError, "was closed", t.encode, "x")
raises(sifr.Error, "nowhere", sifr.Tokenizer, "nowhere")
raises(TypeError, "", sifr.Tokenizer, 3)
raises(TypeError, "", sifr._sifr.Tokenizer)

# --- generation: the program's texts ---
with sifr.Generator(gpt2, max_new_tokens=12) as g:
    (one,) = g.generate("The sea")
    whole = open("by_program.txt", encoding="utf-8").read()
    assert "The sea" + one.text + "\n" == whole, (one, whole)
    assert one.end == "length" and len(one.ids) - one.prompt_tokens == 12, one
    assert "".join(g.stream("The sea")) == one.text
    for piece in g.stream("The sea"):
        break  # leaving ends it, and the generator is free again
    got = {0: "", 1: ""}
    two = g.generate(["The sea", "A ship"], piece=lambda n, p: got.update({n: got[n] + p}))
    assert [x.text for x in two] == [got[0], got[1]] and two[0].text == one.text, two

    def stumble(number, piece):
        raise KeyError("own")

    raises(KeyError, "own", g.generate, "The sea", piece=stumble)
    raises(sifr.UsageError, "prompts: one message", g.generate, {"role": "user", "content": "a"})
    for wrong in (b"ab", 5, [5], [None]):
        raises(TypeError, "prompts: a text", g.generate, wrong)
    raises(sifr.UsageError, "in use", g.generate, "The sea", piece=lambda n, p: g.generate("x"))
    raises(sifr.UsageError, "positions", g.generate, ["fine", "much " * 5000])
    assert len(g.generate("The sea")) == 1  # the one before the refused one is not there
    raises(sifr.UsageError, "none is given", g.generate, [])
    raises(TypeError, "", g.generate, 3)
    waits = threading.Event()
    seen, waiting = [], []

    def hold(number, piece):
        waiting.append(1)
        waits.wait(20)

    other = threading.Thread(target=lambda: seen.extend(g.generate("The sea", piece=hold)))
    other.start()
    while not waiting:
        pass
    raises(sifr.UsageError, "in use", g.generate, "The sea")
    raises(sifr.UsageError, "in use", g.close)
    waits.set()
    other.join()
    assert seen[0].text == one.text
drawn = sifr.generate(gpt2, "The sea", samples=2, temperature=0.8, seed=5, max_new_tokens=8)
told = [json.loads(line) for line in open("by_program.json", encoding="utf-8")]
assert [x.text for x in drawn] == [x["text"] for x in told], (drawn, told)
raises(sifr.UsageError, "--top-p 2", sifr.Generator, gpt2, top_p=2)
raises(sifr.Error, "nowhere", sifr.Generator, "nowhere")
raises(TypeError, "", sifr.Generator, gpt2, temperature="hot")

# --- chats ---
short = "{% for m in messages %}{{ m['content'] }} {% endfor %}"
with sifr.Generator(gpt2, max_new_tokens=4) as g:
    chat = g.chat(chat_template=short, system="Be short.")
    first = chat.answer("Hello")
    parts = []
    assert isinstance(chat.answer("And?", piece=parts.append), str)
    chat.close()
    again = g.chat(chat_template=short, system="Be short.")
    assert "".join(again.stream("Hello")) == first
    raises(sifr.UsageError, "close that first", g._generator.close)
    (asked,) = g.generate(
        [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Hello"}],
        chat_template=short,
    )
    assert asked.text == first, (asked, first)
raises(sifr.UsageError, "was closed", again.answer, "Hello")
