# label: full
# timeout: 60
# Plans and exports from Python are what `sifr plan --json` prints and `sifr export` writes.
. "$SOURCE/tests/support/python.sh"
. "$SOURCE/tests/support/small_llama.sh"
llama_model llama 32 2 false
cat >ds.json <<'J'
{"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 2},
 "sifr": {"model": "llama", "data": ["text"], "seq_length": 32, "threads": 1}}
J
expect 0 "$SIFR" plan --config ds.json --ranks 2 --json
mv out plan.json
expect 0 "$SIFR" train --config ds.json --output run --max-steps 2
expect 0 "$SIFR" export run/checkpoint-2 by_program
python3 - <<'P' || fail "from Python"
import json
import sifr

def raises(kind, words, call, *args, **named):
    try:
        call(*args, **named)
    except kind as error:
        assert words in str(error), f"{error} lacks {words}"
        return
    raise AssertionError(f"no {kind.__name__} with {words}")

told = json.load(open("plan.json"))
plan = sifr.plan("ds.json", ranks=2)
assert plan.bytes == told["peak_bytes"] and plan.fits and plan.misfit == "" and plan.chosen is None
gaps = plan.classes.pop()
assert {c.name: c.bytes for c in plan.classes} == told["classes"]
assert gaps.name == "gaps" and gaps.bytes == told["peak_bytes"] - told["live_bytes"], gaps
assert plan.report["classes"] == told["classes"] and "ZeRO stage 2" in plan.text
assert (plan.micro_batch_size, plan.seq_length) == (2, 32) and plan.step_seconds > 0
tight = sifr.plan("ds.json", ranks=2, device_memory=1000)
assert not tight.fits and "may take 1 B (0.98 KiB, less " in tight.misfit, tight.misfit
best = sifr.plan("ds.json", ranks=2, fit=True)
again = sifr.plan(best.chosen, ranks=2)
assert again.fits and again.bytes == best.bytes and best.classes == []
raises(sifr.NoMemoryError, "", sifr.plan, "ds.json", device_memory=1000, fit=True)
raises(sifr.UsageError, "ranks: 0; give 1", sifr.plan, "ds.json", ranks=0)
raises(sifr.UsageError, "device_memory: '7MiB' is no whole", sifr.plan, "ds.json", device_memory="7MiB")
deep = {}
for _ in range(5000):
    deep = {"a": deep}
raises(sifr.UsageError, "config: is nested too", sifr.plan, deep)
for name, value, words in (("data", [], "empty list"), ("model", "a\0b", "value 0"),
                           ("chat_template_kwargs", {"a": {1, 2}}, "cannot be a value")):
    raises(sifr.UsageError, f"{name}: ", sifr.plan, "ds.json", **{name: value})
    raises(sifr.UsageError, words, sifr.plan, "ds.json", **{name: value})
raises(sifr.UsageError, "", sifr.plan, "ds.json", ranks=-1)
raises(sifr.UsageError, "", sifr.plan, "ds.json", nvme="much")
raises(sifr.Error, "nowhere", sifr.plan, "ds.json", model="nowhere")
raises(TypeError, "", sifr.plan, "ds.json", ranks="two")

made = sifr.export("run/checkpoint-2", "by_python")
assert made.step == 2 and made.source.endswith("checkpoint-2") and made.parameters == 39328, made
raises(sifr.UsageError, "--format zip", sifr.export, "run", "other", format="zip")
raises(sifr.Error, "by_python", sifr.export, "run", "by_python")
P
cmp by_program/model.safetensors by_python/model.safetensors
