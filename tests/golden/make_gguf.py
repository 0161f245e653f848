"""What llama.cpp's converter makes of small model folders: gguf/NAME.json, and the folders.

    pip install torch transformers tokenizers gguf pyyaml sentencepiece protobuf
    pip download --no-deps --no-binary :all: llama-cpp-python   # unpack: vendor/llama.cpp
    python make_gguf.py LLAMA_CPP [SIFR [NAME…]]

gguf/NAME/ are folders that transformers and tokenizers write. gguf/NAME-TYPE.json holds the
metadata and tensors of the converted file: {"meta": {key: [type, SHA-256 of the bytes of the
value]}, "tensors": {name: [type, [shape as stored], SHA-256 of the data]}} (test_gguf.c). With
SIFR, a program, the files that it exports are compared here and differences are printed.

The converter refuses a vocabulary whose splitting it does not know by a hash of ids; for these
small ones it is told the name that belongs to the pattern. Where llama.cpp cannot read what it
writes or reads other tokens (DEPARTURES), it is changed to write what sifr does; the lists go
through the `gguf` package all the same. tests/soak/llama_cpp_reads.py opens each of the folders'
exports in llama.cpp itself.
"""
import hashlib
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile

import torch
from tokenizers import (Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                        trainers)
import sentencepiece
import transformers
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gguf")
llama_cpp = os.path.abspath(sys.argv[1])
sifr = sys.argv[2] if len(sys.argv) > 2 else None
only = sys.argv[3:]  # names of folders: the others are not converted again

TEXT = ["The quick brown fox jumps over the lazy dog, and 12345 more foxes jump over it.",
        "Numbers: 1 22 333 4444; names: Ada, Bob; words we'll say and they've said.",
        "def f(x):\n    return x * x\n\nprint(f(12))\n",
        "Grüße aus Köln, привет, 你好, こんにちは, 🚀🚀"]
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
          r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def byte_level(kind, specials, size):
    t = Tokenizer(models.BPE(ignore_merges=kind == "llama3"))
    if kind == "gpt2":
        t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        t.post_processor = processors.ByteLevel(trim_offsets=False)
    else:
        t.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex(LLAMA3), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(TEXT, trainers.BpeTrainer(
        vocab_size=size, special_tokens=specials, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    if kind == "llama3":
        t.post_processor = processors.Sequence([
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(
                single=f"{specials[0]} $A", pair=f"{specials[0]} $A {specials[0]} $B",
                special_tokens=[(specials[0], t.token_to_id(specials[0]))])])
    return t


def byte_fallback(gemma=False):
    vocab = {t: i for i, t in enumerate(["<unk>", "<s>", "</s>"] +
                                        [f"<0x{b:02X}>" for b in range(256)])}
    for piece in ["▁", "t", "h", "e", "th", "the", "▁the", "a", "n", "d"]:
        vocab[piece] = len(vocab)
    specials = ["<unk>", "<s>", "</s>"] + ["<pad>", "<mask>"] * gemma
    for piece in specials[3:]:
        vocab[piece] = len(vocab)
    t = Tokenizer(models.BPE(vocab, [("t", "h"), ("th", "e"), ("▁", "the")], unk_token="<unk>",
                             fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(),
                                   decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    if gemma:  # no blank in front, and each word apart
        t.normalizer = normalizers.Replace(" ", "▁")
        t.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
        t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(),
                                       decoders.Fuse()])
    t.add_special_tokens(specials)
    t.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)])
    return t


def save(name, model, tokenizer, tokenizer_config, dtype, extra=None, generation=None):
    folder = os.path.join(here, name)
    shutil.rmtree(folder, ignore_errors=True)
    for parameter in model.parameters():
        with torch.no_grad():
            parameter.uniform_(-0.4, 0.5)
    model.to(dtype).save_pretrained(folder)
    tokenizer.save(os.path.join(folder, "tokenizer.json"), pretty=False)
    write(os.path.join(folder, "tokenizer_config.json"), tokenizer_config)
    if extra:
        path = os.path.join(folder, "config.json")
        config = json.load(open(path))
        config.update(extra)
        write(path, {k: v for k, v in config.items() if v != "absent"})
    path = os.path.join(folder, "generation_config.json")
    if generation:
        write(path, generation)
    elif os.path.exists(path):
        os.remove(path)
    return folder


