#!/usr/bin/env python3
"""Writes encoders/: of each encoder family what make_families.py writes of decoders, and of each of
their heads. README.md says what the files hold.

    pip install torch transformers        # versions: see encoders/models.json
    python make_encoders.py [NAME ...]    # only these; the others stay

Sequences have different lengths and are padded on the right, and their tokens have types. Both are
functions of the tokens, so that the functions of make_models.py need not know of them.
"""
import hashlib
import json
import os
import shutil
import sys

import torch
import transformers
from safetensors.torch import load_file, save_file

import make_families as f
import make_models as m

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "encoders")
m.MODELS, m.RESULTS = os.path.join(FOLDER, "models"), os.path.join(FOLDER, "results")
m.LENGTH = 40

# Sizes are odd on purpose; the epsilon of norms is large enough to matter.
SMALL = dict(vocab_size=m.VOCABULARY, hidden_size=24, intermediate_size=14, num_hidden_layers=2,
             num_attention_heads=3, max_position_embeddings=45)
DROPOUT = dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
BERT = dict(**SMALL, **DROPOUT, type_vocab_size=3, layer_norm_eps=0.02)
ROBERTA = dict(**{**SMALL, "max_position_embeddings": 47}, **DROPOUT, type_vocab_size=2,
               layer_norm_eps=0.02, pad_token_id=4)
DISTILBERT = dict(vocab_size=m.VOCABULARY, dim=24, hidden_dim=14, n_layers=2, n_heads=3,
                  max_position_embeddings=43, dropout=0.0, attention_dropout=0.0,
                  seq_classif_dropout=0.0)
MODERN = dict(**{**SMALL, "num_hidden_layers": 3}, pad_token_id=2, bos_token_id=1, eos_token_id=1,
              cls_token_id=1, sep_token_id=1, norm_eps=0.02, rope_parameters=dict(
                  full_attention=dict(rope_type="default", rope_theta=300.0),
                  sliding_attention=dict(rope_type="default", rope_theta=20.0)))

# Distances up to 3 have buckets of their own, and all beyond 21 the last one.
DEBERTA = dict(**SMALL, **DROPOUT, layer_norm_eps=0.02, relative_attention=True,
               max_relative_positions=23, position_buckets=6, share_att_key=True,
               pos_att_type="p2c|c2p", norm_rel_ebd="layer_norm", position_biased_input=False)
# Other tables: all distances up to 12, each with weights of its own, and a convolution.
DEBERTA_TABLES = {**DEBERTA, "max_relative_positions": 13, "position_buckets": -1,
                  "share_att_key": False, "norm_rel_ebd": "none", "position_biased_input": True,
                  "type_vocab_size": 2, "embedding_size": 20, "conv_kernel_size": 3}


def case(name, config, model, schedule=m.WARMUP):
    config.architectures = [model]
    return dict(name=name, config=config, dtype=torch.float32, masked=True, schedule=schedule)


def one_layer(sizes):
    return {**sizes, "n_layers" if "n_layers" in sizes else "num_hidden_layers": 1}


def heads(name, family, config, sizes):
    """A label for each sequence, and one for each token."""
    sequence = config(**one_layer(sizes), num_labels=5, problem_type="single_label_classification")
    tokens = config(**one_layer(sizes), num_labels=7)
    return [case(name + "-sequence", sequence, family + "ForSequenceClassification"),
            case(name + "-tokens", tokens, family + "ForTokenClassification", m.COSINE)]


