# label: full
# timeout: 120
# each MPI
# Under mpirun the processes of a Python script are the ranks of one run: the bits of one rank; what
# one rank's callback asks or raises stops all, and an error of one is known to all.
. "$SOURCE/tests/support/python.sh"
. "$SOURCE/tests/support/train_runs.sh"
. "$SOURCE/tests/support/find_mpi.sh"

expect 0 train --model llama --output alone --max-steps 4
cat >ranks.py <<'P'
import array, math, os, types
import sifr
from sifr.integrations import _among_ranks, _trainer_alike

given = dict(data=["books"], threads=1, model="llama", train_batch_size=8,
             gradient_accumulation_steps=1)
assert sifr.size() == 2
other = sifr.rank() == 1
out = sifr.train("ds.json", output="two", max_steps=4, **given)
assert (out.ranks, out.steps) == (2, 4) and (out.report is None) == other, out
out = sifr.train("ds.json", output="asked", max_steps=4,
                 callbacks={"step": lambda e: other and e.step == 2}, **given)
assert out.stopped and out.steps == 2, out


def stumble(event):
    if other and event.step == 3:
        raise KeyError("own")


try:
    sifr.train("ds.json", output="asked", max_steps=4, resume=True, callbacks={"step": stumble},
               **given)
except KeyError:
    assert other
except sifr.StoppedError as error:
    assert not other and "another rank" in str(error), error
assert os.path.isdir("asked/checkpoint-3")
# What integrations tell each other: of any length, in pieces, in the order of the ranks.
_among_ranks.PIECE = 2
assert _among_ranks.gather(b"abc" if other else b"") == [b"", b"abc"]
assert _among_ranks.broadcast({"rank": sifr.rank()}, 1) == {"rank": 1}
assert _among_ranks.places() == (sifr.rank(), 0)
# What a Trainer's callback asks for on one rank, all do; unlike arguments are refused on all.
control = types.SimpleNamespace(**dict.fromkeys(_trainer_alike.CONTROLS, False))
control.should_save = other
_trainer_alike.share(control)
assert [n for n in _trainer_alike.CONTROLS if getattr(control, n)] == ["should_save"], control
_trainer_alike.compare("train", {"max_steps": 2, "report_to": [other]})
try:
    _trainer_alike.compare("train", {"max_steps": 2 + other})
    raise AssertionError("no exception")
except sifr.UsageError as error:
    assert "max_steps: 3 on rank 1, and 2 on rank 0" in str(error), error
try:
    sifr.train("ds.json" if other else "nowhere.json", output="none", **given)
except sifr.Error as error:
    assert "nowhere.json" in str(error), error
# An engine of both ranks, which stays open to the end of the program.
config = sifr.Config("ds.json", max_steps=2, **given)
config.set("zero_optimization.stage", 3)
engine = sifr.Engine(config)
count = engine.batch_shape[0] * engine.batch_shape[1]
tokens = array.array("i", range(5, 5 + count))
result = engine.step(tokens, tokens)
assert result.updated and result.labelled == 2 * count, result
name, weight = max(engine.weights.items(), key=lambda item: math.prod(item[1].shape))
values = array.array("f", bytes(4 * math.prod(weight.shape)))
engine.read_weight(name, values)
assert all(math.isfinite(v) for v in values) and any(values)
try:
    engine._engine.view(name, len(values))
    raise AssertionError("a view of a slice")
except sifr.UsageError as error:
    assert "several ranks" in str(error), error
engine.save("by_loop")
# What one rank gives wrong ends the call on both, whatever is wrong; they go on together.
micro = engine.micro_batch_shape[0] * engine.micro_batch_shape[1]
outside = array.array("i", [9999] * count)
for call, size, wrong in ((engine.step, count, (outside, outside)),
                          (engine.step, count, (tokens, "text")),
                          (engine.step, count, (tokens[:5], tokens[:5])),
                          (engine.evaluate, micro, (outside[:micro], outside[:micro])),
                          (engine.evaluate, micro, (array.array("d", [1.0] * micro), None))):
    try:
        call(*(wrong if other else (tokens[:size], tokens[:size])))
        raise AssertionError("no exception")
    except (sifr.Error, TypeError) as error:
        own = str(error)
        assert other or (own.startswith("rank 1: ") and isinstance(error, sifr.Error)), own
