#!/usr/bin/env python3
"""Makes tests/golden/tokenizer/: phrases in many scripts, tokenizers that the `tokenizers` library
trained on a corpus of them, and the ids that the library gives.

    python3 tests/golden/make_tokenizer.py [--shared ../shared] [--classes | --kinds]

Needs `pip install tokenizers` (made with 0.23.3). The corpus is put together from the phrases by a
small generator that tests/support/tokenizer_case.c repeats. --shared also takes the texts and
tokenizers that lie beside the project; --classes prints the letters and numbers of the library that
the Unicode data of this Python does not have, and stops; --kinds writes unicode_kinds.json alone:
for each \\p{...}, how many code points it matches and the hash of them.
"""
import argparse, json, os, random, unicodedata
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers,
                        pre_tokenizers, processors, trainers)

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "tokenizer")
MASK = (1 << 64) - 1
CORPUS_BYTES, CHUNK, SEED = 1_500_000, 16384, 20261121

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
          r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")

SENTENCES = """
The quick brown fox jumps over the lazy dog, and it doesn't look back; we'll see what they've done.
She said: "I'm sure you're right, he'd go." IT'S WHAT WE'LL DO, THEY'VE SAID SO. O'Neill's 'tis 'Twas
Zwölf große Boxkämpfer jagen Viktor quer über den Sylter Deich; Straße, Übung, Ärger.
Voix ambiguë d'un cœur qui, au zéphyr, préfère les jattes de kiwis. L'été, c'est aujourd'hui l'heure.
El pingüino Wenceslao hizo kilómetros bajo exhaustiva lluvia y frío; ¿añoraba? ¡Sí!
Příliš žluťoučký kůň úpěl ďábelské ódy. Pchnąć w tę łódź jeża lub ośm skrzyń fig.
Pijamalı hasta yağız şoföre çabucak güvendi. İstanbul'da ılık bir gün.
Tiếng Việt có nhiều dấu: những người bạn tốt đã đến thăm chúng tôi hôm qua.
Съешь же ещё этих мягких французских булок, да выпей чаю. Мы живём в большом городе.
Жебракують філософи при ґанку церкви в Гадячі, ще й шатро їхнє п'яне знаємо.
Ξεσκεπάζω την ψυχοφθόρα βδελυγμία. Τα παιδιά παίζουν στον κήπο κάθε μέρα.
نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر. اللُّغَةُ العَرَبِيَّةُ جَمِيلَةٌ
دیروز هوا بسیار سرد بود و ما در خانه ماندیم؛ می‌خواهم کتاب بخوانم.
דג סקרן שט בים מאוכזב ולפתע מצא חברה. בְּרֵאשִׁית הָיָה הַדָּבָר וְהָעוֹלָם יָפֶה
ऋषियों को सताने वाले दुष्ट राक्षसों के राजा का नाश करने वाले। हम आज बाज़ार जा रहे हैं।
আমার সোনার দেশ, আমি তোমায় ভালোবাসি। আজ আকাশে অনেক মেঘ জমেছে।
யாமறிந்த மொழிகளிலே இனிதாவது எங்கும் இல்லை; நாங்கள் நேற்று கடற்கரைக்குச் சென்றோம்.
เป็นมนุษย์สุดประเสริฐเลิศคุณค่า กว่าบรรดาฝูงสัตว์เดรัจฉาน วันนี้อากาศดีมาก
ວັນນີ້ອາກາດດີ ພວກເຮົາໄປຕະຫຼາດ. ຂ້ອຍມັກອ່ານປຶ້ມ
天地玄黄，宇宙洪荒。今天天气很好，我们去公园散步吧！他说：“学习使人进步。”
視野無限廣，窗外有藍天。臺灣的夏天很熱，大家都喜歡吃冰。
いろはにほへと ちりぬるを。私たちは昨日、東京の大きな図書館で本を読みました。カタカナも使う。
키스의 고유조건은 입술끼리 만나야 하고 특별한 기술은 필요치 않다. 오늘은 날씨가 좋네요.
გთხოვთ ახლავე გაიაროთ რეგისტრაცია. დღეს კარგი ამინდია.
Բել դղյակի ձախ ժամն օֆ ազգությանը ցպահանջ չճշտած վնաս էր եւ փառք։
ሰማይ አይታረስ ንጉሥ አይከሰስ። ዛሬ ጥሩ ቀን ነው።
for (int i = 0; i < n; i++) { sum += a[i] * b[i]; } // sum of products
def f(x, *args, **kw):\\n    return {k: v for k, v in zip(x, args) if v is not None}\\n
if (!strcmp(s, "it's")) {\\n\\t\\treturn -1;\\n\\t}\\r\\n#include <stdio.h>\\r\\n\\r\\n
<p class="a b">3.14159 &amp; 1,000,000.00 USD</p> https://example.org/path?q=1&r=two#three
SELECT name, COUNT(*) FROM t WHERE x >= 10 AND y != 'z' GROUP BY name;
x² + y³ ≤ ½·z₄ − ∑ⁿᵢ₌₁ αᵢ; 12345678901234567890 0x1F 1e-9 ١٢٣٤ १२३४ ๑๒๓ ⅣⅫ ㊿ 一二三 ²³
"""
SPACES = [" ", "  ", "   ", " " * 7, "\t", "\t\t", "\n", "\n\n", "\n\n\n", "\r\n", "\r\n\r\n", "\r",
          " \n", "\n ", " \n \n ", "\n    ", "\n\t", "\t \n", "\v", "\f", "\x85", "\xa0", "\u1680",
          "\u2000\u2003", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000", "\u3000\u3000", "\u200b",
          "\ufeff", "\u180e", " \xa0 ", "\n\u3000", " \u2028 "]
