"""SifrTrainer beside TRL's rows, data sets, the hub, reports; other precisions and kinds of models."""

import json
import os
import types

import datasets
import torch
import transformers
import trl
from trainer_base import LENGTH, arguments, collate, read_rows, trainer
from trainer_refusals import raises

from sifr.integrations.transformers import SifrTrainer


def losses(t):
    t.train()
    return [log["loss"] for log in t.state.log_history if "loss" in log]


def close(one, other, most=1e-4):
    assert len(one) == len(other) and max(map(abs, map(float.__sub__, one, other))) < most, (
        one,
        other,
    )


def rows_of_trl():
    """Rows and collators as SFTTrainer makes them: padded, packed, and without padding."""
    with open("rows.jsonl") as file:
        rows = [{"text": json.loads(line)["text"][:30]} for line in file]  # short enough
    texts = datasets.Dataset.from_list(rows[:40])
    tokenizer = transformers.AutoTokenizer.from_pretrained("llama")
    found = {}
    for name, more in dict(
        padded={}, flat={"padding_free": True, "max_length": None}, packed={"packing": True}
    ).items():
        config = trl.SFTConfig(
            f"sft_{name}",
            use_cpu=True,
            bf16=False,
            report_to="none",
            **{"max_length": LENGTH, **more},
        )
        model = transformers.LlamaForCausalLM.from_pretrained("llama", dtype=torch.float32)
        sft = trl.SFTTrainer(model, config, train_dataset=texts, processing_class=tokenizer)
        given = {"packing": True} if name != "padded" else {}
        t = trainer(
            f"trl_{name}",
            of={
                "train_dataset": sft.train_dataset,
                "data_collator": sft.data_collator,
                "processing_class": tokenizer,
            },
            train_sampling_strategy="sequential",
            max_steps=3,
            sifr={"sifr": {"threads": 1, **given}},
        )
        found[name] = losses(t)
        t.save_model()
        assert os.path.isfile(f"trl_{name}/tokenizer_config.json")
    close(found["padded"], found["flat"], 1e-5)
    assert found["packed"][0] > 5, found


def data_sets():
    """A Dataset loses columns that the model does not read; one of torch's streams has no length."""
    rows = [dict(row, name="x", attention_mask=[1] * len(row["input_ids"])) for row in read_rows()]
    plain = losses(trainer(max_steps=4))
    kept = trainer(of={"train_dataset": datasets.Dataset.from_list(rows)}, max_steps=4)
    assert losses(kept) == plain
    order = list(kept._get_train_sampler())

    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            return (rows[i] for i in order)

    assert losses(trainer(of={"train_dataset": Stream()}, max_steps=4)) == plain


def precisions():
    """Recomputing changes no bit; bf16 little."""
    plain = losses(trainer(max_steps=4))
    t = trainer(max_steps=4, activation_checkpointing=True)
    assert losses(t) == plain
    assert 'recompute": "unit' in json.dumps(t._config("llama", None).resolve())
    close(losses(trainer(max_steps=4, bf16=True)), plain, 0.05)
    # fp16 begins with a loss scale that may be too large: such a step changes nothing.
    own = {"fp16": {"enabled": True, "initial_scale_power": 32}, "sifr": {"threads": 1}}
    t = trainer(max_steps=30, warmup_steps=0, sifr=own)
    found = losses(t)
    rates = [log["learning_rate"] for log in t.state.log_history if "learning_rate" in log]
    skipped = t.engine.steps - t.engine.updates
    stays = sum(one == other for one, other in zip(rates, rates[1:], strict=False))
    assert skipped > 0 and stays in (skipped, skipped - 1), (skipped, rates)
    assert found[-1] < found[0], found