def write(path, value):
    with open(path, "w") as f:
        json.dump(value, f, indent=1, ensure_ascii=False)
        f.write("\n")


class Reader:
    """A GGUF file: bytes of each value and of each tensor."""
    sizes = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
    types = {0: 4, 1: 2, 30: 2, 8: 34 / 32}

    def __init__(self, path):
        self.bytes, self.at = open(path, "rb").read(), 0
        assert self.take(4) == b"GGUF" and self.number(4) == 3
        tensors, values = self.number(8), self.number(8)
        self.meta = {}
        self.raw = {}
        for _ in range(values):
            key = self.text()
            kind, begin = self.number(4), self.at
            self.skip(kind)
            self.raw[key] = self.bytes[begin:self.at]
            self.meta[key] = [kind, hashlib.sha256(self.raw[key]).hexdigest()]
        infos = []
        for _ in range(tensors):
            name = self.text()
            shape = [self.number(8) for _ in range(self.number(4))]
            infos.append((name, shape, self.number(4), self.number(8)))
        base = (self.at + 31) // 32 * 32
        self.tensors = {}
        for name, shape, kind, offset in infos:
            size = int(torch.Size(shape).numel() * self.types[kind])
            data = self.bytes[base + offset:base + offset + size]
            assert len(data) == size
            self.tensors[name] = [kind, shape, hashlib.sha256(data).hexdigest()]

    def take(self, count):
        self.at += count
        return self.bytes[self.at - count:self.at]

    def number(self, count):
        return int.from_bytes(self.take(count), "little")

    def text(self):
        return self.take(self.number(8)).decode()

    def skip(self, kind):
        if kind == 8:
            self.text()
        elif kind == 9:
            item, count = self.number(4), self.number(8)
            for _ in range(count):
                self.skip(item)
        else:
            self.take(self.sizes[kind])


CONVERT = """
import sys
sys.path.insert(0, {root!r}); sys.path.insert(0, {root!r} + "/gguf-py")
from conversion.base import TextModel
known = TextModel.get_vocab_base_pre
def named(self, tokenizer):
    try:
        return known(self, tokenizer)
    except NotImplementedError:
        return {pre!r}
TextModel.get_vocab_base_pre = named
load = TextModel.load_hparams
def filled(*arguments, **keys):
    # transformers 5 moves the key that the converter of GPT-NeoX reads
    hparams = load(*arguments, **keys)
    rope = hparams.get("rope_parameters") or dict()
    hparams.setdefault("rotary_pct", rope.get("partial_rotary_factor"))
    return hparams
TextModel.load_hparams = filled
import conversion.base
conversion.base.ModelBase.load_hparams = staticmethod(filled)
{departures}
sys.argv = ["convert_hf_to_gguf.py", {folder!r}, "--outfile", {out!r}, "--outtype", {kind!r}]
sys.argv += {more!r}
import runpy
runpy.run_path({root!r} + "/convert_hf_to_gguf.py", run_name="__main__")
"""

DEPARTURES = """
import json, os
from gguf import LlamaHfVocab, TokenType
tokenizer_path = os.path.join({folder!r}, "tokenizer.json")
tokenizer = json.load(open(tokenizer_path)) if os.path.exists(tokenizer_path) else dict(model=dict())
model = tokenizer["model"]
# llama.cpp merges by score: minus the rank of the first merge that makes a token, not -1000 for all
ranks = dict()
for rank, merge in enumerate(model.get("merges", [])):
    ranks.setdefault("".join(merge), -float(rank))
lowest = -float(len(model.get("merges", []))) - 1
size = json.load(open(os.path.join({folder!r}, "config.json")))["vocab_size"]
listed = LlamaHfVocab.all_tokens
def padded(self):
    # a token for each row of the embedding, without which llama.cpp does not open the file
    self.vocab_size = size
    count = 0
    for text, score, kind in listed(self):
        count += 1
        yield text, ranks.get(text.decode(), lowest), kind
    for i in range(count, size):
        yield f"[PAD{{i}}]".encode(), lowest, TokenType.UNUSED
LlamaHfVocab.all_tokens = padded
# added tokens that only tokenizer.json has beside tokenizer.model; and without a post-processor
# that puts one there, no text begins with BOS, which llama.cpp adds unless it is told
pieces = TextModel._create_vocab_sentencepiece
def beside(self):
    tokens, scores, types = pieces(self)
    if not model.get("merges"):
        return tokens, scores, types
    for token in tokenizer["added_tokens"]:
        if types[token["id"]] not in (2, 6):
            tokens[token["id"]] = token["content"].encode()
            types[token["id"]] = 3 if token["special"] else 4
            if token["id"] >= len(model["vocab"]):
                scores[token["id"]] = -1000.0
    if not any("SpecialToken" in part for part in tokenizer["post_processor"]["single"]):
        self.gguf_writer.add_add_bos_token(False)
    return tokens, scores, types
TextModel._create_vocab_sentencepiece = beside
# Gemma without tokenizer.model
import conversion.gemma
gemma = conversion.gemma.GemmaModel.set_vocab
def without(self):
    if (self.dir_model / "tokenizer.model").exists():
        return gemma(self)
    self._set_vocab_sentencepiece = self._set_vocab_llama_hf
    gemma(self)
conversion.gemma.GemmaModel.set_vocab = without
"""


