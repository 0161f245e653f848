#!/usr/bin/env python3
"""Does `sifr train` train a model of each family as transformers does, at sizes that no stored result
has?

    python check_training.py SIFR [SEED] [NAME ...]   # SIFR: the program; NAME: a family's model_type

For each family and a seed: a model with sizes drawn from the seed, saved by transformers; a store of
random tokens; ten steps of AdamW on all of it, by `sifr train` on one rank and by transformers in
float32. Then the folder that sifr wrote is opened by transformers. Prints a line for each family:
the largest difference of a loss in ten steps, and of a logit of the trained models. Exit code 1
where a loss differs by more than 2e-4 or a logit by more than 2e-3.
"""
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

import torch
import transformers
from transformers import AutoModelForCausalLM

STEPS, RATE, DECAY, LOSS_BOUND, LOGIT_BOUND = 10, 1e-3, 0.1, 2e-4, 2e-3


def layer_types(r, layers):
    return [r.choice(["sliding_attention", "full_attention"]) for _ in range(layers)]


def config(name, r):
    """A config of the family with sizes of its own."""
    t = transformers
    kv, groups, head = r.choice([1, 2, 3]), r.choice([1, 2, 3]), r.choice([6, 8, 10, 12, 16])
    heads, layers = kv * groups, r.choice([2, 3, 4])
    c = dict(vocab_size=r.randrange(60, 140), hidden_size=heads * head,
             intermediate_size=r.randrange(17, 70), num_hidden_layers=layers,
             num_attention_heads=heads, num_key_value_heads=kv, max_position_embeddings=128,
             bos_token_id=1, eos_token_id=2, pad_token_id=None,
             tie_word_embeddings=r.random() < 0.5)
    own = dict(c, hidden_size=heads * r.choice([7, 9, 11, 13]), head_dim=head)
    window = dict(sliding_window=r.randrange(3, 20))
    mixed = dict(window, layer_types=layer_types(r, layers))
    rope = dict(rope_type="default", rope_theta=r.choice([500.0, 1e4, 1e6]))
    part = dict(rope, partial_rotary_factor=0.5)
    ordinary = {k: v for k, v in c.items() if k != "num_key_value_heads"}
    makers = {
        "gpt2": lambda: t.GPT2Config(vocab_size=c["vocab_size"], n_positions=128,
                                     n_embd=c["hidden_size"], n_layer=layers, n_head=heads,
                                     resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0),
        "llama": lambda: t.LlamaConfig(**own, rope_parameters=rope),
        "mistral": lambda: t.MistralConfig(**own, **window, rope_parameters=rope),
        "ministral": lambda: t.MinistralConfig(**own, **mixed, rope_parameters=rope),
        "qwen2": lambda: t.Qwen2Config(**c, **mixed, use_sliding_window=True,
                                       rope_parameters=rope),
        "qwen3": lambda: t.Qwen3Config(**own, **mixed, use_sliding_window=True,
                                       rope_parameters=rope),
        "phi3": lambda: t.Phi3Config(**dict(c, hidden_size=heads * 16, pad_token_id=0), **window,
                                     rope_parameters=part),
        "smollm3": lambda: t.SmolLM3Config(
            **dict(c, pad_token_id=0), rope_parameters=rope,
            no_rope_layers=[r.randrange(2) for _ in range(layers)]),
        "starcoder2": lambda: t.Starcoder2Config(**c, **window, rope_parameters=rope,
                                                 residual_dropout=0.0, embedding_dropout=0.0),
        "gpt_neox": lambda: t.GPTNeoXConfig(
            **dict(ordinary, hidden_size=heads * 16), hidden_dropout=0.0, attention_dropout=0.0,
            use_parallel_residual=r.random() < 0.5,
            rope_parameters=dict(rope, partial_rotary_factor=0.25)),
        "gemma": lambda: t.GemmaConfig(**dict(own, pad_token_id=0), rope_parameters=rope),
        "gemma2": lambda: t.Gemma2Config(**dict(own, pad_token_id=0), **mixed,
                                         query_pre_attn_scalar=r.choice([3, 7, 20]),
                                         attn_logit_softcapping=r.choice([0.5, 2.0]),
                                         final_logit_softcapping=r.choice([1.0, 3.0]),
                                         rope_parameters=rope),
        "gemma3_text": lambda: t.Gemma3TextConfig(
            **dict(own, pad_token_id=0), **mixed,
            query_pre_attn_scalar=r.choice([3, 7, 20]),
            rope_parameters=dict(full_attention=rope,
                                 sliding_attention=dict(rope, rope_theta=300.0))),
        "olmo2": lambda: t.Olmo2Config(**c, rope_parameters=rope),
        "olmo3": lambda: t.Olmo3Config(**c, **mixed, rope_parameters=dict(
            full_attention=rope, sliding_attention=dict(rope, rope_theta=700.0))),
        "granite": lambda: t.GraniteConfig(**c, embedding_multiplier=r.choice([3.0, 12.0]),
                                           attention_multiplier=r.choice([0.05, 0.5]),
                                           residual_multiplier=r.choice([0.3, 2.0]),
                                           logits_scaling=r.choice([0.5, 4.0]),
                                           rope_parameters=rope),
        "glm4": lambda: t.Glm4Config(**dict(own, head_dim=16), rope_parameters=part),
        "arcee": lambda: t.ArceeConfig(**c, rope_parameters=rope, mlp_bias=r.random() < 0.5,
                                       attention_bias=r.random() < 0.5),
        "seed_oss": lambda: t.SeedOssConfig(**own, rope_parameters=rope, attention_dropout=0.0,
                                            residual_dropout=0.0),
        "exaone4": lambda: t.Exaone4Config(**own, **mixed, rope_parameters=rope),
        "cohere": lambda: t.CohereConfig(**dict(c, pad_token_id=0), rope_parameters=rope,
                                         use_qk_norm=r.random() < 0.5,
                                         logit_scale=r.choice([0.1, 0.6])),
        "cohere2": lambda: t.Cohere2Config(**dict(c, pad_token_id=0), **mixed,
                                           rope_parameters=rope, logit_scale=0.4),
        "ernie4_5": lambda: t.Ernie4_5Config(**own, rope_parameters=rope,
                                             use_bias=r.random() < 0.5),
        "hunyuan_v1_dense": lambda: t.HunYuanDenseV1Config(**own, rope_parameters=dict(
            rope_type="dynamic", rope_theta=1e4, alpha=r.choice([20.0, 1000.0]), factor=1.0)),
        "helium": lambda: t.HeliumConfig(**dict(c, pad_token_id=3), head_dim=head,
                                         rope_parameters=rope),
        "internlm3": lambda: t.InternLM3Config(**c, head_dim=head, rope_parameters=rope,
                                               attention_bias=True, mlp_bias=True),
        "cwm": lambda: t.CwmConfig(**c, **mixed, head_dim=head, rope_parameters=rope),
        "phi": lambda: t.PhiConfig(**dict(c, hidden_size=heads * 16), rope_parameters=part,
                                   qk_layernorm=r.random() < 0.5),
        "stablelm": lambda: t.StableLmConfig(**dict(c, hidden_size=heads * 16),
                                             rope_parameters=part, use_qkv_bias=True,
                                             use_parallel_residual=r.random() < 0.5),
        "glm": lambda: t.GlmConfig(**dict(own, head_dim=16), rope_parameters=part),
        "vaultgemma": lambda: t.VaultGemmaConfig(**dict(c, pad_token_id=0), **mixed,
                                                 head_dim=head,
                                                 query_pre_attn_scalar=r.choice([3, 7, 20]),
                                                 rope_parameters=rope),
        "nemotron": lambda: t.NemotronConfig(**dict(own, head_dim=16), rope_parameters=part),
        "olmo": lambda: t.OlmoConfig(**dict(c, pad_token_id=1), rope_parameters=rope,
                                     clip_qkv=r.choice([0.7, 1.5])),
    }
    return makers[name]() if name else list(makers)


