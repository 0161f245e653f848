#!/usr/bin/env python3
"""Writes gemma4/: tiny random models of Gemma 4, the text model alone and folders with a tower, as
transformers' save_pretrained writes them, and what their own classes compute with text alone. The
files are those of make_families.py, whose functions make them; README.md says what they hold.

    pip install torch transformers        # versions: see gemma4/models.json
    python make_gemma4.py [NAME ...]      # only these; the others stay

Their layers have two kinds of heads, which config.json says in two ways: "per_layer_config", as
transformers 5.24 writes it, and "global_head_dim", as the released folders have it (the cases
"published"). layer_scalar is a buffer: it has values far from 1, and no gradient.

The cases "shared" are made as E2B and E4B are: the last layers share keys and values, and each
layer has an input of its own. The released folders still hold the keys and values of layers that
have none, which transformers ignores; "stale" adds such tensors.
"""
import hashlib
import json
import os
import shutil
import sys

import safetensors.torch
import torch
import transformers

import make_families as f
import make_models as m
import make_multimodal as tower

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "gemma4")
m.MODELS, m.RESULTS = os.path.join(FOLDER, "models"), os.path.join(FOLDER, "results")
m.LENGTH, m.STEPS, m.VOCABULARY = 24, 3, 23
m.EVAL_WINDOW, m.EVAL_TOKENS = 16, 70

TEXT = dict(vocab_size=23, hidden_size=14, intermediate_size=9, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=2, head_dim=6, max_position_embeddings=96,
            bos_token_id=1, eos_token_id=2, pad_token_id=0, hidden_size_per_layer_input=0,
            sliding_window=7)
WIDE = dict(global_head_dim=10, num_global_key_value_heads=1, attention_k_eq_v=True)


# One window layer's keys and values serve two others, and one full layer's another. Norms of few
# columns are too curved with a small epsilon.
SHARED = dict(rms_norm_eps=0.02, num_hidden_layers=5, num_kv_shared_layers=3,
              hidden_size_per_layer_input=5,
              layer_types=["sliding_attention", "full_attention", "sliding_attention",
                           "sliding_attention", "full_attention"])


def turns(part, **more):
    return dict(full_attention=dict(rope_type="proportional", partial_rotary_factor=part,
                                    rope_theta=1000.0, **more),
                sliding_attention=dict(rope_type="default", rope_theta=60.0))


def without(text, *keys):
    return {k: v for k, v in text.items() if k not in keys}


def cases():
    t = transformers

    def case(name, config, kind, masked=False, **options):
        return dict(name=name, config=config, kind=kind, dtype=torch.float32, masked=masked,
                    schedule=m.WARMUP, **options)

    sees = {**tower.SEES, "model_type": "gemma4_vision", "num_key_value_heads": 1, "head_dim": 4,
            "position_embedding_size": 8, "pooling_kernel_size": 1}
    media = dict(image_token_id=tower.IMAGE, video_token_id=tower.IMAGE + 1,
                 audio_token_id=tower.IMAGE + 2)
    unified = without(TEXT, "hidden_size_per_layer_input")
    return [
        case("gemma4_text", t.Gemma4TextConfig(
            **TEXT, **WIDE, layer_types=f.MIXED, final_logit_softcapping=2.5,
            rope_parameters=turns(0.5, factor=2.0)), t.Gemma4ForCausalLM, masked=True),
        # Biases, values of their own, all of a head turned, and a last layer that asks for a window.
        case("gemma4_text-published", t.Gemma4TextConfig(
            **TEXT, global_head_dim=8,
            attention_bias=True, layer_types=["sliding_attention"] * 2,
            rope_parameters=turns(1.0), tie_word_embeddings=False), t.Gemma4ForCausalLM,
            published=True),
        case("gemma4_unified_text", t.Gemma4UnifiedTextConfig(
            **unified, **WIDE, layer_types=f.MIXED, rope_parameters=turns(0.4)),
            t.Gemma4UnifiedForCausalLM),
        case("gemma4", t.Gemma4Config(
            text_config={**TEXT, **WIDE, "model_type": "gemma4_text", "layer_types": f.MIXED,
                         "final_logit_softcapping": 5.0},
            vision_config=sees, **media), t.Gemma4ForConditionalGeneration, masked=True),
        case("gemma4_unified", t.Gemma4UnifiedConfig(
            text_config={**unified, **WIDE, "model_type": "gemma4_unified_text",
                         "layer_types": f.MIXED, "rope_parameters": turns(0.8)},
            vision_config=dict(model_type="gemma4_unified_vision", patch_size=2,
                               pooling_kernel_size=1, mm_embed_dim=4, mm_posemb_size=4,
                               output_proj_dims=14),
            **media), t.Gemma4UnifiedForConditionalGeneration, published=True),
        # Twice as wide where keys are shared; a table with rows that no token has.
        case("gemma4_text-shared", t.Gemma4TextConfig(
            **{**TEXT, **SHARED}, global_head_dim=8, vocab_size_per_layer_input=25,
            use_double_wide_mlp=True, final_logit_softcapping=3.0, rope_parameters=turns(0.5)),
            t.Gemma4ForCausalLM, masked=True, h=1e-7),
        case("gemma4-shared", t.Gemma4Config(
            text_config={**TEXT, **SHARED, **WIDE, "model_type": "gemma4_text",
                         "vocab_size_per_layer_input": 23, "num_key_value_heads": 1,
                         "rope_parameters": turns(0.4)},
            vision_config=sees, **media), t.Gemma4ForConditionalGeneration, published=True,
            stale=True, h=1e-7),
    ]


