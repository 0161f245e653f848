"""Runs from Python; test_python_train.sh compares their bits with those of `sifr train`."""

import ctypes
import logging
import os
import signal
import threading

import sifr

given = dict(data=["books"], threads=1, model="llama")
lines = []
logging.getLogger("sifr").addHandler(h := logging.Handler())
logging.getLogger("sifr").setLevel(logging.DEBUG)
h.emit = lambda record: lines.append(record.getMessage())


class Seen(sifr.Callbacks):
    def __init__(self):
        self.events = []

    def step(self, event):
        self.events.append(event)

    def saved(self, event):
        self.events.append(event)

    def evaluation(self, event):
        self.events.append(event)


def raises(kind, words, call, *args, **named):
    try:
        call(*args, **named)
    except kind as error:
        assert words in str(error), f"{error} lacks {words}"
        return error
    raise AssertionError(f"no {kind.__name__} with {words}")


# --- a run, and its events ---
seen, told = Seen(), []
out = sifr.train(
    "ds.json", output="by_python", max_steps=6, eval_data="held", eval_steps=3, max_eval_windows=4,
    callbacks=[seen, {"line": told.append}], **given,
)  # fmt: skip
steps = [e for e in seen.events if isinstance(e, sifr.Step)]
assert [e.step for e in steps] == [1, 2, 3, 4, 5, 6] and steps[-1].total_steps == 6, steps
assert all(e.updated and e.labelled == 512 and e.loss > 0 for e in steps)
evaluations = [e for e in seen.events if isinstance(e, sifr.Evaluation)]
assert [e.step for e in evaluations] == [3, 6] and evaluations[0].windows == 4, evaluations
saves = [(e.model, e.path) for e in seen.events if isinstance(e, sifr.Saved)]
assert saves == [(True, "by_python"), (False, "by_python/checkpoint-6")], saves
assert (out.steps, out.stopped, out.ranks, out.tokens) == (6, False, 1, 3072), out
assert out.loss == steps[-1].loss and out.eval_loss == evaluations[-1].loss
assert out.report["steps"] == 6, out.report
assert any(line.startswith("step 6/6") for line in told), told
assert any("5 documents" in line for line in lines), lines  # the log, through logging


# --- stops: a true answer; an exception, which comes out after the save; then it goes on ---
out = sifr.train("ds.json", output="resumed", max_steps=6, callbacks={"step": lambda e: e.step == 2},
                 **given)  # fmt: skip
assert out.stopped and out.steps == 2 and os.path.isdir("resumed/checkpoint-2"), out


def stumble(event):
    if event.step == 3:
        raise KeyError("my own")


raises(KeyError, "my own", sifr.train, "ds.json", output="resumed", max_steps=6, resume=True,
       callbacks={"step": stumble}, **given)  # fmt: skip
assert os.path.isdir("resumed/checkpoint-3")


def press(event):
    if event.step == 4:
        os.kill(os.getpid(), signal.SIGINT)


raises(KeyboardInterrupt, "", sifr.train, "ds.json", output="resumed", max_steps=6, resume=True,
       callbacks={"step": press}, **given)  # fmt: skip
assert os.path.isdir("resumed/checkpoint-4")
out = sifr.train("ds.json", output="resumed", max_steps=6, resume=True, **given)
assert out.first_step == 4 and out.steps == 6, out


def press_within(record):  # it was swallowed, and the run went on to its end
    h.emit = lambda record: lines.append(record.getMessage())
    raise KeyboardInterrupt


h.emit = press_within
raises(KeyboardInterrupt, "", sifr.train, "ds.json", output="logged", max_steps=6, **given)
assert [n for n in os.listdir("logged") if n.startswith("checkpoint-")] != ["checkpoint-6"]

# --- another mode of floats is the caller's own, before and after; callbacks have the default ---
m = ctypes.CDLL("libm.so.6")
UP = 0x800 if os.uname().machine == "x86_64" else 0x400000
within = []
m.fesetround(UP)
sifr.train("ds.json", output="floats", max_steps=6,
           callbacks={"step": lambda e: within.append(m.fegetround())}, **given)  # fmt: skip
after = m.fegetround()
m.fesetround(0)
assert after == UP and set(within) == {0}, (after, within)

# --- two runs at a time, in threads, and other threads run on ---
ends = {}


def in_thread(name):
    ends[name] = sifr.train("ds.json", output=name, max_steps=4, **given).loss


threads = [threading.Thread(target=in_thread, args=(n,)) for n in ("one", "two")]
for t in threads:
    t.start()
for t in threads:
    t.join()
assert ends["one"] == ends["two"], ends

# --- what is wrong ---
config = sifr.Config("ds.json", max_steps="1k", **given)
assert config.value("max_steps") == 1000 and config.resolve()["sifr"]["max_steps"] == 1000
assert config.value("optimizer.params.lr") == 3e-3
config.set("freeze", ["a.*", "b.*"])
config.clear("freeze")
config.set("freeze", "c.*")
assert config.value("freeze") == ["c.*"], config.value("freeze")
raises(sifr.UsageError, "did you mean --freeze?", config.clear, "freze")
assert any(line.startswith("sifr.max_steps") for line in config.explain()), config.explain()
assert {f.name for f in sifr.flags()} > {"max-steps", "model", "data"}
error = raises(sifr.UsageError, "did you mean --max-steps?", sifr.train, "ds.json", max_stepz=1)
assert isinstance(error, ValueError) and isinstance(error, sifr.Error) and error.status == 2
raises(sifr.UsageError, "by_python: ", sifr.train, "ds.json", output="by_python", **given)
raises(sifr.UsageError, "config: ", sifr.Config, {"sifr": {"seq_lengthh": 3}})
raises(sifr.UsageError, "config: ", sifr.Config, {"sifr": {"seed": object()}})
raises(sifr.UsageError, "config: ", sifr.Config, {"sifr": {"validation_split": float("nan")}})
raises(sifr.UsageError, "config: ", sifr.Config, 7)
raises(sifr.UsageError, "max_steps: ", sifr.Config, max_steps=object())
raises(sifr.Error, "nowhere.json", sifr.Config, "nowhere.json")
raises(sifr.UsageError, "'stepp' is none of", sifr.train, "ds.json", callbacks={"stepp": print})
raises(sifr.UsageError, "cannot be called", sifr.train, "ds.json", callbacks={"step": 3})
raises(sifr.UsageError, "has none of", sifr.train, "ds.json", callbacks=object())
raises(sifr.NoMemoryError, "", sifr.train, "ds.json", output="big", seq_length=64,
       train_micro_batch_size_per_gpu=2**20, train_batch_size=2**20, gradient_accumulation_steps=1, **given)  # fmt: skip
raises(TypeError, "", sifr._sifr.train, 1, 2, 3, 4, 5, 6)

# --- a fork: what the parent made is the parent's; what the child makes is its own ---
child = os.fork()
if child == 0:
    try:
        raises(sifr.UsageError, "before a fork", config.resolve)
        assert sifr.train("ds.json", output="child", max_steps=2, **given).steps == 2
        os._exit(0)
    finally:
        os._exit(9)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