def convert(name, kind, pre):
    if only and name not in only:
        return
    folder = os.path.join(here, name)
    with tempfile.TemporaryDirectory() as scratch:
        out = os.path.join(scratch, "theirs.gguf")
        more = ["--no-mtp"] if name == "qwen3_5" else []
        code = CONVERT.format(root=llama_cpp, folder=folder, out=out, kind=kind, pre=pre, more=more,
                              departures=DEPARTURES.format(folder=folder))
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        if done.returncode:
            print(name, kind, done.stderr[-1500:])
            return
        theirs = Reader(out)
        write(os.path.join(here, f"{name}-{kind}.json"),
              {"meta": theirs.meta, "tensors": theirs.tensors})
        if not sifr:
            return
        own = os.path.join(scratch, "own.gguf")
        done = subprocess.run([sifr, "export", folder, own, "--format", "gguf", "--type", kind],
                              capture_output=True, text=True)
        if done.returncode:
            print(name, kind, done.stderr)
            return
        ours = Reader(own)
        for part in "meta", "tensors":
            a, b = getattr(theirs, part), getattr(ours, part)
            for key in sorted(set(a) | set(b)):
                if a.get(key) != b.get(key):
                    print(name, kind, key, a.get(key), b.get(key),
                          theirs.raw.get(key, b"")[:60], ours.raw.get(key, b"")[:60])


def rope_freqs():
    """gguf/rope_freqs.json: the lines of the converter's generate_extra_tensors, for several."""
    import math
    cases = []
    for base, dim, factor, old in ((500000.0, 128, 8.0, 8192), (500000.0, 64, 32.0, 8192),
                                   (10000.0, 128, 4.0, 2048), (1e6, 256, 16.0, 4096),
                                   (250000.0, 192, 8.0, 512), (123456.0, 80, 3.0, 1024)):
        freqs = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim))
        low, high = 1.0, 4.0
        factors = []
        for freq in freqs:
            wave = 2 * math.pi / freq
            if wave < old / high:
                factors.append(1)
            elif wave > old / low:
                factors.append(factor)
            else:
                smooth = (old / wave - low) / (high - low)
                factors.append(1 / ((1 - smooth) / factor + smooth))
        made = torch.tensor(factors, dtype=torch.float32).numpy().tobytes()
        cases.append({"rope": {"rope_theta": base, "factor": factor, "low_freq_factor": low,
                               "high_freq_factor": high, "original_max_position_embeddings": old},
                      "dimensions": dim, "digest": hashlib.sha256(made).hexdigest()})
    write(os.path.join(here, "rope_freqs.json"), cases)


os.makedirs(here, exist_ok=True)
rope_freqs()
torch.manual_seed(11)
end = "<|endoftext|>"
gpt2 = byte_level("gpt2", [end], 300)
save("tiny-gpt2", GPT2LMHeadModel(GPT2Config(
    vocab_size=303, n_positions=64, n_ctx=64, n_embd=32, n_layer=1, n_head=4, bos_token_id=0,
    eos_token_id=0)), gpt2, {"bos_token": end, "eos_token": end, "unk_token": end,
                             "tokenizer_class": "GPT2Tokenizer"}, torch.float16,
     extra={"n_ctx": 64})

