#!/usr/bin/env python3
"""Writes models/, results/ and models.json: small random models as Hugging Face folders, and what
PyTorch and transformers compute with them. README.md says what each file holds, and how the bounds
in it are derived.

    pip install torch transformers        # versions: see models.json
    python make_models.py

Everything is a function of the seeds below. The truth is computed in float64 throughout; the two
places where transformers' Llama falls back to float32 whatever the model's type (RMS norm and the
angles of the rotary embedding) are replaced by the same formula in float64, and the result is
checked against transformers' own float32 run and against finite differences.
"""
import hashlib
import json
import math
import os
import shutil
import sys

import tokenizers
import torch
import transformers
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, GPT2Config, LlamaConfig
from transformers.models.llama import modeling_llama

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS, RESULTS = os.path.join(HERE, "models"), os.path.join(HERE, "results")

SEQUENCES, LENGTH, MICRO_BATCHES, STEPS = 2, 48, 2, 10
LOGIT_STRIDE = 7  # every 7th token's logits are stored
VOCABULARY = 320
BETA1, BETA2, EPSILON, WEIGHT_DECAY, CLIPPING = 0.9, 0.999, 1e-8, 0.1, 1.0
EVAL_WINDOW, EVAL_TOKENS = 32, 300  # 300 ids: 9 windows, and a rest that fills none
PROMPT, NEW_TOKENS = 8, 20
NOISE_BATCHES = 8

WARMUP = {"type": "WarmupLR", "params": {"warmup_min_lr": 2e-4, "warmup_max_lr": 2e-3,
                                         "warmup_num_steps": 4, "warmup_type": "linear"}}
COSINE = {"type": "WarmupCosineLR", "params": {"total_num_steps": 10, "warmup_min_ratio": 0.1,
                                               "warmup_num_steps": 3, "cos_min_ratio": 0.1,
                                               "warmup_type": "linear"}}
BASE_LR = 2e-3

GPT2 = dict(vocab_size=VOCABULARY, n_positions=64, n_embd=64, n_layer=2, n_head=4,
            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0)
LLAMA = dict(vocab_size=VOCABULARY, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
             num_attention_heads=4, max_position_embeddings=256, bos_token_id=0, eos_token_id=0)

# edit: applied to the written config.json, for spellings that transformers no longer writes.
CASES = [
    dict(name="gpt2", config=GPT2Config(**GPT2), dtype=torch.float32, schedule=WARMUP,
         masked=False, tokenizer=True),
    dict(name="gpt2-old-names", config=GPT2Config(**GPT2), dtype=torch.float32, same_as="gpt2",
         old_gpt2=True),
    dict(name="gpt2-gelu", dtype=torch.float16, schedule=COSINE, masked=True,
         config=GPT2Config(**{**GPT2, "n_layer": 3}, n_inner=96, activation_function="gelu")),
    dict(name="llama2", dtype=torch.float32, schedule=COSINE, masked=False, shards=3,
         inv_freq=True,
         config=LlamaConfig(**{**LLAMA, "intermediate_size": 160}, tie_word_embeddings=False)),
    dict(name="llama3", dtype=torch.bfloat16, schedule=WARMUP, masked=True, tokenizer=True,
         config=LlamaConfig(**LLAMA, num_key_value_heads=2, tie_word_embeddings=True,
                            rms_norm_eps=1e-5,
                            rope_parameters=dict(rope_type="llama3", rope_theta=500000.0,
                                                 factor=8.0, low_freq_factor=1.0,
                                                 high_freq_factor=4.0,
                                                 original_max_position_embeddings=64)),
         edit="old rope keys"),
    dict(name="llama-bias", dtype=torch.float32, schedule=WARMUP, masked=True,
         config=LlamaConfig(**LLAMA, num_key_value_heads=2, attention_bias=True, mlp_bias=True,
                            tie_word_embeddings=False)),
    dict(name="llama-linear", dtype=torch.float32, schedule=COSINE, masked=False,
         config=LlamaConfig(**LLAMA, num_key_value_heads=1, head_dim=24,
                            tie_word_embeddings=False,
                            rope_parameters=dict(rope_type="linear", rope_theta=10000.0,
                                                 factor=4.0))),
]


def seed_of(name, what):
    return int.from_bytes(hashlib.sha256(f"{name}/{what}".encode()).digest()[:6], "little")


