#!/usr/bin/env python3
"""Makes tests/golden/tokenizer_files/: small vocabularies in forms other than tokenizer.json, and
cases.json: for folders of them, the tokenizer that AutoTokenizer of transformers builds; and
trained.json: what the library's trainers of WordPiece and Unigram make.

    python3 tests/golden/make_tokenizer_files.py [--shared ../shared]

Needs `pip install transformers tokenizers sentencepiece protobuf tiktoken` (made with 5.23.0, 0.23.3,
0.2.3, 7.36.2, 0.14.0). A case is the names of the files in the folder, the text of its JSON files,
what the library's tokenizer.json has besides vocabulary, merges and character map, a hash of all of
it, and the ids of a few lines. A tokenizer.model for PreTrainedTokenizerFast is judged by
sentencepiece itself, since versions of transformers differ there: of such a case the ids of `lines`
and of `hurt`, null where a control symbol is spelled. --shared also takes the vocabularies that lie
beside the project, of which only hashes and counts are stored.
"""
import argparse, base64, json, os, shutil, struct, sys, tempfile, unicodedata

os.environ.update(TRANSFORMERS_VERBOSITY="error", HF_HUB_OFFLINE="1")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import sentencepiece as spm
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import AutoTokenizer

from make_tokenizer import SEED, SENTENCES, chunks, corpus, hash_of, phrases

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "tokenizer_files")
MASK = (1 << 64) - 1
LINES = ["", " ", "Hello world", "  The quick\tbrown  fox's 1234 caf\u00e9\n\n", "\u4eca\u5929 \U0001f600x",
         "a<mask>b </s> [MASK]. <sep> <|im_end|>\u00a0\uff21\ufb01", "\u0421\u044a\u0435\u0448\u044c \u1e9bx"]

HURT = [" Hello", "  two  blanks  inside ", "tab\there\n\nnew\n", "trail ", "\u00a0nbsp\u00a0x",
        "\u2581under", "a\u2581b\u2581", "\uff26\uff35\uff2c\uff2c width \ufb01", "e\u0301 combining",
        "\u200bzero", "<sep> begins", "mid <sep> end", "<sep>", "  <sep>  ", "\U0001f917 ok \U0001f917\U0001f917",
        "\ufeffbom", "\u1100\u1161\u11a8", "\u3000wide\u3000", "\r\n", "   ", "x" + 5 * " " + "y",
        17 * " " + "z", 40 * " ", "def f(x):\n    if x:\n        return\t1  # one", "1234567 89"]


def canonical(value, out):
    """A text of the value that both languages can make: keys in order, scores by the bits they have in
    float (the library's own reader of JSON is off by a last bit of double)."""
    if isinstance(value, dict):
        out.append(b"{")
        for key in sorted(value, key=lambda k: k.encode()):
            canonical(key, out)
            canonical(value[key], out)
        out.append(b"}")
    elif isinstance(value, list):
        out.append(b"[")
        for item in value:
            canonical(item, out)
        out.append(b"]")
    elif isinstance(value, str):
        out.append(b'"' + value.encode() + b'"')
    elif isinstance(value, bool) or value is None:
        out.append({True: b"t", False: b"f", None: b"n"}[value])
    elif isinstance(value, int):
        out.append(b"i%d;" % value)
    else:
        out.append(b"r" + struct.pack("<f", value).hex().encode() + b";")


def code_of(value):
    """FNV-1a over the canonical text."""
    out, code = [], 0xcbf29ce484222325
    canonical(value, out)
    for byte in b"".join(out):
        code = (code ^ byte) * 0x100000001b3 & MASK
    return f"{code:016x}"


def train_spm(name, **options):
    with tempfile.TemporaryDirectory() as folder:
        text, prefix = os.path.join(folder, "text"), os.path.join(folder, "model")
        with open(text, "w") as stream:
            stream.write("\n".join(line for line in SENTENCES.strip().split("\n")
                                   if all(ord(c) < 0x250 for c in line)) + "\n")
        rules = os.path.join(folder, "rules.tsv")
        with open(rules, "w") as stream:  # a small character map: letters and numbers of other widths
            for c in list(range(0xff21, 0xff5b)) + [0xfb01, 0x2168, 0x1e9b, 0xa0]:
                to = " ".join(f"{ord(d):X}" for d in unicodedata.normalize("NFKC", chr(c)))
                stream.write(f"{c:X}\t{to}\n")
        if options.pop("rules", False):
            options["normalization_rule_tsv"] = rules
        else:
            options["normalization_rule_name"] = "identity"
        spm.SentencePieceTrainer.train(input=text, model_prefix=prefix, num_threads=1, minloglevel=2,
                                       hard_vocab_limit=False, **options)
        shutil.copy(prefix + ".model", os.path.join(OUT, name))


