"""An engine's steps; test_python_engine.sh trained the same by the program."""

import array
import ctypes
import os
import signal
import threading

import sifr
from sifr import _weights


def raises(kind, words, call, *args, **named):
    try:
        call(*args, **named)
    except kind as error:
        assert words in str(error), f"{error} lacks {words}"
        return
    raise AssertionError(f"no {kind.__name__} with {words}")


def ids(code, sequences, first=0):
    row = [(j % 32) * 7 % 50 for j in range(first, first + 32)] * sequences
    flat = memoryview(array.array(code, row)).cast("B")
    return flat.cast(code, (sequences, 32))


def same(a, b):
    return open(f"{a}/model.safetensors", "rb").read() == open(f"{b}/model.safetensors", "rb").read()


# --- headers of safetensors that say two things of one name, or of one byte ---
with open("odd.safetensors", "wb") as file:
    text = b'{"a": {"shape": [1]}, "b": 1, "a": {"shape": [2]}}'
    file.write(len(text).to_bytes(8, "little") + text)
raises(sifr.Error, "odd.safetensors: its header is no JSON: a is there twice", _weights._header,
       "odd.safetensors", 8 + len(text))  # fmt: skip
places = {"a": (0, 8), "none": (4, 4), "b": (8, 12)}
header = {name: {"data_offsets": place} for name, place in places.items()}
_weights._check_apart("odd", header)
header["b"]["data_offsets"] = (7, 11)
raises(sifr.Error, "tensors a and b have bytes in common", _weights._check_apart, "odd", header)

