"""PEFT models, and adapters by sifr's config, under SifrTrainer."""

import os

import peft
import sifr
import torch
import transformers
from trainer_base import read_rows, trainer
from trainer_refusals import raises


def adapted(base="llama", dropout=0.0):
    torch.manual_seed(3)
    model = transformers.LlamaForCausalLM.from_pretrained(base, dtype=torch.float32)
    config = peft.LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"], lora_dropout=dropout)
    return peft.get_peft_model(model, config)


def loss_of(folder):
    base = transformers.LlamaForCausalLM.from_pretrained("llama", dtype=torch.float32)
    model = peft.PeftModel.from_pretrained(base, folder)
    ids = torch.tensor([read_rows("held.jsonl")[0]["input_ids"]])
    return float(model(ids, labels=ids).loss.detach())


def a_peft_model():
    """Begins with PEFT's own values, trains as PEFT does, and saves an adapter."""
    module = adapted()
    more = dict(max_steps=4, warmup_steps=0, lr_scheduler_type="constant")
    t = trainer("adapter", module, save_strategy="steps", save_steps=2, **more)
    t.train()
    t.save_model()
    assert os.path.isfile("adapter/adapter_model.safetensors")
    assert not os.path.exists("adapter/model.safetensors")
    assert os.path.isfile("adapter/checkpoint-2/adapter_model.safetensors")
    plain = transformers.Trainer(
        adapted(),
        transformers.TrainingArguments(
            "plain_adapter",
            use_cpu=True,
            report_to="none",
            per_device_train_batch_size=4,
            gradient_accumulation_steps=2,
            learning_rate=3e-3,
            weight_decay=0.01,
            logging_steps=1,
            save_strategy="no",
            disable_tqdm=True,
            train_sampling_strategy="sequential",
            **more,
        ),
        train_dataset=[t.train_dataset[i] for i in t._get_train_sampler()],
        data_collator=t.data_collator,
    )
    plain.train()
    logs = [
        [log["loss"] for log in one.state.log_history if "loss" in log] for one in (t, plain)
    ]
    assert all(abs(a - b) < 1e-4 for a, b in zip(*logs, strict=True)), logs
    plain.save_model()
    ours, theirs = loss_of("adapter"), loss_of("plain_adapter")
    assert abs(ours - theirs) < 1e-3, (ours, theirs)
    own = t.materialise()
    found = own(torch.tensor([[1, 2, 3]])).logits
    base = transformers.LlamaForCausalLM.from_pretrained("llama", dtype=torch.float32)
    want = peft.PeftModel.from_pretrained(base, "adapter")(torch.tensor([[1, 2, 3]])).logits
    assert torch.allclose(found, want, atol=1e-6)
    # It goes on with the same bits.
    again = trainer("adapter", adapted(), **more)
    again.train(resume_from_checkpoint="adapter/checkpoint-2")
    again.save_model("adapter_again")
    with open("adapter/adapter_model.safetensors", "rb") as one:
        with open("adapter_again/adapter_model.safetensors", "rb") as other:
            assert one.read() == other.read()


def by_folder():
    """An adapter's folder in place of the model's, and a new one by sifr=."""
    t = trainer("further", "adapter", max_steps=2)
    t.train()
    t.save_model()
    assert os.path.isfile("further/adapter_model.safetensors")
    lora = {"r": 4, "lora_alpha": 8, "target_modules": ["q_proj"]}
    t = trainer("fresh", sifr={"sifr": {"threads": 1, "lora": lora}}, max_steps=2)
    t.train()
    t.save_model()
    assert set(sifr.state_dict("fresh")) == {
        f"base_model.model.model.layers.{i}.self_attn.q_proj.lora_{part}.weight"
        for i in range(2)
        for part in "AB"
    }


def what_is_refused():
    module = adapted()
    module.get_base_model().name_or_path = "nowhere"
    raises(lambda: trainer("none", module).train(), "base of a PEFT model", "folder")
    with torch.device("meta"):
        base = transformers.LlamaForCausalLM(transformers.AutoConfig.from_pretrained("llama"))
        empty = peft.get_peft_model(base, peft.LoraConfig(target_modules=["q_proj"]))
    raises(lambda: trainer("none", empty), "PEFT model without values", "lora")


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    for test in (a_peft_model, by_folder, what_is_refused):
        test()
        print(test.__name__)
