"""Opens what `sifr export --format gguf` writes in llama.cpp itself (PyPI's xllamacpp).

    python3 llama_cpp_reads.py SIFR SCRATCH FOLDER…

Each folder is exported in fp32. The ids of 20 texts must be those of `sifr generate`, with the
special tokens that the file adds and with those that a text spells; so must the 16 likeliest tokens
behind the first three, up to a tie. Other types are opened for the first folder of a family, and must give the
same ids. What export warns of may differ, and only that (SAID).
"""
import json
import os
import subprocess
import sys
import urllib.request

import xllamacpp

sifr, scratch, *folders = sys.argv[1:]
TOKENS = 16
TIE = 0.002  # of log probability: the models of the suite are random, and near ties happen
TEXTS = ["The quick brown fox", "and the old mill", "hills in the morning", "Numbers: 1 22 333",
         "Hello  two  blanks", " leading", "trailing ", "tab\there", "line\nbreak\n\nmore",
         "Grüße aus Köln", "привет мир", "你好，世界", "こんにちは", "🚀🚀 rocket",
         "we'll say they've", "def f(x):\n    return x * x", "x", "12345678", "e\u0301 ﬁ",
         "<|im_start|>user and a<b>c </s> d"]
# Where llama.cpp cannot follow, export says so, and the text may differ.
SAID = {"begins with a blank": " leading", "behind a special token": TEXTS[-1],
        "beside added tokens": TEXTS[-1], "leaves out its normalizer NFC": TEXTS[-2]}


def run(*arguments):
    made = subprocess.run([sifr, *arguments], capture_output=True, text=True)
    if made.returncode:
        sys.exit(made.stderr)
    return made


def ours(folder, text, tokens):
    made = json.loads(run("generate", "--model", folder, "--prompt", text, "--temperature", "0",
                          "--max-new-tokens", str(tokens), "--precision", "fp32", "--json",
                          "--repetition-penalty", "1", "--threads", "1").stdout)
    return made["prompt_ids"], made["ids"]


def open_file(path):
    parameters = xllamacpp.CommonParams()
    parameters.model.path = path
    parameters.n_ctx = 256  # not above Phi-3's original length: llama.cpp chooses factors by it
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = 1
    parameters.warmup = False
    parameters.verbosity = 0
    f32 = xllamacpp.ggml_type.GGML_TYPE_F32
    parameters.cache_type_k = parameters.cache_type_v = f32
    return xllamacpp.Server(parameters)


def ask(server, where, **body):
    request = urllib.request.Request(server.listening_address + where, json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    return json.loads(urllib.request.urlopen(request, timeout=60).read())


def ids(server, text):
    return ask(server, "/tokenize", content=text, add_special=True, parse_special=True)["tokens"]


def likeliest(server, prompt, count):
    return ask(server, "/completion", prompt=prompt, n_predict=count, temperature=0, top_k=0,
               repeat_penalty=1, return_tokens=True, cache_prompt=False, n_probs=4)


def continued(server, prompt, made):
    """Where llama.cpp goes on otherwise by more than rounding."""
    theirs = likeliest(server, prompt, len(made))["tokens"]
    for number, (own, token) in enumerate(zip(made, theirs)):
        if own == token:
            continue
        choice = likeliest(server, prompt + made[:number], 1)["completion_probabilities"]
        chances = {entry["id"]: entry["logprob"] for entry in choice[0]["top_logprobs"]}
        near = chances.get(own, -99) > max(chances.values()) - TIE
        return None if near else f"continued by {theirs}, here {made}"
    return None


def differences(folder, server, said):
    for number, text in enumerate(TEXTS):
        tokens = TOKENS if number < 3 else 1
        if text in said:
            continue
        prompt, made = ours(folder, text, tokens)
        theirs = ids(server, text)
        if theirs != prompt:
            yield f"{text!r}: ids {theirs}, here {prompt}"
        elif tokens > 1 and (found := continued(server, prompt, made)):
            yield f"{text!r}: {found}"


bad = 0
for folder in folders:
    name = os.path.basename(folder)
    said, found = [], []
    for kind in "f32", "f16", "bf16", "q8_0":
        path = os.path.join(scratch, f"{name}-{kind}.gguf")
        made = run("export", folder, path, "--format", "gguf", "--type", kind)
        server = open_file(path)
        if kind == "f32":
            said = [text for line, text in SAID.items() if line in made.stderr]
            found += list(differences(folder, server, said))
            plain = ids(server, TEXTS[0])
        elif ids(server, TEXTS[0]) != plain:
            found.append(f"{kind}: other ids")
        elif len(ask(server, "/completion", prompt=plain, n_predict=2, temperature=0,
                     ignore_eos=True, return_tokens=True)["tokens"]) != 2:
            found.append(f"{kind}: no continuation")
        del server
        os.remove(path)
    print(f"{name}: {len(TEXTS) - len(said)} texts, {len(found)} differ", flush=True)
    for line in found:
        print("  " + line, flush=True)
    bad += bool(found)
print(f"{len(folders)} folders, {bad} differ")
sys.exit(bad > 0)