ODD = ["'s", "'S", "'ll", "'LL", "'lL", "'ve", "'Ve", "'t", "'T", "'re", "'RE", "'m", "'M", "'d",
       "'D", "'\u017f", "'\u212a", "''s", "\u2019s", "'sound", "'x", "'", "' s", " 's", "'r", "'v",
       "'l", "'L", "1", "22", "333", "4444", "55555", " 666", "7 8", "9\n", "!", "!!", "?!\n", ".\n\n",
       " .", " ...", "\u2026", "-", "--", "_", "a_b", "\0", "\x01\x02", "\x1b[0m", "\x7f", "\x80",
       "e\u0301", "a\u0323\u0302", "a\u0302\u0323", "q\u0307\u0323", "\u0301", " \u0301", "\n\u0308",
       "\u1100\u1161\u11a8", "\uac00\u11a8", "\u1112\u1161", "\u0958", "\u2126", "\u212b", "\ufb1d",
       "\ufb1d\n", "\u0915\u093c", "\u0f71\u0f72\u0f74", "\u0344", "\ufa0e", "\uf900", "\U0002f800",
       "\U0001d15e", "\u09c7\u09be", "\u0b47\u0b56", "\u30ab\u3099", "\u0e40\u0e01\u0e48\u0e32",
       "\U0001f600", "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466",
       "\U0001f1e9\U0001f1ea", "\U0001f3fd", "\U0001f44d\U0001f3fd", "\u2764\ufe0f", "1\ufe0f\u20e3",
       "\ufffd", "\uffff", "\U0010ffff", "\ue000", "\U000e0061", "\U00010348", "\U0001e030"]
# Found as added tokens by the tokenizers below; some overlap.
ADDED = ["<|endoftext|>", "<|begin|>", "<|beg", "<|im_start|>", "<|im_end|>", "<mask>", "<pad>", "word",
         "caf\u00e9", "cafe\u0301", "wordy", "a<|im_start|>b", " <mask> ", "\n<pad>\n\n", "(word)"]


