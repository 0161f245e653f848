#!/usr/bin/env python3
"""Makes tests/golden/tokenizer/kinds.json: small tokenizers of every kind with the normalizers,
pre-tokenizers, post-processors and decoders of published ones, and what the `tokenizers` library
makes with them of the corpus of make_tokenizer.py.

    python3 tests/golden/make_tokenizer_kinds.py [--write FOLDER] [--shared ../shared]

Needs `pip install tokenizers` (made with 0.23.3). --write puts each tokenizer.json into FOLDER;
--shared also takes the texts and tokenizers that lie beside the project.
"""
import argparse, collections, json, os, struct
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers,
                        pre_tokenizers as pre, processors, trainers)
from make_tokenizer import OUT, SEED, LLAMA3, corpus, hash_of, phrases

CHUNK, SIZE = 2048, 100_000
MARK = "\u2581"


def unit(offset, label=0, leaf=False):
    return (offset << 10) | (int(leaf) << 8) | label


def charsmap(pairs):
    """SentencePiece's map: a double array (darts-clone's layout) of the keys, and the texts. The
    children of a node by byte b are at base ^ b, the node's value at base."""
    children, texts, value = [{}], b"", {}
    for key, text in sorted(pairs.items()):
        at = 0
        for byte in key.encode():
            if byte not in children[at]:
                children.append({})
                children[at][byte] = len(children) - 1
            at = children[at][byte]
        value[at] = len(texts)
        texts += text.encode() + b"\0"
    units, place, taken = [0] * 4096, {0: 0}, {0}
    for node, below in enumerate(children):  # parents come before their children
        labels = ([0] if node in value else []) + list(below)
        base = next(b for b in range(1, 4096) if not any(b ^ l in taken for l in labels))
        taken.update(base ^ l for l in labels)
        at = place[node]
        units[at] |= unit(at ^ base, 0, node in value)
        if node in value:
            units[base] = value[node] | 1 << 31
        for byte, child in below.items():
            place[child] = base ^ byte
            units[base ^ byte] = byte
    array = b"".join(struct.pack("<I", u) for u in units[:(max(taken) | 255) + 1])
    return struct.pack("<I", len(array)) + array + texts


MAP = {"\ufb01": "fi", "\u2460": "1", "\xa0": " ", "\u3000": " ", "e\u0301": "\xe9", "\t": " ",
       "\n": " ", "\uff21": "A", "\u2126": "\u03a9", "\u200b": "", "\xad": ""}


def with_bytes(description):
    """The same with the tokens <0x00> ... <0xFF> behind the model's others."""
    vocabulary = description["model"]["vocab"]
    for byte in range(256):
        vocabulary[f"<0x{byte:02X}>"] = len(vocabulary)
    description["model"]["byte_fallback"] = True
    return description


def train_characters(documents):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    tokenizer.pre_tokenizer = pre.Metaspace(prepend_scheme="always")
    trainer = trainers.BpeTrainer(vocab_size=520, special_tokens=["<unk>", "<s>", "</s>"],
                                  limit_alphabet=120, show_progress=False)
    tokenizer.train_from_iterator(documents, trainer)
    return json.loads(tokenizer.to_str())["model"]


def train_bytes(documents):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=520, special_tokens=["<|endoftext|>"],
                                  initial_alphabet=pre.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator(documents, trainer)
    return json.loads(tokenizer.to_str())["model"]


def train_wordpiece(documents):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=12))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=520, limit_alphabet=100, show_progress=False,
        special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    tokenizer.train_from_iterator(documents, trainer)
    return json.loads(tokenizer.to_str())["model"]


