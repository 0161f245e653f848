"""Files of torch.save in torch/, and what they hold in safetensors (test_torch_file.c).

    pip install torch transformers safetensors
    python make_torch_files.py

types.bin: a tensor of each type, shapes of each kind, two names over one storage, a view that
begins within its storage, transposed ones. protocol5.bin: the same under another pickle protocol.
types.safetensors: the same values, row-major.
state.bin: a module's state_dict, with its versions, and a parameter; state.safetensors likewise.
older.bin, nested.bin, module.bin, strided.bin, sparse.bin, number.bin: refused.
model/: the model of ../formats/sharded as pytorch_model.bin.
shards/: the tensors of state.bin in two shards.
"""
import collections
import json
import os
import shutil

import torch
from safetensors.torch import save_file
from transformers import GPT2LMHeadModel

here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch")
sharded = os.path.join(os.path.dirname(here), "formats", "sharded")
os.makedirs(here, exist_ok=True)


def path(*names):
    return os.path.join(here, *names)


def values(shape, dtype):
    count = torch.Size(shape).numel()
    size = torch.empty((), dtype=dtype).element_size()
    top = 2 if dtype == torch.bool else 251
    raw = torch.tensor([(7 * k + 3 * size) % top for k in range(count * size)], dtype=torch.uint8)
    return raw.view(dtype).reshape(shape).clone() if count else torch.empty(shape, dtype=dtype)


types = [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.int32,
         torch.int16, torch.int8, torch.uint8, torch.bool, torch.complex64, torch.uint16,
         torch.uint32, torch.uint64, torch.float8_e4m3fn, torch.float8_e5m2]
tensors = {}
for i, dtype in enumerate(types):
    tensors[f"t{i}"] = values([(2, 3), (), (4,), (1, 0, 4)][i % 4], dtype)
whole = values((6, 4), torch.float32)
tensors["whole"] = whole
tensors["same"] = whole
tensors["rows"] = whole[2:5]
tensors["turned"] = whole.t()
tensors["permuted"] = values((2, 3, 5), torch.int16).permute(2, 0, 1)
tensors["column"] = whole.t()[:, 0:0]
tensors["one"] = values((1, 5), torch.float16).t()
torch.save(tensors, path("types.bin"))
torch.save(tensors, path("protocol5.bin"), pickle_protocol=5)
save_file({k: v.contiguous().clone() for k, v in tensors.items()}, path("types.safetensors"))

torch.manual_seed(3)
module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
state = module.state_dict()
state["parameter"] = torch.nn.Parameter(torch.arange(5.0))
torch.save(state, path("state.bin"))
save_file({k: v.detach().clone() for k, v in state.items()}, path("state.safetensors"))

torch.save({"w": torch.zeros(2)}, path("older.bin"), _use_new_zipfile_serialization=False)
torch.save({"epoch": 3, "state_dict": {"w": torch.zeros(2)}}, path("number.bin"))
torch.save({"state_dict": {"w": torch.zeros(2)}, "epoch": 3}, path("nested.bin"))
torch.save(torch.nn.Linear(2, 2), path("module.bin"))
torch.save({"w": torch.zeros(8)[::2]}, path("strided.bin"))
torch.save({"w": torch.eye(3).to_sparse()}, path("sparse.bin"))

model = GPT2LMHeadModel.from_pretrained(sharded, dtype=torch.bfloat16)
os.makedirs(path("model"), exist_ok=True)
os.makedirs(path("shards"), exist_ok=True)
shutil.copy(os.path.join(sharded, "config.json"), path("model"))
torch.save(model.state_dict(), path("model", "pytorch_model.bin"))

weight_map = {}
for i, names in enumerate((list(state)[:3], list(state)[3:])):
    file = f"pytorch_model-{i + 1:05}-of-00002.bin"
    torch.save(collections.OrderedDict((k, state[k]) for k in names), path("shards", file))
    weight_map.update({k: file for k in names})
with open(path("shards", "pytorch_model.bin.index.json"), "w") as f:
    json.dump({"metadata": {"total_size": 123}, "weight_map": weight_map}, f, indent=2)
    f.write("\n")