def generator(name, what):
    return torch.Generator().manual_seed(seed_of(name, what))


# --- float64 all the way -------------------------------------------------------------------------

RMS_FORWARD = modeling_llama.LlamaRMSNorm.forward
ROPE_FORWARD = modeling_llama.LlamaRotaryEmbedding.forward


def rms_forward_float64(self, x):
    return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon))


def frequencies_float64(config):
    """inv_freq of modeling_rope_utils, evaluated in float64."""
    rope, dim = config.rope_parameters, config.head_dim
    f = rope["rope_theta"] ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    if rope["rope_type"] == "linear":
        return f / rope["factor"]
    if rope["rope_type"] == "llama3":
        low, high = rope["low_freq_factor"], rope["high_freq_factor"]
        turns = rope["original_max_position_embeddings"] * f / (2 * math.pi)
        s = ((turns - low) / (high - low)).clamp(0, 1)
        return (1 - s) * f / rope["factor"] + s * f
    assert rope["rope_type"] == "default"
    return f


def rope_forward_float64(self, x, position_ids):
    angles = position_ids[..., None].double() * frequencies_float64(self.config)
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos(), angles.sin()


def use_float64(on):
    modeling_llama.LlamaRMSNorm.forward = rms_forward_float64 if on else RMS_FORWARD
    modeling_llama.LlamaRotaryEmbedding.forward = rope_forward_float64 if on else ROPE_FORWARD


# --- models and data -----------------------------------------------------------------------------


def randomise(model, name):
    """Weights of which each matters: norms away from one, biases away from zero."""
    g = generator(name, "weights")
    for key, p in model.named_parameters():
        draw = torch.randn(p.shape, generator=g, dtype=torch.float64)
        leaf = key.split(".")[-2]
        if "norm" in leaf or leaf.startswith("ln_"):
            value = (1 if key.endswith("weight") else 0) + 0.2 * draw
        elif key.endswith("bias"):
            value = 0.1 * draw
        elif leaf in ("wte", "embed_tokens", "lm_head"):
            value = 0.15 * draw
        elif leaf == "wpe":
            value = 0.05 * draw
        else:
            fan_in = p.shape[0] if leaf.startswith("c_") else p.shape[1]
            value = draw / math.sqrt(fan_in)
        p.data.copy_(value)


def cast(model, dtype):
    """Parameters alone: model.to() would round the angles of the rotary embedding too, which
    from_pretrained leaves in float32."""
    for p in model.parameters():
        p.data = p.data.to(dtype)
    return model


def build(case, dtype):
    """The case's model; weights are rounded to the type of its files first."""
    model = AutoModelForCausalLM.from_config(case["config"], attn_implementation="sdpa")
    randomise(model.float(), case.get("same_as", case["name"]))
    return cast(cast(model, case["dtype"]), dtype).eval()


def windows(name, what, count):
    """count sequences of LENGTH + 1 ids with skewed frequencies and repeats, as text has."""
    g = generator(name, what)
    rank = torch.arange(1, VOCABULARY + 1, dtype=torch.float64)
    ids = torch.multinomial(1 / rank, count * (LENGTH + 1), replacement=True, generator=g)
    order = torch.randperm(VOCABULARY, generator=generator(name, "order"))
    return order[ids].view(count, LENGTH + 1)


def batch(case, what, count):
    ids = windows(case["name"], what, count)
    tokens, labels = ids[:, :-1].clone(), ids[:, 1:].clone()
    if case["masked"]:  # scattered gaps, and an uneven number of labels in each sequence
        g = generator(case["name"], what + "/mask")
        labels[torch.rand(labels.shape, generator=g) < 0.25] = -100
        for row in range(1, count, 2):
            labels[row, : 5 + 11 * (row % 4)] = -100
    return tokens, labels


# --- computing -----------------------------------------------------------------------------------


def token_losses(model, tokens, labels, dtype=torch.float64):
    logits = model(input_ids=tokens, use_cache=False).logits
    losses = torch.nn.functional.cross_entropy(logits.view(-1, logits.shape[-1]).to(dtype),
                                               labels.reshape(-1), ignore_index=-100,
                                               reduction="none")
    return losses, logits


