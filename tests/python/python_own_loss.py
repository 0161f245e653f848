"""Losses of one's own: test_python_own_loss.sh trained the same by the labels."""

import array
import gc
import math
import os
import weakref

import sifr


def raises(kind, words, call, *args, **named):
    try:
        call(*args, **named)
    except kind as error:
        assert words in str(error), f"{error} lacks {words}"
        return
    raise AssertionError(f"no {kind.__name__} with {words}")


def ids(sequences, first=0):
    row = [(j % 32) * 7 % 50 for j in range(first, first + 32)] * sequences
    row = [-100 if first and j % 5 == 3 else t for j, t in enumerate(row)]
    return memoryview(array.array("i", row)).cast("B").cast("i", (sequences, 32))


def smoothed(share):
    """Cross entropy with a share of the target spread over all words; 0: none of it."""

    def loss(logits, labels, gradient):
        total, words, rows = 0.0, logits.shape[1], logits.tolist()
        for r, label in enumerate(labels.tolist()):
            row = rows[r]
            most = max(row)
            exps = [math.exp(x - most) for x in row]
            whole = sum(exps)
            log_sum = most + math.log(whole)
            total += log_sum - (1 - share) * row[label] - share * sum(row) / words
            for i in range(words) if gradient is not None else ():
                gradient[r, i] = exps[i] / whole - share / words - (1 - share) * (i == label)
        return total

    return loss


tokens, labels = ids(4), ids(4, 1)
seen = []


def entropy(logits, labels, gradient):
    assert len(logits.shape) == 2 and logits.shape[1] == 300 and labels.shape == logits.shape[:1]
    seen.append((logits.shape[0], gradient is None))
    raises(TypeError, "read", logits.__setitem__, (0, 0), 1.0)
    raises(TypeError, "read", labels.__setitem__, 0, 1)
    raises(sifr.UsageError, "in use", lambda: engine.learning_rate)
    return smoothed(0)(logits, labels, gradient)


# --- cross entropy trains as the labels do; chunks of 20 rows ---
with sifr.Engine("ds.json", max_steps=2) as plain:
    want = [plain.step(tokens, labels) for _ in (0, 1)]
    name = "model.layers.0.self_attn.q_proj.weight"
    like = array.array("f", bytes(4 * 1024))
    plain.read_weight(name, like)
with sifr.Engine("ds.json", max_steps=2, loss=entropy, own_loss_memory=20 * 2400) as engine:
    for step in want:
        have = engine.step(tokens, labels)
        assert abs(have.loss - step.loss) < 1e-6 * step.loss, (have, step)
        assert abs(have.gradient_norm - step.gradient_norm) < 1e-4 * step.gradient_norm
        assert have.labelled == step.labelled
    assert sum(rows for rows, _ in seen) == 2 * want[0].labelled
    assert max(rows for rows, _ in seen) == 16 and not any(only for _, only in seen)
    values = array.array("f", bytes(4 * 1024))
    engine.read_weight(name, values)
    assert max(abs(a - b) for a, b in zip(like, values)) < 1e-4
    total, count = engine.evaluate(ids(2), ids(2, 1))
    assert seen[-1][1] and 0 < total / count < want[0].loss
    logits = memoryview(array.array("f", bytes(4 * 2 * 32 * 300))).cast("B").cast("f", (2, 32, 300))
    again = engine.evaluate_logits(ids(2), ids(2, 1), out=logits)
    assert again[:2] == (total, count) and any(logits[1, 5, i] for i in range(300))

# --- an exception is that of the step, which changes nothing; the next one is as ever ---
kept = []


def stumble():
    raise KeyError("mine")


def interrupt():
    raise KeyboardInterrupt


awkward = {
    (KeyError, "mine"): lambda *_: stumble(),
    (KeyboardInterrupt, ""): lambda *_: interrupt(),
    (TypeError, "loss: returned None; return the sum of the losses"): lambda *_: None,
    (TypeError, "list"): lambda *_: [1],
    (sifr.UsageError, "in use"): lambda *_: engine.learning_rate,
    (sifr.UsageError, "is kept beyond the call"): lambda logits, *_: kept.append(logits) or 1.0,
}
now = smoothed(0.1)
engine = sifr.Engine("ds.json", max_steps=9, loss=lambda *given: now(*given))
first = engine.step(tokens, labels)
assert first.loss > want[0].loss * 0.9
engine.read_weight(name, like)
for (kind, words), now in awkward.items():
    raises(kind, words, engine.step, tokens, labels)
    raises(kind, words, engine.evaluate, ids(2), ids(2, 1))
    raises(kind, words, engine.evaluate_logits, ids(2), ids(2, 1), out=logits)
raises(sifr.UsageError, "close that first", engine.close)
kept[0][0, 0]  # is there still, whatever it holds
kept.clear()
now = smoothed(0.1)
engine.read_weight(name, values)
assert values == like and engine.steps == 1
assert engine.step(tokens, labels).loss < first.loss
now = lambda *_: math.nan  # noqa: E731
assert not engine.step(tokens, labels).updated
engine.close()

# --- the plan of one, without the function; what is refused ---
given = dict(own_loss_memory="64KiB", max_steps=2)
with sifr.Engine("ds.json", loss=smoothed(0), **given) as engine:
    assert engine.planned_bytes == sifr.plan("ds.json", ranks=1, **given).bytes
raises(sifr.UsageError, "none was given", sifr.Engine, "ds.json", **given)
raises(TypeError, "loss: a function is wanted, not int", sifr.Engine, "ds.json", loss=3)
raises(sifr.UsageError, "preference and own_loss", sifr.Engine, "ds.json", loss=smoothed(0),
       preference="sigmoid")  # fmt: skip

