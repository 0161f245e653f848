"""What integrations share, without torch; test_python_integrations.sh trained the same."""

import array
import os
import sys

import sifr
from sifr.integrations import _checkpoint_folder, deepspeed_like
from sifr.integrations._micro_batches import MicroBatches


def raises(kind, words, call, *args, **named):
    try:
        call(*args, **named)
    except kind as error:
        assert words in str(error), f"{error} lacks {words}"
        return
    raise AssertionError(f"no {kind.__name__} with {words}")


def same(a, b):
    a, b = (open(f"{folder}/model.safetensors", "rb").read() for folder in (a, b))
    return a == b


assert not {"torch", "numpy", "lightning", "transformers"} & set(sys.modules)
try:
    import lightning  # noqa: F401
except ImportError:
    raises(ImportError, "needs PyPI's lightning", __import__, "sifr.integrations.lightning")
ids = [j * 7 % 50 for j in [*range(32), 0]]
row, label = ids[:32], ids[1:]
two = {"tokens": [row, row], "labels": [label, label]}

# --- three calls: the bits of the program, and when a loss is known ---
made = deepspeed_like.initialize(model="llama", config="ds.json", total_steps=5)
engine = made[0]
assert made[1:] == (None, None, None)
assert engine.gradient_accumulation_steps() == engine.train_micro_batch_size_per_gpu() == 2
for step in range(5):
    for part in range(2):
        assert not engine.is_gradient_accumulation_boundary()
        loss = engine(two)
        raises(sifr.UsageError, "not known before", loss.item)
        raises(sifr.UsageError, "computed outside", lambda: loss * 0.5)
        raises(sifr.UsageError, "has no backward", engine.step)
        raises(sifr.UsageError, "has no backward", engine, two)
        raises(sifr.UsageError, "computed outside", engine.backward, 1.0)
        raises(sifr.UsageError, "waits for a step", engine.backward, deepspeed_like.Loss())
        engine.backward(loss)
        assert engine.is_gradient_accumulation_boundary() == (part == 1)
        if part == 0:
            raises(sifr.UsageError, "micro batches wait", engine.save_checkpoint, "kept")
        engine.step()
        assert engine.global_steps == step + part
    assert abs(loss.item() - engine.loss) < 1e-12 and float(loss) == loss.item()
assert engine.get_lr() == [engine.engine.learning_rate] and engine.get_global_grad_norm() > 0
assert engine.skipped_steps == 0 and engine.train_batch_size() == 4
engine.save_16bit_model("by_calls")
assert same("by_calls", "by_program"), "other bits"
after = engine.eval()(two).item()
assert 0 < after < engine.loss
engine.train()
engine.save_checkpoint("kept", client_state={"mine": 1})
raises(AttributeError, "torch holds no weights", getattr, engine, "module")
raises(sifr.UsageError, "tag", engine.save_checkpoint, "kept", "best")
for name in ("optimizer", "training_data", "lr_scheduler", "model_parameters"):
    raises(sifr.UsageError, name, deepspeed_like.initialize, model="llama", **{name: object()})
raises(sifr.UsageError, "folder's path", deepspeed_like.initialize, model=object())
again = deepspeed_like.initialize(model="llama", config="ds.json", total_steps=5)[0]
assert again.load_checkpoint("kept") == (os.path.join("kept", "checkpoint-5"), {"mine": 1})
assert again.eval()(**two).item() == after
again.engine.close()

# --- batches of loaders: other words, short rows, few rows, all as if they were written out ---
batches = MicroBatches(engine.engine, "llama")
assert batches.decoder and batches.per_step == 2
whole = batches.evaluate(two)
assert whole == batches.evaluate((two["tokens"], two["labels"])) and whole[1] == 64
flat = memoryview(array.array("q", row + row)).cast("B").cast("q", (2, 32))
last = {"tokens": [row, row], "labels": [label[:31] + [-100]] * 2}
for given in (flat, [flat], {"input_ids": flat, "labels": flat}):
    assert batches.evaluate(given) == batches.evaluate(last), given