def train_unigram(documents):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre.Metaspace(prepend_scheme="always")
    trainer = trainers.UnigramTrainer(vocab_size=420, unk_token="<unk>", show_progress=False,
                                      special_tokens=["<unk>", "<s>", "</s>", "<mask>"])
    count = collections.Counter("".join(documents))  # the trainer keeps every character
    known = {c for c, _ in count.most_common(110)}
    tokenizer.train_from_iterator(["".join(c for c in d if c in known) for d in documents], trainer)
    model = json.loads(tokenizer.to_str())["model"]
    pieces = {}  # special tokens that the text holds come out twice
    for piece, score in model["vocab"]:
        pieces.setdefault(piece, round(score, 4))
    model["vocab"] = [[piece, score] for piece, score in pieces.items()]
    return model


def part(value):
    """The JSON of a normalizer, pre-tokenizer, ...; None stays."""
    return json.loads(value.__getstate__()) if value is not None else None


def added(*tokens):
    return [{"id": i, "content": c, "single_word": False, "lstrip": False, "rstrip": False,
             "normalized": False, "special": True, **more} for i, c, more in tokens]


def split(pattern, behavior="isolated", invert=False):
    return pre.Split(Regex(pattern), behavior, invert)


TEKKEN = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|"
          r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}|"
          r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
         r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+"
         r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}|"
         r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
CL100K = (r"(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|"
          r"\s*[\r\n]|\s+(?!\S)|\s+")
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"
DEEPSEEK = [r"[\r\n]", r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-Ֆ]+",
            r"\s?[!-/:-~！-／：-～‘-‟　-。]+", r"\s+$", r"[一-龥ࠀ-一가-퟿]+"]
DEEPSEEK3 = [r"\p{N}{1,3}", r"[一-龥぀-ゟ゠-ヿ]+",
             r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|"
             r" ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"]
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def byte_level(*steps):
    return pre.Sequence(list(steps) + [pre.ByteLevel(add_prefix_space=False, use_regex=False)])


