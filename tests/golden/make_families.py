#!/usr/bin/env python3
"""Writes families/: for each decoder family a tiny random model as a Hugging Face folder, and what
PyTorch and transformers compute with it. README.md says what the files hold; they are those of
make_models.py, whose functions make them.

    pip install torch transformers        # versions: see families/models.json
    python make_families.py [NAME ...]    # only these; the others stay

Everything is a function of the names. The truth is computed in float64: where transformers falls
back to float32 whatever the model's type (norms, rotary angles, softmax), float64 takes its place.
As in make_models.py, the result is checked against transformers' own float32 run and against finite
differences.
"""
import hashlib
import json
import math
import os
import shutil
import sys

import torch
import transformers
from torch.overrides import TorchFunctionMode
from transformers import AutoModelForCausalLM

import make_models as m

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "families")

m.MODELS, m.RESULTS = os.path.join(FOLDER, "models"), os.path.join(FOLDER, "results")
LENGTH = 40
m.LENGTH, m.STEPS, m.VOCABULARY = LENGTH, 5, 53

# Sizes are odd on purpose: a head of its own size, few key heads, windows that are shorter than the
# sequences, caps that bite, multipliers far from 1.
SMALL = dict(vocab_size=m.VOCABULARY, hidden_size=24, intermediate_size=14, num_hidden_layers=2,
             num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=96,
             bos_token_id=1, eos_token_id=2)
HEAD = dict(head_dim=8)
MIXED = ["sliding_attention", "full_attention"]


def case(name, config, masked=False, schedule=m.WARMUP, **options):
    return dict(name=name, config=config, dtype=torch.float32, masked=masked, schedule=schedule,
                **options)


