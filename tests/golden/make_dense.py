#!/usr/bin/env python3
"""Writes dense/: for each decoder family that has no op of its own a tiny random model, as
make_families.py has them, whose functions make the files; README.md says what they hold.

    pip install torch transformers     # versions: see dense/models.json
    python make_dense.py [NAME ...]    # only these; the others stay

They are smaller than those of make_families.py, since what they try is how ops are put together.
The class is the one that the folder's "architectures" names.
"""
import hashlib
import json
import math
import os
import shutil
import sys

import torch
import transformers

import make_families as f
import make_models as m

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "dense")
m.MODELS, m.RESULTS = os.path.join(FOLDER, "models"), os.path.join(FOLDER, "results")
m.LENGTH, m.STEPS, m.VOCABULARY = 18, 2, 23
m.EVAL_WINDOW, m.EVAL_TOKENS = 16, 50

SMALL = dict(vocab_size=23, hidden_size=8, intermediate_size=6, num_hidden_layers=1,
             num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=96,
             bos_token_id=1, eos_token_id=2, pad_token_id=None)
HEAD = dict(head_dim=6)
TWO = dict(num_hidden_layers=2)
OPT = dict(vocab_size=23, hidden_size=12, ffn_dim=7, num_hidden_layers=1, num_attention_heads=2,
           max_position_embeddings=96, dropout=0.0, pad_token_id=1, bos_token_id=2, eos_token_id=2)
FALCON = dict(vocab_size=23, hidden_size=12, ffn_hidden_size=6, num_hidden_layers=1,
              num_attention_heads=2, max_position_embeddings=96, bos_token_id=1, eos_token_id=2,
              rope_parameters=dict(rope_type="default", rope_theta=20.0))
MIXED = dict(TWO, sliding_window=5, layer_types=["sliding_attention", "full_attention"])


def rope(**more):
    return dict(rope_type="default", rope_theta=900.0, **more)


