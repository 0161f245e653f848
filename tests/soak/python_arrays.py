"""Arrays of numpy and torch with the installed package; test_soak_python.sh made the run."""

import json
import os
import struct

import numpy as np
import torch
from safetensors.torch import load_file, save_file

import sifr


def raises(kind, words, call, *args, **named):
    try:
        call(*args, **named)
    except kind as error:
        assert words in str(error), f"{error} lacks {words}"
        return
    raise AssertionError(f"no {kind.__name__} with {words}")


# --- batches of any kind of array are the same step ---
rng = np.random.default_rng(3)
ids = rng.integers(5, 300, (2, 32))
labels = sifr.next_tokens(ids)
assert labels[0, 0] == ids[0, 1] and labels[0, -1] == -100
losses = set()
for make in (
    lambda a: a,
    lambda a: a.astype(np.int32),
    lambda a: np.asfortranarray(a),
    lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    lambda a: a[::-1][::-1],
    lambda a: torch.from_numpy(a),
    lambda a: torch.from_numpy(a).int(),
    lambda a: torch.from_numpy(np.asfortranarray(a)),
):
    with sifr.Engine("ds.json") as engine:
        losses.add(engine.step(make(ids), make(labels)).loss)
assert len(losses) == 1, losses

with sifr.Engine("ds.json") as engine:
    raises(sifr.UsageError, "type 'd'", engine.step, ids.astype(float), labels)
    raises(sifr.UsageError, "type", engine.step, ids.astype(np.uint16), labels)
    raises(sifr.UsageError, "type", engine.step, ids.astype(">i8"), labels)
    raises(sifr.UsageError, "type", engine.step, ids.astype(bool), labels)
    raises(sifr.UsageError, "elements", engine.step, ids[:1], labels)
    raises(sifr.UsageError, "in rows of 32", engine.step, ids.T, labels.T)
    raises(sifr.UsageError, "", engine.step, np.array(5), labels)
    raises(Exception, "", engine.step, np.array([[None] * 32] * 2), labels)
    raises(sifr.Error, "", engine.step, ids + 300, labels)

    # --- weights ---
    name = "model.layers.0.self_attn.q_proj.weight"
    weight = engine.read_weight(name)
    assert weight.shape == (32, 32) and weight.dtype == np.float32
    kept = load_file("llama/model.safetensors")[name].float().numpy()
    assert np.array_equal(weight, kept)
    room = torch.empty(32, 32)
    assert engine.read_weight(name, room.numpy()) is not None and np.array_equal(room, kept)
    view = engine.view(name)
    assert not view.flags.writeable and np.shares_memory(view, engine.view(name))
    raises(ValueError, "", view.__setitem__, (0, 0), 1.0)
    raises(BufferError, "readonly", view.__dlpack__)  # DLPack before 1.0 cannot say so
    tensor = torch.from_dlpack(view)
    assert tensor.data_ptr() == view.ctypes.data and tensor.shape == (32, 32)
    engine.write_weight(name, weight * 2)
    assert np.array_equal(view, weight * 2)
    del view
    assert torch.equal(tensor, torch.from_numpy(weight * 2))
    raises(sifr.UsageError, "close that first", engine.close)
    raises(sifr.UsageError, "type 'd'", engine.write_weight, name, weight.astype(float))
    raises(sifr.UsageError, "has shape", engine.write_weight, name, weight[:4])
    raises(sifr.UsageError, f"weight {name}: ", engine.read_piece, name, 0, weight[:, :3])
    raises(sifr.UsageError, f"weight {name}: ", engine.write_weight, name, np.asfortranarray(weight))
    del tensor

# --- state_dict ---
trained = sifr.state_dict("by_program")
real = load_file("by_program/model.safetensors")
assert trained.keys() == real.keys()
assert all(np.array_equal(v, real[n].numpy()) for n, v in trained.items())
saved = sifr.state_dict("by_program/checkpoint-5")
assert all(np.array_equal(v, saved[n]) for n, v in trained.items())
raises(ValueError, "", trained[name].__setitem__, (0, 0), 1.0)
os.mkdir("types")
kinds = {
    "bf16": torch.arange(-9, 9).to(torch.bfloat16),
    "f16": torch.ones(2, 3, dtype=torch.float16),
    "i64": torch.arange(4),
    "flag": torch.tensor([True, False]),
    "none": torch.empty(0, 3),
}
save_file(kinds, "types/model.safetensors")
read = sifr.state_dict("types")
assert all(np.array_equal(read[n], t.float().numpy()) for n, t in kinds.items()), read
assert read["bf16"].dtype == np.float32 and read["f16"].dtype == np.float16

# --- damaged files: exceptions ---
whole = open("types/model.safetensors", "rb").read()


def damaged(data):
    with open("types/model.safetensors", "wb") as file:
        file.write(data)
    raises(sifr.Error, "types/model.safetensors", sifr.state_dict, "types")


def with_header(header):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(64)


for cut in (0, 5, 8, 100, len(whole) - 1):
    damaged(whole[:cut])
for header in (
    b"{",
    [],
    {"a": 3},
    {"a": {"dtype": "F32", "shape": [2]}},
    {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}},
    {"a": {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]}},
    {"a": {"dtype": "F32", "shape": [99], "data_offsets": [0, 396]}},
    {"a": {"dtype": "F32", "shape": [2], "data_offsets": [-8, 0]}},
    {"a": {"dtype": "F4", "shape": [2], "data_offsets": [0, 8]}},
    {"a": {"dtype": [], "shape": [2], "data_offsets": [0, 8]}},
    {n: {"dtype": "F32", "shape": [2], "data_offsets": [4 * i, 4 * i + 8]} for i, n in enumerate("ab")},
    b'{"a": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}, "a": 3}',
):
    damaged(with_header(header))
damaged(struct.pack("<Q", 2**63) + bytes(100))
raises(sifr.Error, "nowhere", sifr.state_dict, "nowhere")

# --- a loss of one's own, by torch: label smoothing, and the labels' cross entropy ---
def by_torch(share):
    def loss(logits, labels, gradient):
        assert isinstance(logits, np.ndarray) and not logits.flags.writeable
        x = torch.tensor(logits, requires_grad=gradient is not None)
        total = torch.nn.functional.cross_entropy(
            x, torch.tensor(labels).long(), label_smoothing=share, reduction="sum")
        if gradient is not None:
            total.backward()
            gradient[...] = x.grad.numpy()
        return total.item()

    return loss


kept = []
tokens = (np.arange(64, dtype=np.int32).reshape(2, 32) * 7) % 50
labels = sifr.next_tokens(tokens)
with sifr.Engine("ds.json") as engine:
    want = [engine.step(tokens, labels).loss for _ in range(3)]
with sifr.Engine("ds.json", loss=by_torch(0.0)) as engine:
    have = [engine.step(tokens, labels).loss for _ in range(3)]
    assert np.allclose(have, want, rtol=1e-5), (have, want)
with sifr.Engine("ds.json", loss=by_torch(0.1)) as engine:
    losses = [engine.step(tokens, labels).loss for _ in range(5)]
    assert losses[-1] < losses[0] and losses[0] != want[0], losses
with sifr.Engine("ds.json", loss=lambda x, y, g: kept.append(torch.tensor(x)) or 1.0) as engine:
    engine.step(tokens, labels)  # a copy is the caller's
with sifr.Engine("ds.json", loss=lambda x, y, g: kept.append(x[0, :2]) or 1.0) as engine:
    raises(sifr.UsageError, "kept beyond the call", engine.step, tokens, labels)
    kept.clear()