def kinds():
    """name: (model, added tokens, normalizer, pre-tokenizer, post-processor, decoder, changes of the
    model)."""
    bytes_token = added((0, "<|endoftext|>", {}))
    out = {}

    def bytes_kind(name, pre_tokenizer, normalizer=None):
        out[name] = ("bytes", bytes_token, normalizer, pre_tokenizer, None, decoders.ByteLevel(), {})

    bytes_kind("falcon", pre.Sequence([pre.Punctuation("contiguous"),
                                       pre.ByteLevel(add_prefix_space=False),
                                       pre.Digits(individual_digits=False),
                                       split("[0-9][0-9][0-9]")]))
    bytes_kind("starcoder", pre.Sequence([pre.Digits(individual_digits=True),
                                          pre.ByteLevel(add_prefix_space=False)]))
    bytes_kind("tekken", byte_level(split(TEKKEN)))
    bytes_kind("gpt4o", byte_level(split(O200K, "removed", True)))
    bytes_kind("cl100k", byte_level(split(CL100K)))
    bytes_kind("bloom", byte_level(split(BLOOM)))
    bytes_kind("deepseek", byte_level(*map(split, DEEPSEEK), pre.Digits(individual_digits=True)))
    bytes_kind("deepseek3", byte_level(*map(split, DEEPSEEK3)))
    bytes_kind("split_gpt2", byte_level(split(GPT2)), normalizers.NFKC())
    bytes_kind("lazy", byte_level(split(r"(?:\w+?(?=\W)|[^\w\s]{2,3}|(?>\s+)|\d*\.\d)"),
                                  split(r"(?i)^the|o[rf]|\x{e9}|\u00E8", "merged_with_previous")))
    bytes_kind("plain", pre.ByteLevel(add_prefix_space=True, use_regex=False))
    for behavior in ("removed", "isolated", "contiguous", "merged_with_previous", "merged_with_next"):
        for invert in (False, True):
            bytes_kind(f"split_{behavior}_{int(invert)}",
                       byte_level(split(r"[ aeiou]|\n", behavior, invert)))
        bytes_kind(f"punctuation_{behavior}", byte_level(pre.Punctuation(behavior)))
    bytes_kind("forms", byte_level(pre.CharDelimiterSplit("e")),
               normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(),
                                     normalizers.Lowercase(), normalizers.Strip(right=False)]))
    bytes_kind("nmt", byte_level(pre.Whitespace()),
               normalizers.Sequence([normalizers.Nmt(), normalizers.NFD(),
                                     normalizers.Replace(Regex("[aeiou]{2,}"), "<>"),
                                     normalizers.Replace("th", "TH")]))
    bytes_kind("byte_normalizer", split("Ġ|Ċ", "merged_with_next"), normalizers.ByteLevel())

    ids = added((0, "<unk>", {}), (1, "<s>", {}), (2, "</s>", {}))
    template = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s>:1 $B:1",
                                             special_tokens=[("<s>", 1)])
    back = [decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse()]
    fallback = {"byte_fallback": True}
    out["llama2"] = ("characters", ids,
                     normalizers.Sequence([normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)]),
                     None, template, decoders.Sequence(back + [decoders.Strip(" ", 1, 0)]), fallback)
    out["mistral"] = ("characters", ids, None,
                      pre.Metaspace(prepend_scheme="first", split=False), template,
                      decoders.Sequence(back + [decoders.Strip(" ", 1, 0)]), fallback)
    out["gemma"] = ("characters", ids + added((776, "\n\n\n\n", {"special": False}),
                                              (777, "(word)", {"special": False})),
                    normalizers.Replace(" ", MARK), pre.Split(" ", "merged_with_previous"), template,
                    decoders.Sequence(back), fallback)
    out["no_fallback"] = ("characters", ids, None, pre.Metaspace(prepend_scheme="never"), None,
                          decoders.Metaspace(prepend_scheme="never"), {"ignore_merges": True})
    out["unfused"] = ("characters", ids, None, pre.Metaspace(prepend_scheme="always", split=False),
                      None, decoders.Metaspace(), {"fuse_unk": False})

    bert_ids = added((0, "[PAD]", {}), (1, "[UNK]", {}), (2, "[CLS]", {}), (3, "[SEP]", {}),
                     (4, "[MASK]", {"lstrip": True}))
    bert_post = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    out["bert"] = ("wordpiece", bert_ids, normalizers.BertNormalizer(), pre.BertPreTokenizer(),
                   bert_post, decoders.WordPiece(), {})
    out["bert_cased"] = ("wordpiece", bert_ids,
                         normalizers.BertNormalizer(lowercase=False, handle_chinese_chars=False),
                         pre.BertPreTokenizer(), processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2)),
                         decoders.WordPiece(cleanup=False), {})
    out["bert_undecoded"] = ("wordpiece", bert_ids, normalizers.Lowercase(), pre.Whitespace(), None,
                             None, {})

    uni = added((0, "<unk>", {}), (1, "<s>", {}), (2, "</s>", {}), (3, "<mask>", {"lstrip": True}))
    precompiled = normalizers.Precompiled(charsmap(MAP))
    pair = processors.TemplateProcessing(single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>",
                                         special_tokens=[("<s>", 1), ("</s>", 2)])
    space = pre.Metaspace(prepend_scheme="always")
    out["t5"] = ("unigram", uni, precompiled, pre.Sequence([pre.WhitespaceSplit(), space]),
                 processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>",
                                               special_tokens=[("</s>", 2)]),
                 decoders.Metaspace(), {})
    out["deberta3"] = ("unigram", uni, normalizers.Sequence(
        [normalizers.Strip(), precompiled, normalizers.Replace(Regex(" {2,}"), " ")]), space, pair,
        decoders.Metaspace(), {})
    out["xlmr"] = ("unigram", uni, normalizers.Sequence(
        [precompiled, normalizers.Replace(Regex(" {2,}"), MARK)]),
        pre.Sequence([pre.WhitespaceSplit(), space]),
        processors.RobertaProcessing(("</s>", 2), ("<s>", 1)), decoders.Metaspace(), {})
    out["unigram_bytes"] = ("unigram", uni, normalizers.Nmt(), space, None,
                            decoders.Sequence(back + [decoders.Strip(" ", 1, 0)]), fallback)
    return out


