"""What SifrTrainer refuses, by name, with transformers' own classes; and bad rows and folders."""

import shutil
from dataclasses import dataclass

import torch
import transformers
from sifr.integrations.transformers import SifrTrainer, SifrTrainingArguments
from trainer_base import arguments, collate, read_rows, trainer
from trainer_refusals import ARGUMENTS, KEYS, raises


def arguments_by_name():
    for name, value in ARGUMENTS.items():
        raises(lambda name=name, value=value: arguments("out", **{name: value}), name)
        made = trainer()  # also where they are set later
        setattr(made.args, name, value)
        raises(made.train, name)
        raises(lambda made=made: SifrTrainer("llama", made.args), name)
    for key in KEYS:
        raises(lambda key=key: arguments("out", sifr={"sifr": {key: 1}}), f"sifr.{key}")


@dataclass
class WithTexts(SifrTrainingArguments, transformers.Seq2SeqTrainingArguments):
    pass


class OwnLoss(SifrTrainer):
    def compute_loss(self, *args, **kwargs):
        return super().compute_loss(*args, **kwargs)


def trainers_by_name():
    raises(lambda: arguments("out", WithTexts, predict_with_generate=True), "predict_with_generate")
    raises(lambda: trainer(cls=OwnLoss), "compute_loss", "overridden")
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))])
    for name, value in dict(
        compute_loss_func=lambda *args, **kwargs: 0,
        optimizers=(optimizer, None),
        optimizer_cls_and_kwargs=(torch.optim.SGD, {}),
        model_init=lambda: None,
    ).items():
        raises(lambda name=name, value=value: trainer(of={name: value}), name)
    raises(lambda: trainer().hyperparameter_search(), "hyperparameter_search")
    plain = transformers.TrainingArguments("out", use_cpu=True, report_to="none")
    raises(lambda: SifrTrainer("llama", plain), "args", "SifrTrainingArguments")
    raises(lambda: trainer(model="nowhere"), "nowhere", "config.json")
    raises(lambda: trainer(model=3), "a folder or a module")
    raises(lambda: trainer(model=torch.nn.Linear(1, 1)), "Linear", "not supported")
    for change, *words in (
        (lambda m: setattr(m, "loss_function", lambda *a, **k: 0), "loss_function"),
        (lambda m: setattr(m.model.layers[0].mlp, "act_fn", torch.nn.ReLU()), "act_fn", "ReLU"),
        (lambda m: setattr(m.model.norm, "forward", lambda x: x), "model.norm", "forward"),
    ):
        changed = transformers.AutoModelForCausalLM.from_pretrained("llama")
        change(changed)
        raises(lambda changed=changed: trainer(model=changed), "model", *words)


def bad_rows():
    def train(rows, data_collator=collate):
        of = {"train_dataset": rows, "data_collator": data_collator}
        trainer(of=of, max_steps=1).train()

    rows = read_rows()[:8]
    raises(lambda: train([{**row, "input_ids": row["input_ids"] * 2, "labels": row["labels"] * 2}
                          for row in rows]), "seq_length is 32", "row 0")

    beyond = [{**row, "input_ids": [300] + row["input_ids"][1:]} for row in rows]
    raises(lambda: train(beyond), "input_ids", "300", "0 to 299")
    beyond = [{**row, "labels": row["labels"][:-1] + [-1]} for row in rows]
    raises(lambda: train(beyond), "labels", "-1", "0 to 299")

    def changed(**more):
        return lambda features: {**collate(features), **more}

    raises(lambda: train(rows, changed(labels=None)), "labels", "none")
    four = torch.ones(4, 32, dtype=torch.int64)
    left = four.clone()
    left[:, :3] = 0
    raises(lambda: train(rows, changed(input_ids=four, labels=four, attention_mask=left)),
           "attention_mask", "right")
    behind = four.clone()
    behind[:, 20:] = 0
    raises(lambda: train(rows, changed(input_ids=four, labels=four, attention_mask=behind)),
           "labels", "attention_mask is 0")
    again = torch.arange(32).repeat(4, 1) % 16
    raises(lambda: train(rows, changed(input_ids=four, labels=four, attention_mask=four,
                                       position_ids=again)), "position_ids", "packing")
    raises(lambda: train(rows, changed(inputs_embeds=four * 1.0)), "inputs_embeds", "supported")
    raises(lambda: train(rows, changed(labels=four * 0.5, input_ids=four, attention_mask=four)),
           "labels", "float32")
    bad_arrays(lambda given: train(rows, lambda features: given))


