#!/usr/bin/env python3
"""Writes distillation/: a student of the shape of preference/model, which is its teacher, rows, the
teacher's file of scores, and five steps of PyTorch, in float64, with

    (1 - a) cross entropy + a T^2 sum q log(q / p)

over the k likeliest words of the teacher and one more class for all others. Every step has all rows.

    pip install torch transformers safetensors        # versions: see expected.json
    python make_distillation.py                       # after make_preferences.py
"""
import json
import os

import safetensors
import safetensors.torch
import torch
import transformers
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

ROOT = os.path.dirname(os.path.abspath(__file__))
HERE = os.path.join(ROOT, "distillation")
TEACHER = os.path.join(ROOT, "preference/model")
STEPS, RATE, LENGTH = 5, 3e-3, 48
# name: k, temperature, weight of the divergence
CASES = {"given": (8, 2.0, 0.5), "few": (2, 1.5, 1.0), "whole": (400, 1.0, 0.7)}
ROWS = [
    {"prompt": "Say a colour:", "completion": " red"},
    {"prompt": "Two and two is", "completion": " four, I think"},
    {"prompt": "Greet me.", "completion": "\nGood day"},
    {"prompt": "What is the capital of France?\n", "completion": "Paris"},
]


def read_rows():
    """Of each row the ids, and where its labels begin."""
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=os.path.join(TEACHER, "tokenizer.json"),
                                        eos_token="</s>")
    rows = []
    for row in ROWS:
        prompt = tokenizer(row["prompt"])["input_ids"]
        answer = tokenizer(row["completion"])["input_ids"]
        ids = prompt + answer + [tokenizer.eos_token_id]
        assert tokenizer(row["prompt"] + row["completion"])["input_ids"] == prompt + answer
        assert len(ids) <= LENGTH
        rows.append((torch.tensor(ids), len(prompt)))
    return rows


def logits_of(model, rows):
    """Of all labels, one row of logits behind the other."""
    return torch.cat([model(ids[None]).logits[0, first - 1:-1] for ids, first in rows])


def make_scores(teacher, rows, k, temperature):
    with torch.no_grad():
        scaled = torch.log_softmax(logits_of(teacher, rows) / temperature, -1)
        plain = torch.log_softmax(logits_of(teacher, rows), -1)
    labels = torch.cat([ids[first:] for ids, first in rows])
    top = torch.topk(scaled, k, -1)
    counts = [len(ids) - first for ids, first in rows]
    return {"offsets": torch.tensor([0] + counts).cumsum(0),
            "ids": labels.int(),
            "logprobs": plain.gather(1, labels[:, None])[:, 0].float(),
            "top_ids": top.indices.int(),
            "top_logprobs": top.values.float(),
            "temperature": torch.tensor([temperature])}


def divergence(logits, scores, temperature):
    words = scores["top_ids"].long()
    log_q, log_p = scores["top_logprobs"].double(), torch.log_softmax(logits / temperature, -1)
    q = log_q.exp()
    loss = (q * (log_q - log_p.gather(1, words))).sum(-1)
    if words.shape[1] < logits.shape[1]:
        rest = (1 - q.sum(-1)).clamp(min=0)
        others = log_p.scatter(1, words, -torch.inf).logsumexp(-1)
        loss = loss + torch.xlogy(rest, rest) - rest * others
    return temperature ** 2 * loss


def train(rows, scores, temperature, weight):
    student = LlamaForCausalLM.from_pretrained(TEACHER, dtype=torch.float64)
    student.load_state_dict(safetensors.torch.load_file(os.path.join(HERE, "student.safetensors")))
    student.double()
    labels = scores["ids"].long()
    optimizer = torch.optim.AdamW(student.parameters(), lr=RATE, weight_decay=0.0)
    steps = []
    for _ in range(STEPS):
        logits = logits_of(student, rows)
        entropy = torch.nn.functional.cross_entropy(logits, labels, reduction="none")
        loss = ((1 - weight) * entropy + weight * divergence(logits, scores, temperature)).mean()
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(student.parameters(), 1.0)
        optimizer.step()
        steps.append({"loss": loss.item(), "grad_norm": norm.item()})
    return steps


def main():
    os.makedirs(HERE, exist_ok=True)
    torch.set_num_threads(1)
    torch.manual_seed(11)
    student = LlamaForCausalLM(LlamaConfig.from_pretrained(TEACHER)).float()
    save_file({n: p.detach().contiguous() for n, p in student.named_parameters()},
              os.path.join(HERE, "student.safetensors"), metadata={"format": "pt"})
    with open(os.path.join(HERE, "rows.jsonl"), "w") as f:
        f.writelines(json.dumps(r) + "\n" for r in ROWS)
    rows = read_rows()
    teacher = LlamaForCausalLM.from_pretrained(TEACHER, dtype=torch.float64)
    out = {"versions": {m.__name__: m.__version__ for m in (torch, transformers, safetensors)},
           "learning_rate": RATE, "seq_length": LENGTH, "cases": {}}
    for name, (k, temperature, weight) in CASES.items():
        scores = make_scores(teacher, rows, k, temperature)
        if name == "given":
            save_file(scores, os.path.join(HERE, "scores.safetensors"))
        out["labels"] = len(scores["ids"])
        out["cases"][name] = {"top_k": k, "temperature": temperature, "weight": weight,
                              "steps": train(rows, scores, temperature, weight)}
    with open(os.path.join(HERE, "expected.json"), "w") as f:
        json.dump(out, f, indent=1)
        f.write("\n")
    with open(os.path.join(HERE, "steps.txt"), "w") as f:  # for scripts: case, step, key, value
        f.write(f"given 0 labels {out['labels']}\n")
        for case, result in out["cases"].items():
            for i, step in enumerate(result["steps"]):
                f.writelines(f"{case} {i + 1} {k} {v:.12g}\n" for k, v in step.items())


if __name__ == "__main__":
    main()