def phrases():
    rng = random.Random(SEED)
    out = []
    for line in SENTENCES.strip().split("\n"):
        line = line.encode().decode("unicode_escape").encode("latin-1").decode() \
            if "\\" in line else line
        out.append(line + "\n")
        words = line.split(" ")
        out += [" " + w for w in words if w]
        out += [line[i:i + 7] for i in range(0, len(line), 7)]
    out += SPACES + ODD + ADDED
    # Words of random letters from the blocks of many scripts, and characters from everywhere.
    blocks = [(0x61, 0x7a), (0x41, 0x5a), (0xc0, 0x24f), (0x370, 0x3ff), (0x400, 0x52f), (0x531, 0x587),
              (0x5d0, 0x5ea), (0x620, 0x64a), (0x900, 0x97f), (0x980, 0x9ff), (0xb80, 0xbff),
              (0xe01, 0xe4e), (0x1000, 0x109f), (0x10d0, 0x10ff), (0x1100, 0x11ff), (0x1200, 0x137f),
              (0x3041, 0x30ff), (0x4e00, 0x9fff), (0xac00, 0xd7a3), (0x1f300, 0x1f6ff), (0x300, 0x36f)]
    for low, high in blocks:
        for _ in range(12):
            out.append("".join(chr(rng.randint(low, high)) for _ in range(rng.randint(1, 9))))
    for _ in range(300):
        c = rng.randrange(0x20, 0x110000)
        if not 0xd800 <= c < 0xe000:
            out.append(chr(c) + rng.choice(["", "a", " ", "\n", "1"]))
    for _ in range(200):
        c = rng.choice(range(0x300, 0x3000))
        out.append(rng.choice("ae \n1") + chr(c))
    rng.shuffle(out)
    return out


class Generator:
    def __init__(self, seed):
        self.state = seed

    def draw(self):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) & MASK
        return self.state >> 32


def corpus(parts, seed, size):
    """Phrases, those at the front more often, until there are `size` bytes."""
    generator, out, total = Generator(seed), [], 0
    while total < size:
        first, second = generator.draw(), generator.draw()
        piece = parts[((first * second >> 32) * len(parts)) >> 32]
        out.append(piece)
        total += len(piece)
    return b"".join(out)


def chunks(text):
    """Stretches of some 16 KiB that begin at characters."""
    out, at = [], 0
    while at < len(text):
        end = min(at + CHUNK, len(text))
        while end < len(text) and (text[end] & 0xC0) == 0x80:
            end += 1
        out.append(text[at:end])
        at = end
    return out


def hash_of(ids):
    value = 0xcbf29ce484222325
    for i in ids:
        value = ((value ^ i) * 0x100000001b3) & MASK
    return f"{value:016x}"


def code_points():
    """Those that may be letters, numbers, white space or marks, and some of the others."""
    return [c for c in list(range(1, 0x32400)) + list(range(0x32400, 0x110000, 997))
            if not 0xd800 <= c < 0xe000]


def splitter(pattern):
    if pattern is None:
        return pre_tokenizers.ByteLevel(add_prefix_space=False)
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def trained(pattern, nfc, documents, size):
    tokenizer = Tokenizer(models.BPE())
    if nfc:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = splitter(pattern)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=["<|endoftext|>"],
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  show_progress=False)
    tokenizer.train_from_iterator(documents, trainer)
    return tokenizer


def save(name, data):
    with open(os.path.join(OUT, name), "w") as file:
        json.dump(data, file, ensure_ascii=True, separators=(",", ":"))
        file.write("\n")


KINDS = ("C L M N P S Z Cn Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl "
         "Zp Cc Cf Co").split()


def kinds():
    points = [c for c in range(0x110000) if not 0xd800 <= c < 0xe000]
    out = {}
    for kind in KINDS:
        drop, found = normalizers.Replace(Regex(rf"\p{{{kind}}}"), ""), []
        for at in range(0, len(points), 4096):
            part = points[at:at + 4096]
            left = set(map(ord, drop.normalize_str("".join(map(chr, part)))))
            found += [c for c in part if c not in left]
        out[kind] = [len(found), hash_of(found)]
    save("unicode_kinds.json", out)