begin, turn = "<|begin_of_text|>", "<|eot_id|>"
llama3 = byte_level("llama3", [begin, turn, "<|end_of_text|>"], 310)
llama3.add_tokens(["<tool>"])
common = dict(vocab_size=313, hidden_size=32, intermediate_size=48, num_hidden_layers=1,
              num_attention_heads=4, num_key_value_heads=2)
save("Llama-3.2-tiny-Instruct", LlamaForCausalLM(LlamaConfig(
    **common, max_position_embeddings=512, rms_norm_eps=1e-5, tie_word_embeddings=True,
    bos_token_id=0, eos_token_id=[1, 2],
    rope_parameters={"rope_type": "llama3", "rope_theta": 500000.0, "factor": 32.0,
                     "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                     "original_max_position_embeddings": 64})),
     llama3, {"bos_token": begin, "eos_token": turn, "add_prefix_space": False,
              "chat_template": "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}",
              "tokenizer_class": "PreTrainedTokenizerFast"}, torch.bfloat16,
     extra={"rope_parameters": "absent", "rope_theta": 500000.0, "head_dim": 8,
            "rope_scaling": {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0,
                             "high_freq_factor": 4.0, "original_max_position_embeddings": 64}},
     generation={"do_sample": True, "temperature": 0.6, "top_p": 0.9, "top_k": 40,
                 "repetition_penalty": 1.05})

spm = byte_fallback()
spm.add_tokens(["▁user"])
spm.add_special_tokens(["<|unnamed|>", "<named>"])
save("llama2-7b-chat", LlamaForCausalLM(LlamaConfig(
    vocab_size=spm.get_vocab_size() + 3, hidden_size=24, intermediate_size=40, num_hidden_layers=1,
    num_attention_heads=2, num_key_value_heads=2, head_dim=16, attention_bias=True,
    tie_word_embeddings=False, bos_token_id=1, eos_token_id=2)),
     spm, {"bos_token": "<s>", "eos_token": {"content": "</s>", "__type": "AddedToken"},
           "unk_token": "<unk>", "extra_special_tokens": ["<named>"],
           "add_bos_token": True, "add_eos_token": False,
           "tokenizer_class": "PreTrainedTokenizerFast"}, torch.float32)

small = Tokenizer(models.BPE())
small.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
small.decoder = decoders.ByteLevel()
small.train_from_iterator(TEXT[:1], trainers.BpeTrainer(
    vocab_size=290, special_tokens=[end], show_progress=False,
    initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
small_config = {"bos_token": end, "eos_token": end, "tokenizer_class": "PreTrainedTokenizerFast"}


def pieces(folder):
    """tokenizer.model, and tokens that other files add."""
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT[:1] * 4), model_prefix=os.path.join(folder, "tokenizer"),
        vocab_size=300, model_type="bpe", byte_fallback=True, user_defined_symbols=["<user>"],
        normalization_rule_name="identity", remove_extra_whitespaces=False,
        minloglevel=2)
    os.remove(os.path.join(folder, "tokenizer.vocab"))
    if os.path.exists(os.path.join(folder, "tokenizer.json")):
        os.remove(os.path.join(folder, "tokenizer.json"))
    write(os.path.join(folder, "added_tokens.json"), {"<more>": 300, "▁blank": 301, "<far>": 999})
    write(os.path.join(folder, "tokenizer_config.json"), {
        "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "add_bos_token": True,
        "add_eos_token": False, "add_prefix_space": True,
        "added_tokens_decoder": {"0": {"content": "<unk>", "special": True},
                                 "1": {"content": "<s>", "special": True},
                                 "302": {"content": "▁two▁parts", "special": False},
                                 "303": {"content": "<|im_end|>", "special": False},
                                 "3000": {"content": "<beyond>", "special": True}}})


def family(name, kind, vocab=292, model_type=None, sentences=False, extra=None, **keys):
    config = getattr(transformers, kind + "Config")(
        vocab_size=vocab, hidden_size=16, intermediate_size=24, num_attention_heads=4,
        bos_token_id=1, eos_token_id=2,
        **{"num_hidden_layers": 1, "max_position_embeddings": 96, **keys})
    model = getattr(transformers, kind + "ForCausalLM")(config)
    folder = save(name, model, small, small_config, torch.bfloat16, extra=extra)
    if sentences:
        pieces(folder)


linear = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}
yarn = {"rope_type": "yarn", "rope_theta": 1e6, "factor": 4.0,
        "original_max_position_embeddings": 12}
family("mistral", "Mistral", vocab=306, sentences=True, num_key_value_heads=2, head_dim=8,
       sliding_window=None)
family("qwen2", "Qwen2", num_key_value_heads=2, rope_parameters=yarn, tie_word_embeddings=True)
family("qwen3", "Qwen3", num_key_value_heads=1, head_dim=6)
family("smollm3", "SmolLM3", num_key_value_heads=2, pad_token_id=0, num_hidden_layers=4)
family("granite", "Granite", num_key_value_heads=2, attention_multiplier=0.25,
       embedding_multiplier=12.0, residual_multiplier=0.22, logits_scaling=0.5,
       rope_parameters=linear)
family("olmo2", "Olmo2", num_key_value_heads=2, pad_token_id=0)
family("starcoder2", "Starcoder2", num_key_value_heads=2, use_bias=True)
family("gpt_neox", "GPTNeoX", rotary_pct=0.5, extra={"rotary_pct": 0.5})
family("gemma", "Gemma", vocab=306, sentences=True, num_key_value_heads=1, head_dim=6)
family("gemma2", "Gemma2", vocab=306, sentences=True, num_key_value_heads=2, head_dim=6,
       sliding_window=16, query_pre_attn_scalar=6, num_hidden_layers=2)
gemma3 = transformers.Gemma3TextConfig(
    vocab_size=306, hidden_size=16, intermediate_size=24, num_hidden_layers=7,
    num_attention_heads=4, num_key_value_heads=2, head_dim=6, max_position_embeddings=96,
    sliding_window=16, bos_token_id=1, eos_token_id=2, query_pre_attn_scalar=6)
pieces(save("gemma3", transformers.Gemma3ForCausalLM(gemma3), small, small_config, torch.bfloat16))
family("gemma-json", "Gemma", vocab=274, num_key_value_heads=1, head_dim=6)
byte_fallback(gemma=True).save(os.path.join(here, "gemma-json", "tokenizer.json"), pretty=False)
write(os.path.join(here, "gemma-json", "tokenizer_config.json"),
      {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>",
       "tokenizer_class": "GemmaTokenizer"})
family("olmo3", "Olmo3", num_key_value_heads=2, pad_token_id=0, sliding_window=16,
       num_hidden_layers=4)
family("glm4", "Glm4", num_key_value_heads=2, head_dim=8, pad_token_id=0)
user = Tokenizer.from_file(os.path.join(here, "glm4", "tokenizer.json"))
user.add_special_tokens(["<|user|>"])
user.save(os.path.join(here, "glm4", "tokenizer.json"), pretty=False)
family("ministral3", "Ministral3", num_key_value_heads=2, head_dim=8, pad_token_id=0,
       rope_parameters={"rope_type": "yarn", "rope_theta": 1e6, "factor": 16.0, "beta_fast": 24.0,
                        "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0,
                        "llama_4_scaling_beta": 0.1, "original_max_position_embeddings": 12})
# tokenizer.model, and beside it the tokenizer.json that transformers 5 makes of it, with tokens
# that only it has; the embedding has rows for more.
family("added", "Llama", vocab=310, sentences=True, num_key_value_heads=2, head_dim=8)
folder = os.path.join(here, "added")
os.remove(os.path.join(folder, "added_tokens.json"))
os.remove(os.path.join(folder, "tokenizer_config.json"))
added = transformers.LlamaTokenizer.from_pretrained(folder)
added.add_special_tokens({"additional_special_tokens": ["<|im_start|>", "<|im_end|>"]})
added.add_tokens(["domain", "<think>"])
with tempfile.TemporaryDirectory() as scratch:
    added.save_pretrained(scratch)
    for file in "tokenizer.json", "tokenizer_config.json":
        shutil.copy(os.path.join(scratch, file), folder)
factors = [1.0 + i / 8 for i in range(2)]
family("phi3", "Phi3", vocab=306, sentences=True, num_key_value_heads=2, sliding_window=None,
       original_max_position_embeddings=256, pad_token_id=0, max_position_embeddings=512,
       rope_parameters={"rope_type": "longrope", "rope_theta": 10000.0, "long_factor": factors,
                        "short_factor": [1.0, 1.5], "original_max_position_embeddings": 256})
config = os.path.join(here, "phi3", "tokenizer_config.json")
changed = dict(json.load(open(config)), tokenizer_class="LlamaTokenizer")
# Here the converter does not look at the size; by the name llama.cpp looks for <|endoftext|>.
del changed["added_tokens_decoder"]["3000"]
changed["added_tokens_decoder"]["304"] = {"content": "<|endoftext|>", "special": True}
write(config, changed)
family("phi4", "Phi3", num_key_value_heads=2, pad_token_id=0,
       original_max_position_embeddings=96,
       rope_parameters={"rope_type": "default", "rope_theta": 10000.0,
                        "partial_rotary_factor": 0.5})
config = os.path.join(here, "phi4", "tokenizer_config.json")
write(config, dict(small_config, tokenizer_class="GPT2Tokenizer"))
gemma4 = transformers.Gemma4ForCausalLM(transformers.Gemma4TextConfig(
    vocab_size=273, hidden_size=16, intermediate_size=24, num_hidden_layers=3,
    num_attention_heads=4, num_key_value_heads=2, head_dim=6, global_head_dim=10,
    num_global_key_value_heads=1, attention_k_eq_v=True, hidden_size_per_layer_input=0,
    layer_types=["sliding_attention", "full_attention", "full_attention"], sliding_window=16,
    max_position_embeddings=96, bos_token_id=1, eos_token_id=2, final_logit_softcapping=30.0))
for layer in gemma4.model.layers:
    layer.layer_scalar.uniform_(0.5, 1.5)
shown = byte_fallback(gemma=True)
shown.add_special_tokens(["<|tool_call>", "<turn|>"])
save("gemma4", gemma4, shown, {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>",
                               "additional_special_tokens": ["<|tool_call>", "<turn|>"],
                               "tokenizer_class": "GemmaTokenizer"}, torch.bfloat16)
family("lfm2", "Lfm2", num_key_value_heads=2, num_hidden_layers=3, pad_token_id=0,
       layer_types=["conv", "full_attention", "conv"], block_multiple_of=8, conv_L_cache=3)
# Value heads of a key head: two, so that their order matters.
torch.manual_seed(35)
qwen35 = transformers.Qwen3_5ForCausalLM(transformers.Qwen3_5TextConfig(
    vocab_size=293, hidden_size=16, intermediate_size=24, num_hidden_layers=4,
    num_attention_heads=2, num_key_value_heads=1, head_dim=32, max_position_embeddings=96,
    linear_conv_kernel_dim=4, linear_key_head_dim=6, linear_value_head_dim=6,
    linear_num_key_heads=2, linear_num_value_heads=4, bos_token_id=1, eos_token_id=2,
    rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.25,
                     "mrope_interleaved": True, "mrope_section": [11, 11, 10]}))
marks = Tokenizer(models.BPE())
marks.normalizer = normalizers.NFC()
marks.pre_tokenizer = pre_tokenizers.Sequence([
    pre_tokenizers.Split(Regex(transformers.models.qwen3_5.tokenization_qwen3_5.PRETOKENIZE_REGEX),
                         "isolated"),
    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
marks.decoder = decoders.ByteLevel()
marks.train_from_iterator(TEXT[:1], trainers.BpeTrainer(
    vocab_size=290, special_tokens=[end], show_progress=False,
    initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
save("qwen3_5", qwen35, marks, small_config, torch.bfloat16)
FAMILIES = ["phi3", "phi4", "mistral", "qwen2", "qwen3", "smollm3", "granite", "olmo2", "olmo3",
            "glm4", "ministral3", "starcoder2", "gpt_neox", "gemma", "gemma2", "gemma3",
            "gemma-json", "added", "gemma4", "lfm2"]

for name, pre, kinds in (("tiny-gpt2", "gpt-2", ("f16", "q8_0")),
                         ("Llama-3.2-tiny-Instruct", "llama-bpe", ("f32", "f16", "bf16", "q8_0")),
                         ("llama2-7b-chat", "default", ("f32", "q8_0"))):
    for kind in kinds:
        convert(name, kind, pre)
for name in FAMILIES:
    convert(name, "f16", "gpt-2")
for kind in "f16", "q8_0":
    convert("qwen3_5", kind, "qwen35")
