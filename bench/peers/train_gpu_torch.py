#!/usr/bin/env python3
"""Training steps of PyTorch on one GPU, of the shape that a config.json of a GPT-2 or a Llama says:
bf16 by autocast over fp32 weights, scaled_dot_product_attention, fused AdamW, clipping at 1. Needs
torch alone. Random weights and ids; the first two steps do not count. After --seconds, import of
torch included, it ends and prints what was measured until then; with 1 if that is no step. Where
the memory is too small, half of the sequences are taken, which it says."""
import argparse
import gc
import json
import os
import resource
import sys
import threading
import time

BEGUN = time.perf_counter()

import torch  # pylint: disable=wrong-import-position
from torch import nn  # pylint: disable=wrong-import-position
from torch.nn import functional as F  # pylint: disable=wrong-import-position

WARM = 2  # steps that do not count, as sifr's do not


def turn(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.llama = c["model_type"] == "llama"
        width = c["hidden_size"] if self.llama else c["n_embd"]
        self.heads = c["num_attention_heads"] if self.llama else c["n_head"]
        self.kv_heads = c["num_key_value_heads"] if self.llama else self.heads
        self.each = width // self.heads
        mlp = c["intermediate_size"] if self.llama else 4 * width
        bias = not self.llama
        norm = nn.RMSNorm if self.llama else nn.LayerNorm
        self.norm1, self.norm2 = norm(width, eps=1e-5), norm(width, eps=1e-5)
        self.qkv = nn.Linear(width, (self.heads + 2 * self.kv_heads) * self.each, bias=bias)
        self.out = nn.Linear(width, width, bias=bias)
        self.up = nn.Linear(width, mlp * (2 if self.llama else 1), bias=bias)
        self.down = nn.Linear(mlp, width, bias=bias)

    def attend(self, x, cos, sin):
        batch, length, width = x.shape
        heads, kv = self.heads, self.kv_heads
        qkv = self.qkv(x).view(batch, length, heads + 2 * kv, self.each).transpose(1, 2)
        q, k, v = qkv.split((heads, kv, kv), 1)
        if self.llama:
            cos, sin = cos.to(v.dtype), sin.to(v.dtype)
            q, k = turn(q, cos, sin), turn(k, cos, sin)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=kv != heads)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))

    def forward(self, x, cos, sin):
        x = x + self.attend(self.norm1(x), cos, sin)
        h = self.up(self.norm2(x))
        if self.llama:
            gate, h = h.chunk(2, -1)
            return x + self.down(F.silu(gate) * h)
        return x + self.down(F.gelu(h, approximate="tanh"))


class Model(nn.Module):
    def __init__(self, c, length):
        super().__init__()
        llama = c["model_type"] == "llama"
        width = c["hidden_size"] if llama else c["n_embd"]
        layers = c["num_hidden_layers"] if llama else c["n_layer"]
        self.words = nn.Embedding(c["vocab_size"], width)
        self.places = None if llama else nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(c) for _ in range(layers))
        self.norm = (nn.RMSNorm if llama else nn.LayerNorm)(width, eps=1e-5)
        self.head = nn.Linear(width, c["vocab_size"], bias=False)
        nn.init.normal_(self.words.weight, std=0.02)
        if not llama or c.get("tie_word_embeddings"):
            self.head.weight = self.words.weight
        each = self.blocks[0].each
        angles = torch.outer(torch.arange(length), 1e4 ** (-torch.arange(0, each, 2) / each))
        self.register_buffer("cos", angles.cos().repeat(1, 2))
        self.register_buffer("sin", angles.sin().repeat(1, 2))

    def forward(self, ids):
        x = self.words(ids)
        if self.places is not None:
            x = x + self.places.weight
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        labels = F.pad(ids[:, 1:], (0, 1), value=-100)  # of the last place none: no copy of logits
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1).float(), labels.flatten())


class Run:
    """What was measured, printed once: by the end of all steps or by that of the time."""

    def __init__(self, a):
        self.a, self.seconds, self.loss, self.lock = a, [], None, threading.Lock()

    def add(self, seconds, loss):
        with self.lock:
            self.seconds.append(seconds)
            self.loss = loss

    def halve(self):
        with self.lock:
            self.a.sequences //= 2
            self.seconds.clear()

    def end(self, late):
        a, took = self.a, self.seconds[WARM:]
        self.lock.acquire()  # and keep it: nothing is added or printed after that
        if late:
            print(f"no more steps within {a.seconds:g} s")
        if self.loss is not None:
            print(f"torch {torch.__version__}, loss {self.loss:.3f}")
        print(f"steps {len(took)} of {a.steps - WARM}, {a.sequences} x {a.length} tokens")
        if took:
            print(f"tokens_per_second {len(took) * a.sequences * a.length / sum(took):.1f}")
            print(f"peak_memory_gb {peak_bytes(a.device) / 1e9:.2f}")
        else:
            print(f"no step was measured within {a.seconds:g} s", file=sys.stderr)
        sys.stdout.flush()
        os._exit(0 if took else 1)  # without waiting for a step that is not over


def peak_bytes(device):
    """Of the GPU's memory what tensors took at most; on a CPU, of the process."""
    if device == "cuda":
        return torch.cuda.max_memory_allocated()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def watch(run):
    """From another thread: a step, or a compiler, may take longer than the time that is left."""
    left = max(run.a.seconds - (time.perf_counter() - BEGUN), 0)
    timer = threading.Timer(left, run.end, (True,))
    timer.daemon = True
    timer.start()


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", required=True)
    parser.add_argument("--sequences", type=int, default=8)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--seconds", type=float, help="ends after so many")
    parser.add_argument("--way", choices=("eager", "compile"), default="eager")
    parser.add_argument("--device", default="cuda")
    a = parser.parse_args()
    if a.steps <= WARM:
        parser.error(f"--steps {a.steps}: the first {WARM} do not count; take more")
    return a


def train(a, run):
    with open(a.config, encoding="utf-8") as f:
        config = json.load(f)
    torch.manual_seed(1)
    with torch.device(a.device):
        model = Model(config, a.length)
        ids = torch.randint(config["vocab_size"], (min(a.steps, 16), a.sequences, a.length))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    forward = torch.compile(model) if a.way == "compile" else model
    finish = torch.cuda.synchronize if a.device == "cuda" else lambda: None
    for step in range(a.steps):
        finish()
        begun = time.perf_counter()
        with torch.autocast(a.device, torch.bfloat16):
            loss = forward(ids[step % len(ids)])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        finish()
        took = time.perf_counter() - begun
        run.add(took, float(loss.detach()))


def fits(a, run):
    try:
        train(a, run)
    except torch.OutOfMemoryError:
        if a.sequences < 2:
            raise
        return False
    return True


def main():
    a = options()
    run = Run(a)
    if a.seconds is not None:
        watch(run)
    while not fits(a, run):
        print(f"no memory for {a.sequences} x {a.length} tokens: half of them")
        run.halve()
        gc.collect()
        if a.device == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
    run.end(False)


if __name__ == "__main__":
    main()
