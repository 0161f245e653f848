#!/usr/bin/env python3
"""Writes decoder_heads/: what make_families.py writes of decoders, of some of them with a head for
labels of sequences or of tokens. README.md says what the files hold.

    pip install torch transformers        # versions: see decoder_heads/models.json
    python make_decoder_heads.py [NAME ...]    # only these; the others stay

Sequences have different lengths and are padded on the right. The label of a sequence stands at its
last token that is no padding.
"""
import hashlib
import json
import os
import shutil
import sys

import torch
import transformers
from safetensors.torch import load_file, save_file

import make_models as m

ZERO_OF_GPT2 = m.zero_ranges  # before make_families.py puts its own in its place

import make_families as f

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "decoder_heads")
m.MODELS, m.RESULTS = os.path.join(FOLDER, "models"), os.path.join(FOLDER, "results")
PAD = 5
SMALL = {**f.SMALL, "num_hidden_layers": 1, "pad_token_id": PAD}
NAMES = {0: "no", 1: "perhaps", 2: "yes"}


def case(name, config, model, schedule=m.WARMUP):
    config.architectures = [model]
    return dict(name=name, config=config, dtype=torch.float32, masked=True, schedule=schedule)


def cases():
    t = transformers
    return [
        case("llama-sequence", t.LlamaConfig(
            **SMALL, id2label=NAMES, label2id={v: k for k, v in NAMES.items()}),
             "LlamaForSequenceClassification"),
        case("gpt2-sequence", t.GPT2Config(
            vocab_size=m.VOCABULARY, n_positions=48, n_embd=24, n_layer=2, n_head=3, n_inner=14,
            bos_token_id=1, eos_token_id=2, pad_token_id=PAD, resid_pdrop=0.0, embd_pdrop=0.0,
            attn_pdrop=0.0, num_labels=4), "GPT2ForSequenceClassification", m.COSINE),
        case("gemma2-sequence", t.Gemma2Config(
            **{**SMALL, "num_hidden_layers": 2}, head_dim=8, query_pre_attn_scalar=5,
            sliding_window=9, final_logit_softcapping=0.5, attn_logit_softcapping=1.5),
             "Gemma2ForSequenceClassification"),
        case("qwen3-tokens", t.Qwen3Config(**SMALL, num_labels=5, classifier_dropout=0.0,
                                           tie_word_embeddings=True),
             "Qwen3ForTokenClassification"),
        case("gpt_neox-tokens", t.GPTNeoXConfig(
            **{k: v for k, v in SMALL.items() if k != "num_key_value_heads"}, num_labels=3,
            classifier_dropout=0.0, rope_parameters=dict(rope_type="default", rope_theta=300.0,
                                                         partial_rotary_factor=0.67)),
             "GPTNeoXForTokenClassification", m.COSINE),
        case("mistral-regression", t.MistralConfig(**SMALL, head_dim=8, sliding_window=9,
                                                   num_labels=1, problem_type="regression"),
             "MistralForSequenceClassification"),
        case("qwen3-multilabel", t.Qwen3Config(**SMALL, head_dim=8, num_labels=4,
                                               problem_type="multi_label_classification"),
             "Qwen3ForSequenceClassification", m.COSINE),
    ]


class Auto:
    """The class that config.json names."""

    @staticmethod
    def from_config(config, **options):
        return getattr(transformers, config.architectures[0])._from_config(config, **options)

    @staticmethod
    def from_pretrained(folder, **options):
        with open(os.path.join(folder, "config.json")) as file:
            name = json.load(file)["architectures"][0]
        return getattr(transformers, name).from_pretrained(folder, **options)


def is_sequence(config):
    return config.architectures[0].endswith("ForSequenceClassification")


def has_targets(config):
    return is_sequence(config) and (config.problem_type or "s")[0] != "s"


def last(tokens):
    """The last token of each sequence that is no padding."""
    return (tokens != PAD).sum(-1) - 1