few = {"tokens": [row], "labels": [label]}
padded = {"tokens": [row, [0] * 32], "labels": [label, [-100] * 32]}
assert batches.evaluate(few) == batches.evaluate(padded)
short = {"tokens": [row[:20], row[:20]], "labels": [label[:20]] * 2}
padded = {"tokens": [row[:20] + [0] * 12] * 2, "labels": [label[:20] + [-100] * 12] * 2}
assert batches.evaluate(short) == batches.evaluate(padded)
theirs = {"input_ids": [row[:20] + [3] * 12], "labels": [row[:20] + [-100] * 12],
          "attention_mask": [[1] * 20 + [0] * 12]}  # fmt: skip
ours = {"tokens": [row[:20]], "labels": [label[:19] + [-100]]}
assert batches.evaluate(theirs) == batches.evaluate(ours)
assert batches.evaluate({"tokens": [], "labels": []}) == (0, 0)
raises(sifr.UsageError, "a step without", batches.step)
assert batches.add(two) == 64 and batches.add(few) == 32
raises(sifr.UsageError, "a step has 2 micro batches", batches.add, two)
batches.drop(keep=1)
assert len(batches) == 1
batches.drop()
raises(sifr.UsageError, "'weight' is none of", batches.add, {**two, "weight": [[1.0]]})
raises(sifr.UsageError, "has 3 rows", batches.add, [[row] * 3])
raises(sifr.UsageError, "rows of 33 tokens", batches.add, [[ids]])
raises(sifr.UsageError, "another shape", batches.add, ([row, row], [label]))
raises(sifr.UsageError, "has no tokens", batches.add, {"labels": [label]})
raises(sifr.UsageError, "no labels", batches.add, {"input_ids": [row]})
raises(sifr.UsageError, "beyond 32 bits", batches.add, [[[2**40]]])
raises(sifr.UsageError, "whole numbers", batches.add, [[[0.5]]])
raises(sifr.UsageError, "type 'f'", batches.add, {"tokens": array.array("f", [1.0])})
raises(sifr.UsageError, "1 dimensions", batches.add, {"tokens": array.array("i", row)})
raises(sifr.UsageError, "has 3 parts", batches.add, ([row], [label], [row]))
mask = {**theirs, "attention_mask": [[0] * 12 + [1] * 20]}
raises(sifr.UsageError, "only follow them", batches.add, mask)
raises(sifr.UsageError, "padding has labels", batches.add, {**theirs, "labels": [row]})
batches.decoder = False
raises(sifr.UsageError, "decoders alone", batches.add, short)
raises(sifr.UsageError, "which only a decoder's", batches.add, [flat])
batches.decoder = None
raises(sifr.UsageError, "does not name", batches.add, theirs)

# --- a checkpoint that is a folder: whole, or not there ---
def put(text):
    return lambda path: open(path, "w").write(text)


write = _checkpoint_folder.write
write(engine.engine, "a.ckpt", put("one"))
found = _checkpoint_folder.find("a.ckpt")
assert open(found.state).read() == "one" and same(found.model, "by_program")
assert os.path.isdir(os.path.join(found.engine, "checkpoint-5"))
write(engine.engine, "a.ckpt", put("two"))
assert open(found.state).read() == "two"


def fails(path):
    raise OSError("no space")


raises(OSError, "no space", write, engine.engine, "a.ckpt", fails)
assert open(found.state).read() == "two"  # the one before stays
write(engine.engine, "a.ckpt", put("three"), weights_only=True)
assert _checkpoint_folder.find("a.ckpt").engine is None
assert sorted(n for n in os.listdir(".") if n.startswith("a.ckpt")) == ["a.ckpt"]
raises(sifr.UsageError, "is no checkpoint", write, engine.engine, "llama", put(""))
raises(sifr.UsageError, "a local path", write, engine.engine, "s3://bucket/a.ckpt", put(""))
raises(sifr.UsageError, "is a file", _checkpoint_folder.find, "ds.json")
raises(sifr.UsageError, "lacks lightning.pt", _checkpoint_folder.find, "llama")
os.rename("a.ckpt", "a.ckpt.old")
raises(FileNotFoundError, "a.ckpt.old is the one before", _checkpoint_folder.find, "a.ckpt")
_checkpoint_folder.remove("a.ckpt.old")
assert not os.path.exists("a.ckpt.old")
assert "torch" not in sys.modules