def make_vocabularies():
    train_spm("llama.model", model_type="bpe", vocab_size=450, byte_fallback=True,
              character_coverage=0.98, split_digits=True, user_defined_symbols=["<sep>"],
              control_symbols=["<ctl>"])
    train_spm("gemma.model", model_type="bpe", vocab_size=450, byte_fallback=True, pad_id=0, eos_id=1,
              bos_id=2, unk_id=3, bos_piece="<bos>", eos_piece="<eos>", character_coverage=0.98,
              add_dummy_prefix=False, remove_extra_whitespaces=False,
              user_defined_symbols=["<mask>", "<start_of_turn>", "<end_of_turn>", "\n\n", "\u2581\u2581"])
    train_spm("t5.model", model_type="unigram", vocab_size=300, pad_id=0, eos_id=1, unk_id=2, bos_id=-1,
              character_coverage=0.98, rules=True)
    train_spm("xlmr.model", model_type="unigram", vocab_size=300, character_coverage=0.98, rules=True)
    train_spm("deberta.model", model_type="unigram", vocab_size=300, pad_id=0, bos_id=1, eos_id=2,
              unk_id=3, pad_piece="[PAD]", bos_piece="[CLS]", eos_piece="[SEP]", unk_piece="[UNK]",
              character_coverage=0.98, rules=True)
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    lines = SENTENCES.strip().split("\n")
    bpe.train_from_iterator(lines, trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>", "<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    bpe.model.save(OUT, "bpe")
    words = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    words.train_from_iterator([line.lower() for line in lines], trainers.WordPieceTrainer(
        vocab_size=500, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
        show_progress=False, limit_alphabet=120))
    words.model.save(OUT, "bert")
    # The same merges as ranks; text form of tiktoken.
    decode = {c: b for b, c in byte_letters().items()}
    with open(os.path.join(OUT, "bpe-vocab.json")) as stream:
        vocabulary = sorted(json.load(stream).items(), key=lambda item: item[1])
    with open(os.path.join(OUT, "ranks.model"), "wb") as stream:
        for rank, (token, _) in enumerate(vocabulary[6:]):
            data = bytes(decode[c] for c in token)
            stream.write(base64.b64encode(data) + b" %d\n" % rank)


def byte_letters():
    plain = list(range(0x21, 0x7f)) + list(range(0xa1, 0xad)) + list(range(0xae, 0x100))
    rest = [b for b in range(256) if b not in plain]
    return {**{b: chr(b) for b in plain}, **{b: chr(256 + i) for i, b in enumerate(rest)}}


BERT = {"vocab.txt": "bert-vocab.txt"}
BPE = {"vocab.json": "bpe-vocab.json", "merges.txt": "bpe-merges.txt"}
LLAMA, GEMMA = {"tokenizer.model": "llama.model"}, {"tokenizer.model": "gemma.model"}
RANKS, DEBERTA = {"tokenizer.model": "ranks.model"}, {"spm.model": "deberta.model"}
T5, XLMR = {"spiece.model": "t5.model"}, {"sentencepiece.bpe.model": "xlmr.model"}


def token(content, **flags):
    return {"content": content, "lstrip": False, "normalized": False, "rstrip": False,
            "single_word": False, "special": True, **flags}


def legacy(content, **flags):
    return {"__type": "AddedToken", **token(content, **flags)}


def of_class(name, **keys):
    return {"tokenizer_class": name, **keys}


RESERVED = {str(394 + i): token(t) for i, t in enumerate(["<|begin_of_text|>", "<|end_of_text|>"])}
RESERVED["398"] = token("<|eot_id|>")

# name, files, tokenizer_config.json, config.json, special_tokens_map.json, added_tokens.json
CASES = [
    ("llama", LLAMA, of_class("LlamaTokenizer", add_bos_token=True, add_eos_token=False, legacy=False,
                              bos_token=legacy("<s>"), eos_token=legacy("</s>"),
                              unk_token=legacy("<unk>"), pad_token=None), {"model_type": "llama"}),
    ("llama-fast", LLAMA, of_class("LlamaTokenizerFast", legacy=True, add_bos_token=True,
                                   add_eos_token=True, bos_token="<s>", eos_token="</s>"), None),
    ("llama-decoder", LLAMA, of_class("LlamaTokenizer", add_bos_token=True, added_tokens_decoder={
        "0": token("<unk>"), "1": token("<s>"), "2": token("</s>"), "450": token("<pad>"),
        "451": token("<tool>", special=False, normalized=True)}, pad_token="<pad>",
        additional_special_tokens=["<x>", "<y>"]), {"model_type": "llama"}),
    ("llama-no-prefix", LLAMA, of_class("LlamaTokenizer", add_prefix_space=False), None),
    ("llama-map", LLAMA, of_class("LlamaTokenizer"), {"model_type": "llama"},
     {"bos_token": {"content": "<s>", "lstrip": False, "normalized": True, "rstrip": False,
                    "single_word": False}, "pad_token": "</s>",
      "additional_special_tokens": ["<extra>"]}, {"<added>": 450, "</s>": 2, "<extra>": 452}),
    ("llama-class-in-config", LLAMA, None, {"model_type": "llama", "tokenizer_class": "LlamaTokenizer"}),
    ("llama-no-class", LLAMA, None, {"model_type": "llama"}),
    ("mistral", LLAMA, of_class("LlamaTokenizer", add_bos_token=True, bos_token="<s>", eos_token="</s>",
                                unk_token="<unk>"), {"model_type": "mistral"}),
    ("phi3", LLAMA, of_class("LlamaTokenizer", add_bos_token=False, bos_token="<s>",
                             eos_token="<|endoftext|>", pad_token="<|endoftext|>", unk_token="<unk>",
                             added_tokens_decoder={"0": token("<unk>"), "1": token("<s>"),
                                                   "2": token("</s>", rstrip=True),
                                                   "450": token("<|endoftext|>"),
                                                   "451": token("<|user|>", rstrip=True)}),
     {"model_type": "phi3"}),
    ("phi3-placeholder", LLAMA, of_class("LlamaTokenizer", added_tokens_decoder={
        "0": token("<unk>"), "3": token("<renamed>")}), {"model_type": "phi3"}),
    ("backend-spm", LLAMA, of_class("PreTrainedTokenizerFast", bos_token="<s>", eos_token="</s>"), None),
    ("backend-unigram", {"tokenizer.model": "xlmr.model"}, of_class("PreTrainedTokenizerFast"), None),
    ("gemma", GEMMA, of_class("GemmaTokenizer", add_bos_token=True, add_eos_token=False,
                              bos_token="<bos>", eos_token="<eos>", pad_token="<pad>",
                              unk_token="<unk>"), {"model_type": "gemma2"}),
    ("gemma-decoder", GEMMA, of_class("GemmaTokenizer", add_bos_token=True, added_tokens_decoder={
        "0": token("<pad>"), "1": token("<eos>"), "2": token("<bos>"), "3": token("<unk>"),
        "4": token("<mask>", special=False), "5": token("<start_of_turn>")},
        additional_special_tokens=["<start_of_turn>", "<end_of_turn>"]), {"model_type": "gemma3_text"}),
    ("gemma-no-class", GEMMA, None, {"model_type": "gemma"}),
    ("t5", T5, of_class("T5Tokenizer", eos_token="</s>", pad_token="<pad>", unk_token="<unk>",
                        extra_ids=100, additional_special_tokens=[f"<extra_id_{i}>" for i in range(100)]),
     {"model_type": "t5"}),
    ("t5-plain", T5, None, {"model_type": "t5"}),
    ("t5-few", T5, of_class("T5TokenizerFast", extra_ids=3), None),
    ("t5-none", T5, of_class("T5Tokenizer", extra_ids=0), {"model_type": "mt5"}),
    ("xlmr", XLMR, of_class("XLMRobertaTokenizer", bos_token="<s>", cls_token="<s>", eos_token="</s>",
                            sep_token="</s>", unk_token="<unk>", pad_token="<pad>",
                            mask_token=legacy("<mask>", lstrip=True, normalized=True)),
     {"model_type": "xlm-roberta"}),
    ("xlmr-plain", XLMR, None, {"model_type": "xlm-roberta"}),
    ("xlmr-decoder", XLMR, of_class("XLMRobertaTokenizerFast", added_tokens_decoder={
        "0": token("<s>"), "1": token("<pad>"), "2": token("</s>"), "3": token("<unk>"),
        "301": token("<mask>", lstrip=True)}, mask_token="<mask>"), None),
    ("deberta", DEBERTA, of_class("DebertaV2Tokenizer", do_lower_case=False, split_by_punct=False),
     {"model_type": "deberta-v2"}),
    ("deberta-plain", DEBERTA, {"do_lower_case": False, "vocab_type": "spm"}, {"model_type": "deberta-v2"}),
    ("deberta-lower", DEBERTA, of_class("DebertaV2TokenizerFast", do_lower_case=True, split_by_punct=True,
                                        added_tokens_decoder={"0": token("[PAD]"), "300": token("[MASK]")}),
     {"model_type": "deberta-v2"}),
    ("bert", BERT, of_class("BertTokenizer", do_lower_case=True), {"model_type": "bert"}),
    ("bert-cased", BERT, of_class("BertTokenizer", do_lower_case=False, strip_accents=False,
                                  tokenize_chinese_chars=False), {"model_type": "bert"}),
    ("bert-plain", BERT, None, {"model_type": "bert"}),
    ("bert-no-config", BERT, of_class("BertTokenizerFast"), None),
    ("bert-map", BERT, {"do_lower_case": True}, {"model_type": "electra"},
     {"unk_token": "[UNK]", "sep_token": "[SEP]", "pad_token": "[PAD]", "cls_token": "[CLS]",
      "mask_token": {"content": "[MASK]", "lstrip": True, "normalized": False, "rstrip": False,
                     "single_word": False}}, {"[NEW]": 500, "word2": 501}),
    ("distilbert", BERT, of_class("DistilBertTokenizer", do_lower_case=True, model_max_length=512),
     {"model_type": "distilbert"}),
    ("distilbert-plain", BERT, None, {"model_type": "distilbert"}),
    ("gpt2", BPE, of_class("GPT2Tokenizer", model_max_length=1024), {"model_type": "gpt2"}),
    ("gpt2-plain", BPE, None, {"model_type": "gpt2"}),
    ("gpt2-prefix", BPE, of_class("GPT2TokenizerFast", add_prefix_space=True, add_bos_token=True,
                                  bos_token=legacy("<s>", normalized=True), pad_token="<pad>"), None),
    ("gpt2-flags", BPE, of_class("GPT2Tokenizer", added_tokens_decoder={
        "400": {"content": "<t>", "special": False}, "401": {"content": "<u>", "special": True},
        "402": {"content": "<t>", "special": False, "lstrip": True},
        "403": {"content": "<plain>"}}, eos_token="<u>",
        bos_token=legacy("<t>", rstrip=True), image_token="<img>", video_token=legacy("<vid>", lstrip=True),
        extra_special_tokens={"audio_token": "<aud>"}), {"model_type": "gpt2"}),
    ("roberta-map", BPE, None, {"model_type": "roberta"},
     {"bos_token": "<s>", "mask_token": {"content": "<MASK>", "lstrip": True, "normalized": True,
                                         "rstrip": False, "single_word": False},
      "boi_token": "<boi>", "additional_special_tokens": ["<x>", "<mask>"]}, {"<late>": 401, "<x>": 400}),
    ("phi", BPE, of_class("CodeGenTokenizer", add_prefix_space=False, added_tokens_decoder={
        "5": token("<|endoftext|>"), "400": token("  ", special=False, normalized=True)}),
     {"model_type": "phi"}),
    ("codegen", BPE, None, {"model_type": "codegen"}),
    ("starcoder2", BPE, of_class("GPT2Tokenizer", bos_token="<|endoftext|>"), {"model_type": "starcoder2"}),
    ("roberta", BPE, of_class("RobertaTokenizer", add_prefix_space=False, trim_offsets=True),
     {"model_type": "roberta"}),
    ("roberta-plain", BPE, None, {"model_type": "roberta"}),
    ("roberta-prefix", BPE, of_class("RobertaTokenizerFast", add_prefix_space=True, trim_offsets=False,
                                     mask_token=legacy("<mask>", lstrip=True)), None),
    ("qwen2", BPE, of_class("Qwen2Tokenizer", add_prefix_space=False, added_tokens_decoder={
        "5": token("<|endoftext|>"), "400": token("<|im_start|>"), "401": token("<|im_end|>")},
        additional_special_tokens=["<|im_start|>", "<|im_end|>"], bos_token=None,
        eos_token="<|im_end|>", pad_token="<|endoftext|>", unk_token=None), {"model_type": "qwen2"}),
    ("qwen3-plain", BPE, None, {"model_type": "qwen3"}),
    ("neox", BPE, of_class("GPTNeoXTokenizer", add_bos_token=False), {"model_type": "gpt_neox"}),
    ("neox-fast", BPE, of_class("GPTNeoXTokenizerFast", add_bos_token=True, bos_token="<|endoftext|>",
                                add_prefix_space=True, pad_token="<pad>"), {"model_type": "olmo"}),
    ("llama3", RANKS, of_class("PreTrainedTokenizerFast", bos_token="<|begin_of_text|>",
                               eos_token="<|end_of_text|>", added_tokens_decoder=RESERVED),
     {"model_type": "llama"}),
    ("llama3-plain", RANKS, None, {"model_type": "llama"}),
    ("llama3-extra", RANKS, of_class("PreTrainedTokenizerFast", bos_token="<|a|>", add_bos_token=True,
                                     extra_special_tokens=["<|a|>", "<|b|>"]), None),
    ("llama3-class", RANKS, of_class("LlamaTokenizer", added_tokens_decoder=RESERVED),
     {"model_type": "llama"}),
]


def build(files, texts, source):
    with tempfile.TemporaryDirectory() as folder:
        for name, from_name in files.items():
            shutil.copy(os.path.join(source, from_name), os.path.join(folder, name))
        for name, text in texts.items():
            with open(os.path.join(folder, name), "w") as stream:
                stream.write(text)
        tokenizer = AutoTokenizer.from_pretrained(folder)
        return tokenizer, json.loads(tokenizer.backend_tokenizer.to_str())


def without_vocabulary(description):
    rest = json.loads(json.dumps(description))
    model = rest["model"]
    for key in ("vocab", "merges"):
        if key in model:
            model[key] = len(model[key])

    def shorten(value):
        if isinstance(value, dict):
            if "precompiled_charsmap" in value:
                value["precompiled_charsmap"] = len(value["precompiled_charsmap"])
            for item in value.values():
                shorten(item)
        elif isinstance(value, list):
            for item in value:
                shorten(item)

    shorten(rest)
    return rest


def make_case(name, files, tokenizer_config=None, config=None, special=None, added=None, source=OUT):
    texts = {file: json.dumps(value, ensure_ascii=False) for file, value in (
        ("tokenizer_config.json", tokenizer_config), ("config.json", config),
        ("special_tokens_map.json", special), ("added_tokens.json", added)) if value is not None}
    try:
        tokenizer, description = build(files, texts, source)
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr)
        return None
    vocabulary = files.get("tokenizer.model", "ranks.model")
    pieces = vocabulary not in ("ranks.model", "llama3/tokenizer.model")
    if pieces and type(tokenizer).__name__ == "TokenizersBackend":
        model = spm.SentencePieceProcessor(model_file=os.path.join(source, vocabulary))
        control = [model.id_to_piece(i) for i in range(model.get_piece_size()) if model.is_control(i)]
        added = (tokenizer_config or {}).get("added_tokens_decoder", {})
        control += [token["content"] for token in added.values()]

        def ids(line):
            if any(piece in line for piece in control):
                return None
            got = model.encode(line)
            return [len(got), hash_of(got)]
        return {"name": name, "files": files, "texts": texts, "class": type(tokenizer).__name__,
                "eos": tokenizer.eos_token, "ids": [ids(line) for line in LINES],
                "hurt": [ids(line) for line in HURT]}
    rest = without_vocabulary(description)
    rest["added_tokens"] = rest["added_tokens"][:1]
    rest = {key: value for key, value in rest.items() if value is not None
            and key not in ("version", "post_processor")}
    return {"name": name, "files": files, "texts": texts, "class": type(tokenizer).__name__,
            "rest": rest, "hash": code_of(description), "eos": tokenizer.eos_token,
            "ids": [[len(ids), hash_of(ids)] for ids in
                    (tokenizer.backend_tokenizer.encode(line).ids for line in LINES)]}