def hub_and_reports():
    """Pushes go to a hub that is played; reports to callbacks that transformers finds by name."""
    calls, logged = [], []

    class Hub:
        def create_repo(self, name, **kwargs):
            return types.SimpleNamespace(repo_id=name)

        def upload_folder(self, **kwargs):
            calls.append((kwargs["commit_message"], sorted(os.listdir(kwargs["folder_path"]))))
            return types.SimpleNamespace(done=lambda: True, result=lambda: None)

    class Report(transformers.TrainerCallback):
        def on_log(self, args, state, control, logs=None, **kwargs):
            logged.append(logs)

    transformers.trainer.hf_api = Hub
    found = transformers.integrations.integration_utils.INTEGRATION_TO_CALLBACK
    found["played"] = Report
    t = trainer(
        "pushed",
        push_to_hub=True,
        hub_model_id="me/small",
        save_strategy="steps",
        save_steps=2,
        max_steps=4,
        report_to=["played"],
    )
    t.train()
    t.push_to_hub()
    assert [log["loss"] for log in logged if "loss" in log], logged
    messages = [message for message, _ in calls]
    assert messages[0] == "Training in progress, step 2" and messages[-1] == "End of training", messages
    assert {"model.safetensors", "config.json", "README.md", "training_args.bin"} <= set(calls[-1][1])


def classifiers():
    """One label of a row, and one of a token, beside torch's losses and logits."""
    config = transformers.BertConfig(
        vocab_size=300, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=64, max_position_embeddings=64, num_labels=3, pad_token_id=0,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )
    llama = transformers.AutoConfig.from_pretrained("llama", num_labels=3, pad_token_id=0)
    rows = [row for row in read_rows() if len(row["input_ids"]) > 4][:24]

    def of_rows(features):
        batch = collate([{**one, "labels": one["input_ids"]} for one in features])
        batch["labels"] = torch.tensor([one["input_ids"][1] % 3 for one in features])
        return batch

    def of_tokens(features):
        batch = collate(features)
        batch["labels"] = torch.where(batch["labels"] < 0, -100, batch["labels"] % 3)
        return batch

    for cls, made, collator in (
        (transformers.BertForSequenceClassification, config, of_rows),
        (transformers.BertForTokenClassification, config, of_tokens),
        (transformers.LlamaForSequenceClassification, llama, of_rows),
    ):
        torch.manual_seed(1)
        module = cls(made)
        of = {"train_dataset": rows, "data_collator": collator, "eval_dataset": rows[:10]}
        name = f"of_{cls.__name__}"
        # With several micro batches transformers adds the means of these models' losses up.
        sizes = dict(per_device_train_batch_size=8, gradient_accumulation_steps=1)
        t = trainer(name, module, of=of, max_steps=3, warmup_steps=0, weight_decay=0.0, **sizes)
        torch.manual_seed(1)
        more = dict(use_cpu=True, report_to="none", disable_tqdm=True, save_strategy="no")
        plain = transformers.Trainer(
            cls(made),
            transformers.TrainingArguments(
                f"plain_{name}", learning_rate=3e-3, max_steps=3, logging_steps=1, **sizes, **more
            ),
            train_dataset=[rows[i] for i in t._get_train_sampler()],
            data_collator=collator,
            eval_dataset=rows[:10],
        )
        plain._get_train_sampler = lambda rows=None: None
        own, want = t.predict(rows[:10]).predictions, plain.predict(rows[:10]).predictions
        assert own.shape == want.shape, (own.shape, want.shape)
        if collator is of_rows:
            assert abs(own - want).max() < 1e-4, abs(own - want).max()
        first, wanted = losses(t)[0], losses(plain)[0]
        assert abs(first - wanted) < 1e-3, (cls, first, wanted)
    config.problem_type = "regression"
    module = transformers.BertForSequenceClassification(config)
    raises(lambda: SifrTrainer(module, arguments("none")), "problem_type", "regression")


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    datasets.disable_progress_bars()
    for test in (classifiers, rows_of_trl, data_sets, precisions, hub_and_reports):
        test()
        print(test.__name__)
