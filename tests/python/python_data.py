"""Data, classes and scores; test_python_data.sh made the same by the program."""

import json

import sifr


def raises(kind, words, call, *args, **named):
    try:
        call(*args, **named)
    except kind as error:
        assert words in str(error), f"{error} lacks {words}"
        return
    raise AssertionError(f"no {kind.__name__} with {words}")


def same(a, b, name="model.safetensors"):
    return open(f"{a}/{name}", "rb").read() == open(f"{b}/{name}", "rb").read()


# --- the batches of the run, by an engine of the same config: its bits, and its evaluation ---
given = dict(eval_data="held", max_steps=4)
with sifr.Engine("ds.json", **given) as engine, sifr.Data("ds.json", cache="cache", **given) as data:
    assert (data.seq_length, data.batch_size, data.total_steps) == (32, 4, 4)
    assert data.vocab_size == 300 and data.windows * 32 <= data.tokens and data.documents == 1
    for step in range(data.total_steps):
        batch = data.step(engine, step)
        assert batch.targets is None and batch.tokens.shape == batch.labels.shape == (4, 32)
        engine.step(**batch._asdict())
    engine.save("by_data")
    assert same("by_data", "by_program"), "other bits"
    with sifr.Data("ds.json", evaluation=True, **given) as held:
        found = held.evaluate(engine)
        assert found.loss == json.load(open("outcome.json"))["eval_loss"], found
        assert found.tokens == found.windows * 32 and found.scores == {}
        assert held.evaluate(engine, 2).windows == 2 and held.hash != data.hash
        raises(sifr.UsageError, "to evaluate on", held.step, engine, 0)
    first = data.read([1, 0])
    assert first.tokens.tolist()[1] == data.read([0]).tokens.tolist()[0]
    assert first.labels.tolist()[0][:-1] == first.tokens.tolist()[0][1:]
    raises(sifr.UsageError, "there is no sequence -1", data.read, [-1])
    raises(sifr.UsageError, "give 1 or more", data.read, [])
    raises(TypeError, "", data.read, ["a"])
    raises(sifr.UsageError, "begin at 0", data.step, engine, -1)
    raises(TypeError, "an engine is wanted", data._data.step, data._data, 0)
with sifr.Data("ds.json", cache="cache", **given) as again:
    assert again.read([0]).tokens.tolist()[0] == first.tokens.tolist()[1]
    with sifr.Engine("ds.json", train_micro_batch_size_per_gpu=1, **given) as other:
        raises(sifr.UsageError, "give both the same config", again.step, other, 0)
    raises(sifr.UsageError, "was closed", again.step, engine, 0)
raises(sifr.UsageError, "was closed", again.read, [0])
raises(sifr.UsageError, "nothing is held out", sifr.Data, "ds.json", evaluation=True)
raises(sifr.Error, "nowhere", sifr.Data, "ds.json", data=["nowhere"])

# --- an evaluation by a loss of one's own, and its exception ---
def ones(logits, labels, gradient):
    if fails:
        raise KeyError("mine")
    return float(len(labels))


fails = False
with sifr.Engine("ds.json", loss=ones, **given) as engine:
    with sifr.Data("ds.json", evaluation=True, **given) as held:
        assert held.evaluate(engine, 4).loss == 1
        fails = True
        raises(KeyError, "mine", held.evaluate, engine, 4)

# --- examples with numbers beside labels ---
regression = dict(data=["numbers.tsv"], task="sequence_classification",
                  problem_type="regression", max_steps=2)  # fmt: skip
with sifr.Engine("ds.json", **regression) as engine, sifr.Data("ds.json", **regression) as data:
    assert engine.targets_of_token == 1
    batch = data.step(engine, 0)
    assert batch.targets.shape == (4, 32, 1) and batch.segments is not None
    assert engine.step(**batch._asdict()).labelled == 4