def batch(case, what, count):
    """The first sequence is whole."""
    tokens, config = m.windows(case["name"], what, count)[:, :-1].clone(), case["config"]
    tokens[tokens == PAD] = PAD + 1
    g = m.generator(case["name"], what + "/mask")
    lengths = torch.randint(m.LENGTH // 3, m.LENGTH, (count,), generator=g)
    lengths[0] = m.LENGTH
    real = torch.arange(m.LENGTH) < lengths[:, None]
    labels = torch.randint(config.num_labels, tokens.shape, generator=g)
    tokens = torch.where(real, tokens, PAD)
    if is_sequence(config):
        chosen = torch.arange(m.LENGTH) == last(tokens)[:, None]
    else:
        chosen = torch.rand(tokens.shape, generator=g) < 0.67
    return tokens, torch.where(chosen & real, labels, -100)


def targets_of(config, tokens):
    """Of regression and of several labels at once: a function of the first tokens."""
    words = tokens[:, :config.num_labels].double()
    return words * 2 / m.VOCABULARY - 1 if config.problem_type == "regression" else words % 2


def token_losses(model, tokens, labels, dtype=torch.float64):
    """Those of a sequence stand at its label."""
    config, loss = model.config, torch.nn.functional
    logits = model(input_ids=tokens, attention_mask=(tokens != PAD).long(), use_cache=False).logits
    if has_targets(config):
        targets = targets_of(config, tokens).to(dtype)
        of = loss.mse_loss if config.problem_type == "regression" else (
            loss.binary_cross_entropy_with_logits)
        losses = of(logits.to(dtype), targets, reduction="none").mean(-1)
    else:
        chosen = labels[labels >= 0] if is_sequence(config) else labels.reshape(-1)
        losses = loss.cross_entropy(logits.view(-1, logits.shape[-1]).to(dtype), chosen,
                                    ignore_index=-100, reduction="none")
    if is_sequence(config):
        at = torch.nn.functional.one_hot(last(tokens), tokens.shape[1])
        logits = logits[:, None] * at[:, :, None].to(logits.dtype)
    return losses, logits


def logit_rows(tokens):
    first = torch.arange(len(tokens)) * tokens.shape[1]
    if m.LOGIT_STRIDE == 0:
        return first + last(tokens)
    rows = torch.arange(0, tokens.numel(), m.LOGIT_STRIDE)
    return rows[(tokens.view(-1) != PAD)[rows]]


def zero_ranges(model, config):
    return (ZERO_OF_GPT2 if config.model_type == "gpt2" else f.zero_ranges)(model, config)


f.AutoModelForCausalLM = Auto
m.batch, m.token_losses, m.logit_rows, m.zero_ranges = batch, token_losses, logit_rows, zero_ranges
m.generate = lambda case, model: {}
m.evaluate = lambda case, model: (torch.zeros(0), 0, 0.0)


def add_targets(case):
    path, config = os.path.join(m.RESULTS, case["name"] + ".safetensors"), case["config"]
    if has_targets(config):
        tensors = load_file(path)
        for prefix in ("", "step_"):
            tokens = tensors[prefix + "tokens"]
            flat = tokens.view(-1, m.LENGTH).long()
            targets = torch.full((*flat.shape, config.num_labels), float("nan"))
            targets[torch.arange(len(flat)), last(flat)] = targets_of(config, flat).float()
            tensors[prefix + "targets"] = targets.view(*tokens.shape, -1)
        save_file({k: v.contiguous() for k, v in tensors.items()}, path)
    os.chmod(path, 0o644)


def main():
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    path = os.path.join(FOLDER, "models.json")
    known = {e["name"]: e for e in json.load(open(path))["models"]} if os.path.exists(path) else {}
    for path_of in (m.MODELS, m.RESULTS):
        os.makedirs(path_of, exist_ok=True)
    for case in cases():
        name = case["name"]
        sequence = is_sequence(case["config"])
        m.SEQUENCES, m.LENGTH, m.LOGIT_STRIDE = (4, 24, 0) if sequence else (2, 40, 7)
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        shutil.rmtree(os.path.join(m.MODELS, name), ignore_errors=True)
        torch.manual_seed(m.seed_of(name, "torch"))
        f.write_folder(case)
        known[name] = {"name": name, "results": name, "dtype": "float32",
                       "parameters": m.results_of(case)}
        add_targets(case)
    m.write_json(path, {
        "script": "make_decoder_heads.py",
        "script_sha256": hashlib.sha256(open(__file__, "rb").read()).hexdigest(),
        "versions": {"python": sys.version.split()[0], "torch": torch.__version__,
                     "transformers": transformers.__version__},
        "models": [known[c["name"]] for c in cases() if c["name"] in known]})


if __name__ == "__main__":
    main()
