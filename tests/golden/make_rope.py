#!/usr/bin/env python3
"""Writes rope.json: angles and attention factors of transformers' rotary positions.

    pip install torch transformers
    python make_rope.py

A case has a config.json and, for some lengths of a sequence, what the model's own rotary embedding
holds after a forward call for that many positions: inv_freq and attention_scaling.

"generations" are greedy continuations, by transformers' own generate, of prompts that become longer
than the length from which on the angles are others, with models of families/. Each has another
continuation where a program handles the cached keys the other way: where Phi-3's are kept, or those
of the kind dynamic are made anew (tests/model/test_rope.c).
"""
import json
import os
import sys

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
from transformers.models.phi3.modeling_phi3 import Phi3RotaryEmbedding
from transformers.models.gpt_neox.modeling_gpt_neox import GPTNeoXRotaryEmbedding

HERE = os.path.dirname(os.path.abspath(__file__))
EMBEDDINGS = {"llama": LlamaRotaryEmbedding, "phi3": Phi3RotaryEmbedding,
              "gpt_neox": GPTNeoXRotaryEmbedding}
BASE = dict(hidden_size=64, num_attention_heads=4, max_position_embeddings=256)
LONG = dict(short_factor=[1.0, 1.1, 1.2, 1.35, 1.5, 1.5, 2.0, 2.25],
            long_factor=[1.0, 1.5, 2.0, 3.0, 4.5, 6.0, 9.5, 16.0])
SHORT_HEAD = {k: v[:6] for k, v in LONG.items()}


def rope(kind, **more):
    return dict(rope_parameters=dict(rope_type=kind, **more))


CASES = [
    ("default", "llama", {}),
    ("default theta", "llama", dict(rope_theta=500000.0)),
    ("linear", "llama", rope("linear", factor=4.0, rope_theta=20000.0)),
    ("dynamic", "llama", rope("dynamic", factor=3.0)),
    ("dynamic, older", "llama", dict(rope_scaling=dict(type="dynamic", factor=2.0),
                                     rope_theta=30000.0)),
    ("llama3", "llama", rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                             original_max_position_embeddings=64, rope_theta=500000.0)),
    ("yarn", "llama", rope("yarn", factor=4.0, original_max_position_embeddings=64)),
    ("yarn, betas", "llama", rope("yarn", factor=16.0, original_max_position_embeddings=128,
                                  beta_fast=24.0, beta_slow=2.0, truncate=False)),
    ("yarn, mscale", "llama", rope("yarn", factor=40.0, original_max_position_embeddings=32,
                                   mscale=0.7, mscale_all_dim=1.3)),
    ("yarn, attention_factor", "llama", rope("yarn", factor=2.0, attention_factor=1.75,
                                             original_max_position_embeddings=128)),
    ("yarn, no factor", "llama", rope("yarn", factor=None, original_max_position_embeddings=50)),
    ("longrope", "llama", rope("longrope", original_max_position_embeddings=64, **LONG)),
    ("longrope, factor", "llama", rope("longrope", factor=12.0,
                                       original_max_position_embeddings=100, **LONG)),
    ("longrope, top", "llama", dict(original_max_position_embeddings=32,
                                    **rope("longrope", attention_factor=1.5,
                                             original_max_position_embeddings=99, **LONG))),
    ("proportional", "llama", rope("proportional", rope_theta=30000.0, factor=2.0)),
    ("proportional, part", "llama", rope("proportional", rope_theta=1000000.0,
                                         partial_rotary_factor=0.45)),
    ("phi3", "phi3", {}),
    ("phi3, su", "phi3", dict(original_max_position_embeddings=64,
                              rope_scaling=dict(type="su", original_max_position_embeddings=64,
                                                **LONG))),
    ("phi3, yarn", "phi3", dict(original_max_position_embeddings=100,
                                rope_scaling=dict(type="yarn", **LONG))),
    ("phi3, part", "phi3", dict(original_max_position_embeddings=64, partial_rotary_factor=0.75,
                                rope_scaling=dict(type="longrope", **SHORT_HEAD))),
    ("gpt_neox", "gpt_neox", {}),
    ("gpt_neox, part", "gpt_neox", dict(rotary_pct=0.5, rotary_emb_base=5000)),
    ("gpt_neox, yarn", "gpt_neox", rope("yarn", factor=4.0, original_max_position_embeddings=64,
                                        partial_rotary_factor=0.75)),
]
LENGTHS = [1, 64, 65, 256, 257, 700]


PROMPT, NEW = 30, 10


def by_generate(model, ids):
    out = model.generate(ids, max_new_tokens=NEW, min_new_tokens=NEW, do_sample=False,
                         attention_mask=torch.ones_like(ids), eos_token_id=None,
                         output_logits=True, return_dict_in_generate=True)
    tops = [logits[0].topk(2).values for logits in out.logits]
    return out.sequences[0, PROMPT:].tolist(), min(float(t[0] - t[1]) for t in tops)


def the_other_way(model, ids, keep):
    """Cached keys are kept, or nothing is cached."""
    new, cache = ids, None
    for _ in range(NEW):
        out = model(new if keep else ids, past_key_values=cache, use_cache=keep)
        new = out.logits[:, -1:].argmax(-1)
        cache, ids = out.past_key_values, torch.cat((ids, new), dim=1)
    return ids[0, PROMPT:].tolist()


def generation(name, keep):
    model = AutoModelForCausalLM.from_pretrained(os.path.join(HERE, "families", "models", name),
                                                 dtype=torch.float32).eval()
    draw = torch.Generator().manual_seed(22)
    for _ in range(2000):
        ids = torch.randint(3, model.config.vocab_size, (1, PROMPT), generator=draw)
        fresh = AutoModelForCausalLM.from_config(model.config).eval()  # remembers no length
        fresh.load_state_dict(model.state_dict())
        with torch.no_grad():
            new, margin = by_generate(fresh, ids)
            if margin > 0.01 and new != the_other_way(fresh, ids, keep):
                return {"name": name, "prompt": ids[0].tolist(), "new": new,
                        "least_margin": margin}
    raise AssertionError(name)


def main():
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    made = []
    for name, model_type, keys in CASES:
        written = {"model_type": model_type, **BASE, **keys}
        config = AutoConfig.for_model(**json.loads(json.dumps(written)))
        results = []
        for length in LENGTHS:
            embedding = EMBEDDINGS[model_type](config)  # anew: transformers remembers lengths
            embedding(torch.zeros(1, 1), torch.arange(length)[None])
            inv_freq, factor = embedding.inv_freq, embedding.attention_scaling
            results.append({"length": length, "inv_freq": [float(f) for f in inv_freq],
                            "attention_factor": float(factor)})
        kept = [r for i, r in enumerate(results)
                if i == 0 or r["inv_freq"] != results[i - 1]["inv_freq"]
                or i == len(results) - 1]
        made.append({"name": name, "config": written, "results": kept})
    with open(os.path.join(HERE, "rope.json"), "w") as file:
        file.write('{"versions": %s,\n"cases": [\n' % json.dumps(
            {"python": sys.version.split()[0], "torch": torch.__version__,
             "transformers": transformers.__version__}))
        file.write(",\n".join(json.dumps(case, separators=(",", ":")) for case in made))
        file.write('\n],\n"generations": [\n')
        file.write(",\n".join(json.dumps(generation(name, keep), separators=(",", ":")) for
                              name, keep in (("phi3-longrope", True), ("llama-dynamic", False))))
        file.write("\n]}\n")


if __name__ == "__main__":
    main()
