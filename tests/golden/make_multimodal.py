#!/usr/bin/env python3
"""Writes multimodal/: for each class with a tower a tiny random model as transformers'
save_pretrained writes it, and what the whole class computes with text alone. The files are those of
make_families.py, whose functions make them; README.md says what they hold.

    pip install torch transformers        # versions: see multimodal/models.json
    python make_multimodal.py [NAME ...]  # only these; the others stay

The gradients and steps are of the text model: the rest of the folder is frozen. Each folder's
config.json has ids of image tokens beyond the vocabulary, so that all ids are text.
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
FOLDER = os.path.join(HERE, "multimodal")
m.MODELS, m.RESULTS = os.path.join(FOLDER, "models"), os.path.join(FOLDER, "results")
m.LENGTH, m.STEPS, m.VOCABULARY = 20, 3, 23
m.EVAL_WINDOW, m.EVAL_TOKENS = 16, 70

TEXT = dict(vocab_size=23, hidden_size=12, intermediate_size=10, num_hidden_layers=1,
            num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=96,
            bos_token_id=1, eos_token_id=2, pad_token_id=None)
SEES = dict(hidden_size=4, num_attention_heads=1, num_hidden_layers=1, intermediate_size=3,
            image_size=4, patch_size=2)
IMAGE = 100000
MROPE = dict(rope_type="default", rope_theta=900.0, mrope_section=[1, 1, 1])


def cases():
    t = transformers

    def case(name, config, kind, **options):
        return dict(name=name, config=config, kind=kind, dtype=torch.float32,
                    masked=options.pop("masked", False), schedule=m.WARMUP, **options)

    qwen = dict(depth=1, hidden_size=8, num_heads=2, intermediate_size=3, patch_size=2,
                out_hidden_size=12, temporal_patch_size=1)
    return [
        case("gemma3", t.Gemma3Config(
            text_config={**TEXT, "model_type": "gemma3_text", "head_dim": 8, "pad_token_id": 0,
                         "query_pre_attn_scalar": 3, "sliding_window": 7,
                         "layer_types": f.MIXED, "num_hidden_layers": 2},
            vision_config={**SEES, "model_type": "siglip_vision_model"}, mm_tokens_per_image=4,
            image_token_index=IMAGE), t.Gemma3ForConditionalGeneration, masked=True),
        case("mistral3", t.Mistral3Config(
            text_config={**TEXT, "model_type": "ministral3", "head_dim": 8,
                         "rope_parameters": dict(
                             rope_type="yarn", rope_theta=1000.0, factor=4.0, beta_fast=4.0,
                             beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0,
                             original_max_position_embeddings=16, llama_4_scaling_beta=0.3)},
            vision_config={**SEES, "model_type": "pixtral", "head_dim": 4},
            image_token_index=IMAGE), t.Mistral3ForConditionalGeneration),
        case("mistral3-mistral", t.Mistral3Config(
            text_config={**TEXT, "model_type": "mistral", "head_dim": 6, "sliding_window": None},
            vision_config={**SEES, "model_type": "pixtral", "head_dim": 4},
            image_token_index=IMAGE, tie_word_embeddings=False),
            t.Mistral3ForConditionalGeneration),
        case("qwen2_5_vl", t.Qwen2_5_VLConfig(
            text_config={**TEXT, "rope_parameters": MROPE},
            vision_config={**qwen, "fullatt_block_indexes": [0], "window_size": 4},
            image_token_id=IMAGE, video_token_id=IMAGE + 1),
            t.Qwen2_5_VLForConditionalGeneration, masked=True),
        case("qwen3_vl", t.Qwen3VLConfig(
            text_config={**TEXT, "head_dim": 8, "rope_parameters": {
                **MROPE, "mrope_section": [2, 1, 1], "mrope_interleaved": True}},
            vision_config={**qwen, "num_position_embeddings": 4, "deepstack_visual_indexes": [0]},
            image_token_id=IMAGE, video_token_id=IMAGE + 1, tie_word_embeddings=True),
            t.Qwen3VLForConditionalGeneration),
        case("qwen3_5", t.Qwen3_5Config(
            text_config={**TEXT, "head_dim": 8, "num_hidden_layers": 2,
                         "layer_types": ["linear_attention", "full_attention"],
                         "linear_num_key_heads": 1, "linear_num_value_heads": 2,
                         "linear_key_head_dim": 4, "linear_value_head_dim": 6,
                         "rms_norm_eps": 0.02,
                         "rope_parameters": {**MROPE, "mrope_section": [1, 1, 0],
                                             "mrope_interleaved": True,
                                             "partial_rotary_factor": 0.5}},
            vision_config={**qwen, "num_position_embeddings": 4},
            image_token_id=IMAGE, video_token_id=IMAGE + 1, tie_word_embeddings=True),
            t.Qwen3_5ForConditionalGeneration, h=2e-7),
        case("smolvlm", t.SmolVLMConfig(
            text_config={**TEXT, "model_type": "llama", "pad_token_id": 3, "rms_norm_eps": 1e-5},
            vision_config=SEES, image_token_id=IMAGE, scale_factor=1),
            t.SmolVLMForConditionalGeneration),
        case("internvl", t.InternVLConfig(
            text_config={**TEXT, "intermediate_size": 9, "model_type": "qwen2"},
            vision_config={**SEES, "image_size": [4, 4], "patch_size": [2, 2]},
            image_token_id=IMAGE), t.InternVLForConditionalGeneration),
        case("glm4v", t.Glm4vConfig(
            text_config={**TEXT, "hidden_size": 16, "rope_parameters": {
                **MROPE, "mrope_section": [1, 1, 0], "partial_rotary_factor": 0.5}},
            vision_config={**SEES, "depth": 1, "num_heads": 1, "out_hidden_size": 16,
                           "intermediate_size": 6, "temporal_patch_size": 1},
            image_token_id=IMAGE, video_token_id=IMAGE + 1), t.Glm4vForConditionalGeneration,
            masked=True),
        case("lfm2_vl", t.Lfm2VlConfig(
            text_config={**TEXT, "model_type": "lfm2", "pad_token_id": 0, "num_hidden_layers": 2,
                         "layer_types": ["conv", "full_attention"], "block_multiple_of": 4},
            vision_config={**SEES, "model_type": "siglip2_vision_model", "num_patches": 4,
                           "vision_use_head": False},
            projector_hidden_size=5, image_token_id=IMAGE), t.Lfm2VlForConditionalGeneration),
    ]


class Text:
    """A whole model whose parameters are those of its text model."""

    def __init__(self, whole):
        self.whole = whole
        self.names = [n for n, _ in whole.named_parameters()
                      if "language_model." in n or "text_model." in n or n.startswith("lm_head")]
        for n, p in whole.named_parameters():
            p.requires_grad_(n in self.names)

    def __call__(self, **arguments):
        return self.whole(**arguments)

    def named_parameters(self):
        return [(n, p) for n, p in self.whole.named_parameters() if n in self.names]

    def parameters(self):
        return iter([p for _, p in self.named_parameters()])

    def zero_grad(self, set_to_none=True):
        self.whole.zero_grad(set_to_none=set_to_none)

    def get_input_embeddings(self):
        return self.whole.get_input_embeddings()


def weights(case, whole):
    g = m.generator(case["name"], "weights")
    gemma = case["config"].model_type.startswith("gemma")
    qwen3_5 = case["config"].model_type.startswith("qwen3_5")
    for name, p in whole.named_parameters():
        draw = torch.randn(p.shape, generator=g, dtype=torch.float64)
        if p.dim() >= 2:
            embedding = name.endswith("embed_tokens.weight") or name.startswith("lm_head")
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
    whole = case["kind"]._from_config(case["config"], dtype=dtype, attn_implementation="eager")
    on = bool(f.MODES)
    f.use_float64(False)
    for p, value in list(weights(case, whole)):
        p.data = value.to(dtype)
    whole.tie_weights()
    f.use_float64(on)
    return Text(whole.eval())


def zero_ranges(model, config):
    """A bias of keys, where its elements are not rotated."""
    if config.model_type != "glm4v":
        return []
    head = config.text_config.hidden_size // config.text_config.num_attention_heads
    return [[n, head // 2, head] for n, _ in model.named_parameters() if n.endswith("k_proj.bias")]


m.build, m.zero_ranges = build, zero_ranges


def write_folder(case):
    folder = os.path.join(m.MODELS, case["name"])
    whole = build(case, torch.float32).whole
    whole.save_pretrained(folder)
    for name in os.listdir(folder):
        os.chmod(os.path.join(folder, name), 0o644)
    loaded, said = case["kind"].from_pretrained(folder, dtype=torch.float32,
                                                output_loading_info=True)
    assert not said["missing_keys"] and not said["unexpected_keys"], said
    for (name, a), b in zip(loaded.named_parameters(), whole.parameters()):
        assert torch.equal(a, b), (case["name"], name)


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
        # zero_ranges and generate ask the outer config for what stands in the text model's.
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
    m.write_json(path, {
        "script": "make_multimodal.py",
        "script_sha256": hashlib.sha256(open(__file__, "rb").read()).hexdigest(),
        "versions": {"python": sys.version.split()[0], "torch": torch.__version__,
                     "transformers": transformers.__version__},
        "models": listing})


if __name__ == "__main__":
    main()
