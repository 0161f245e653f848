"""transformers' Trainer on sifr's engine: docs/transformers-trainer.md.

    from sifr.integrations.transformers import SifrTrainer, SifrTrainingArguments

    args = SifrTrainingArguments("out", seq_length=512, max_steps=100)
    SifrTrainer("model", args, train_dataset=rows).train()
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from transformers import Trainer, TrainerState, TrainingArguments
from transformers.trainer import TRAINER_STATE_NAME, TRAINING_ARGS_NAME
from transformers.trainer_utils import EvalLoopOutput, has_length

from .._base import UsageError
from .._engine import Engine
from .._ranks import host_rank, rank, ranks, size, try_together
from .._weights import state_dict as read_weights
from . import _trainer_alike as alike
from . import _trainer_batch as batches
from . import _trainer_model as models
from . import _trainer_rules as rules
from ._among_ranks import check_launcher
from ._trainer_optimizer import EngineSchedule, SifrOptimizer
from ._trainer_ranks import RankAccelerator, SifrSampler, alone, gather_numbers

__all__ = ["SifrSampler", "SifrTrainer", "SifrTrainingArguments"]

_log = logging.getLogger("sifr")
_CHECKPOINT = "sifr"  # in checkpoint-N/


@dataclass
class SifrTrainingArguments(TrainingArguments):
    """TrainingArguments of a process that is one of sifr's ranks, or the only one. torch, which makes
    the batches, works on the CPU; sifr.device in `sifr` says what the engine works on."""

    _VALID_DICT_FIELDS = [*TrainingArguments._VALID_DICT_FIELDS, "sifr"]

    sifr: dict[str, Any] | str | None = field(
        default=None,
        metadata={"help": "DeepSpeed's config with sifr's section, as a dict or a file of JSON."},
    )
    seq_length: int | None = field(
        default=None, metadata={"help": "Tokens of a row: shorter ones are padded to it."}
    )

    def __post_init__(self) -> None:
        on_cpu = bool(self.use_cpu)
        self._on_cpu = on_cpu or not torch.cuda.is_available()
        self.check()
        self.use_cpu = True
        try:
            super().__post_init__()  # type: ignore[no-untyped-call]
        finally:
            self.use_cpu = on_cpu
        self.check()

    def check(self) -> None:
        """Refuses, by name, what sifr would not do."""
        check_launcher(ranks=self.world_size)
        rules.check_arguments(self, rules.Place(self.world_size, self._on_cpu))
        rules.config_of(self, self.world_size, cpu=bool(self.use_cpu))

    @cached_property
    def _setup_devices(self) -> torch.device:
        with alone():
            return super()._setup_devices

    @property
    def world_size(self) -> int:
        return size()

    @property
    def process_index(self) -> int:
        return rank()

    @property
    def local_process_index(self) -> int:
        return host_rank()

    @contextlib.contextmanager
    def main_process_first(self, local: bool = True, desc: str = "work") -> Iterator[None]:
        of = ranks()
        first = (self.local_process_index if local else self.process_index) == 0
        if of is not None and not first:
            of.agree(0, "")
        try:
            yield
        finally:
            if of is not None and first:
                of.agree(0, "")


class SifrTrainer(Trainer):
    """transformers' Trainer, whose model, gradients and optimizer are in sifr's engine.

    `model` is a model folder, or a module: on the meta device it only describes the model, and with
    values it is read once, when the engine is made. Under mpirun the processes are ranks, and each
    makes the same calls."""

    args: Any
    model: Any
    optimizer: Any
    lr_scheduler: Any

    def __init__(
        self,
        model: Any = None,
        args: SifrTrainingArguments | None = None,
        data_collator: Any = None,
        train_dataset: Any = None,
        eval_dataset: Any = None,
        processing_class: Any = None,
        model_init: Callable[..., Any] | None = None,
        compute_loss_func: Callable[..., Any] | None = None,
        compute_metrics: Callable[..., Any] | None = None,
        callbacks: list[Any] | None = None,
        optimizers: tuple[Any, Any] = (None, None),
        optimizer_cls_and_kwargs: Any = None,
        preprocess_logits_for_metrics: Callable[..., Any] | None = None,
    ) -> None:
        self._closed = False
        rules.check_trainer(
            compute_loss=self._has_own_loss(),
            compute_loss_func=compute_loss_func,
            optimizers=optimizers,
            optimizer_cls_and_kwargs=optimizer_cls_and_kwargs,
            model_init=model_init,
        )
        if not isinstance(args, SifrTrainingArguments):
            rules.refuse("args", f"are {type(args).__name__}; give SifrTrainingArguments")
        args.check()
        own = rules.own_config(args.sifr).get("sifr", {})
        rules.check_model(model, own)
        self._of = models.find(model if model is not None else own.get("model"), own)
        self._where = models.kind(self._of.module)
        self._packed = bool(own.get("packing", False))
        self._engine: Engine | None = None
        self._queue: list[Any] = []
        self._shares = False  # within a step's end, which all ranks make
        self._tokens = [0.0, 0.0]
        super().__init__(
            self._of.module,
            args,
            data_collator,
            train_dataset,
            eval_dataset,
            processing_class,
            compute_metrics=compute_metrics,
            callbacks=callbacks,
            preprocess_logits_for_metrics=preprocess_logits_for_metrics,
        )
        if self._of.holds_values:
            _log.warning(
                "SifrTrainer: the engine reads the model's values once, when it is made; those of the "
                "torch module are stale from the first step on, until materialise()"
            )

    def _has_own_loss(self) -> bool:
        return "compute_loss" in vars(self) or type(self).compute_loss is not Trainer.compute_loss

    def _check(self) -> None:
        """What was set, or done, since the trainer was made: of each call that begins."""
        rules.check_open(self._closed)
        self.args.check()
        rules.check_trainer(
            compute_loss=self._has_own_loss(),
            compute_loss_func=self.compute_loss_func,
            optimizers=None,
            optimizer_cls_and_kwargs=self.optimizer_cls_and_kwargs,
            model_init=self.model_init,
        )

    # --- the engine ---

    @property
    def engine(self) -> Engine:
        """The engine, made at its first use. Of all ranks."""
        rules.check_open(self._closed)
        if self._engine is None:
            folder, adapter = models.write(self._of, self.args.output_dir)
            config = try_together(lambda: self._config(folder, adapter))
            self._engine = Engine(config)
            own = [float(number) for number in self._engine.micro_batches]
            self.accelerator.micro_batches = [
                [int(number) for number in each] for each in gather_numbers(own)
            ]
        return self._engine

    def _config(self, folder: str, adapter: str | None) -> Any:
        args = self.args
        config = rules.config_of(args, args.world_size, folder, cpu=bool(args.use_cpu))
        config.set("adapter", adapter)
        if not self._of.peft:
            config.set("freeze", models.frozen(self._of.module))
        return config

    def materialise(self) -> Any:
        """The engine's values in the torch module, which is given back: a module on the meta device
        gets values, one that had some has the engine's. Of all ranks; each gets all values, by a
        folder in the output that is gone afterwards."""
        engine = self.engine
        folder = os.path.join(self.args.output_dir, "_sifr_values")
        try_together(lambda: _begin(folder) if rank() == 0 else None)
        engine.save(folder)
        module = try_together(lambda: models.fill(self._of, folder))
        if rank() == 0:
            shutil.rmtree(folder, ignore_errors=True)
        return module

    def close(self) -> None:
        """Gives the engine's memory back. Its weights are gone, and every later call that needs them
        is refused."""
        self._closed = True
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    # --- set-up ---

    def create_accelerator_and_postprocess(self) -> None:
        from accelerate.utils import (  # type: ignore[import-untyped]
            DataLoaderConfiguration,
            GradientAccumulationPlugin,
        )

        given = self.args.accelerator_config.to_dict()
        names = ("split_batches", "dispatch_batches", "even_batches", "use_seedable_sampler")
        loading = DataLoaderConfiguration(**{name: given[name] for name in names})
        loading.data_seed = self.args.data_seed
        with alone():
            self.accelerator = RankAccelerator(
                device_placement=False,
                mixed_precision="no",
                dataloader_config=loading,
                gradient_accumulation_plugin=GradientAccumulationPlugin(num_steps=1),
            )
        self.gather_function = self.accelerator.gather_for_metrics
        self.is_deepspeed_enabled = False
        self.is_fsdp_enabled = False

    def _move_model_to_device(self, model: Any, device: torch.device) -> None:
        """The module holds no values that anything computes with."""

    def create_optimizer(self, model: Any = None) -> Any:
        if self.optimizer is None:
            decays = self.get_decay_parameter_names(self.model)
            named = [(n, p) for n, p in self.model.named_parameters() if p.requires_grad]
            config = rules.config_of(self.args, self.args.world_size)
            params = config.resolve(self.args.world_size)["optimizer"]["params"]
            rate = float(params["lr"])
            groups = [
                {
                    "params": [p for n, p in named if (n in decays) == decay],
                    "weight_decay": float(params.get("weight_decay", 0)) if decay else 0.0,
                }
                for decay in (True, False)
            ]
            self.optimizer = SifrOptimizer(groups, rate)
        return self.optimizer

    def _check_optimizer(self) -> None:
        if not isinstance(self.optimizer, SifrOptimizer):
            rules.refuse(
                "optimizer",
                f"is {type(self.optimizer).__name__}, but the engine's own is used: give optim, or "
                "sifr=; a create_optimizer of one's own calls super's",
            )

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        self._check_optimizer()
        self.engine.set_steps(num_training_steps)
        if rules.is_outside(self.args):
            return super().create_scheduler(num_training_steps, optimizer)
        if self.lr_scheduler is None:
            self.lr_scheduler = EngineSchedule(self.optimizer, self.engine)
            self._created_lr_scheduler = True
        return self.lr_scheduler

    # --- data ---

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        rows = self.train_dataset if train_dataset is None else train_dataset
        if self.args.train_sampling_strategy == "sifr" and rows is not None and has_length(rows):
            return SifrSampler(len(rows), self.args.seed)
        return super()._get_train_sampler(train_dataset)

    def _get_dataloader(self, *args: Any, is_training: bool = False, **kwargs: Any) -> Any:
        if is_training and size() > 1:
            self.engine  # noqa: B018, it says which batches are this rank's
        self.accelerator.training = is_training
        return super()._get_dataloader(*args, **{**kwargs, "is_training": is_training})

    def _get_num_items_in_batch(self, batch_samples: Any, device: Any) -> None:
        """The engine counts labels itself, over all ranks."""

    @property
    def _rows(self) -> batches.Rows:
        config = self.model.config
        _, length, classes = self.engine.logits_shape
        return batches.Rows(
            length,
            self._where,
            getattr(config, "pad_token_id", None),
            self._packed,
            config.get_text_config().vocab_size,
            classes,
            max(getattr(config, "type_vocab_size", 0) or 0, 1),
        )

    def _read(self, inputs: Any, learns: bool) -> batches.Batch:
        return batches.read(inputs, self._rows, learns)

    def _slots(self, rows: int) -> batches.Slots:
        return batches.Slots.empty(rows, self._rows)

    # --- steps ---

    def train(self, resume_from_checkpoint: Any = None, *args: Any, **kwargs: Any) -> Any:
        self._check()
        if self._engine is not None and self._engine.steps and not resume_from_checkpoint:
            rules.refuse(
                "train",
                "a second call would begin another schedule, which is not supported yet; make a new "
                "trainer of the folder that save_model() writes, or resume from a checkpoint",
            )
        self._queue = []
        rows = self.train_dataset
        length = len(rows) if rows is not None and has_length(rows) else None
        alike.compare("train", {**self.args.to_dict(), "train_dataset's rows": length})
        return super().train(resume_from_checkpoint, *args, **kwargs)

    def hyperparameter_search(self, *args: Any, **kwargs: Any) -> Any:
        rules.refuse("hyperparameter_search", "is not supported yet; make a trainer for each trial")

    def training_step(
        self, model: Any, inputs: Any, num_items_in_batch: Any = None
    ) -> torch.Tensor:
        """Keeps the micro batch; the last one of a step runs all of it: forward and backward pass,
        clipping, update. Its loss is the step's, that of the others 0."""
        model.train()
        self._queue.append(self._prepare_inputs(inputs))
        if not self.accelerator.sync_gradients:
            return torch.tensor(0.0, device=self.args.device)
        queue, self._queue = self._queue, []
        result = self._step(try_together(lambda: self._fill(queue)))
        self.optimizer.result = result
        return torch.tensor(result.loss, device=self.args.device)

    def _maybe_log_save_evaluate(self, *args: Any, **kwargs: Any) -> None:
        """What callbacks ask for on one rank, all do: also those of the log, and of an evaluation."""
        alike.share(self.control)
        self._shares = True
        try:
            super()._maybe_log_save_evaluate(*args, **kwargs)
        finally:
            self._shares = False

    def _share(self) -> None:
        if self._shares:
            alike.share(self.control)

    def log(self, *args: Any, **kwargs: Any) -> None:
        super().log(*args, **kwargs)
        self._share()

    def _evaluate(self, *args: Any, **kwargs: Any) -> Any:
        metrics = super()._evaluate(*args, **kwargs)
        self._share()
        return metrics

    def _fill(self, queue: list[Any]) -> batches.Slots:
        micro = self.engine.micro_batch_shape[0]
        slots = self._slots(self.engine.batch_shape[0])
        for number, inputs in enumerate(queue):
            batch = self._read(inputs, True)
            if batch.rows > micro:
                raise UsageError(
                    f"inputs: a batch has {batch.rows} rows of {self._rows.length} tokens, and "
                    f"per_device_train_batch_size is {micro}"
                )
            batch.put(slots, number * micro)
        return slots

    def _step(self, slots: batches.Slots) -> Any:
        self._check_optimizer()
        rate = self.optimizer.rate
        follows = isinstance(self.lr_scheduler, EngineSchedule)
        own = rate if not follows or rate != self.engine.learning_rate else None
        given = slots.given()
        return self.engine.step(given.pop("tokens"), learning_rate=own, **given)

    def _prepare_inputs(self, inputs: Any) -> Any:
        """What is no batch is left to the reader, which says so on all ranks."""
        is_batch = isinstance(inputs, Mapping)
        return super()._prepare_inputs(inputs) if is_batch else inputs

    def floating_point_ops(self, inputs: Any) -> int:
        """0 of a batch that cannot be read: what is wrong is said when its step is made."""
        tokens = inputs.get("input_ids") if isinstance(inputs, Mapping) else None
        return int(super().floating_point_ops(inputs)) if hasattr(tokens, "numel") else 0

    def _clip_grad_norm(self, model: Any) -> torch.Tensor:
        """The engine has clipped."""
        return torch.tensor(self.optimizer.result.gradient_norm)

    def _get_grad_norm(self, model: Any, grad_norm: Any = None) -> float:
        return float(self.optimizer.result.gradient_norm)

    def store_flos(self) -> None:
        flos = sum(numbers[0] for numbers in gather_numbers([float(self.current_flos)]))
        self.state.total_flos += flos
        self.current_flos = 0

    # --- evaluation ---

    def _evaluate_rows(
        self, batch: batches.Batch, logits: list[torch.Tensor] | None
    ) -> tuple[float, int]:
        micro = self.engine.micro_batch_shape[0]
        most = max(batch.rows, self.args.eval_batch_size) if size() > 1 else batch.rows
        total, labelled = 0.0, 0
        for first in range(0, most, micro):
            slots = self._slots(micro)
            batch.put(slots, 0, first, first + micro)
            given = slots.given()
            if logits is None:
                part, count = self.engine.evaluate(given.pop("tokens"), **given)
            else:
                part, count, found = self.engine.evaluate_logits(given.pop("tokens"), **given)
                logits.append(torch.from_numpy(found[: max(batch.rows - first, 0)]))
            total, labelled = total + part, labelled + count
        return total, labelled

    def _real_rows(self, rows: int) -> int:
        """Without those that fill up the last batch of several ranks, which are counted already."""
        state = self.accelerator.gradient_state
        if size() == 1 or not state.end_of_dataloader or state.remainder <= 0:
            return rows
        return max(0, min(rows, int(state.remainder) - rank() * int(self.args.eval_batch_size)))

    def _last_batch(self) -> bool:
        state = self.accelerator.gradient_state
        return size() > 1 and state.end_of_dataloader and state.remainder > 0

    def prediction_step(
        self, model: Any, inputs: Any, prediction_loss_only: bool, ignore_keys: Any = None
    ) -> tuple[Any, Any, Any]:
        inputs = self._prepare_inputs(inputs)
        batch = try_together(lambda: self._read(inputs, False))
        has_labels = all(inputs.get(name) is not None for name in self.label_names)
        logits: list[torch.Tensor] | None = None if prediction_loss_only else []
        if batch.rows != len(inputs["input_ids"]) and (logits is not None or size() > 1):
            raise UsageError(
                "padding_free: logits of such batches, and their evaluation on several ranks, are not "
                "supported yet; give an evaluation a collator that pads"
            )
        total, labelled = self._evaluate_rows(batch, logits)
        counted = (total, labelled)
        if self._last_batch():
            counted = self._evaluate_rows(batch.keep(self._real_rows(batch.rows)), None)
        self._tokens[0] += counted[0]
        self._tokens[1] += counted[1]
        loss = torch.tensor(total / labelled if labelled else float("nan")) if has_labels else None
        if logits is None:
            return loss, None, None
        found = torch.cat(logits)[:, : batch.tokens.shape[1]]
        if self._where in (batches.FIRST, batches.LAST):
            found = self._at_labels(found, batch)
        labels = tuple(inputs[name] for name in self.label_names) if has_labels else None
        return loss, found, labels[0] if labels and len(labels) == 1 else labels

    def _at_labels(self, logits: torch.Tensor, batch: batches.Batch) -> torch.Tensor:
        """Of classes: those of the token that speaks for its row."""
        ones = torch.ones(batch.rows, dtype=torch.int32)
        tokens = {"input_ids": torch.from_numpy(batch.tokens), "labels": ones}
        marked = batches.read(tokens, self._rows, True).labels
        at = torch.from_numpy((marked == 1).argmax(1))
        return logits[torch.arange(batch.rows), at]

    def evaluation_loop(
        self,
        dataloader: Any,
        description: str,
        prediction_loss_only: bool | None = None,
        ignore_keys: Any = None,
        metric_key_prefix: str = "eval",
    ) -> EvalLoopOutput:
        """Trainer's, whose loss is the mean of its batches' means; beside it the mean over all tokens
        with a label, as `sifr eval` has it."""
        self._check()
        rows = dataloader.dataset
        alike.compare("evaluate", {"rows": len(rows) if has_length(rows) else None})
        self._tokens = [0.0, 0.0]
        output = super().evaluation_loop(
            dataloader, description, prediction_loss_only, ignore_keys, metric_key_prefix
        )
        each = gather_numbers(self._tokens)
        labelled = sum(tokens for _, tokens in each)
        if labelled and output.metrics is not None:
            loss = sum(losses for losses, _ in each) / labelled
            output.metrics[f"{metric_key_prefix}_token_loss"] = loss
        return output

    # --- folders ---

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        """The engine's folder, of all ranks, with tokenizer and arguments."""
        if state_dict is not None:
            rules.refuse("state_dict", "weights are in the engine; leave it out")
        engine = self.engine
        folder = output_dir if output_dir is not None else self.args.output_dir
        making = os.path.join(folder, "_sifr_saving")
        try_together(lambda: _begin(making) if rank() == 0 else None)
        engine.save(making)
        try_together(lambda: self._finish(making, folder) if rank() == 0 else None)

    def _finish(self, making: str, folder: str) -> None:
        for name in os.listdir(folder):
            if name.startswith(("model", "adapter_model", "pytorch_model")):
                if name.endswith((".safetensors", ".bin", ".index.json")):
                    os.remove(os.path.join(folder, name))
        for name in os.listdir(making):
            os.replace(os.path.join(making, name), os.path.join(folder, name))
        os.rmdir(making)
        tokenizer = self.processing_class or getattr(self.data_collator, "tokenizer", None)
        if tokenizer is not None:
            tokenizer.save_pretrained(folder)
        torch.save(self.args, os.path.join(folder, TRAINING_ARGS_NAME))

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        state: dict[str, Any] = {"global_step": self.state.global_step}
        state["gradient_accumulation_steps"] = self.args.gradient_accumulation_steps
        if rules.is_outside(self.args):
            state["rate"] = self.optimizer.rate
            if self.args.should_save:
                torch.save(self.lr_scheduler.state_dict(), os.path.join(output_dir, "scheduler.pt"))
        self.engine.save_checkpoint(os.path.join(output_dir, _CHECKPOINT), state)

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        """Weights and optimizer are loaded together, when the optimizer is there."""
        if os.path.isdir(os.path.join(resume_from_checkpoint, _CHECKPOINT)):
            return
        if not os.path.isdir(resume_from_checkpoint):
            raise UsageError(f"resume_from_checkpoint: {resume_from_checkpoint}: is no folder")
        raise UsageError(
            f"resume_from_checkpoint: {resume_from_checkpoint}: is a checkpoint of another Trainer, or "
            "one with save_only_model: it has no folder named sifr, with the engine's state; give it "
            "as the model to begin with its weights"
        )

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        if checkpoint is None:
            return
        state = self.engine.load_checkpoint(os.path.join(checkpoint, _CHECKPOINT))
        if state is None:
            raise UsageError(f"resume_from_checkpoint: {checkpoint}/{_CHECKPOINT}: has no checkpoint")
        own = TrainerState.load_from_json(os.path.join(checkpoint, TRAINER_STATE_NAME))
        rules.check_resumed(checkpoint, own.global_step, state, self.args)
        if isinstance(self.lr_scheduler, EngineSchedule):
            self.lr_scheduler.refresh()
            return
        stored = torch.load(os.path.join(checkpoint, "scheduler.pt"), weights_only=True)
        self.lr_scheduler.load_state_dict(stored)
        self.optimizer.show(state["rate"])

    def _load_best_model(self) -> None:
        best = str(self.state.best_model_checkpoint)
        _log.info("loads the best model, of %s (%s)", best, self.state.best_metric)
        if os.path.isdir(os.path.join(best, _CHECKPOINT)):
            self.engine.load_checkpoint(os.path.join(best, _CHECKPOINT))
            return
        values = try_together(lambda: read_weights(best))
        for name in self.engine.weights:
            if name in values:
                self.engine.write_weight(name, values[name].astype("float32"))


def _begin(folder: str) -> None:
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