# --- a whole run, which has the bits of a loop with its batches ---
LOOP, RUN = "by_own_loop", "by_own_run"
rows_of = dict(data="text", seed=7)
data = dict(own_loss_memory=20 * 2400, **rows_of)
out = sifr.train("ds.json", loss=smoothed(0.1), max_steps=4, save_steps=2, output=RUN, **data)
assert out.steps == 4 and not out.has_perplexity, out
with sifr.Engine("ds.json", loss=smoothed(0.1), max_steps=4, **data) as engine:
    with sifr.Data("ds.json", max_steps=4, **rows_of) as rows:
        for step in range(4):
            engine.step(**rows.step(engine, step)._asdict())
            if step == 1:
                engine.save_checkpoint(LOOP)
    engine.save(LOOP + "_model")
both = [open(f"{one}/model.safetensors", "rb").read() for one in (RUN, LOOP + "_model")]
assert both[0] == both[1]
# Checkpoints of either know that there is a loss, and of how large chunks.
other = 'own_loss "48000 bytes", but this run has'
go = dict(max_steps=4, resume=True, output=RUN)
raises(sifr.UsageError, other, sifr.train, "ds.json", **go, **rows_of)
raises(sifr.UsageError, other, sifr.train, "ds.json", loss=smoothed(0), **go, **rows_of)
for given in ({}, {"loss": smoothed(0)}):
    with sifr.Engine("ds.json", max_steps=4, **given) as engine:
        raises(sifr.UsageError, other, engine.load_checkpoint, LOOP)
with sifr.Engine("ds.json", max_steps=4, loss=smoothed(0), own_loss_memory=48000) as engine:
    assert engine.load_checkpoint(LOOP) == {} and engine.steps == 2
# What it raises is what comes out; arrays that it keeps are copies, and good behind the run.
kept, calls = [], []


def keeps(logits, labels, gradient):
    kept.append(logits)
    return 1.0


def second(logits, labels, gradient):
    calls.append(labels.shape[0])
    return stumble() if len(calls) > 9 else smoothed(0)(logits, labels, gradient)


raises(sifr.UsageError, "is kept beyond the call", sifr.train, "ds.json", loss=keeps, output="kept",
       max_steps=2, **data)  # fmt: skip
assert len(kept) == 1 and len(kept[0].tolist()) == kept[0].shape[0]
raises(KeyError, "mine", sifr.train, "ds.json", loss=second, output="second", max_steps=2, **data)
raises(TypeError, "loss: a function is wanted, not int", sifr.train, "ds.json", loss=3)
assert not os.path.exists("kept/model.safetensors")

# --- numbers beside labels ---
with sifr.Engine("ds.json", max_steps=2) as engine:
    assert engine.targets_of_token == 0
    raises(sifr.UsageError, "targets: this model reads none", engine.step, tokens, labels,
           targets=array.array("f", [1.0] * 128))  # fmt: skip
regression = {"train_batch_size": 4, "optimizer": {"type": "SGD", "params": {"lr": 0.1}},
              "sifr": {"seq_length": 8, "threads": 1}}  # fmt: skip
model = f"{os.environ['SOURCE']}/tests/golden/encoders/models/"
one = {"task": "sequence_classification", "problem_type": "regression"}
with sifr.Engine(regression, model=model + "bert", max_steps=9, **one) as engine:
    assert engine.targets_of_token == 1 and engine.batch_shape == (4, 8)
    tokens = array.array("i", [5 + j % 7 for j in range(32)])
    labels = array.array("i", [-100 if j % 8 else 0 for j in range(32)])
    wide = array.array("d", [math.nan if j % 8 else 0.25 * (j // 8) for j in range(32)])
    shaped = memoryview(array.array("f", wide)).cast("B").cast("f", (4, 8))
    found = engine.evaluate(tokens, labels, targets=wide)
    assert found == engine.evaluate(tokens, labels, targets=shaped) and found[1] == 4
    losses = [engine.step(tokens, labels, targets=wide).loss for _ in range(9)]
    assert losses[0] * 4 == found[0] and losses[-1] < losses[0], losses
    raises(sifr.UsageError, "targets are missing", engine.step, tokens, labels)
    raises(sifr.UsageError, "targets: has elements of type 'i'; give float32 or float64",
           engine.step, tokens, labels, targets=labels)  # fmt: skip
    raises(sifr.UsageError, "targets: has 4 elements", engine.step, tokens, labels, targets=wide[:4])
    raises(sifr.Error, "target inf", engine.step, tokens, labels,
           targets=array.array("d", [math.inf] * 32))  # fmt: skip
with sifr.Engine(regression, model=model + "distilbert-multilabel", max_steps=9) as engine:
    columns = engine.targets_of_token
    assert columns > 1
    targets = memoryview(array.array("f", [1.0] * 32 * columns)).cast("B")
    assert engine.step(tokens, labels, targets=targets.cast("f", (4, 8, columns))).updated
    raises(sifr.UsageError, f"in rows of {columns}", engine.step, tokens, labels,
           targets=targets.cast("f", (columns, 4, 8)))  # fmt: skip


# --- an engine whose loss has it is collected: its memory stayed for ever ---
class Holder:
    def __init__(self):
        self.engine = sifr.Engine("ds.json", max_steps=2, loss=self.loss)

    def loss(self, logits, labels, gradient):
        return float(len(labels))


holder = Holder()
assert holder.engine.step(ids(4), ids(4, 1)).loss == 1
gone = weakref.ref(holder)
del holder
gc.collect()
assert gone() is None
