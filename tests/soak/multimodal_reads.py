"""transformers and PEFT read what test_soak_multimodal.sh left: NAME/{base,whole,text,plain,more,
merged-plain,merged-more}."""
import glob
import json
import os
import struct
import warnings

import peft
import torch
import transformers
from safetensors import safe_open

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
torch.manual_seed(0)
IDS = torch.randint(0, 22, (2, 17))
STORE = torch.tensor(struct.unpack("<12000H", open("store.bin", "rb").read()))


def load(folder, kind=None):
    config = json.load(open(os.path.join(folder, "config.json")))
    kind = kind or getattr(transformers, config["architectures"][0])
    model, said = kind.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    assert not said["missing_keys"] and not said["unexpected_keys"], (folder, said)
    return model.eval()


def logits(model):
    with torch.no_grad():
        return model(input_ids=IDS, use_cache=False).logits


def loss(model):
    """Of the first three windows, as sifr eval counts them."""
    windows = torch.stack([STORE[i * 40: i * 40 + 41] for i in range(3)]).long()
    with torch.no_grad():
        rows = model(input_ids=windows[:, :-1], use_cache=False).logits
    return float(torch.nn.functional.cross_entropy(rows.flatten(0, 1), windows[:, 1:].flatten()))


def tensors(folder):
    return safe_open(os.path.join(folder, "model.safetensors"), "pt")


def is_tower(name):
    return any(part in name for part in ("vision", "visual", "projector", "connector"))


def check_tower(name):
    before, after = tensors(f"{name}/base"), tensors(f"{name}/whole")
    assert set(before.keys()) == set(after.keys()), name
    for key in before.keys():
        a, b = before.get_tensor(key), after.get_tensor(key)
        assert a.dtype == b.dtype and a.shape == b.shape, (name, key)
        # Gemma 4's layer_scalar is a buffer.
        kept = is_tower(key) or key.endswith("layer_scalar")
        assert torch.equal(a, b) == kept, (name, key)


def check_adapter(name, adapter):
    base = load(f"{name}/base")
    plain = logits(base)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = peft.PeftModel.from_pretrained(base, f"{name}/{adapter}").eval()
    said = [str(w.message) for w in said if "adapter" in str(w.message)]
    assert not said, (name, adapter, said)
    modules = [n for n, m in model.named_modules()
               if hasattr(m, "lora_A") or hasattr(m, "modules_to_save")]
    assert modules and not any(map(is_tower, modules)), (name, adapter, modules)
    ours = logits(load(f"{name}/merged-{adapter}"))
    off = float((logits(model) - ours).abs().max())
    assert off < 2e-5 and float((ours - plain).abs().max()) > 1e-3, (name, adapter, off)
    return off


def main():
    for path in sorted(glob.glob("*/base")):
        name = os.path.dirname(path)
        whole, said = load(f"{name}/whole"), float(open(f"{name}/loss").read())
        assert abs(loss(whole) / said - 1) < 1e-5, (name, loss(whole), said)
        check_tower(name)
        for kind in (None, transformers.AutoModelForCausalLM):
            assert torch.equal(logits(load(f"{name}/text", kind)), logits(whole)), name
        offs = [check_adapter(name, adapter) for adapter in ("plain", "more")]
        print(f"{name}: loss {said}, adapters off by at most {max(offs):.1e}")


main()