def cases():
    t = transformers
    return [
        case("bert", t.BertConfig(**BERT), "BertForMaskedLM"),
        case("bert-untied", t.BertConfig(**{**BERT, "num_hidden_layers": 1}, hidden_act="gelu_new",
                                         pad_token_id=None, tie_word_embeddings=False),
             "BertForMaskedLM", m.COSINE),
        case("distilbert", t.DistilBertConfig(**DISTILBERT, pad_token_id=3),
             "DistilBertForMaskedLM", m.COSINE),
        case("modernbert", t.ModernBertConfig(**MODERN, local_attention=9), "ModernBertForMaskedLM"),
        case("modernbert-biases", t.ModernBertConfig(
            **{**MODERN, "num_hidden_layers": 2}, local_attention=14, norm_bias=True, mlp_bias=True,
            attention_bias=True, classifier_bias=True, decoder_bias=False,
            tie_word_embeddings=False, hidden_activation="silu", classifier_activation="tanh",
            layer_types=["sliding_attention", "full_attention"]), "ModernBertForMaskedLM",
             m.COSINE),
        *heads("bert", "Bert", t.BertConfig, BERT),
        case("bert-regression", t.BertConfig(**one_layer(BERT), num_labels=2,
                                             problem_type="regression"),
             "BertForSequenceClassification"),
        *heads("distilbert", "DistilBert", t.DistilBertConfig, DISTILBERT),
        case("distilbert-multilabel", t.DistilBertConfig(
            **one_layer(DISTILBERT), num_labels=4, problem_type="multi_label_classification"),
             "DistilBertForSequenceClassification", m.COSINE),
        *heads("modernbert", "ModernBert", t.ModernBertConfig, MODERN),
        case("modernbert-mean", t.ModernBertConfig(
            **one_layer(MODERN), num_labels=4, problem_type="single_label_classification",
            classifier_pooling="mean"), "ModernBertForSequenceClassification"),
        *heads("roberta", "Roberta", t.RobertaConfig, ROBERTA),
        *heads("xlm-roberta", "XLMRoberta", t.XLMRobertaConfig, ROBERTA),
        case("deberta", t.DebertaV2Config(**DEBERTA), "DebertaV2ForMaskedLM"),
        case("deberta-tables", t.DebertaV2Config(**DEBERTA_TABLES, conv_act="gelu"),
             "DebertaV2ForMaskedLM", m.COSINE),
        case("deberta-c2p", t.DebertaV2Config(
            **one_layer({**DEBERTA, "pos_att_type": ["c2p"], "share_att_key": False}),
            tie_word_embeddings=False, hidden_act="gelu_new"), "DebertaV2ForMaskedLM", m.COSINE),
        case("deberta-p2c", t.DebertaV2Config(
            **one_layer({**DEBERTA, "pos_att_type": ["p2c"], "share_att_key": False}),
            legacy=False), "DebertaV2ForMaskedLM"),
        case("deberta-plain", t.DebertaV2Config(
            **{**DEBERTA, "relative_attention": False, "norm_rel_ebd": "none",
               "position_biased_input": True},
            conv_kernel_size=5), "DebertaV2ForMaskedLM"),
        *heads("deberta", "DebertaV2", t.DebertaV2Config, {**DEBERTA, "pooler_hidden_act": "tanh"}),
        case("roberta", t.RobertaConfig(**ROBERTA, hidden_act="silu"), "RobertaForMaskedLM"),
        case("xlm-roberta", t.XLMRobertaConfig(**{**ROBERTA, "pad_token_id": 1,
                                                  "type_vocab_size": 1}), "XLMRobertaForMaskedLM",
             m.COSINE),
    ]


def used(model):
    """BERT's head has two biases, which are one if it is tied; else the first is not used."""
    if hasattr(model, "cls") and not model.config.tie_word_embeddings:
        del model.cls.predictions.bias
    return model


class Auto:
    """The class that config.json names."""

    @staticmethod
    def from_config(config, **options):
        return used(getattr(transformers, config.architectures[0])._from_config(config, **options))

    @staticmethod
    def from_pretrained(folder, **options):
        with open(os.path.join(folder, "config.json")) as file:
            name = json.load(file)["architectures"][0]
        return used(getattr(transformers, name).from_pretrained(folder, **options))


# --- batches -------------------------------------------------------------------------------------

PADDING = {}  # by name of the case: the id that stands for it in batches


def windows(name, what, count):
    """As in make_models.py, without the id of padding."""
    ids, padding = WINDOWS(name, what, count), PADDING[name]
    ids[ids == padding] = (padding + 1) % m.VOCABULARY
    return ids


def task_of(config):
    return config.architectures[0].rsplit("For", 1)[1]