def cases():
    t = transformers

    def case(name, kind, config, masked=False):
        return dict(name=name, kind=getattr(t, kind), config=config, masked=masked,
                    dtype=torch.float32, schedule=m.WARMUP)

    return [
        case("arcee", "ArceeForCausalLM", t.ArceeConfig(
            **SMALL, **HEAD, attention_bias=True, mlp_bias=True), masked=True),
        case("seed_oss", "SeedOssForCausalLM", t.SeedOssConfig(
            **{**SMALL, "pad_token_id": 3}, **HEAD, attention_out_bias=True,
            attention_dropout=0.0, residual_dropout=0.0)),
        case("exaone4", "Exaone4ForCausalLM", t.Exaone4Config(
            **{**SMALL, **MIXED}, tie_word_embeddings=True), masked=True),
        case("exaone4-full", "Exaone4ForCausalLM", t.Exaone4Config(
            **SMALL, **HEAD, sliding_window=None, layer_types=["full_attention"])),
        case("cohere", "CohereForCausalLM", t.CohereConfig(
            **{**SMALL, "pad_token_id": 0}, attention_bias=True, logit_scale=0.3)),
        case("cohere-norms", "CohereForCausalLM", t.CohereConfig(
            **{**SMALL, "hidden_size": 16, "num_attention_heads": 4, "num_key_value_heads": 2,
               "pad_token_id": 0},
            use_qk_norm=True, logit_scale=0.3)),
        case("cohere2", "Cohere2ForCausalLM", t.Cohere2Config(
            **{**SMALL, **MIXED, "pad_token_id": 0}, logit_scale=0.4), masked=True),
        case("ernie4_5", "Ernie4_5ForCausalLM", t.Ernie4_5Config(
            **SMALL, **HEAD, use_bias=True, rope_parameters=rope())),
        case("hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM", t.HunYuanDenseV1Config(
            **SMALL, **HEAD, attention_bias=True, rope_parameters=dict(
                rope_type="dynamic", rope_theta=900.0, alpha=40.0, factor=1.0))),
        case("helium", "HeliumForCausalLM", t.HeliumConfig(
            **SMALL, head_dim=4, attention_bias=True, mlp_bias=True), masked=True),
        case("internlm3", "LlamaForCausalLM", t.InternLM3Config(
            **SMALL, **HEAD, attention_bias=True, mlp_bias=True)),
        case("cwm", "CwmForCausalLM", t.CwmConfig(
            **{**SMALL, **TWO}, **HEAD, sliding_window=5, mlp_bias=True, rope_parameters=dict(
                rope_type="llama3", rope_theta=900.0, factor=4.0, low_freq_factor=1.0,
                high_freq_factor=4.0, original_max_position_embeddings=16))),
        case("phi", "PhiForCausalLM", t.PhiConfig(
            **{**SMALL, "hidden_size": 16}), masked=True),
        case("phi-norms", "PhiForCausalLM", t.PhiConfig(
            **SMALL, qk_layernorm=True, hidden_act="gelu")),
        case("stablelm", "StableLmForCausalLM", t.StableLmConfig(
            **{**SMALL, "hidden_size": 12}, use_qkv_bias=True,
            rope_parameters=rope(partial_rotary_factor=0.67))),
        case("stablelm-parallel", "StableLmForCausalLM", t.StableLmConfig(
            **SMALL, use_parallel_residual=True, tie_word_embeddings=True,
            rope_parameters=rope(partial_rotary_factor=0.5))),
        case("glm", "GlmForCausalLM", t.GlmConfig(**SMALL, head_dim=8), masked=True),
        case("vaultgemma", "VaultGemmaForCausalLM", t.VaultGemmaConfig(
            **{**SMALL, **MIXED, "pad_token_id": 0}, **HEAD, query_pre_attn_scalar=3,
            final_logit_softcapping=2.5, attn_logit_softcapping=1.5)),
        case("nemotron", "NemotronForCausalLM", t.NemotronConfig(
            **SMALL, head_dim=8, attention_bias=True, mlp_bias=True)),
        case("olmo", "OlmoForCausalLM", t.OlmoConfig(
            **{**SMALL, "hidden_size": 12, "pad_token_id": 1}, clip_qkv=1.3), masked=True),
        case("nanochat", "NanoChatForCausalLM", t.NanoChatConfig(
            **{**SMALL, **TWO, "hidden_size": 12, "pad_token_id": 1}, attention_bias=True,
            final_logit_softcapping=2.5, rope_parameters=rope())),
        case("apertus", "ApertusForCausalLM", t.ApertusConfig(
            **{**SMALL, **TWO, "hidden_size": 12, "pad_token_id": 3}, attention_bias=True,
            rope_parameters=dict(
                rope_type="llama3", rope_theta=900.0, factor=4.0, low_freq_factor=1.0,
                high_freq_factor=4.0, original_max_position_embeddings=16)), masked=True),
        case("stablelm-norms", "StableLmForCausalLM", t.StableLmConfig(
            **{**SMALL, "hidden_size": 32, "num_attention_heads": 8, "num_key_value_heads": 2},
            use_parallel_residual=True, qk_layernorm=True,
            rope_parameters=rope(partial_rotary_factor=0.5))),
        case("opt", "OPTForCausalLM", t.OPTConfig(**OPT), masked=True),
        case("opt-behind", "OPTForCausalLM", t.OPTConfig(
            **OPT, do_layer_norm_before=False, word_embed_proj_dim=7,
            layer_norm_elementwise_affine=False, activation_function="gelu")),
        case("falcon", "FalconForCausalLM", t.FalconConfig(**FALCON), masked=True),
        case("falcon-grouped", "FalconForCausalLM", t.FalconConfig(
            **{**FALCON, "hidden_size": 24, "num_attention_heads": 6}, bias=True, num_kv_heads=2,
            new_decoder_architecture=True)),
        case("falcon-each", "FalconForCausalLM", t.FalconConfig(
            **FALCON, multi_query=False, parallel_attn=False, tie_word_embeddings=False)),
        case("bloom", "BloomForCausalLM", t.BloomConfig(
            vocab_size=23, hidden_size=12, n_layer=1, n_head=6, bos_token_id=1, eos_token_id=2),
            masked=True),
    ]


