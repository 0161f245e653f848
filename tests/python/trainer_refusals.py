"""What SifrTrainer refuses, one case a name: arguments that the rules alone see, without torch, and by
tests/soak/trainer_refused.py with the real classes."""

#: Argument and value, on one rank and the CPU.
ARGUMENTS = {
    "label_smoothing_factor": 0.1,
    "neftune_noise_alpha": 5.0,
    "use_liger_kernel": True,
    "torch_compile": True,
    "deepspeed": {"zero_optimization": {"stage": 2}},
    "fsdp": "full_shard",
    "auto_find_batch_size": True,
    "fp16": True,
    "fp16_full_eval": True,
    "bf16_full_eval": True,
    "optim": "galore_adamw",
    "debug": "underflow_overflow",
    "train_sampling_strategy": "batch_rebalance",
    "optim_target_modules": "all-linear",
    "activation_checkpointing_kwargs": {"every_n_layers": 2},
    "save_on_each_node": True,
    "learning_rate": float("nan"),
    "weight_decay": float("nan"),
    "adam_beta1": float("nan"),
    "max_grad_norm": float("inf"),
    "ddp_timeout": -1,
    "lr_scheduler_kwargs": "x",
}
#: With several ranks alone.
OF_RANKS = {"average_tokens_across_devices": False, "eval_use_gather_object": True}
#: Of sifr=: the Trainer's business.
KEYS = ["data", "output", "max_steps", "eval_steps", "save_steps", "join_texts"]


def raises(call, *words):
    try:
        call()
    except ValueError as error:
        assert type(error).__name__ == "UsageError", repr(error)
        assert all(word in str(error) for word in words), error
        return
    raise AssertionError(f"{words} is not refused")