# --- the bits of the program, with ids of 32 and of 64 bits, in any shape, in any float mode ---
tokens, labels = ids("i", 4), ids("q", 4, 1)
m = ctypes.CDLL("libm.so.6")
UP = 0x800 if os.uname().machine == "x86_64" else 0x400000
with sifr.Engine("ds.json", max_steps=5) as engine:
    assert engine.batch_shape == (4, 32) and engine.micro_batch_shape == (2, 32)
    assert engine.planned_bytes > 0
    assert engine.parameters == engine.trained_parameters
    m.fesetround(UP)
    rates = [engine.learning_rate]
    first = engine.step(tokens, labels)
    assert m.fegetround() == UP
    m.fesetround(0)
    assert first.updated and first.labelled == 128 and len(first.micro_losses) == 2, first
    for _ in range(4):
        rates.append(engine.learning_rate)
        last = engine.step(tokens.cast("B").cast("i"), labels)
    assert len(set(rates)) == 4, rates  # by the schedule
    assert last.loss < first.loss and (engine.steps, engine.updates) == (5, 5)
    total, count = engine.evaluate(ids("i", 2), ids("i", 2, 1))
    assert count == 64 and 0 < total / count < last.loss
    engine.save("by_engine")
    assert same("by_engine", "by_program"), "other bits"
    raises(sifr.UsageError, "by_engine", engine.save, "by_engine")
    # The same before a script trains, and of what it cannot list.
    raises(sifr.UsageError, "by_engine: is not empty; give a new folder", sifr.new_folder, "by_engine")
    raises(sifr.UsageError, "ds.json: Not a directory", sifr.new_folder, "ds.json")
    os.mkdir("empty")
    assert [sifr.new_folder(name) for name in ("fresh", b"empty")] == ["fresh", "empty"]
    raises(sifr.UsageError, "docs/config.md lists", sifr.Config, None, quux=1)

    # --- weights, in the caller's memory ---
    name = "model.layers.0.self_attn.q_proj.weight"
    shape = engine.weights[name].shape
    assert shape == (32, 32) and engine.weights[name].trained
    whole = array.array("f", bytes(4 * 1024))
    assert engine.read_weight(name, whole) is whole and any(whole)
    piece = array.array("f", bytes(4 * 100))
    engine.read_piece(name, 500, piece)
    assert piece == whole[500:600]
    seen = engine._engine.view(name, 1024)
    look = memoryview(seen)
    assert look.readonly and look.format == "f" and look.tolist() == whole.tolist()
    engine.write_piece(name, 500, array.array("f", [0.5] * 100))
    assert list(look[499:601]) == [whole[499]] + [0.5] * 100 + [whole[600]]
    engine.write_weight(name, whole)
    assert look.tolist() == whole.tolist()
    engine.step(tokens, labels, learning_rate=1e-3)
    assert look.tolist() != whole.tolist()  # it is where the engine has it
    raises(sifr.UsageError, "close that first", engine.close)
    look.release()
    del look, seen

    # --- wrong buffers ---
    half = array.array("f", bytes(400))
    raises(sifr.UsageError, "no weight of that name", engine.read_weight, "nothing", half)
    raises(sifr.UsageError, "has shape (32, 32)", engine.read_weight, name, half)
    raises(sifr.UsageError, "type 'd'", engine.read_piece, name, 0, array.array("d", [0.0]))
    raises(sifr.UsageError, "are not among them", engine.read_piece, name, 1000, half)
    raises(sifr.UsageError, "are not among them", engine.write_piece, name, -1, half)
    raises(sifr.UsageError, "are not among them", engine.read_piece, name, 2**62, half)
    raises(sifr.UsageError, f"weight {name}: ", engine.read_piece, name, 0, memoryview(half).toreadonly())
    raises(sifr.UsageError, f"weight {name}: ", engine.read_piece, name, 0, memoryview(half)[::2])
    raises(TypeError, "", engine.write_weight, name, [0.5] * 1024)
    raises(TypeError, "array is wanted, not list", engine.step, [1, 2], labels)
    raises(sifr.UsageError, "tokens: has elements of type 'f'", engine.step, half, labels)
    raises(sifr.UsageError, "type 'b'", engine.step, array.array("b", bytes(128)), labels)
    raises(sifr.UsageError, "tokens: has 64 elements in 2 dim", engine.step, ids("i", 2), labels)
    raises(sifr.UsageError, "in rows of 32", engine.step,
           tokens.cast("B").cast("i", (32, 4)), labels)  # fmt: skip
    raises(sifr.UsageError, "beyond 32 bits", engine.step, array.array("q", [2**40] * 128), labels)
    raises(sifr.Error, "", engine.step, array.array("i", [300] * 128), labels)
    raises(sifr.UsageError, "", engine.step, tokens)  # no labels
    raises(sifr.UsageError, "", engine.step, None, labels)
    raises(sifr.UsageError, "", engine.step, tokens, labels, learning_rate=float("nan"))
    raises(TypeError, "", engine.step, tokens, labels, learning_rate="fast")
    raises(sifr.UsageError, "", engine.set_betas, 2.0, 0.9)
    raises(sifr.UsageError, "average", engine.read_average, name, whole)
    assert engine.steps == 6  # none of them was one
    every = memoryview(array.array("i", [t for t in tokens.cast("B").cast("i") for _ in (0, 1)]))
    strided = engine.evaluate(every[:128:2], ids("i", 2, 1))
    assert strided == engine.evaluate(ids("i", 2), ids("i", 2, 1))  # any stride of a batch is read

    # --- threads, signals, a fork ---
    answers = []

    def tries():
        for _ in range(50):
            try:
                answers.append(engine.step(tokens, labels, learning_rate=1e-4).loss)
            except sifr.UsageError as error:
                answers.append(str(error))

    before = engine.steps
    threads = [threading.Thread(target=tries) for _ in (0, 1)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    done = [a for a in answers if isinstance(a, float)]
    assert len(answers) == 100 and engine.steps - before == len(done) >= 50
    assert all("in use" in a for a in answers if isinstance(a, str)), answers
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    signal.signal(signal.SIGALRM, signal.default_int_handler)

    def for_ever():
        while True:
            engine.step(tokens, labels, learning_rate=1e-4)

    raises(KeyboardInterrupt, "", for_ever)
    assert engine.step(tokens, labels, learning_rate=1e-4).updated
    child = os.fork()
    if child == 0:
        try:
            raises(sifr.UsageError, "before a fork", engine.step, tokens, labels)
            with sifr.Engine("ds.json", max_steps=5) as own:
                assert own.step(tokens, labels).loss == first.loss
            os._exit(0)
        finally:
            os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

# --- checkpoints: stopped and gone on is the same ---
with sifr.Engine("ds.json", max_steps=5) as engine:
    assert engine.load_checkpoint("kept") is None
    for _ in range(3):
        engine.step(tokens, labels)
    engine.save_checkpoint("kept", {"mine": [3, "три"]})
    raises(TypeError, "", engine.save_checkpoint, "kept", {"mine": object()})
    raises(sifr.Error, "ds.json", engine.save_checkpoint, "ds.json")
with sifr.Engine("ds.json", max_steps=5) as engine:
    assert engine.load_checkpoint("kept") == {"mine": [3, "три"]} and engine.steps == 3
    for _ in range(2):
        engine.step(tokens, labels)
    engine.save("gone_on")
assert same("gone_on", "by_program"), "other bits after a checkpoint"

raises(sifr.UsageError, "was closed", engine.step, tokens, labels)
engine.close()  # once more is harmless

# --- two engines at once; frozen weights; a view that there is not; what is refused ---
one, two = sifr.Engine("ds.json"), sifr.Engine("ds.json", freeze="*embed*")
raises(sifr.UsageError, "max_steps", one.step, tokens, labels)  # a schedule without an end
raises(sifr.UsageError, "give 1 or more", one.set_steps, 0)
one.set_steps(5), two.set_steps(5)
assert one.step(tokens, labels).loss == two.step(tokens, labels).loss == first.loss
assert not two.weights["model.embed_tokens.weight"].trained
assert two.trained_parameters < one.trained_parameters
one.initialise(1), two.initialise(1)
assert one.evaluate(ids("i", 2), ids("i", 2, 1)) == two.evaluate(ids("i", 2), ids("i", 2, 1))
half = sifr.Config("ds.json", max_steps=5)
half.set("bf16.enabled", True)
with sifr.Engine(half) as low:
    assert abs(low.step(tokens, labels).loss - first.loss) < 0.05
on_disk = sifr.Config("ds.json", max_steps=5)
for key, value in {"stage": 1, "offload_optimizer.device": "nvme",
                   "offload_optimizer.nvme_path": "."}.items():  # fmt: skip
    on_disk.set(f"zero_optimization.{key}", value)
with sifr.Engine(on_disk) as disk:
    assert disk.step(tokens, labels).loss == first.loss
    raises(sifr.UsageError, "no view of it without a copy: ", disk._engine.view, name, 1024)
    disk.read_weight(name, whole)
raises(sifr.UsageError, "nothing*", sifr.Engine, "ds.json", freeze="nothing*")
with sifr.Engine("ds.json", max_steps=2) as engine:
    for kind, odd in ((TypeError, object()), (sifr.UsageError, float("nan"))):
        raises(kind, "state: JSON cannot", engine.save_checkpoint, "none", {"a": odd})
    view = engine._engine.view("model.norm.weight", 32)
    assert not hasattr(view, "close")  # an array of it would be of memory that is gone
    del view
assert not __import__("os").path.exists("none")
raises(sifr.Error, "nowhere", sifr.Engine, "ds.json", model="nowhere")
raises(sifr.UsageError, "model", sifr.Engine, {"train_batch_size": 2})
raises(sifr.NoMemoryError, "", sifr.Engine, "ds.json", train_micro_batch_size_per_gpu=2**20,
       gradient_accumulation_steps=1)  # fmt: skip
raises(TypeError, "a config is wanted", sifr._sifr.engine, 3, None)