def build(documents):
    """The models, and each tokenizer's description without its model."""
    trained = {"bytes": train_bytes(documents), "characters": train_characters(documents),
               "wordpiece": train_wordpiece(documents), "unigram": train_unigram(documents)}
    with_bytes({"model": trained["characters"]})
    trained["characters"]["byte_fallback"] = False
    trained["unigram"]["vocab"] += [[f"<0x{b:02X}>", -20.0] for b in range(256)]
    tokenizers = {}
    for name, (model, tokens, normalizer, splitter, post, decoder, change) in kinds().items():
        tokenizers[name] = {"version": "1.0", "truncation": None, "padding": None,
                            "added_tokens": tokens, "normalizer": part(normalizer),
                            "pre_tokenizer": part(splitter), "post_processor": part(post),
                            "decoder": part(decoder), "model": model, "change": change}
    return trained, tokenizers


def whole(trained, description):
    out = {k: v for k, v in description.items() if k != "change"}
    out["model"] = {**trained[description["model"]], **description["change"]}
    return json.dumps(out)


def chunks(text):
    out, at = [], 0
    while at < len(text):
        end = min(at + CHUNK, len(text))
        while end < len(text) and (text[end] & 0xC0) == 0x80:
            end += 1
        out.append(text[at:end].decode())
        at = end
    return out


def pairs(tokenizer, parts):
    """[[max_length, ids, types] ...] of neighbouring phrases."""
    out = []
    for i, length in enumerate((0, 5, 6, 7, 12, 13, 30)):
        if length:
            tokenizer.enable_truncation(length, strategy="longest_first")
        else:
            tokenizer.no_truncation()
        encoding = tokenizer.encode(parts[3 * i], parts[3 * i + 1])
        out.append([length, encoding.ids, encoding.type_ids])
    tokenizer.no_truncation()
    return out


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--write")
    arguments.add_argument("--shared")
    arguments = arguments.parse_args()
    parts = phrases()
    encoded = [p.encode() for p in parts]
    documents = chunks(corpus(encoded, SEED + 1, 200_000))
    texts = chunks(corpus(encoded, SEED + 2, SIZE))
    trained, tokenizers = build(documents)
    expected = {}
    for name, description in tokenizers.items():
        text = whole(trained, description)
        if arguments.write:
            with open(os.path.join(arguments.write, name + ".json"), "w") as file:
                file.write(text)
        tokenizer = Tokenizer.from_str(text)
        counts, ids_hash, text_hash = 0, [], []
        for chunk in texts:
            ids = tokenizer.encode(chunk, add_special_tokens=True).ids
            counts += len(ids)
            ids_hash.append(hash_of(ids)[:8])
            text_hash.append(hash_of(tokenizer.decode(ids, skip_special_tokens=True).encode())[:8])
        expected[name] = {"count": counts, "ids": "".join(ids_hash), "text": "".join(text_hash),
                          "pairs": pairs(tokenizer, parts)}
    out = {"seed": SEED + 2, "size": SIZE, "chunk": CHUNK, "models": trained,
           "tokenizers": tokenizers, "expected": expected}
    if arguments.shared:
        data, out["shared"] = os.path.join(arguments.shared, "data"), []
        for name in ("phi3-mini", "t5-small"):
            tokenizer = Tokenizer.from_file(os.path.join(data, "tok", name, "tokenizer.json"))
            tokenizer.no_truncation()
            for file in sorted(os.listdir(os.path.join(data, "text"))):
                with open(os.path.join(data, "text", file), newline="") as stream:
                    ids = tokenizer.encode(stream.read()).ids
                out["shared"].append([name, file, len(ids), hash_of(ids)])
    with open(os.path.join(OUT, "kinds.json"), "w") as file:
        json.dump(out, file, ensure_ascii=True, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