def weights(case, model):
    """Values of which each matters, as the files hold them (float32)."""
    g = m.generator(case["name"], "weights")
    kind = case["config"].model_type
    plus_one = "gemma" in kind or kind == "nemotron"  # they multiply by 1 + w
    for name, p in model.named_parameters():
        draw = torch.randn(p.shape, generator=g, dtype=torch.float64)
        if p.dim() == 2 and "norm" not in name:
            embedding = p.shape[0] == m.VOCABULARY
            value = draw * 0.35 if embedding else 1.3 * draw / math.sqrt(p.shape[1])
        elif name.endswith("bias"):
            value = 0.2 * draw
        else:
            value = 0.3 * draw + (0 if plus_one else 1)
        yield p, value.to(torch.float32)


def build(case, dtype):
    model = case["kind"]._from_config(case["config"], dtype=dtype, attn_implementation="eager")
    on = bool(f.MODES)
    f.use_float64(False)
    for p, value in list(weights(case, model)):
        p.data = value.to(dtype)
    model.tie_weights()
    f.use_float64(on)
    return model.eval()


def zero_ranges(model, config):
    """What keys are shifted by alike changes no score, but for elements that are rotated."""
    if config.model_type == "opt":  # without a rotation
        return [[n, 0, p.numel()] for n, p in model.named_parameters() if n.endswith("k_proj.bias")]
    if config.model_type == "bloom":  # likewise; by head: query, key, value
        head = config.hidden_size // config.n_head
        return [[n, (3 * h + 1) * head, (3 * h + 2) * head] for n, _ in model.named_parameters()
                if n.endswith("query_key_value.bias") for h in range(config.n_head)]
    if config.model_type != "phi" or not config.qk_layernorm:
        return ZERO(model, config)
    head = config.hidden_size // config.num_attention_heads
    turned = int(head * config.rope_parameters["partial_rotary_factor"])
    return [[n, turned, head] for n, _ in model.named_parameters()
            if n.endswith("k_layernorm.bias")]


ZERO = m.zero_ranges
m.build, m.zero_ranges = build, zero_ranges


def short(value):
    """A bound has no use for more than three digits."""
    if isinstance(value, dict):
        return {k: short(v) for k, v in value.items()}
    return float(f"{value:.3g}")


def write_json(path, value):
    """A line for each key, so that small results are small files."""
    value = {k: short(v) if k.endswith(("error", "bound")) else v for k, v in value.items()}
    lines = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in value.items()]
    with open(path, "w") as file:
        file.write("{\n" + ",\n".join(lines) + "\n}\n")


m.write_json = write_json


def write_folder(case):
    folder = os.path.join(m.MODELS, case["name"])
    model = build(case, torch.float32)
    model.save_pretrained(folder)
    for name in os.listdir(folder):
        os.chmod(os.path.join(folder, name), 0o644)
    loaded, said = case["kind"].from_pretrained(folder, dtype=torch.float32,
                                                output_loading_info=True)
    assert not said["missing_keys"] and not said["unexpected_keys"], said
    for (name, a), b in zip(loaded.named_parameters(), model.parameters()):
        assert torch.equal(a, b), (case["name"], name)


def write_defaults():
    """What a config.json that names nothing but the model_type means, key by key."""
    out = {}
    for kind in sorted({type(c["config"]) for c in cases()}, key=lambda t: t.model_type):
        written = json.loads(kind().to_json_string(use_diff=False))
        out[kind.model_type] = {k: v for k, v in written.items() if k != "transformers_version"}
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
        write_folder(case)
        listing.append({"name": name, "results": name, "dtype": "float32",
                        "parameters": m.results_of(case)})
        os.chmod(os.path.join(m.RESULTS, name + ".safetensors"), 0o644)
    write_defaults()
    m.write_json(path, {
        "script": "make_dense.py",
        "script_sha256": hashlib.sha256(open(__file__, "rb").read()).hexdigest(),
        "versions": {"python": sys.version.split()[0], "torch": torch.__version__,
                     "transformers": transformers.__version__},
        "models": listing})


if __name__ == "__main__":
    main()
