"""transformers' Trainer on sifr: trains a model folder on rows of text, evaluates, and saves.

    python3 transformers_trainer.py          alone, or
    mpirun -n 2 python3 transformers_trainer.py

It reads model/ and rows.jsonl ({"text": ...} on each line), and writes tuned/, which is a model
folder with checkpoints. Explained in docs/transformers-trainer.md."""

import json

import sifr
import transformers
from sifr.integrations.transformers import SifrTrainer, SifrTrainingArguments

tokenizer = transformers.AutoTokenizer.from_pretrained("model")
tokenizer.pad_token = tokenizer.eos_token
with open("rows.jsonl") as file:
    texts = [json.loads(line)["text"] for line in file]
rows = [tokenizer(text, truncation=True, max_length=64) for text in texts]
args = SifrTrainingArguments(
    "tuned",
    seq_length=64,  # rows are padded to it
    max_steps=20,
    per_device_train_batch_size=4,
    learning_rate=3e-3,
    lr_scheduler_type="cosine",
    warmup_steps=0.1,
    weight_decay=0.01,
    eval_strategy="steps",
    save_strategy="steps",
    eval_steps=10,
    save_steps=10,
    load_best_model_at_end=True,
    report_to="none",
    disable_tqdm=True,
    sifr={"zero_optimization": {"stage": 2}},  # DeepSpeed's keys, and sifr's own
)
trainer = SifrTrainer(
    "model",
    args,
    data_collator=transformers.DataCollatorForLanguageModeling(tokenizer, mlm=False),
    train_dataset=rows[:-16],
    eval_dataset=rows[-16:],
    processing_class=tokenizer,
    callbacks=[transformers.EarlyStoppingCallback(early_stopping_patience=3)],
)
result = trainer.train()
metrics = trainer.evaluate()
trainer.save_model()
if sifr.rank() == 0:
    print(f"{result.global_step} steps, loss {result.training_loss:.2f}")
    held, tokens = metrics["eval_loss"], metrics["eval_token_loss"]
    print(f"held out: {held:.2f}, of all tokens {tokens:.2f}")
    print(f"the best is {trainer.state.best_model_checkpoint}")