def gradients(model, micro_batches, dtype=torch.float64):
    """Loss sum over all labelled tokens / their number, and its gradient, added up in `dtype`."""
    valid = sum(int((labels >= 0).sum()) for _, labels in micro_batches)
    total, sums = 0.0, {n: torch.zeros_like(p, dtype=dtype) for n, p in model.named_parameters()}
    for tokens, labels in micro_batches:
        model.zero_grad(set_to_none=True)
        losses, _ = token_losses(model, tokens, labels,
                                 torch.float64 if dtype == torch.float64 else torch.float32)
        loss = losses.sum() / valid
        loss.backward()
        total += float(loss.detach())
        for n, p in model.named_parameters():
            sums[n] += p.grad
    return total, valid, sums


def off(tensors, truth, name):
    """The relative error of a tensor's gradient; 0 where the whole of it is mathematically zero."""
    size = float(truth[name].norm())
    if size < 1e-12 * norm(truth):
        return 0.0
    return float((tensors[name].double() - truth[name]).norm()) / size


def norm(tensors):
    return math.sqrt(sum(float(t.double().pow(2).sum()) for t in tensors.values()))


def distance(a, b):
    return math.sqrt(sum(float((a[n].double() - b[n].double()).pow(2).sum()) for n in b))


def rate(schedule, t):
    """DeepSpeed's lr_schedules.py for the step that follows iteration t; the same numbers as
    lr_schedules.json, which comes from that file itself."""
    p, warm = schedule["params"], max(2, schedule["params"]["warmup_num_steps"])
    if schedule["type"] == "WarmupLR":
        low, high = p["warmup_min_lr"], p["warmup_max_lr"]
        return low if t < 0 else low + (high - low) * min(1.0, t / warm)
    if t < 0:
        return 0.0
    if t < warm:
        return BASE_LR * (p["warmup_min_ratio"] + (1 - p["warmup_min_ratio"]) * t / warm)
    x = min(1.0, (t - warm + 1) / max(1, p["total_num_steps"] - warm))
    return BASE_LR * (p["cos_min_ratio"] + (1 - p["cos_min_ratio"]) * (1 + math.cos(math.pi * x)) / 2)


def train(case, model, data, compute=None):
    """STEPS steps of torch.optim.AdamW on `model`. With `compute`, a copy in a lower precision, the
    gradients come from that and `model` holds the master weights. Returns losses, norms, rates."""
    dtype = next(model.parameters()).dtype
    decayed = [p for p in model.parameters()]
    optimizer = torch.optim.AdamW(decayed, lr=0.0, betas=(BETA1, BETA2), eps=EPSILON,
                                  weight_decay=WEIGHT_DECAY, foreach=False)
    losses, norms, rates = [], [], []
    for step in range(STEPS):
        if compute is not None:
            for a, b in zip(compute.parameters(), model.parameters()):
                a.data.copy_(b.data)
        loss, _, g = gradients(compute or model, data[step], dtype)
        size = norm(g)
        clip = max(1.0, (size + 1e-6) / CLIPPING)
        for n, p in model.named_parameters():
            p.grad = g[n] / clip
        optimizer.param_groups[0]["lr"] = rate(case["schedule"], step - 1)
        optimizer.step()
        losses.append(loss), norms.append(size)
        rates.append(optimizer.param_groups[0]["lr"])
    return losses, norms, rates


def zero_ranges(model, config):
    """Where the gradient is mathematically zero: a bias of the keys adds the same to all scores
    of a query. (With rotary embedding that no longer holds.) [tensor, first element, end]"""
    if config.model_type != "gpt2":
        return []
    d = config.n_embd
    return [[n, d, 2 * d] for n, _ in model.named_parameters() if n.endswith("c_attn.bias")]


def check_finite_difference(case, model, data, g):
    """The float64 graph has no float32 in it: a central difference along a random direction."""
    direction = {n: torch.randn(p.shape, generator=generator(case["name"], "direction" + n),
                                dtype=torch.float64) for n, p in model.named_parameters()}
    h, ends = case.get("h", 1e-6), []
    expected = sum(float((g[n] * d).sum()) for n, d in direction.items())
    for sign in (1, -1):
        for n, p in model.named_parameters():
            p.data += sign * h * direction[n]
        with torch.no_grad():
            losses, _ = token_losses(model, *data)
        ends.append(float(losses.sum() / (data[1] >= 0).sum()))
        for n, p in model.named_parameters():
            p.data -= sign * h * direction[n]
    error = abs((ends[0] - ends[1]) / (2 * h) - expected) / abs(expected)
    assert error < 1e-7, (case["name"], "finite difference", error)
    return error


