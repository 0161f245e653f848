#!/usr/bin/env python3
"""Does `sifr train` train classifiers as transformers does, at sizes that no stored result has?

    python check_classifiers.py SIFR [SEED] [NAME ...]    # NAME: a model_type

For each encoder, and some decoders, a model with sizes drawn from the seed, saved by transformers
with a tokenizer: labels of sequences (pairs of texts in a CSV), and labels of tokens (words and tags
in JSON lines). Ten steps of AdamW on all rows, by `sifr train` and by transformers in float32, both
from the same files. Then transformers opens the folder that sifr wrote. Prints a line for each: the
largest difference of a loss in ten steps, and of a logit of the trained models. Exit code 1 where a
loss differs by more than 1e-5 or a logit by more than 1e-4.
"""
import csv
import json
import os
import random
import string
import subprocess
import sys
import tempfile

import tokenizers
import torch
import transformers
from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification

import check_training as c
import family_configs

CLASSES = {"sequence": AutoModelForSequenceClassification,
           "tokens": AutoModelForTokenClassification}
DECODERS = ("gpt2", "llama", "qwen3", "gemma2")


def config(name, r):
    """An encoder's config; every dropout is 0."""
    t = transformers
    heads, layers = r.choice([2, 3, 4]), r.choice([2, 3, 4])
    width, inner = heads * r.choice([6, 8, 10, 12]), r.randrange(17, 70)
    pad = r.choice([0, 1, 3])
    sizes = dict(vocab_size=60, hidden_size=width, num_hidden_layers=layers,
                 num_attention_heads=heads, intermediate_size=inner, pad_token_id=pad)
    still = dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    types = dict(type_vocab_size=2, max_position_embeddings=70)
    act = r.choice(["gelu", "gelu_new", "relu", "silu"])
    rope = dict(rope_type="default", rope_theta=r.choice([500.0, 1e4]))
    makers = {
        "bert": lambda: t.BertConfig(**sizes, **still, **types, hidden_act=act),
        "roberta": lambda: t.RobertaConfig(**sizes, **still, **types, hidden_act=act),
        "xlm-roberta": lambda: t.XLMRobertaConfig(**sizes, **still, **types),
        "distilbert": lambda: t.DistilBertConfig(
            vocab_size=60, dim=width, hidden_dim=inner, n_layers=layers, n_heads=heads,
            pad_token_id=pad, dropout=0.0, attention_dropout=0.0, seq_classif_dropout=0.0),
        "modernbert": lambda: t.ModernBertConfig(
            **sizes, bos_token_id=None, eos_token_id=None, cls_token_id=None, sep_token_id=None,
            local_attention=r.choice([6, 10]), classifier_pooling=r.choice(["cls", "mean"]),
            rope_parameters=dict(full_attention=rope,
                                 sliding_attention=dict(rope, rope_theta=30.0))),
        "deberta-v2": lambda: t.DebertaV2Config(
            **sizes, **still, type_vocab_size=r.choice([0, 2]), max_position_embeddings=70,
            relative_attention=True, position_buckets=r.choice([4, 8, -1]),
            pos_att_type=r.choice(["c2p|p2c", "c2p", "p2c"]), share_att_key=r.random() < 0.5,
            norm_rel_ebd=r.choice(["layer_norm", "none"]), pooler_dropout=0.0,
            position_biased_input=r.random() < 0.5, conv_kernel_size=r.choice([0, 3]),
            conv_act=r.choice(["tanh", "gelu"])),
    }
    if not name:
        return list(makers) + list(DECODERS)
    if name in makers:
        return makers[name]()
    made = family_configs.config(name, r)
    made.vocab_size, made.pad_token_id = 60, pad
    return made


def make_tokenizer(pad, types, folder):
    """WordPiece of single letters, with [PAD] where the config has it."""
    names = ["[CLS]", "[SEP]", "[UNK]", "[MASK]"]
    names.insert(pad, "[PAD]")
    letters = list(string.ascii_lowercase) + ["##" + a for a in string.ascii_lowercase]
    words = {w: i for i, w in enumerate(names + letters)}
    inner = tokenizers.Tokenizer(tokenizers.models.WordPiece(words, unk_token="[UNK]"))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    second = 1 if types > 1 else 0
    inner.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair=f"[CLS] $A [SEP] $B:{second} [SEP]:{second}",
        special_tokens=[("[CLS]", words["[CLS]"]), ("[SEP]", words["[SEP]"])])
    inner.decoder = tokenizers.decoders.WordPiece()
    made = transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]",
        unk_token="[UNK]", mask_token="[MASK]", padding_side="right")
    made.save_pretrained(folder)
    return made


def rows_of(kind, r, count, labels):
    word = lambda: "".join(r.choice(string.ascii_lowercase) for _ in range(r.choice([1, 1, 2, 3])))
    texts = [([word() for _ in range(r.randrange(1, 9))], [word() for _ in range(r.randrange(1, 20))])
             for _ in range(count)]
    if kind == "sequence":
        return [(" ".join(a), " ".join(b), r.choice(labels)) for a, b in texts]
    return [(b, [r.choice(labels) for _ in b]) for _, b in texts]


