#!/usr/bin/env python3
"""Makes tests/golden/sampling.json: which tokens transformers' logits processors keep, and with
which probabilities.

    python3 tests/golden/make_sampling.py

Needs `pip install torch transformers` (made with 2.15.0 and 5.23.0). Each row names its settings
and one of three rows of logits; the processors are applied in the order of generate(): repetition
penalty, temperature, top-k, top-p, min-p.
"""
import itertools, json, os
import torch
from transformers.generation import logits_process as process

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sampling.json")
WORDS, IDS = 40, [3, 5, 5, 17, 39, 0, 21]


def make_logits():
    generator = torch.Generator().manual_seed(22)
    smooth = torch.randn(WORDS, generator=generator) * 2
    equal = (torch.randn(WORDS, generator=generator) * 2).round()  # many equals
    sharp = torch.randn(WORDS, generator=generator) * 12
    return [[round(float(x), 6) for x in row] for row in (smooth, equal, sharp)]


def apply(logits, settings):
    scores, ids = torch.tensor([logits]), torch.tensor([IDS])
    if settings["repetition_penalty"] != 1:
        penalize = process.RepetitionPenaltyLogitsProcessor(settings["repetition_penalty"])
        scores = penalize(ids, scores)
    if settings["temperature"] != 1:
        scores = process.TemperatureLogitsWarper(settings["temperature"])(ids, scores)
    if settings["top_k"]:
        scores = process.TopKLogitsWarper(settings["top_k"])(ids, scores)
    if settings["top_p"] < 1:
        scores = process.TopPLogitsWarper(settings["top_p"])(ids, scores)
    if settings["min_p"]:
        scores = process.MinPLogitsWarper(settings["min_p"])(ids, scores)
    probabilities = scores.double().softmax(-1)[0].tolist()
    return [[i, p] for i, p in enumerate(probabilities) if scores[0, i] > -float("inf")]


def main():
    rows, all_logits = [], make_logits()
    grid = itertools.product(range(3), [1.0, 1.3, 0.8], [1.0, 0.6, 1.7], [0, 1, 5], [1.0, 0.73],
                             [0.0, 0.11])
    for number, (which, penalty, temperature, top_k, top_p, min_p) in enumerate(grid):
        if which == 1 and top_p < 1:
            continue  # which of several equals top-p keeps is the sort's choice
        if number % 3 and not (top_k == 0 and top_p == 1):
            continue
        settings = {"repetition_penalty": penalty, "temperature": temperature, "top_k": top_k,
                    "top_p": top_p, "min_p": min_p}
        rows.append({"logits": which, **settings, "kept": apply(all_logits[which], settings)})
    for top_k in range(1, 15):  # the last of them often has equals
        settings = {"repetition_penalty": 1.0, "temperature": 1.0, "top_k": top_k, "top_p": 1.0,
                    "min_p": 0.0}
        rows.append({"logits": 1, **settings, "kept": apply(all_logits[1], settings)})
    with open(OUT, "w", encoding="utf-8") as file:
        file.write('{"ids": %s,\n "logits": %s,\n "rows": [\n'
                   % (json.dumps(IDS), json.dumps(all_logits)))
        file.write(",\n".join(json.dumps(row) for row in rows) + "\n]}\n")


if __name__ == "__main__":
    main()