def classes():
    def members(pattern):
        split, found = pre_tokenizers.Split(Regex(pattern), "removed", invert=True), set()
        for base in range(0, 0x110000, 4096):
            text = "".join(chr(c) for c in range(base, base + 4096) if not 0xd800 <= c < 0xe000)
            for piece, _ in split.pre_tokenize_str(text):
                found.update(map(ord, piece))
        return found
    for category in "LN":
        known = {c for c in range(0x110000) if unicodedata.category(chr(c))[0] == category}
        ranges = []
        for c in sorted(members(rf"\p{{{category}}}+") - known):
            if ranges and ranges[-1][1] == c - 1:
                ranges[-1][1] = c
            else:
                ranges.append([c, c])
        print(category, "since Unicode", unicodedata.unidata_version + ":",
              ", ".join(f"{{0x{a:X}, 0x{b:X}}}" for a, b in ranges))


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--shared")
    arguments.add_argument("--classes", action="store_true")
    arguments.add_argument("--kinds", action="store_true")
    arguments = arguments.parse_args()
    if arguments.classes:
        return classes()
    if arguments.kinds:
        return kinds()
    kinds()
    os.makedirs(OUT, exist_ok=True)
    parts = phrases()
    save("phrases.json", parts)
    text = corpus([p.encode() for p in parts], SEED, CORPUS_BYTES)
    training = [c.decode() for c in chunks(corpus([p.encode() for p in parts], SEED + 1, 400_000))]

    tokenizers = {"gpt2": trained(None, False, training, 1500),
                  "llama3": trained(LLAMA3, False, training, 1800),
                  "qwen2": trained(QWEN2, True, training, 1200)}
    for name in ("llama3", "qwen2"):  # gpt2.json stays as it is trained
        tokenizers[name].save(os.path.join(OUT, f"{name}_trained.json"), pretty=False)

    # The same with what real ones have besides. Tokens that no merge makes: only ignore_merges finds
    # them.
    description = json.loads(tokenizers["llama3"].to_str())
    description["model"]["ignore_merges"] = True
    vocabulary = description["model"]["vocab"]
    encode = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    for token in (" the", "\u4eca\u5929\u5929\u6c14\u5f88\u597d", "kwargs", " Zw\u00f6lf"):
        vocabulary.setdefault(encode.pre_tokenize_str(token)[0][0], len(vocabulary))
    llama = Tokenizer.from_str(json.dumps(description))
    llama.add_special_tokens([AddedToken(t, special=True) for t in ADDED[1:2] + ADDED[3:5]])
    llama.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single="<|begin|> $A", pair="<|begin|> $A <|begin|> $B:1",
                                      special_tokens=[("<|begin|>", llama.token_to_id("<|begin|>"))])])
    description = json.loads(llama.to_str())
    description["model"]["merges"] = [" ".join(m) for m in description["model"]["merges"]]
    tokenizers["llama3"] = Tokenizer.from_str(json.dumps(description))

    qwen = tokenizers["qwen2"]
    qwen.add_special_tokens([AddedToken("<|im_start|>", special=True, normalized=False),
                             AddedToken("<|im_end|>", special=True, normalized=False),
                             AddedToken("<mask>", special=True, lstrip=True, normalized=True),
                             AddedToken("<|beg", special=False, normalized=False)])
    qwen.add_tokens([AddedToken("<pad>", rstrip=True), AddedToken("word", single_word=True),
                     AddedToken("caf\u00e9", normalized=True)])
    roberta = tokenizers["gpt2"]
    roberta = Tokenizer.from_str(roberta.to_str())
    roberta.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    roberta.post_processor = processors.RobertaProcessing(("!", 1), ("<|endoftext|>", 0))
    tokenizers["prefix"] = roberta
    digits = Tokenizer.from_str(tokenizers["gpt2"].to_str())
    digits.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                                    pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizers["digits"] = digits

    expected = {"corpus_bytes": CORPUS_BYTES, "seed": SEED, "chunk": CHUNK, "training_bytes": 400_000,
                "tokenizers": {}, "cases": [], "invalid": [], "decode": [],
                "pieces": {}, "nfc": []}
    for name, tokenizer in tokenizers.items():
        if name == "llama3":  # with merges as old files have them, which the library would not write
            save(f"{name}.json", description)
        else:
            tokenizer.save(os.path.join(OUT, f"{name}.json"), pretty=False)
        rows = [tokenizer.encode(c.decode(), add_special_tokens=False).ids for c in chunks(text)]
        whole = tokenizer.encode(text.decode(), add_special_tokens=False).ids
        expected["tokenizers"][name] = {
            "vocab_size": max(tokenizer.get_vocab(with_added_tokens=True).values()) + 1,
            "counts": [len(r) for r in rows], "hashes": [hash_of(r) for r in rows],
            "whole_count": len(whole), "whole_hash": hash_of(whole)}
        for line in ["", " ", "Hello world", "it's <|im_start|>word<|im_end|> wordy word",
                     "a  <mask>  b <pad>  c", "  \n", "caf\u00e9 cafe\u0301 x", "1234567", "<|begin|>x"]:
            for special in (False, True):
                expected["cases"].append([name, line, special,
                                          tokenizer.encode(line, add_special_tokens=special).ids])
    # Where texts are split, by the bytes of each piece; and NFC, by its bytes.
    every = "".join(f"{chr(c)}x'{chr(c)}x {chr(c)}1{chr(c)}\n" for c in code_points())
    for name, pattern in (("gpt2", None), ("llama3", LLAMA3), ("qwen2", QWEN2)):
        split = splitter(pattern)
        expected["pieces"][name] = []
        for sample in (text.decode(), every):
            sizes = [len(piece) for piece, _ in split.pre_tokenize_str(sample)]
            expected["pieces"][name] += [len(sizes), hash_of(sizes)]
    marked = "".join(f"a{chr(c)}\u0323\u0301{chr(c)}\u0327x" for c in code_points())
    for sample in (text.decode(), marked):
        data = normalizers.NFC().normalize_str(sample).encode()
        expected["nfc"] += [len(data), hash_of(data)]
    rng = random.Random(SEED + 2)
    gpt2 = tokenizers["gpt2"]
    broken = [b"\xff", b"abc\x80def", b"\xc3", b"\xe2\x82", b"\xe2\x82 x", b"\xf0\x9f\x98", b"\xed\xa0\x80",
              b"\xc0\xaf", b"\xf4\x90\x80\x80", b"ok \xf0\x9f\x98\x80 \xf0\x28\x8c\x28", b"\xe0\x80\xaf" * 3]
    broken += [bytes(rng.choice([0x61, 0x20, 0x80, 0xc3, 0xa9, 0xe2, 0x82, 0xac, 0xf0, 0x9f, 0xff])
                     for _ in range(rng.randint(5, 60))) for _ in range(40)]
    for data in broken:
        fixed = data.decode(errors="replace")
        expected["invalid"].append([data.hex(), fixed.count("\ufffd"), gpt2.encode(fixed).ids])
    for _ in range(60):
        ids = [rng.randrange(len(gpt2.get_vocab())) for _ in range(rng.randint(1, 12))]
        if rng.random() < 0.5:
            ids = [i % 257 for i in ids]
        expected["decode"].append([ids, gpt2.decode(ids, skip_special_tokens=False),
                                   gpt2.decode(ids, skip_special_tokens=True)])
    if arguments.shared:
        data, expected["shared"] = os.path.join(arguments.shared, "data"), []
        for name in ("gpt2", "roberta-base"):
            tokenizer = Tokenizer.from_file(os.path.join(data, "tok", name, "tokenizer.json"))
            for file in sorted(os.listdir(os.path.join(data, "text"))):
                with open(os.path.join(data, "text", file), newline="") as stream:
                    ids = tokenizer.encode(stream.read()).ids
                expected["shared"].append([name, file, len(ids), hash_of(ids)])
    save("expected.json", expected)


if __name__ == "__main__":
    main()