def cases():
    t = transformers
    return [
        case("llama", t.LlamaConfig(**{**SMALL, "num_hidden_layers": 1, "num_key_value_heads": 1},
                                    head_dim=10, tie_word_embeddings=True, pad_token_id=5)),
        case("llama-dynamic", t.LlamaConfig(
            **{**SMALL, "num_hidden_layers": 1, "max_position_embeddings": 33}, **HEAD,
            tie_word_embeddings=True,
            rope_parameters=dict(rope_type="dynamic", rope_theta=1000.0, factor=4.0))),
        case("llama-yarn", t.LlamaConfig(
            **{**SMALL, "num_hidden_layers": 1}, **HEAD, tie_word_embeddings=True,
            rope_parameters=dict(rope_type="yarn", rope_theta=1000.0, factor=6.0, beta_fast=4.0,
                                 beta_slow=1.0, original_max_position_embeddings=16))),
        case("mistral", t.MistralConfig(**SMALL, **HEAD, sliding_window=9)),
        case("ministral", t.MinistralConfig(**{**SMALL, "num_key_value_heads": 1}, **HEAD,
                                            sliding_window=8, layer_types=MIXED[::-1])),
        case("qwen2", t.Qwen2Config(**{**SMALL, "num_key_value_heads": 1}, use_sliding_window=True,
                                    sliding_window=11, max_window_layers=1,
                                    tie_word_embeddings=True), masked=True),
        case("qwen3", t.Qwen3Config(**SMALL, **HEAD, tie_word_embeddings=True), masked=True),
        case("phi3", t.Phi3Config(**{**SMALL, "hidden_size": 32, "intermediate_size": 10,
                                     "num_key_value_heads": 1}, pad_token_id=0, sliding_window=13,
                                  rope_parameters=dict(rope_type="default", rope_theta=500.0,
                                                       partial_rotary_factor=0.75))),
        case("phi3-longrope", t.Phi3Config(
            **{**SMALL, "hidden_size": 32, "num_hidden_layers": 1}, pad_token_id=0,
            original_max_position_embeddings=32, tie_word_embeddings=True,
            rope_parameters=dict(rope_type="longrope", rope_theta=1000.0,
                                 partial_rotary_factor=0.75, short_factor=[1.0, 1.3, 1.9],
                                 long_factor=[1.5, 4.0, 9.0]))),
        case("gemma", t.GemmaConfig(**{**SMALL, "num_key_value_heads": 1}, head_dim=10,
                                    pad_token_id=0), masked=True, schedule=m.COSINE),
        case("gemma2", t.Gemma2Config(**SMALL, **HEAD, pad_token_id=0, query_pre_attn_scalar=5,
                                      sliding_window=9, final_logit_softcapping=2.5,
                                      attn_logit_softcapping=1.5)),
        case("gemma3_text", t.Gemma3TextConfig(
            **SMALL, **HEAD, pad_token_id=0, query_pre_attn_scalar=3, sliding_window=7,
            layer_types=MIXED, rope_parameters=dict(
                full_attention=dict(rope_type="linear", factor=4.0, rope_theta=9000.0),
                sliding_attention=dict(rope_type="default", rope_theta=70.0))), masked=True),
        case("smollm3", t.SmolLM3Config(**{**SMALL, "num_attention_heads": 3, "num_key_value_heads":
                                           1}, pad_token_id=0, no_rope_layers=[0, 1])),
        case("olmo2", t.Olmo2Config(**{**SMALL, "num_key_value_heads": 1}, pad_token_id=1),
             schedule=m.COSINE),
        case("granite", t.GraniteConfig(**SMALL, embedding_multiplier=2.5, logits_scaling=0.4,
                                        residual_multiplier=0.6, attention_multiplier=0.9)),
        case("gpt_neox", t.GPTNeoXConfig(
            **{k: v for k, v in SMALL.items() if k != "num_key_value_heads"},
            rope_parameters=dict(rope_type="default", rope_theta=300.0, partial_rotary_factor=0.67))),
        case("starcoder2", t.Starcoder2Config(**{**SMALL, "num_key_value_heads": 1},
                                              sliding_window=10, norm_epsilon=1e-4), masked=True),
        case("olmo3", t.Olmo3Config(**SMALL, pad_token_id=1, sliding_window=8, layer_types=MIXED,
                                    tie_word_embeddings=True)),
        case("glm4", t.Glm4Config(**SMALL, **HEAD, pad_token_id=None, attention_bias=True,
                                  rope_parameters=dict(rope_type="default", rope_theta=800.0,
                                                       partial_rotary_factor=0.5))),
        case("ministral3", t.Ministral3Config(
            **{**SMALL, "max_position_embeddings": 64}, **HEAD, pad_token_id=None,
            tie_word_embeddings=True,
            rope_parameters=dict(rope_type="yarn", rope_theta=1000.0, factor=4.0, beta_fast=4.0,
                                 beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0,
                                 original_max_position_embeddings=16, llama_4_scaling_beta=0.3))),
        case("lfm2", t.Lfm2Config(
            **{**SMALL, "num_hidden_layers": 3, "intermediate_size": 22}, pad_token_id=0,
            layer_types=["conv", "full_attention", "conv"], conv_bias=True, block_multiple_of=4,
            block_ffn_dim_multiplier=1.1), masked=True),
        case("lfm2-four", t.Lfm2Config(
            **{**SMALL, "num_key_value_heads": 1}, pad_token_id=0, full_attn_idxs=[1],
            conv_L_cache=4, block_auto_adjust_ff_dim=False, norm_eps=1e-4,
            tie_word_embeddings=False)),
        # Longer than one chunk of the delta rule. Results of few columns may be near 0, where a norm
        # with a small epsilon is too curved for long differences.
        case("qwen3_5_text", t.Qwen3_5TextConfig(
            **{**SMALL, "num_hidden_layers": 3, "hidden_size": 20}, head_dim=12,
            layer_types=["linear_attention", "full_attention", "linear_attention"],
            linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=6,
            linear_value_head_dim=5, attention_bias=True, rms_norm_eps=0.02,
            rope_parameters=dict(rope_type="default", rope_theta=700.0, partial_rotary_factor=0.5,
                                 mrope_section=[1, 1, 1], mrope_interleaved=True)),
             masked=True, length=75, h=2e-7),
        case("qwen3_5_text-three", t.Qwen3_5TextConfig(
            **{**SMALL, "num_key_value_heads": 1}, head_dim=8, full_attention_interval=2,
            linear_conv_kernel_dim=3, linear_num_key_heads=1, linear_num_value_heads=3,
            linear_key_head_dim=10, linear_value_head_dim=7, pad_token_id=3, rms_norm_eps=0.02,
            tie_word_embeddings=True), h=2e-7),
    ]


# --- float64 all the way -------------------------------------------------------------------------