assert engine.step(tokens, tokens).updated and engine.steps == 2


# What they give unlike each other does so, too: it diverged in silence, or hung.
def differs(words, call, *ours, theirs=None, **named):
    try:
        call(*(theirs if theirs and other else ours), **named)
    except sifr.Error as error:
        assert words in str(error), error
        return
    raise AssertionError(f"no error: {words}")


differs("learning_rate: differs on rank 1", engine.step, tokens, tokens,
        learning_rate=1e-3 * (1 + other))
small = [n for n, w in engine.weights.items() if len(w.shape) == 1][:2]
room = array.array("f", bytes(4 * engine.weights[small[0]].shape[0]))
differs("the name of the weight that is read: differs", engine.read_weight, small[other], room)
differs("weight nope: the model has no", engine.read_weight, "nope" if other else small[0], room)
try:
    engine.read_weight(small[0], "text" if other else room)
    raise AssertionError("no exception")
except (sifr.Error, TypeError) as error:
    assert isinstance(error, TypeError) == other, error
differs("the count of elements that are read", engine.read_piece, small[0], 0, room,
        theirs=(small[0], 0, room[:3]))
engine.read_weight(small[0], room)
engine.write_weight(small[0], array.array("f", [float(other)] * len(room)))
differs(f"weight {small[0]}, as it was written", engine.step, tokens, tokens)
engine.write_weight(small[0], room)
assert engine.step(tokens, tokens).updated and engine.steps == 3
# A loss of one's own that raises on one rank: each rank has its own exception, and goes on.
fails = other


def own(logits, labels, gradient):
    if fails:
        raise ValueError("of this rank")
    return float(logits.shape[0])


with sifr.Engine(config, loss=own) as engine:
    try:
        engine.step(tokens, tokens)
        raise AssertionError("no exception")
    except (ValueError, sifr.Error) as error:
        assert isinstance(error, ValueError) == other, error
        assert "of this rank" in str(error) and (other or "rank 1: own_loss" in str(error)), error
    fails = False
    assert engine.step(tokens, tokens).loss == 1 and engine.steps == 1
# The same in a run, whose callbacks and loss may ask which rank this is.
told = []


def learned(logits, labels, gradient):
    told.append(sifr.rank())
    return float(logits.shape[0])


sifr.train("ds.json", output="own", max_steps=2, loss=learned,
           callbacks={"step": lambda e: told.append(sifr.size())}, **given)
assert set(told) == {sifr.rank(), 2}, told
fails = other
try:
    sifr.train("ds.json", output="own_fails", max_steps=2, loss=own, **given)
    raise AssertionError("no exception")
except (ValueError, sifr.Error) as error:
    assert isinstance(error, ValueError) == other and "of this rank" in str(error), error
print("rank", sifr.rank(), "is done")
P
expect 0 timeout 100 "$launcher" -n 2 $options python3 ranks.py
[ "$(grep -c 'is done$' out)" = 2 ] || fail "not both ranks: $(cat out err)"
[ -s by_loop/model.safetensors ] || fail "the engine of both has not saved"
cmp alone/model.safetensors two/model.safetensors || fail "other bits on two ranks"
# A rank that fails by itself does not leave the others waiting.
cat >one.py <<'P'
import sifr

if sifr.rank() == 1:
    raise RuntimeError("this rank ends by itself")
sifr.train("ds.json", output="left", data=["books"], threads=1, model="llama")
P
! timeout 60 "$launcher" -n 2 $options python3 one.py >out 2>err || fail "no exit code"
grep -q 'ends by itself' err || fail "no reason: $(cat err)"
# Nor does one whose exception is sifr's own, where the others are busy elsewhere: it waited for them
# to come to their next call.
cat >left.py <<'P'
import time

import sifr
from sifr import _ranks

assert sifr.size() == 2
_ranks.PATIENCE = 0.5
if sifr.rank() == 1:
    raise sifr.Error("of this rank alone")
time.sleep(50)
P
begun=$SECONDS
! timeout 60 "$launcher" -n 2 $options python3 left.py >out 2>err || fail "no exit code"
grep -q 'of this rank alone' err || fail "no reason: $(cat err)"
[ $((SECONDS - begun)) -lt 25 ] || fail "it waited for the others: $((SECONDS - begun)) s"