def noise_of_bfloat16(case, truth, low):
    """Errors of torch's own bfloat16 run over NOISE_BATCHES batches: the root mean square of the
    loss's relative error, of each tensor's relative gradient error in norm, and of what stands
    where the gradient is zero, as a share of the whole gradient's norm."""
    loss_errors, errors, zero = [], {}, []
    ranges = zero_ranges(truth, case["config"])
    for i in range(NOISE_BATCHES):
        data = [batch(case, f"noise{i}", SEQUENCES)]
        use_float64(True)
        loss, _, g = gradients(truth, data)
        use_float64(False)
        low_loss, _, low_g = gradients(low, data, torch.float32)
        loss_errors.append(low_loss / loss - 1)
        zero += [float(low_g[n][a:b].norm()) / norm(g) for n, a, b in ranges] or [0.0]
        for n in g:
            errors.setdefault(n, []).append(off(low_g, g, n))
    rms = lambda values: math.sqrt(sum(v * v for v in values) / len(values))
    return rms(loss_errors), {n: rms(v) for n, v in errors.items()}, rms(zero)


def bounds_of_bfloat16(noise):
    """README.md derives these: torch's own noise, times four standard deviations for a single
    number, whose error may have any sign and size, and times two for the norm of many."""
    return {"loss": 4 * noise["loss_rms"], "logits": 2 * noise["logits"],
            "gradient": {n: 2 * v for n, v in noise["gradient_rms"].items()},
            "zero": 4 * noise["zero_rms"],
            "step_loss": 4 * noise["step_loss_rms"], "step_norm": 4 * noise["step_norm_rms"],
            "update": 2 * noise["update"]}