def write_store(path, tokens):
    """Megatron's form, one document of 16-bit ids."""
    with open(path + ".bin", "wb") as f:
        f.write(struct.pack(f"<{len(tokens)}H", *tokens))
    with open(path + ".idx", "wb") as f:
        f.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, 1, 2))
        f.write(struct.pack("<iqqq", len(tokens), 0, 0, 1))


def shuffle_norms(model, r):
    """Weights of which each matters."""
    g = torch.Generator().manual_seed(r.randrange(1 << 30))
    for name, p in model.named_parameters():
        if p.dim() == 1:
            p.data += 0.2 * torch.randn(p.shape, generator=g)
        elif "embed" in name or "wte" in name or "wpe" in name:
            p.data.normal_(0, 0.3, generator=g)
        else:
            p.data.normal_(0, p.shape[1] ** -0.5, generator=g)


def train(model, tokens, windows, length):
    """transformers' losses over all windows, AdamW as DeepSpeed's JSON has it."""
    ids = torch.tensor([tokens[i * length:(i + 1) * length + 1] for i in range(windows)])
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.999), eps=1e-8,
                                  weight_decay=DECAY)
    losses = []
    for _ in range(STEPS):
        logits = model(ids[:, :-1]).logits.float()
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, ids[:2, :-1]


