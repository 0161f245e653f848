#!/usr/bin/env python3
"""Does `sifr train` train a model of each family as transformers does, at sizes that no stored result
has?

    python check_training.py SIFR [SEED] [NAME ...]   # SIFR: the program; NAME: a family's model_type

For each family and a seed: a model with sizes drawn from the seed, saved by transformers; a store of
random tokens; ten steps of AdamW on all of it, by `sifr train` on 1, 2 and 4 ranks and by
transformers in float32, by the class that the folder's "architectures" names. Then the folder that
sifr wrote is opened by that class, without missing or unexpected keys. Prints a line for each
family: the largest difference of a loss in ten steps, and of a logit of the trained models. Exit
code 1 where a loss differs by more than 1e-5, a logit by more than 1e-4, or a bit of the weights
between numbers of ranks.

The weights are drawn so that rounding stays small: scores and logits of a few units. Nemotron's
norms start as 1 in their class, which multiplies by 1 + weight: so drawn, transformers' float32 is
2.5e-4 from its own float64 after ten steps (seed 2), and sifr's 6.3e-4. With other seeds OLMo may
differ more, where a value lies at the bound of clip_qkv, behind which its gradient is 0. Layers of
Gemma 4 with shared keys add three normed sums each: large ones make transformers' float32 3e-2 from
its own float64. With Qwen 3.5's usual epsilon of 1e-6 the norm behind linear attention does the same
(seed 1: after nine steps transformers' loss is 6.7e-3 from its own float64, and sifr's 2.5e-3), so
it is 0.2 here. The gradients of the first step are then 6e-7 from the truth, both.
"""
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

import safetensors.torch
import torch
import transformers

import family_configs

STEPS, RATE, DECAY, LOSS_BOUND, LOGIT_BOUND = 10, 1e-3, 0.1, 1e-5, 1e-4
# With Adam's usual 1e-8 a gradient of 1e-8, which is rounding alone, moves its weight by half a rate.
EPSILON = 1e-5
RANKS = (1, 2, 4)


def write_store(path, tokens):
    """Megatron's form, one document of 16-bit ids."""
    with open(path + ".bin", "wb") as f:
        f.write(struct.pack(f"<{len(tokens)}H", *tokens))
    with open(path + ".idx", "wb") as f:
        f.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, 1, 2))
        f.write(struct.pack("<iqqq", len(tokens), 0, 0, 1))


def class_of(c):
    """The class that a folder of this config names: AutoModelForCausalLM does not know them all."""
    if c.model_type == "internlm3":
        return transformers.LlamaForCausalLM
    known = transformers.models.auto.modeling_auto
    for names in (known.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES if hasattr(c, "text_config")
                  else {}, known.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES):
        if c.model_type in names:
            found = names[c.model_type]
            return getattr(transformers, found if isinstance(found, str) else found[0])
    raise KeyError(c.model_type)


def text_parameters(model):
    """Those that sifr trains: without a tower, all."""
    named = dict(model.named_parameters())
    if not hasattr(model.config, "text_config"):
        return named
    return {n: p for n, p in named.items()
            if "language_model." in n or "text_model." in n or n.startswith("lm_head")}


def shuffle(model, r):
    """Weights of which each matters, logits and scores of a few units."""
    g = torch.Generator().manual_seed(r.randrange(1 << 30))
    head = model.get_output_embeddings()
    tied = head is not None and head.weight is model.get_input_embeddings().weight
    unscaled = model.config.model_type.startswith("gemma4")
    shared = getattr(model.config.get_text_config(), "num_kv_shared_layers", 0)
    for name, p in text_parameters(model).items():
        if p.dim() == 1:
            p.data += 0.2 * torch.randn(p.shape, generator=g)
            if model.config.model_type == "nemotron" and name.endswith("norm.weight"):
                p.data -= 1
            if unscaled and name.endswith("q_norm.weight"):
                p.data *= p.shape[0] ** -0.5
            if name.endswith("A_log"):  # states that last
                p.data.normal_(-2, 1, generator=g)
            if shared and "post_" in name:
                p.data *= p.shape[0] ** -0.5
        elif "embed" in name or "wte" in name or "wpe" in name:
            p.data.normal_(0, p.shape[1] ** -0.5 if tied else 0.3, generator=g)
        elif "norm" not in name:
            p.data.normal_(0, p.shape[1] ** -0.5, generator=g)
    for name, b in model.named_buffers():
        if name.endswith("layer_scalar"):
            b += 0.2 * torch.randn(b.shape, generator=g)


def train(model, tokens, windows, length):
    """transformers' losses over all windows, AdamW as DeepSpeed's JSON has it."""
    ids = torch.tensor([tokens[i * length:(i + 1) * length + 1] for i in range(windows)])
    optimizer = torch.optim.AdamW(text_parameters(model).values(), lr=RATE, betas=(0.9, 0.999),
                                  eps=EPSILON, weight_decay=DECAY)
    losses = []
    for _ in range(STEPS):
        logits = model(input_ids=ids[:, :-1], use_cache=False).logits.float()
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, ids[:2, :-1]