SHARED = [
    ("llama2", {"tokenizer.model": "llama2/tokenizer.model"},
     of_class("LlamaTokenizer", add_bos_token=True, add_eos_token=False), {"model_type": "llama"}),
    ("mistral-v3", {"tokenizer.model": "mistral-v3/tokenizer.model"},
     of_class("LlamaTokenizer", add_bos_token=True), {"model_type": "mistral"}),
    ("llama3", {"tokenizer.model": "llama3/tokenizer.model"},
     of_class("PreTrainedTokenizerFast", extra_special_tokens=["<|begin_of_text|>", "<|end_of_text|>"]),
     {"model_type": "llama"}),
    ("unigram-xlmr", {"sentencepiece.bpe.model": "sentencepiece-unigram-test/test_model.model"},
     None, {"model_type": "xlm-roberta"}),
    ("unigram-deberta", {"spm.model": "sentencepiece-unigram-test/test_model.model"},
     None, {"model_type": "deberta-v2"}),
    ("bert", {"vocab.txt": "bert/bert-vocab.txt"}, None, {"model_type": "bert"}),
    ("gpt2", {"vocab.json": "gpt2/encoder.json", "merges.txt": "gpt2/vocab.bpe"}, None,
     {"model_type": "gpt2"}),
]


def train_word_piece(least):
    """Of whole sentences, so rarely cut that the order in which the library counts words (it changes
    from run to run) makes no difference."""
    lines = [p for p in phrases() if p.endswith("\n") and len(p) > 20]
    found = set()
    for _ in range(8):
        t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        t.normalizer = normalizers.BertNormalizer(lowercase=False)
        t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        t.train_from_iterator(lines, trainers.WordPieceTrainer(
            vocab_size=100_000, min_frequency=least, show_progress=False,
            special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
        found.add("\n".join(sorted(t.get_vocab(), key=lambda token: token.encode())))
    (words,) = found
    return {"min_frequency": least, "size": words.count("\n") + 1, "hash": code_of(words)}


def train_unigram(size):
    parts = [p.encode() for p in phrases()]
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    t.train_from_iterator([c.decode().replace("\0", "") for c in chunks(corpus(parts, SEED + 1, 400_000))],
                          trainers.UnigramTrainer(vocab_size=size, unk_token="<unk>", show_progress=False,
                                                  special_tokens=["<pad>", "</s>", "<unk>"]))
    vocabulary = json.loads(t.to_str())["model"]["vocab"]
    unknown = min(score for _, score in vocabulary) - 10
    ids = t.encode(corpus(parts, SEED, 200_000).decode().replace("\0", "")).ids
    return {"vocab_size": size, "held_out_bytes": 200_000, "tokens": len(ids),
            "score": sum(unknown if i == 2 else vocabulary[i][1] for i in ids)}


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--shared")
    arguments.add_argument("--keep", action="store_true",
                           help="use the vocabularies and trained.json that are there")
    arguments = arguments.parse_args()
    os.makedirs(OUT, exist_ok=True)
    if not arguments.keep:
        make_vocabularies()
    out = {"lines": LINES, "hurt": HURT, "cases": [make_case(*case) for case in CASES], "shared": []}
    seen = set()
    for made in out["cases"]:  # what an earlier case shows need not be there again
        if "hash" not in made:
            continue
        if made["hash"] in seen:
            del made["rest"]
        seen.add(made["hash"])
    if arguments.shared:
        source = os.path.join(arguments.shared, "data", "tok")
        for case in SHARED:
            made = make_case(*case, source=source)
            made.pop("rest", None)
            out["shared"].append(made)
    with open(os.path.join(OUT, "cases.json"), "w") as stream:
        json.dump(out, stream, ensure_ascii=False, separators=(",", ":"))
        stream.write("\n")
    if arguments.keep:
        return
    with open(os.path.join(OUT, "trained.json"), "w") as stream:
        json.dump({"wordpiece": train_word_piece(4), "unigram": train_unigram(3000)}, stream)
        stream.write("\n")


if __name__ == "__main__":
    main()