def bad_arrays(train):
    """One rule for every array: ids beyond 32 bits wrapped, and other shapes were broadcast."""
    four = torch.ones(4, 32, dtype=torch.int64)
    usual = dict(input_ids=four, labels=four, attention_mask=four)
    big = 2**32
    for name, value, *words in (
        ("input_ids", four * (big + 5), str(big + 5), "0 to 299"),
        ("input_ids", four * (5 - big), str(5 - big), "0 to 299"),
        ("labels", four * (big + 5), str(big + 5), "0 to 299"),
        ("labels", four * (big - 100), str(big - 100), "-100 says"),
        ("attention_mask", four * big, str(big), "neither 0 nor 1"),
        ("attention_mask", four * 2, "2 is neither"),
        ("position_ids", four * -1, "-1"),
        ("labels", four[:, :1], "(4, 1)", "(4, 32)"),
        ("labels", four[:1], "(1, 32)", "(4, 32)"),
        ("labels", four[:, :31], "(4, 31)", "(4, 32)"),
        ("attention_mask", four[:, :1], "(4, 1)", "(4, 32)"),
        ("token_type_ids", four[:, :1] * 0, "(4, 1)", "(4, 32)"),
        ("position_ids", four[:, :1] * 0, "(4, 1)", "(4, 32)"),
        ("label_ids", four * 7, "labels", "both"),
        ("input_ids", None, "no input_ids"),
        ("input_ids", four[0], "(32,)", "two dimensions"),
        ("input_ids", four[None], "(1, 4, 32)", "two dimensions"),
        ("input_ids", four.bfloat16(), "BFloat16"),
        ("input_ids", torch.zeros(4, 0), "no token"),
    ):
        given = {**usual, name: value}
        raises(lambda given=given: train(given), name, *words)
    for given in ((four,), "text", None):
        raises(lambda given=given: train(given), "inputs", type(given).__name__, "dict")
    train({**usual, "label_ids": four})  # says the same


def after_close():
    made = trainer(max_steps=1)
    made.train()
    made.close()
    rows = read_rows()[:4]
    for call in (made.train, made.save_model, made.materialise, lambda: made.evaluate(rows),
                 lambda: made.predict(rows), lambda: made.engine):
        raises(call, "closed", "save_model")
    made.close()  # again: nothing


def set_later():
    for name in ("compute_loss", "compute_loss_func"):
        made = trainer()
        setattr(made, name, lambda *args, **kwargs: 0)
        raises(made.train, name)
        raises(lambda made=made: made.evaluate(read_rows()[:4]), name)
    made = trainer()
    made.args.fp16_full_eval = True
    raises(lambda: made.evaluate(read_rows()[:4]), "fp16_full_eval")
    raises(lambda: trainer(sifr={"sifr": {"model": "other"}}), "llama", "other")
    raises(lambda: arguments("out", accelerator_config={
        "gradient_accumulation_kwargs": {"num_steps": 4}}), "gradient_accumulation_kwargs")


def bad_changes():
    class Decay(transformers.TrainerCallback):
        def on_step_begin(self, args, state, control, optimizer=None, **kwargs):
            optimizer.param_groups[0]["weight_decay"] = 0.5

    class Rates(transformers.TrainerCallback):
        def on_step_begin(self, args, state, control, optimizer=None, **kwargs):
            optimizer.param_groups[0]["lr"] = 0.5

    class Betas(transformers.TrainerCallback):
        def on_step_begin(self, args, state, control, optimizer=None, **kwargs):
            optimizer.param_groups[0]["betas"] = (0.5, 0.5)

    class Frozen(transformers.TrainerCallback):
        def on_step_begin(self, args, state, control, model=None, **kwargs):
            next(model.parameters()).requires_grad = False

    class Other(SifrTrainer):
        def create_optimizer(self, model=None):
            self.optimizer = torch.optim.SGD(self.model.parameters())
            return self.optimizer

    raises(trainer(of={"callbacks": [Decay()]}).train, "weight_decay")
    raises(trainer(of={"callbacks": [Betas()]}).train, "betas")
    raises(trainer(of={"callbacks": [Frozen()]}).train, "requires_grad")
    raises(trainer(cls=Other).train, "optimizer", "SGD")
    raises(trainer(of={"callbacks": [Rates()]}).train, "rates of their own")
    one = trainer("parts", max_steps=2, save_strategy="steps", save_steps=1)
    one.train()
    shutil.rmtree("parts/checkpoint-2/sifr")
    shutil.copytree("parts/checkpoint-1/sifr", "parts/checkpoint-2/sifr")
    raises(lambda: trainer("parts", max_steps=3).train("parts/checkpoint-2"), "step 2", "step 1")
    raises(one.optimizer.state_dict, "state_dict")


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    for test in (arguments_by_name, trainers_by_name, bad_rows, after_close, set_later, bad_changes):
        test()
        print(test.__name__)
