"""Steps of an optimizer on the data of make_steps.py, for make_optimizers.py, make_groups.py,
make_lamb.py, make_muon.py and make_adafactor.py. README.md says what their files hold.

The truth is computed in float64. "torch_fp32_error" is what the same libraries miss in float32.
"""
import hashlib
import os

import torch
from safetensors.torch import save_file

import make_models as m
import make_steps as s

STRIDE = 64  # every 64th element of the updates is stored


class Run:
    """An optimizer on the weights of one model. A group's "scale" is a factor of its rate."""

    def __init__(self, optimizer, factor=1.0):
        self.optimizer, self.factor = optimizer, factor

    def step(self, step, rate):
        """Updates the weights at a rate of the schedule. Returns the rate that is stored."""
        rate *= self.factor
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group.get("scale", 1.0)
        self.optimizer.step()
        return rate

    def end(self):
        """After the last step. Returns models whose updates are stored as well, by prefix."""
        return {}


def train(model, data, run):
    """As make_models.train, by `run`. Returns losses, norms, rates and the models of run.end()."""
    dtype = next(model.parameters()).dtype
    losses, norms, rates = [], [], []
    for step, micro_batches in enumerate(data):
        loss, _, g = m.gradients(model, micro_batches, dtype)
        size = m.norm(g)
        for n, p in model.named_parameters():
            p.grad = g[n] / max(1.0, (size + 1e-6) / m.CLIPPING)
        rates.append(run.step(step, m.rate(s.SCHEDULE, step - 1)))
        losses.append(loss), norms.append(size)
    return losses, norms, rates, run.end()


def result_of(case, name, about, begin, data, tensors):
    m.use_float64(True)
    model = m.build(case, torch.float64)
    zero = m.zero_ranges(model, case["config"])
    start = {n: p.data.clone() for n, p in model.named_parameters()}
    losses, norms, rates, more = train(model, data, begin(model))
    update = s.updates(model, start, zero)
    size = m.norm(update)
    m.use_float64(False)
    single = m.build(case, torch.float32)
    losses32, norms32, _, _ = train(single, data, begin(single))
    own32 = {"step_loss": max(abs(a / b - 1) for a, b in zip(losses32, losses)),
             "step_norm": max(abs(a / b - 1) for a, b in zip(norms32, norms)),
             "update": m.distance(s.updates(single, start, zero), update) / size}
    print(f"{case['name']} {name}: loss {losses[0]:.4f} to {losses[-1]:.4f}, update {size:.4f}, "
          f"fp32 {own32}")
    for prefix, other in {"": model, **more}.items():
        for n, u in s.updates(other, start, zero).items():
            tensors[f"{name}/{prefix}{n}"] = u.reshape(-1)[::STRIDE].float().contiguous()
    return {"name": name, **about, "step_loss": losses, "step_gradient_norm": norms,
            "step_lr": rates, "update_norm": size, "torch_fp32_error": own32}


def write(name, script, versions, model_name, cases, steps=s.STEPS):
    """Writes results/NAME.json and .safetensors. A case has a name, what the file says of its
    optimizer, and a function from a model to its Run."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    m.transformers.logging.set_verbosity_error()
    case = next(c for c in m.CASES if c["name"] == model_name)
    data, tensors = s.steps_of(case)[:steps], {}
    results = [result_of(case, *c, data, tensors) for c in cases]
    model = m.build(case, torch.float32)
    path = os.path.join(m.RESULTS, name)
    save_file(tensors, path + ".safetensors")
    m.write_json(path + ".json", {
        "model": model_name,
        "script": os.path.basename(script),
        "script_sha256": hashlib.sha256(open(script, "rb").read()).hexdigest(),
        "versions": versions,
        "length": m.LENGTH, "micro_batches": s.MICRO_BATCHES, "steps": steps, "stride": STRIDE,
        "gradient_clipping": m.CLIPPING,
        "zero_gradient": [{"tensor": n, "begin": a, "end": b}
                          for n, a, b in m.zero_ranges(model, case["config"])],
        "cases": results})