def check(sifr, name, seed, folder):
    r = random.Random(f"{seed}/{name}")
    torch.manual_seed(r.randrange(1 << 30))
    c = config(name, r)
    model = AutoModelForCausalLM.from_config(c, attn_implementation="eager").float().train()
    shuffle_norms(model, r)
    length, windows = r.randrange(21, 50), r.choice([2, 4, 6])
    model.save_pretrained(folder + "/model")
    tokens = [r.randrange(3, c.vocab_size) for _ in range(length * windows + 1)]
    write_store(folder + "/store", tokens)
    json.dump({"train_batch_size": windows, "train_micro_batch_size_per_gpu": 2,
               "gradient_clipping": 0.0,
               "optimizer": {"type": "AdamW", "params": {"lr": RATE, "weight_decay": DECAY}},
               "sifr": {"seq_length": length, "max_steps": STEPS, "logging_steps": 1}},
              open(folder + "/ds.json", "w"))
    run = subprocess.run([sifr, "train", "--config", folder + "/ds.json", "--data",
                          folder + "/store", "--model", folder + "/model", "--output",
                          folder + "/run"], capture_output=True, text=True)
    if run.returncode:
        return f"{name}: {run.stderr.strip().splitlines()[-1]}", False
    mine = [json.loads(line)["loss"] for line in open(folder + "/run/metrics.jsonl")
            if "loss" in json.loads(line)]
    losses, ids = train(model, tokens, windows, length)
    apart = max(abs(a - b) for a, b in zip(mine, losses))
    written = AutoModelForCausalLM.from_pretrained(folder + "/run", attn_implementation="eager")
    with torch.no_grad():
        logits = (written.float().eval()(ids).logits - model.eval()(ids).logits).abs().max().item()
    good = len(mine) == STEPS and apart <= LOSS_BOUND and logits <= LOGIT_BOUND
    return (f"{name:12} {sum(p.numel() for p in model.parameters()):7} parameters, loss "
            f"{losses[0]:.4f} to {losses[-1]:.4f}: apart {apart:.1e}; logits apart {logits:.1e}"
            f"{'' if good else '  WRONG'}"), good


def main():
    sifr, seed, names = sys.argv[1], (sys.argv[2:] or ["1"])[0], sys.argv[3:]
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    good = True
    for name in names or config(None, random.Random(0)):
        with tempfile.TemporaryDirectory() as folder:
            line, fine = check(os.path.abspath(sifr), name, seed, folder)
        print(line, flush=True)
        good &= fine
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