def check_bounds(case, bound, data, loss, g):
    """An implementation that rounds at other places, torch's autocast, keeps the bounds too."""
    model = build(case, torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        other_loss, _, other = gradients(model, [data], torch.float32)
    assert abs(other_loss / loss - 1) <= bound["loss"], (case["name"], "autocast loss")
    for n in g:
        error = off(other, g, n)
        assert error <= bound["gradient"][n], (case["name"], n, error, bound["gradient"][n])


def continuation(model, ids):
    """Greedy continuation of each row, and by how much the least clear choice was won."""
    margins = torch.full((len(ids),), math.inf, dtype=torch.float64)
    first = ids.shape[1]
    with torch.no_grad():
        for _ in range(NEW_TOKENS):
            top = model(input_ids=ids, use_cache=False).logits[:, -1].topk(2)
            margins = torch.minimum(margins, top.values[:, 0] - top.values[:, 1])
            ids = torch.cat((ids, top.indices[:, :1]), dim=1)
    return [(row[:first], row[first:], margin) for row, margin in
            zip(ids.tolist(), margins.tolist())]


def clearest(case, candidates):
    """The most varied of those on which no choice is close, so that rounding cannot turn it."""
    clear = [c for c in candidates if c[2] > 0.01 and case["config"].eos_token_id not in c[1]]
    best = max(clear, key=lambda c: len(set(c[1])))
    assert len(set(best[1])) >= 3, best
    return dict(zip(("prompt", "new", "least_margin"), best))


def generate(case, model):
    ids = torch.cat([windows(case["name"], f"prompt{i}", 1)[:, :PROMPT] for i in range(128)])
    out = {"generate": clearest(case, continuation(model, ids))}
    if case.get("tokenizer"):
        tokenizer, found, words = make_tokenizer(), [], TEXT.split(" ")
        for i in range(len(words) - 4):
            text = " ".join(words[i: i + 4])
            ids = tokenizer.encode(text).ids
            found += [(*c, text) for c in continuation(model, torch.tensor([ids]))]
        out["generate_text"] = clearest(case, found)
        out["generate_text"]["text"] = next(
            c[3] for c in found if c[0] == out["generate_text"]["prompt"])
    return out


def evaluate(case, model):
    """Mean loss over the windows of EVAL_WINDOW: window i reads tokens iN … iN + N."""
    ids = windows(case["name"], "eval", EVAL_TOKENS // LENGTH + 1).reshape(-1)[:EVAL_TOKENS]
    count = (EVAL_TOKENS - 1) // EVAL_WINDOW
    view = torch.stack([ids[i * EVAL_WINDOW: (i + 1) * EVAL_WINDOW + 1] for i in range(count)])
    with torch.no_grad():
        losses, _ = token_losses(model, view[:, :-1], view[:, 1:])
    return ids, count, float(losses.mean())


# --- writing -------------------------------------------------------------------------------------


def write_json(path, value):
    with open(path, "w") as f:
        json.dump(value, f, indent=1, ensure_ascii=False)
        f.write("\n")


TEXT = (
    "The river came down from the hills in the morning and the old mill turned with it. "
    "A boy who lived there counted the turns of the wheel, and when he had counted a thousand "
    "he went in to eat. In the evening the wheel stood still, and the people of the town came "
    "to fetch their flour and to hear the news that the river had brought with it. ")


def make_tokenizer():
    """Byte-level BPE with <|endoftext|> as id 0 and VOCABULARY ids."""
    tokenizer = tokenizers.ByteLevelBPETokenizer()
    tokenizer.train_from_iterator([TEXT], vocab_size=VOCABULARY, min_frequency=1,
                                  show_progress=False, special_tokens=["<|endoftext|>"])
    assert tokenizer.get_vocab_size() == VOCABULARY
    return tokenizer


def write_folder(case):
    folder = os.path.join(MODELS, case["name"])
    model = build(case, case["dtype"])
    options = {}
    if case.get("shards"):
        size = sum(p.numel() * p.element_size() for p in model.parameters())
        options["max_shard_size"] = size * 2 // (2 * case["shards"] - 1)
    model.save_pretrained(folder, **options)
    files = sorted(n for n in os.listdir(folder) if n.endswith(".safetensors"))
    assert len(files) == case.get("shards", 1), files
    if case.get("old_gpt2"):
        # The keys of the folder that OpenAI's weights were first published in.
        n = case["config"].n_positions
        tensors = {k.removeprefix("transformer."): v.contiguous()
                   for k, v in model.state_dict().items() if k != "lm_head.weight"}
        for layer in range(case["config"].n_layer):
            tensors[f"h.{layer}.attn.bias"] = torch.ones(n, n).tril().view(1, 1, n, n)
            tensors[f"h.{layer}.attn.masked_bias"] = torch.tensor(-1e4)
        save_file(tensors, os.path.join(folder, files[0]), metadata={"format": "pt"})
    if case.get("inv_freq"):
        from safetensors.torch import load_file
        path, index_path = os.path.join(folder, files[0]), os.path.join(
            folder, "model.safetensors.index.json")
        tensors, index = load_file(path), json.load(open(index_path))
        f = frequencies_float64(case["config"]).float()
        for layer in range(case["config"].num_hidden_layers):
            key = f"model.layers.{layer}.self_attn.rotary_emb.inv_freq"
            tensors[key], index["weight_map"][key] = f.clone(), files[0]
            index["metadata"]["total_size"] += f.numel() * 4
        save_file(tensors, path, metadata={"format": "pt"})
        index["weight_map"] = dict(sorted(index["weight_map"].items()))
        write_json(index_path, index)
    if case.get("edit") == "old rope keys":
        path = os.path.join(folder, "config.json")
        config = json.load(open(path))
        rope = config.pop("rope_parameters")
        config["rope_theta"] = rope.pop("rope_theta")
        config["rope_scaling"] = rope
        config["torch_dtype"] = config.pop("dtype")
        write_json(path, config)
    if case.get("tokenizer"):
        make_tokenizer().save(os.path.join(folder, "tokenizer.json"))
    with open(os.path.join(folder, "README.md"), "w") as f:
        f.write(f"# {case['name']}\n\nRandom weights, made by `make_models.py`. "
                "A file that training carries along unchanged: é, 一, no newline at its end.")
    for name in os.listdir(folder):
        os.chmod(os.path.join(folder, name), 0o644)
    # What was written is the model that the results are of.
    loaded = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    for (n, a), b in zip(loaded.named_parameters(), build(case, torch.float32).parameters()):
        assert torch.equal(a, b), (case["name"], n)


def logit_rows(tokens):
    return torch.arange(0, tokens.numel(), LOGIT_STRIDE)


def results_of(case):
    name = case["name"]
    tokens, labels = batch(case, "case", SEQUENCES)
    data = [[batch(case, f"step{s}.{m}", SEQUENCES) for m in range(MICRO_BATCHES)]
            for s in range(STEPS)]

    use_float64(True)
    truth = build(case, torch.float64)
    loss, valid, g = gradients(truth, [(tokens, labels)])
    difference = check_finite_difference(case, truth, (tokens, labels), g)
    with torch.no_grad():
        _, logits = token_losses(truth, tokens, labels)
    generated = generate(case, truth)
    eval_ids, eval_windows, eval_loss = evaluate(case, truth)
    trained = build(case, torch.float64)
    losses, norms, rates = train(case, trained, data)
    start = {n: p.data.clone() for n, p in truth.named_parameters()}
    update = {n: p.data - start[n] for n, p in trained.named_parameters()}
    zero = zero_ranges(truth, case["config"])
    for n, first, end in zero:
        assert float(g[n][first:end].norm()) < 1e-12 * norm(g)
    live = {n: u.clone() for n, u in update.items()}
    for n, first, end in zero:
        live[n][first:end] = 0

    # transformers as it is, in float32: shows that both are the same function.
    use_float64(False)
    single = build(case, torch.float32)
    loss32, _, g32 = gradients(single, [(tokens, labels)], torch.float32)
    with torch.no_grad():
        _, logits32 = token_losses(single, tokens, labels)
    losses32, _, _ = train(case, single, data)
    update32 = {n: p.data.double() - start[n] for n, p in single.named_parameters()}
    for n, first, end in zero:
        update32[n][first:end] = 0
    own32 = {
        "loss": abs(loss32 / loss - 1),
        "logits": float((logits32.double() - logits).abs().max() / logits.abs().max()),
        "gradient": max(off(g32, g, n) for n in g),
        "step_loss": max(abs(a / b - 1) for a, b in zip(losses32, losses)),
        "update": distance(update32, live) / norm(live),
    }
    assert own32["loss"] < 1e-5 and own32["logits"] < 1e-5 and own32["gradient"] < 1e-4, own32
    assert own32["step_loss"] < 1e-5 and own32["update"] < 1e-3, own32

    # torch's own bfloat16: the noise that the bounds for bf16 are derived from.
    low = build(case, torch.bfloat16)
    loss_noise, gradient_noise, zero_noise = noise_of_bfloat16(case, truth, low)
    master, low = build(case, torch.float32), build(case, torch.bfloat16)
    losses16, norms16, _ = train(case, master, data, compute=low)
    update16 = {n: p.data.double() - start[n] for n, p in master.named_parameters()}
    for n, first, end in zero:
        update16[n][first:end] = 0
    low_logits = token_losses(build(case, torch.bfloat16), tokens, labels)[1].detach()
    torch16 = {
        "loss_rms": loss_noise,
        "logits": float((low_logits.double() - logits).abs().max() / logits.abs().max()),
        "gradient_rms": gradient_noise,
        "zero_rms": zero_noise,
        "step_loss_rms": math.sqrt(sum((a / b - 1) ** 2 for a, b in zip(losses16, losses)) / STEPS),
        "step_norm_rms": math.sqrt(sum((a / b - 1) ** 2 for a, b in zip(norms16, norms)) / STEPS),
        "update": distance(update16, live) / norm(live),
    }

    bound = bounds_of_bfloat16(torch16)
    check_bounds(case, bound, (tokens, labels), loss, g)

    rows = logit_rows(tokens)
    largest = max(float(u.abs().max()) for u in update.values())
    scale = 2.0 ** math.ceil(math.log2(largest))
    tensors = {
        "tokens": tokens.int(), "labels": labels.int(),
        "logit_rows": rows.int(),
        "logits": logits.reshape(-1, logits.shape[-1])[rows].float(),
        "step_tokens": torch.stack([torch.stack([t for t, _ in s]) for s in data]).int(),
        "step_labels": torch.stack([torch.stack([l for _, l in s]) for s in data]).int(),
        "eval_tokens": eval_ids.int(),
    }
    for n in g:
        tensors["gradient/" + n] = g[n].float()
        tensors["update/" + n] = (update[n] / scale).half()
    save_file({k: v.contiguous() for k, v in tensors.items()},
              os.path.join(RESULTS, name + ".safetensors"))
    write_json(os.path.join(RESULTS, name + ".json"), {
        "model": name,
        "vocab_size": logits.shape[-1],
        "sequences": SEQUENCES, "length": LENGTH, "micro_batches": MICRO_BATCHES, "steps": STEPS,
        "masked": case["masked"],
        "labelled": valid, "loss": loss, "gradient_norm": norm(g),
        "logit_largest": float(logits.abs().max()),
        "optimizer": {"type": "AdamW", "betas": [BETA1, BETA2], "eps": EPSILON,
                      "weight_decay": WEIGHT_DECAY, "lr": BASE_LR},
        "gradient_clipping": CLIPPING,
        "scheduler": case["schedule"],
        "step_loss": losses, "step_gradient_norm": norms, "step_lr": rates,
        "update_scale": scale, "update_norm": norm(live),
        "zero_gradient": [{"tensor": n, "begin": a, "end": b} for n, a, b in zero],
        "eval": {"window": EVAL_WINDOW, "windows": eval_windows, "loss": eval_loss},
        **generated,
        "torch_fp32_error": own32,
        "torch_bf16_error": torch16,
        "bf16_bound": bound,
        "finite_difference_error": difference,
    })
    print(f"{name}: loss {loss:.6f}, first norm {norms[0]:.2f}, fp32 {own32}, "
          f"bf16 loss {loss_noise:.1e} step {torch16['step_loss_rms']:.1e} update {torch16['update']:.1e}"
          f" gradient {max(gradient_noise.values()):.1e}")
    return [[n, list(p.shape)] for n, p in truth.named_parameters()]


def initialisation():
    """Mean and deviation of every tensor as transformers initialises it."""
    cases = {
        "gpt2": GPT2Config(vocab_size=2000, n_positions=256, n_embd=256, n_layer=3, n_head=4),
        "gpt2-range": GPT2Config(vocab_size=1000, n_positions=128, n_embd=128, n_layer=5, n_head=4,
                                 n_inner=320, initializer_range=0.05),
        "llama": LlamaConfig(vocab_size=2000, hidden_size=256, intermediate_size=512,
                             num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
                             initializer_range=0.02, attention_bias=True, mlp_bias=True),
        "llama-padding": LlamaConfig(vocab_size=1000, hidden_size=128, intermediate_size=256,
                                     num_hidden_layers=2, num_attention_heads=4, pad_token_id=3,
                                     initializer_range=0.04, tie_word_embeddings=True),
    }
    out = {}
    for name, config in cases.items():
        torch.manual_seed(seed_of(name, "init"))
        config.architectures = ["GPT2LMHeadModel" if "gpt2" in name else "LlamaForCausalLM"]
        model = AutoModelForCausalLM.from_config(config)
        stats = {}
        for n, p in model.named_parameters():
            p = p.detach()
            stats[n] = {"count": p.numel(), "mean": float(p.double().mean()),
                        "deviation": float(p.double().std(correction=0)),
                        "zero_rows": [i for i, row in enumerate(p) if not row.any()]
                        if p.dim() == 2 else []}
        written = json.loads(config.to_json_string(use_diff=True))
        out[name] = {"config": {**written, "architectures": config.architectures},
                     "tensors": stats}
    write_json(os.path.join(HERE, "init.json"), out)


def main():
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    for path in (MODELS, RESULTS):
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(path)
    listing = []
    for case in CASES:
        torch.manual_seed(seed_of(case["name"], "torch"))
        write_folder(case)
        entry = {"name": case["name"], "results": case.get("same_as", case["name"]),
                 "dtype": str(case["dtype"]).removeprefix("torch.")}
        if "same_as" not in case:
            entry["parameters"] = results_of(case)
        listing.append(entry)
    initialisation()
    write_json(os.path.join(HERE, "models.json"), {
        "script": "make_models.py",
        "script_sha256": hashlib.sha256(open(__file__, "rb").read()).hexdigest(),
        "versions": {"python": sys.version.split()[0], "torch": torch.__version__,
                     "transformers": transformers.__version__,
                     "tokenizers": tokenizers.__version__},
        "models": listing})


if __name__ == "__main__":
    main()
