"""Two ranks under mpirun, with Lightning's Trainer; lightning_runs.py has the helpers' like."""

import lightning as L
import sifr
import torch
from lightning.pytorch import callbacks as cb
from lightning.pytorch.loggers import CSVLogger
from sifr.integrations.lightning import SifrModule
from torch.utils.data import DataLoader, DistributedSampler

ids = [j * 7 % 50 for j in [*range(32), 0]]
rows = [{"tokens": torch.tensor(ids[:32]), "labels": torch.tensor(ids[1:])}] * 40
rank = sifr.rank()


def fit(module, steps, **given):
    keep = cb.ModelCheckpoint(dirpath="two_ck", every_n_train_steps=3, save_top_k=-1)
    run = L.Trainer(
        strategy="sifr", max_steps=steps, logger=CSVLogger("two_csv"), callbacks=[keep],
        enable_progress_bar=False, enable_model_summary=False, log_every_n_steps=1,
    )  # fmt: skip
    run.fit(module, DataLoader(rows, batch_size=2), **given)
    return run


if sifr.size() == 1:  # what two ranks have saved
    alone = SifrModule("llama", "ds.json")
    L.Trainer(strategy="sifr", accumulate_grad_batches=2, max_steps=5, logger=False).fit(
        alone, DataLoader(rows, batch_size=2), ckpt_path="two_ck/epoch=0-step=3.ckpt"
    )
    alone.save("one_rank_on")
    raise SystemExit
module = SifrModule("llama", "zero2.json")
run = fit(module, 5)
assert (run.world_size, run.global_rank, run.is_global_zero) == (2, rank, rank == 0)
assert isinstance(run.train_dataloader.sampler, DistributedSampler)
assert run.global_step == 5 and module.last_step.labelled == 2 * 64
module.save("two_ranks")
on = SifrModule("llama", "zero2.json")
fit(on, 5, ckpt_path="two_ck/epoch=0-step=3.ckpt")
on.save("two_ranks_on")
# What callbacks and metrics ask of all ranks.
strategy = run.strategy
assert strategy.broadcast({"from": rank}, 1) == {"from": 1}
assert module.all_gather(torch.tensor([rank, 5])).tolist() == [[0, 5], [1, 5]]
for how, wanted in (("mean", 0.5), ("sum", 1), ("max", 1), ("min", 0)):
    assert strategy.reduce(torch.tensor(float(rank)), reduce_op=how) == wanted, how
assert not strategy.reduce_boolean_decision(rank == 0)
assert strategy.reduce_boolean_decision(rank == 0, all=False)
(held,) = L.Trainer(strategy="sifr", logger=False).validate(module, DataLoader(rows, batch_size=2))
total, count = module.batches.evaluate(([ids[:32]], [ids[1:]]))
assert abs(held["val_loss"] - total / count) < 1e-12
try:
    L.Trainer(strategy="sifr", logger=False, callbacks=[cb.OnExceptionCheckpoint(".")]).fit(
        SifrModule("llama", "zero2.json"), DataLoader(rows, batch_size=2)
    )
    raise AssertionError("OnExceptionCheckpoint is taken")
except sifr.UsageError as error:
    assert "OnExceptionCheckpoint" in str(error), error
print("rank", rank, "is done")
