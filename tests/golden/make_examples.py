"""Labelled examples as transformers encodes them: pairs cut to a length, and tags of words.

Writes tests/golden/examples/: two small tokenizers (WordPiece as BERT's, byte-level BPE as
RoBERTa's), data files of our own sentences, and expected.json with the ids, token types and labels
of every example. Run: python tests/golden/make_examples.py
"""
import json
import os

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "examples")
LENGTH = 32

SENTENCES = [
    ("The river rose after the long rain.", "Rain made the river rise.", "entailment"),
    ("Two children play chess in the park.", "Nobody plays a game.", "contradiction"),
    ("A baker sells bread, rolls and cakes.", "The baker's shop is on Main Street, next to a "
     "bank, a school and the old town hall.", "neutral"),
    ("The old bridge across the wide valley was closed to heavy lorries last winter, because "
     "its pillars were weak.", "It's closed.", "entailment"),
    ("She reads.", "She reads a \"long\" book, twice.", "neutral"),
    ("It was unbelievably cold in the mountains that winter, and nobody went out.",
     "In the mountains the winter was so warm that everybody went out at night.", "contradiction"),
]
TAGGED = [
    (["Anna", "Schmidt", "lives", "in", "Bonn", "."], ["B-PER", "I-PER", "O", "O", "B-LOC", "O"]),
    (["Yesterday", "the", "unbelievably", "long", "bridge", "of", "Riverside", "was", "closed", "by",
      "the", "mayor", ",", "Mr.", "O'Neill", "."],
     ["O", "O", "O", "O", "O", "O", "B-LOC", "O", "O", "O", "O", "O", "O", "O", "B-PER", "O"]),
    (["Bonn"], ["B-LOC"]),
]
TAGS = ["B-LOC", "B-PER", "I-PER", "O"]
CLASSES = ["contradiction", "entailment", "neutral"]


def corpus():
    for first, second, _ in SENTENCES:
        yield first
        yield second
    for words, _ in TAGGED:
        yield " ".join(words)


def wordpiece():
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=True)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    t.train_from_iterator(corpus(), trainers.WordPieceTrainer(vocab_size=120, special_tokens=special))
    t.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return PreTrainedTokenizerFast(
        tokenizer_object=t, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
        sep_token="[SEP]", mask_token="[MASK]")


def byte_level():
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=330, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return PreTrainedTokenizerFast(
        tokenizer_object=t, bos_token="<s>", eos_token="</s>", sep_token="</s>", cls_token="<s>",
        unk_token="<unk>", pad_token="<pad>", mask_token="<mask>")


def with_spaces(tokenizer):
    """As run_ner.py asks for: words follow a space."""
    state = json.loads(tokenizer.backend_tokenizer.to_str())
    state["pre_tokenizer"]["add_prefix_space"] = True
    copy = PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(json.dumps(state)))
    copy.pad_token = tokenizer.pad_token
    return copy


def pairs(tokenizer):
    out = []
    for first, second, name in SENTENCES:
        for texts in ((first, second), (first,)):
            e = tokenizer(*texts, truncation=True, max_length=LENGTH, padding="max_length",
                          return_token_type_ids=True)
            out.append({"ids": e["input_ids"], "types": e["token_type_ids"],
                        "mask": e["attention_mask"], "label": CLASSES.index(name)})
    return out


def tagged(tokenizer):
    out = []
    for words, tags in TAGGED:
        e = tokenizer(words, is_split_into_words=True, truncation=True, max_length=LENGTH,
                      padding="max_length")
        labels, last = [], None
        for word in e.word_ids():
            labels.append(-100 if word is None or word == last else TAGS.index(tags[word]))
            last = word
        out.append({"ids": e["input_ids"], "mask": e["attention_mask"], "labels": labels})
    return out


def write(name, text):
    with open(os.path.join(HERE, name), "w", newline="") as file:
        file.write(text)


def quote(text):
    return '"' + text.replace('"', '""') + '"'


def main():
    expected = {"length": LENGTH}
    for name, tokenizer in (("wordpiece", wordpiece()), ("byte_level", byte_level())):
        folder = os.path.join(HERE, name)
        os.makedirs(folder, exist_ok=True)
        tokenizer.backend_tokenizer.no_padding()
        tokenizer.backend_tokenizer.no_truncation()
        tokenizer.save_pretrained(folder)
        words = with_spaces(tokenizer) if name == "byte_level" else tokenizer
        expected[name] = {"pairs": pairs(tokenizer), "tagged": tagged(words),
                          "special": sorted(tokenizer.all_special_ids),
                          "mask": tokenizer.mask_token_id}
    write("expected.json", json.dumps(expected, separators=(",", ":")) + "\n")
    write("pairs.tsv", "premise\thypothesis\tlabel\n" +
          "".join(f"{a}\t{b}\t{c}\n" for a, b, c in SENTENCES))
    write("pairs.csv", "label,sentence2,sentence1\r\n" +
          "".join(f"{c},{quote(b)},{quote(a)}\r\n" for a, b, c in SENTENCES))
    write("pairs.jsonl", "".join(json.dumps({"text": a, "text_pair": b, "label": CLASSES.index(c)})
                                 + "\n" for a, b, c in SENTENCES))
    write("tagged.jsonl", "".join(json.dumps({"tokens": w, "ner_tags": t}) + "\n"
                                  for w, t in TAGGED))
    write("tagged.conll", "\n".join("".join(f"{w}\t{t}\n" for w, t in zip(*s)) for s in TAGGED))


main()