def write_rows(kind, rows, path):
    if kind == "sequence":
        with open(path, "w", newline="") as f:
            csv.writer(f).writerows([("sentence1", "sentence2", "label"), *rows])
    else:
        with open(path, "w") as f:
            f.writelines(json.dumps({"tokens": w, "tags": t}) + "\n" for w, t in rows)


def batch_of(kind, tokenizer, rows, length, ids, types):
    options = dict(padding="max_length", truncation=True, max_length=length, return_tensors="pt",
                   return_token_type_ids=True)
    if kind == "sequence":
        batch = tokenizer([a for a, _, _ in rows], [b for _, b, _ in rows], **options)
        labels = torch.tensor([ids[label] for _, _, label in rows])
    else:
        batch = tokenizer([w for w, _ in rows], is_split_into_words=True, **options)
        labels = torch.full_like(batch["input_ids"], -100)
        for i, (_, tags) in enumerate(rows):
            seen = None
            for k, word in enumerate(batch.word_ids(i)):
                if word is not None and word != seen:
                    labels[i, k] = ids[tags[word]]
                seen = word
    inputs = {k: batch[k] for k in ("input_ids", "attention_mask")}
    if types > 1:
        inputs["token_type_ids"] = batch["token_type_ids"]
    return inputs, labels


def train(model, inputs, labels):
    optimizer = torch.optim.AdamW(model.parameters(), lr=c.RATE, betas=(0.9, 0.999),
                                  eps=c.EPSILON, weight_decay=c.DECAY)
    losses = []
    for _ in range(c.STEPS):
        logits = model(**inputs).logits.float()
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]),
                                                 labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def check(sifr, name, kind, seed, folder):
    r = random.Random(f"{seed}/{name}/{kind}")
    torch.manual_seed(r.randrange(1 << 30))
    made = config(name, r)
    labels = sorted("".join(r.choice(string.ascii_lowercase) for _ in range(4))
                    for _ in range(r.randrange(2, 6)))
    made.id2label = dict(enumerate(labels))
    made.label2id = {label: i for i, label in made.id2label.items()}
    if kind == "tokens":
        made.classifier_dropout = 0.0
    model = CLASSES[kind].from_config(made, attn_implementation="eager").float().train()
    c.shuffle(model, r)
    model.save_pretrained(folder + "/model")
    types = getattr(made, "type_vocab_size", 0) or 0
    tokenizer = make_tokenizer(made.pad_token_id, types, folder + "/model")
    length, count = r.randrange(19, 45), r.choice([4, 6, 8])
    rows = rows_of(kind, r, count, labels)
    data = folder + ("/rows.csv" if kind == "sequence" else "/rows.jsonl")
    write_rows(kind, rows, data)
    json.dump({"train_batch_size": count, "train_micro_batch_size_per_gpu": 2,
               "gradient_clipping": 0.0,
               "optimizer": {"type": "AdamW", "params": {"lr": c.RATE, "eps": c.EPSILON,
                                                         "weight_decay": c.DECAY}},
               "sifr": {"seq_length": length, "max_steps": c.STEPS, "logging_steps": 1}},
              open(folder + "/ds.json", "w"))
    run = subprocess.run([sifr, "train", "--config", folder + "/ds.json", "--data", data, "--model",
                          folder + "/model", "--output", folder + "/run"], capture_output=True,
                         text=True)
    if run.returncode:
        return f"{name} {kind}: {run.stderr.strip().splitlines()[-1]}", False
    mine = [json.loads(line)["loss"] for line in open(folder + "/run/metrics.jsonl")
            if "loss" in json.loads(line)]
    inputs, wanted = batch_of(kind, tokenizer, rows, length, made.label2id, types)
    losses = train(model, inputs, wanted)
    apart = max(abs(a - b) for a, b in zip(mine, losses))
    written = CLASSES[kind].from_pretrained(folder + "/run", attn_implementation="eager")
    real = inputs["attention_mask"].bool() if kind == "tokens" else slice(None)
    with torch.no_grad():
        logits = (written.float().eval()(**inputs).logits[real] -
                  model.eval()(**inputs).logits[real]).abs().max().item()
    good = len(mine) == c.STEPS and apart <= c.LOSS_BOUND and logits <= c.LOGIT_BOUND
    return (f"{name:12} {kind:8} {sum(p.numel() for p in model.parameters()):7} parameters, loss "
            f"{losses[0]:.4f} to {losses[-1]:.4f}: apart {apart:.1e}; logits apart {logits:.1e}"
            f"{'' if good else '  WRONG'}"), good


def main():
    sifr, seed, names = sys.argv[1], (sys.argv[2:] or ["1"])[0], sys.argv[3:]
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    good = True
    for name in names or config(None, random.Random(0)):
        for kind in CLASSES:
            with tempfile.TemporaryDirectory() as folder:
                line, fine = check(os.path.abspath(sifr), name, kind, seed, folder)
            print(line, flush=True)
            good &= fine
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