def text_config(config):
    return config.get_text_config()


def weights(case, model):
    g = m.generator(case["name"], "weights")
    tensors = list(model.named_parameters()) + [
        (n, b) for n, b in model.named_buffers() if n.endswith("layer_scalar")]
    for name, p in tensors:
        draw = torch.randn(p.shape, generator=g, dtype=torch.float64)
        if p.dim() >= 2:
            embedding = name.endswith("embed_tokens.weight") or name.startswith("lm_head")
            value = draw * 0.2 if embedding else 1.3 * draw / p.shape[-1] ** 0.5
        elif name.endswith("bias"):
            value = 0.2 * draw
        else:
            value = 1 + 0.3 * draw
        # Scores have no scale, and a layer adds three sums: of large ones 16 bits leave little.
        if text_config(case["config"]).num_kv_shared_layers and p.dim() == 1:
            small = name.endswith("q_norm.weight") or "post_" in name
            value = value * (p.numel() ** -0.5 if small else 1)
        yield p, value.to(torch.float32)


def build(case, dtype):
    model = case["kind"]._from_config(case["config"], dtype=dtype, attn_implementation="eager")
    on = bool(f.MODES)
    f.use_float64(False)
    for p, value in list(weights(case, model)):
        p.data = value.to(dtype)
    model.tie_weights()
    f.use_float64(on)
    model.eval()
    return tower.Text(model) if hasattr(case["config"], "text_config") else model


def zero_ranges(model, config):
    """A bias of keys, where its elements are not rotated."""
    out = []
    for name, p in model.named_parameters():
        if name.endswith("k_proj.bias"):
            assert text_config(config).rope_parameters["full_attention"][
                "partial_rotary_factor"] == 1.0
    return out


def check_finite_difference(case, model, data, g):
    """f.check_finite_difference of two embeddings: neither gives its padding a gradient."""
    whole = getattr(model, "whole", model)
    tables = {n + ".weight": x for n, x in whole.named_modules()
              if n.endswith(("embed_tokens", "embed_tokens_per_layer"))}
    paddings = {n: x.padding_idx for n, x in tables.items()}
    for x in tables.values():
        x.padding_idx = None
    all_rows = m.gradients(model, [data])[2]
    error = f.CHECK(case, model, data, all_rows)
    for n, x in tables.items():
        x.padding_idx = paddings[n]
    for n, p in model.named_parameters():
        rows = [i for i in range(len(p)) if i != paddings.get(n)]
        assert torch.equal(g[n][rows], all_rows[n][rows]), (case["name"], n)
    return error


m.check_finite_difference = check_finite_difference
m.build, m.zero_ranges = build, zero_ranges


def publish(folder, case):
    """config.json as the released folders have it: the full layers' heads as keys of their own."""
    path = os.path.join(folder, "config.json")
    config = json.load(open(path))
    text = config.get("text_config", config)
    own = text.pop("per_layer_config")
    first = next(iter(own.values()))
    text["global_head_dim"] = first["head_dim"]
    text["num_global_key_value_heads"] = first.get("num_key_value_heads")
    with open(path, "w") as out:
        json.dump(config, out, indent=2, sort_keys=True)
        out.write("\n")


def add_stale(folder, case):
    """Keys, values and their norms of layers that take others', as the released folders hold them."""
    path = os.path.join(folder, "model.safetensors")
    tensors = safetensors.torch.load_file(path)
    g = m.generator(case["name"], "stale")
    layers = text_config(case["config"]).num_hidden_layers
    for i in range(layers - SHARED["num_kv_shared_layers"], layers):
        q = tensors[f"model.language_model.layers.{i}.self_attn.q_norm.weight"]
        for name, shape in (("k_proj", (q.numel(), 14)), ("v_proj", (q.numel(), 14)),
                            ("k_norm", (q.numel(),))):
            tensors[f"model.language_model.layers.{i}.self_attn.{name}.weight"] = torch.randn(
                shape, generator=g)
    safetensors.torch.save_file(tensors, path, metadata={"format": "pt"})


def write_folder(case):
    folder = os.path.join(m.MODELS, case["name"])
    model = build(case, torch.float32)
    model = getattr(model, "whole", model)
    model.save_pretrained(folder)
    if case.get("published"):
        publish(folder, case)
    if case.get("stale"):
        add_stale(folder, case)
    for name in os.listdir(folder):
        os.chmod(os.path.join(folder, name), 0o644)
    loaded, said = case["kind"].from_pretrained(folder, dtype=torch.float32,
                                                output_loading_info=True)
    assert not said["missing_keys"] and not said["unexpected_keys"], said
    for (name, a), b in zip(loaded.state_dict().items(), model.state_dict().values()):
        assert torch.equal(a, b), (case["name"], name)


def write_defaults():
    """What a config.json of a dense model means that names nothing else, key by key."""
    out = {}
    for config in (transformers.Gemma4TextConfig(hidden_size_per_layer_input=0),
                   transformers.Gemma4UnifiedTextConfig()):
        written = json.loads(config.to_json_string(use_diff=False))
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
        # generate and the checks ask the outer config for what stands in the text model's.
        case["config"].eos_token_id = 2
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
        "script": "make_gemma4.py",
        "script_sha256": hashlib.sha256(open(__file__, "rb").read()).hexdigest(),
        "versions": {"python": sys.version.split()[0], "torch": torch.__version__,
                     "transformers": transformers.__version__},
        "models": listing})


if __name__ == "__main__":
    main()
