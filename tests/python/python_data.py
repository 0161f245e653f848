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
chunks = sifr.Config("ds.json", own_loss_memory="1MiB", **given)  # of the engine's loss
with sifr.Engine(chunks, loss=ones) as engine:
    with sifr.Data(chunks, evaluation=True) as held:
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

# --- classes ---
program = [json.loads(line) for line in open("classified.json")]
lines = open("lines").read().splitlines()
with sifr.Classifier("classes") as classifier:
    assert classifier.labels == ["no", "yes"] and not classifier.reads_words
    assert classifier.scores_are == "one"
    found = classifier.classify(lines)
    assert [f.label for f in found] == [p["label"] for p in program]
    assert all(len(f.scores[0]) == 2 and abs(sum(f.scores[0]) - 1) < 1e-6 for f in found)
    assert classifier.classify(lines) == found == sifr.classify("classes", lines)
    pairs = classifier.classify([("a day", "the food"), "a day"])
    assert [p.row for p in pairs] == [0, 1] and pairs[1].scores == found[0].scores
    assert [f.row for f in classifier.classify_files("rows.tsv")] == [0, 1, 2, 3]
    raises(sifr.UsageError, "row 1: is 3; give a text, or a tuple of two", classifier.classify,
           ["a", 3])  # fmt: skip
    raises(sifr.UsageError, "row 0", classifier.classify, [("a", "b", "c")])
    raises(UnicodeEncodeError, "", classifier.classify, ["\ud800"])
    raises(sifr.Error, "nowhere", classifier.classify_files, "nowhere.tsv")
    assert classifier.classify([]) == [] and classifier.classify(["a\0b"])[0].words is None
raises(sifr.UsageError, "was closed", classifier.classify, lines)
raises(sifr.UsageError, "", sifr.Classifier, "llama")
with sifr.Classifier("tags") as tagger:
    assert tagger.reads_words and set(tagger.labels) == {"B", "I", "O"}
    (tagged,) = tagger.classify([["the", "day"]])
    assert tagged.words == ["the", "day"] and len(tagged.labels) == len(tagged.scores) == 2
    raises(sifr.UsageError, "give a list of words", tagger.classify, ["the day"])
    raises(sifr.UsageError, "NUL", tagger.classify, [["a\0b"]])

# --- scores of tokens, the file of the program ---
scored = sifr.score("llama", data=["held"], seq_length=32, output="mine.safetensors", top_k=4,
                    temperature=2, threads=1)  # fmt: skip
assert scored.tokens == scored.rows * 32 and scored.ran_in == "fp32", scored
assert open("mine.safetensors", "rb").read() == open("scores.safetensors", "rb").read()
raises(sifr.UsageError, "top-k", sifr.score, "llama", data=["held"], output="x", top_k=-1)
raises(TypeError, "", sifr.score, "llama", data=["held"], output="x", temperature="warm")
raises(sifr.Error, "nowhere", sifr.score, "nowhere", data=["held"], output="x")