class Float64(TorchFunctionMode):
    """Every float32 that code asks for by name becomes float64."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        def double(value):
            return torch.float64 if value is torch.float32 else value
        if function is torch.Tensor.float:
            function = torch.Tensor.double
        return function(*map(double, args), **{k: double(v) for k, v in (kwargs or {}).items()})


MODES = []


def use_float64(on):
    if on and not MODES:
        MODES.append(Float64())
        MODES[0].__enter__()
    elif not on and MODES:
        MODES.pop().__exit__(None, None, None)
    torch.set_default_dtype(torch.float64 if on else torch.float32)


# --- models --------------------------------------------------------------------------------------


def weights(case, model):
    """Values of which each matters, as the files hold them (float32)."""
    g = m.generator(case["name"], "weights")
    gemma = case["config"].model_type.startswith("gemma")
    qwen3_5 = case["config"].model_type.startswith("qwen3_5")
    for name, p in model.named_parameters():
        draw = torch.randn(p.shape, generator=g, dtype=torch.float64)
        if p.dim() >= 2:
            embedding = p.shape[0] == m.VOCABULARY
            value = draw * (0.2 if gemma else 0.35) if embedding else (
                1.3 * draw / math.sqrt(p.shape[-1]))
        elif name.endswith("bias"):
            value = 0.2 * draw
        elif name.endswith("A_log"):  # states that last
            value = draw - 2
        else:  # Gemma multiplies by 1 + w, as Qwen 3.5 does but for one norm
            plus_one = gemma or (qwen3_5 and not name.endswith("linear_attn.norm.weight"))
            value = 0.3 * draw + (0 if plus_one else 1)
        yield p, value.to(torch.float32)


def build(case, dtype):
    """Built under the mode that is on, so that its buffers have that mode's type; its weights are
    those of the files."""
    model = AutoModelForCausalLM.from_config(case["config"], dtype=dtype,
                                             attn_implementation="eager")
    on = bool(MODES)
    use_float64(False)
    for p, value in list(weights(case, model)):
        p.data = value.to(dtype)
    model.tie_weights()
    use_float64(on)
    return model.eval()


def zero_ranges(model, config):
    """A bias of keys adds the same to all scores of a query, except through a rotation: its
    elements that are not rotated have no gradient."""
    part = config.rope_parameters.get("partial_rotary_factor", 1.0) if config.rope_parameters else 1
    if part == 1.0 or not isinstance(part, float):
        return []
    if config.model_type == "qwen3_5_text":  # there a norm is between
        return []
    head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    turned, out = int(head * part), []
    for name, p in model.named_parameters():
        if name.endswith("query_key_value.bias"):  # by head: query, key, value
            out += [[name, (3 * h + 1) * head + turned, (3 * h + 2) * head]
                    for h in range(config.num_attention_heads)]
        if name.endswith("k_proj.bias"):
            out += [[name, h * head + turned, (h + 1) * head]
                    for h in range(config.num_key_value_heads)]
    return out


def bounds_of_bfloat16(noise):
    """Twice those of make_models.py: the tensors have so few elements that the norm of an error
    varies."""
    return {k: {n: 2 * b for n, b in v.items()} if isinstance(v, dict) else 2 * v
            for k, v in BOUNDS(noise).items()}


def check_finite_difference(case, model, data, g):
    """An embedding gives its padding no gradient though the loss depends on it: the check is of the
    gradient that has it."""
    table = model.get_input_embeddings()
    padding, table.padding_idx = table.padding_idx, None
    whole = m.gradients(model, [data])[2]
    error = CHECK(case, model, data, whole)
    table.padding_idx = padding
    others = [i for i in range(m.VOCABULARY) if i != padding]
    for n, p in model.named_parameters():
        rows = others if p is table.weight else slice(None)
        assert torch.equal(g[n][rows], whole[n][rows]), (case["name"], n)
    return error


BOUNDS, CHECK = m.bounds_of_bfloat16, m.check_finite_difference
m.use_float64, m.build, m.zero_ranges = use_float64, build, zero_ranges
m.bounds_of_bfloat16, m.check_finite_difference = bounds_of_bfloat16, check_finite_difference


def write_folder(case):
    folder = os.path.join(m.MODELS, case["name"])
    model = build(case, torch.float32)
    model.save_pretrained(folder)
    for name in os.listdir(folder):
        os.chmod(os.path.join(folder, name), 0o644)
    # What was written is the model that the results are of.
    loaded = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    for (name, a), b in zip(loaded.named_parameters(), model.parameters()):
        assert torch.equal(a, b), (case["name"], name)


def write_defaults(types):
    """What a config.json that names nothing but the model_type means, key by key."""
    out = {}
    for config in sorted({type(c["config"]) for c in types}, key=lambda t: t.model_type):
        written = json.loads(config().to_json_string(use_diff=False))
        out[config.model_type] = {k: v for k, v in written.items() if k != "transformers_version"}
    m.write_json(os.path.join(FOLDER, "defaults.json"), out)


def main():
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    listing, path = [], os.path.join(FOLDER, "models.json")
    old = {e["name"]: e for e in json.load(open(path))["models"]} if os.path.exists(path) else {}
    for path_of in (m.MODELS, m.RESULTS):
        os.makedirs(path_of, exist_ok=True)
    for case in cases():
        name = case["name"]
        if name in old and sys.argv[1:] and name not in sys.argv[1:]:
            listing.append(old[name])
            continue
        shutil.rmtree(os.path.join(m.MODELS, name), ignore_errors=True)
        torch.manual_seed(m.seed_of(name, "torch"))
        m.LENGTH = case.get("length", LENGTH)
        write_folder(case)
        listing.append({"name": name, "results": name, "dtype": "float32",
                        "parameters": m.results_of(case)})
        os.chmod(os.path.join(m.RESULTS, name + ".safetensors"), 0o644)
    write_defaults(cases())
    m.write_json(path, {
        "script": "make_families.py",
        "script_sha256": hashlib.sha256(open(__file__, "rb").read()).hexdigest(),
        "versions": {"python": sys.version.split()[0], "torch": torch.__version__,
                     "transformers": transformers.__version__},
        "models": listing})


if __name__ == "__main__":
    main()