def batch(case, what, count):
    """The first sequence is whole. A third of the words are masked, and some of those unchanged; or
    a label stands at the first token, or at most tokens."""
    tokens, config = windows(case["name"], what, count)[:, :-1].clone(), case["config"]
    g, padding = m.generator(case["name"], what + "/mask"), PADDING[case["name"]]
    lengths = torch.randint(m.LENGTH // 3, m.LENGTH, (count,), generator=g)
    lengths[0] = m.LENGTH
    real = torch.arange(m.LENGTH) < lengths[:, None]
    chosen, labels = torch.rand(tokens.shape, generator=g) < 0.33, tokens
    if task_of(config) == "MaskedLM":
        tokens = torch.where(chosen & (torch.rand(tokens.shape, generator=g) < 0.8),
                             m.VOCABULARY - 1, tokens)
    else:
        labels = torch.randint(config.num_labels, tokens.shape, generator=g)
        chosen = ~chosen
        if task_of(config) == "SequenceClassification":
            chosen = torch.arange(m.LENGTH).expand(tokens.shape) == 0
    return torch.where(real, tokens, padding), torch.where(chosen & real, labels, -100)


def targets_of(config, tokens):
    """Of regression and of several labels at once: a function of the second token and on."""
    words = tokens[:, 1:1 + config.num_labels].double()
    if config.problem_type == "regression":
        return words * 2 / m.VOCABULARY - 1
    return words % 2


def padding_of(config):
    return m.VOCABULARY - 2 if config.pad_token_id is None else config.pad_token_id


def inputs(model, tokens):
    """attention_mask, and token_type_ids where the model has them."""
    config = model.config
    real = tokens != padding_of(config)
    out = dict(attention_mask=real.long())
    types = getattr(config, "type_vocab_size", 0)
    if types:
        stretch = 5 + tokens[:, :1] % 11
        out["token_type_ids"] = torch.arange(tokens.shape[1]) // stretch % types * real
    return out


def losses_of(config, logits, tokens, labels):
    loss = torch.nn.functional
    problem = getattr(config, "problem_type", None)
    if problem in ("regression", "multi_label_classification"):
        targets = targets_of(config, tokens).to(logits.dtype)
        if problem == "regression":
            return loss.mse_loss(logits, targets, reduction="none").mean(-1)
        return loss.binary_cross_entropy_with_logits(logits, targets, reduction="none").mean(-1)
    if task_of(config) == "SequenceClassification":
        labels = labels[:, 0]
    return loss.cross_entropy(logits.view(-1, logits.shape[-1]), labels.reshape(-1),
                              ignore_index=-100, reduction="none")


def token_losses(model, tokens, labels, dtype=torch.float64):
    """Logits stand at each token; those of a sequence at its first."""
    logits, config = model(input_ids=tokens, **inputs(model, tokens)).logits, model.config
    losses = losses_of(config, logits.to(dtype), tokens, labels)
    if task_of(config) == "SequenceClassification":
        logits = torch.nn.functional.pad(logits[:, None], (0, 0, 0, tokens.shape[1] - 1))
    return losses, logits


def logit_rows(tokens):
    """Every 7th or, of sequences, the first that is no padding, which ends all but the first."""
    rows = torch.arange(0, tokens.numel(), m.LOGIT_STRIDE)
    return rows[(tokens.view(-1) != tokens[-1, -1])[rows]]


def zero_ranges(model, config):
    """A bias of keys adds the same to all scores of a query, unless positions are multiplied with
    keys (p2c) or turn them."""
    ends = (".key.bias", ".k_lin.bias")
    if config.model_type == "deberta-v2":
        of_keys = config.relative_attention and "p2c" in (config.pos_att_type or [])
        ends = (".pos_key_proj.bias",)
        if not of_keys:  # nor does what is added to all rows of the tables
            ends += (".key_proj.bias", ".encoder.LayerNorm.bias")
    return [[name, 0, p.numel()] for name, p in model.named_parameters() if name.endswith(ends)]


WINDOWS = m.windows
f.AutoModelForCausalLM = Auto
m.windows, m.batch, m.token_losses, m.logit_rows = windows, batch, token_losses, logit_rows
m.zero_ranges = zero_ranges
m.generate = lambda case, model: {}
m.evaluate = lambda case, model: (torch.zeros(0), 0, 0.0)


# --- writing -------------------------------------------------------------------------------------


def add_inputs(case):
    """What the model is given beside tokens and labels."""
    path = os.path.join(m.RESULTS, case["name"] + ".safetensors")
    tensors, model = load_file(path), f.build(case, torch.float32)
    for prefix in ("", "step_"):
        tokens = tensors[prefix + "tokens"]
        flat = tokens.view(-1, m.LENGTH).long()
        given = inputs(model, flat)
        segments = (1 - given["attention_mask"]).int()
        tensors[prefix + "segments"] = segments.view(tokens.shape)
        config = case["config"]
        if task_of(config) == "SequenceClassification" and config.problem_type[0] != "s":
            targets = torch.full((*flat.shape, config.num_labels), float("nan"))
            targets[:, 0] = targets_of(config, flat).float()
            tensors[prefix + "targets"] = targets.view(*tokens.shape, -1)
        if "token_type_ids" in given:
            tensors[prefix + "token_types"] = given["token_type_ids"].int().view(tokens.shape)
    save_file({k: v.contiguous() for k, v in tensors.items()}, path)
    os.chmod(path, 0o644)


def write_defaults():
    """What a config.json that names nothing but the model_type means, key by key."""
    out = {}
    for config in sorted({type(c["config"]) for c in cases()}, key=lambda t: t.model_type):
        written = json.loads(config().to_json_string(use_diff=False))
        out[config.model_type] = {k: v for k, v in written.items() if k != "transformers_version"}
    m.write_json(os.path.join(FOLDER, "defaults.json"), out)


def initialisation():
    """Mean and deviation of every tensor as transformers initialises it."""
    t, out = transformers, {}
    sizes = dict(vocab_size=700, hidden_size=96, intermediate_size=160, num_hidden_layers=2,
                 num_attention_heads=3, max_position_embeddings=130)
    roberta = t.RobertaConfig(**sizes, pad_token_id=3, num_labels=40)
    cases = {
        "bert": (t.BertConfig(**sizes, initializer_range=0.05), "BertForMaskedLM"),
        "bert-sequence": (t.BertConfig(**sizes, num_labels=40), "BertForSequenceClassification"),
        "roberta": (t.RobertaConfig(**sizes, pad_token_id=3), "RobertaForMaskedLM"),
        "roberta-sequence": (roberta, "RobertaForSequenceClassification"),
        "distilbert": (t.DistilBertConfig(vocab_size=700, dim=96, hidden_dim=160, n_layers=2,
                                          n_heads=3, max_position_embeddings=130),
                       "DistilBertForMaskedLM"),
        "modernbert": (t.ModernBertConfig(**sizes, pad_token_id=3), "ModernBertForMaskedLM"),
        "modernbert-untied": (t.ModernBertConfig(
            **sizes, pad_token_id=3, tie_word_embeddings=False, initializer_cutoff_factor=1.2),
                              "ModernBertForMaskedLM"),
        "modernbert-tokens": (t.ModernBertConfig(**sizes, pad_token_id=3, num_labels=40),
                              "ModernBertForTokenClassification"),
        "deberta": (t.DebertaV2Config(
            **sizes, relative_attention=True, pos_att_type="c2p|p2c", position_buckets=64,
            norm_rel_ebd="layer_norm", share_att_key=True, conv_kernel_size=3, type_vocab_size=40,
            embedding_size=80), "DebertaV2ForMaskedLM"),
        "deberta-sequence": (t.DebertaV2Config(
            **sizes, relative_attention=True, pos_att_type="c2p|p2c", num_labels=40),
                             "DebertaV2ForSequenceClassification"),
    }
    for name, (config, model) in cases.items():
        torch.manual_seed(m.seed_of(name, "init"))
        config.architectures = [model]
        stats = {}
        for n, p in Auto.from_config(config).named_parameters():
            p = p.detach()
            stats[n] = {"count": p.numel(), "mean": float(p.double().mean()),
                        "deviation": float(p.double().std(correction=0)),
                        "zero_rows": [i for i, row in enumerate(p) if not row.any()]
                        if p.dim() == 2 else []}
        out[name] = {"config": json.loads(config.to_json_string(use_diff=True)), "tensors": stats}
    m.write_json(os.path.join(FOLDER, "init.json"), out)


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
        PADDING[name] = padding_of(case["config"])
        of_sequences = task_of(case["config"]) == "SequenceClassification"
        m.SEQUENCES, m.LENGTH, m.LOGIT_STRIDE = (4, 24, 24) if of_sequences else (2, 40, 7)
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        shutil.rmtree(os.path.join(m.MODELS, name), ignore_errors=True)
        torch.manual_seed(m.seed_of(name, "torch"))
        f.write_folder(case)
        known[name] = {"name": name, "results": name, "dtype": "float32",
                       "parameters": m.results_of(case)}
        add_inputs(case)
        m.write_json(path, {
            "script": "make_encoders.py",
            "script_sha256": hashlib.sha256(open(__file__, "rb").read()).hexdigest(),
            "versions": {"python": sys.version.split()[0], "torch": torch.__version__,
                         "transformers": transformers.__version__},
            "models": [known[c["name"]] for c in cases() if c["name"] in known]})
    write_defaults()
    initialisation()


if __name__ == "__main__":
    main()