def run(sifr, folder, ranks):
    """sifr's losses, or what it said."""
    out = f"{folder}/run{ranks}"
    done = subprocess.run([sifr, "train", "--config", folder + "/ds.json", "--data",
                           folder + "/store", "--model", folder + "/model", "--output", out,
                           "--threads", "1", "--ranks", str(ranks)],
                          capture_output=True, text=True)
    if done.returncode:
        return None, (done.stderr.strip() or done.stdout.strip()).splitlines()[-1]
    lines = [json.loads(line) for line in open(out + "/metrics.jsonl")]
    return [line["loss"] for line in lines if "loss" in line], out


def weights_of(folder):
    with open(folder + "/model.safetensors", "rb") as f:
        return f.read()


def write_case(name, r, folder):
    """Model, store and config; the model as it trains, its class, tokens, windows and length."""
    towers = family_configs.tower(None, random.Random(0))
    c = family_configs.tower(name, r) if name in towers else family_configs.config(name, r)
    kind = class_of(c)
    model = kind._from_config(c, attn_implementation="eager").float().train()
    shuffle(model, r)
    model.tie_weights()
    length, windows = r.randrange(21, 50), r.choice([4, 8])
    model.save_pretrained(folder + "/model")
    if name.startswith("fp8"):
        model = coded(model, None if name == "fp8-tensor" else 16, folder + "/model").train()
    vocabulary = c.get_text_config().vocab_size
    tokens = [r.randrange(3, vocabulary) for _ in range(length * windows + 1)]
    write_store(folder + "/store", tokens)
    json.dump({"train_batch_size": windows, "train_micro_batch_size_per_gpu": 1,
               "gradient_clipping": 0.0,
               "optimizer": {"type": "AdamW", "params": {"lr": RATE, "eps": EPSILON,
                                                         "weight_decay": DECAY}},
               "sifr": {"seq_length": length, "max_steps": STEPS, "logging_steps": 1}},
              open(folder + "/ds.json", "w"))
    return model, kind, tokens, windows, length


def coded(model, block, folder):
    """The folder with its matrices in 8 bits, and the model that transformers reads there."""
    import make_fp8

    tensors = {}
    for name, value in model.state_dict().items():
        tensors[name] = value.to(torch.bfloat16)
        if value.dim() == 2 and "proj" in name:
            tensors[name], scale = make_fp8.code(value, block)
            tensors[name + "_scale_inv"] = scale.float()
    safetensors.torch.save_file(tensors, folder + "/model.safetensors",
                                metadata={"format": "pt"})
    with open(folder + "/config.json") as f:
        config = json.load(f)
    size = None if block is None else [block, block]
    config["dtype"], config["quantization_config"] = "bfloat16", dict(
        activation_scheme="dynamic", fmt="e4m3", modules_to_not_convert=["lm_head"],
        quant_method="fp8", weight_block_size=size)
    with open(folder + "/config.json", "w") as f:
        json.dump(config, f)
    way = transformers.FineGrainedFP8Config(dequantize=True, weight_block_size=size and tuple(size),
                                            modules_to_not_convert=["lm_head"])
    return type(model).from_pretrained(folder, quantization_config=way, dtype=torch.bfloat16,
                                       attn_implementation="eager").float()


def check(sifr, name, seed, folder):
    r = random.Random(f"{seed}/{name}")
    torch.manual_seed(r.randrange(1 << 30))
    model, kind, tokens, windows, length = write_case(name, r, folder)
    for ranks in RANKS:
        losses_of, out = run(sifr, folder, ranks)
        if not losses_of:
            return f"{name}, {ranks} ranks: {out}", False
        if ranks == 1:
            mine, first = losses_of, out
        elif mine != losses_of or weights_of(first) != weights_of(out):
            return f"{name}: {ranks} ranks give other bits than one", False
    losses, ids = train(model, tokens, windows, length)
    apart = max(abs(a - b) for a, b in zip(mine, losses))
    written, said = kind.from_pretrained(first, dtype=torch.float32, attn_implementation="eager",
                                         output_loading_info=True)
    if said["missing_keys"] or said["unexpected_keys"]:
        return f"{name}: {said}", False
    eights = name.startswith("fp8")  # what comes out is in bf16, whose rounding is the bound
    if eights:
        model = model.to(torch.bfloat16).float()
    with torch.no_grad():
        theirs, ours = (m.eval()(input_ids=ids, use_cache=False).logits for m in (model, written))
    logits, largest = (theirs - ours).abs().max().item(), theirs.abs().max().item()
    good = (len(mine) == STEPS and apart <= LOSS_BOUND and
            logits <= (largest / 128 if eights else LOGIT_BOUND))
    return (f"{name:19} {sum(p.numel() for p in text_parameters(model).values()):7} parameters, "
            f"loss {losses[0]:.4f} to {losses[-1]:.4f}: apart {apart:.1e}; logits apart "
            f"{logits:.1e} of {largest:.1f}{'' if good else '  WRONG'}"), good


def main():
    sifr, seed, names = sys.argv[1], (sys.argv[2:] or ["1"])[0], sys.argv[3:]
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    good, some = True, random.Random(0)
    for name in names or family_configs.config(None, some) + family_configs.tower(None, some):
        with tempfile.TemporaryDirectory() as folder:
            line, fine = check(os.path.abspath(sifr), name, seed, folder)
        print(line, flush=True)
        good &= fine
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
