"""The program as a user meets it: how soon it trains, files, tokens, generation."""
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import report
from harness import Contestant, clean_environment, failure, good, interleave, median, spread
from part_limits import bandwidth, memory_contestant, memory_medians
from report import Row, gigabytes, number, seconds

# --- command to first step ---


def ours_to_first_step(context, model):
    """Seconds until the record of the first step is there; nothing after it is waited for."""
    inputs = context.inputs
    out = inputs.path("first-step")
    config = inputs.path("first-step.json")
    with open(config, "w") as f:
        f.write('{"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},\n'
                ' "optimizer": {"type": "AdamW", "params": {"lr": 3e-4}}}\n')
    shutil.rmtree(out, ignore_errors=True)
    record = os.path.join(out, "metrics.jsonl")
    begun = time.perf_counter()
    process = subprocess.Popen(
        [inputs.sifr, "train", "--config", config, "--model", model, "--data", inputs.store(),
         "--output", out, "--seq-length", "8", "--max-steps", "1"], env=clean_environment(),
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    took = None
    while took is None and process.poll() is None and time.perf_counter() - begun < 60:
        try:
            if os.path.getsize(record) > 0:
                took = time.perf_counter() - begun
        except OSError:
            pass
        time.sleep(0.001)
    process.kill()
    trouble = process.stderr.read()
    if process.returncode is None:
        usage = os.wait4(process.pid, 0)[2]
        process.returncode = -signal.SIGKILL
    shutil.rmtree(out, ignore_errors=True)
    if not took:
        return {"failed": trouble.strip()[-200:] or "no step in 60 s"}
    return {"seconds": took, "bytes": usage.ru_maxrss * 1024}


def fresh_pages(size):
    """Seconds until a new process has so many bytes, touched by one thread."""
    touch = ("import mmap, sys, time; n = int(sys.argv[1]); begun = time.perf_counter(); "
             "m = mmap.mmap(-1, n, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS); "
             "m.madvise(mmap.MADV_HUGEPAGE); m[::4096] = bytes(len(range(0, n, 4096))); "
             "print(time.perf_counter() - begun)")
    done = subprocess.run([sys.executable, "-c", touch, str(size)], capture_output=True, text=True,
                          timeout=120, check=False)
    return float(done.stdout) if not done.returncode else None


def peer_to_first_step(context, model):
    begun = time.perf_counter()
    process = subprocess.Popen(context.peer("first_step.py") + [model], text=True,
                               env=clean_environment(context.peer_environment()),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    patience = threading.Timer(60, process.kill)
    patience.start()
    line = next((l for l in process.stdout if l.startswith("step 1")), None)
    took = time.perf_counter() - begun
    trouble = process.communicate()[1]
    patience.cancel()
    return {"seconds": took} if line else {"failed": trouble.strip()[-200:]}


def run_start(context, part):
    model = context.inputs.model("gpt2", 1024)
    context.inputs.store()
    results = {"sifr": [], "pages": [], "torch": []}
    ends = time.monotonic() + context.allowed
    for _ in range(5):    # the first meets memory that the host has yet to give
        results["sifr"].append(ours_to_first_step(context, model))
        if size := results["sifr"][-1].get("bytes"):
            results["pages"].append(fresh_pages(size))
        if context.python and time.monotonic() < ends:
            results["torch"].append(peer_to_first_step(context, model))
    part.data = results
    mine = [r["seconds"] for r in good(results["sifr"])]
    if not mine:
        part.rows.append(Row("command to first step", mark="<1", note=failure(results["sifr"])))
        return
    row = Row("command to the end of the first step, gpt2, 8 tokens",
              seconds(median(mine)) + report.spread(spread(mine)), "1 s", "", median(mine), "<1")
    part.rows.append(row)
    pages = [s for s in results["pages"] if s]
    if pages:
        size = median([r["bytes"] for r in good(results["sifr"])])
        part.rows.append(Row(row.figure, row.ours, f"touching {gigabytes(size)} that it takes",
                             seconds(median(pages)) + report.spread(spread(pages)),
                             median(pages) / median(mine), "",
                             "one thread, in turns: what the system takes to give such pages"))
    theirs = [r["seconds"] for r in good(results["torch"])]
    if theirs:
        part.rows.append(Row(row.figure, row.ours, "torch and transformers",
                             seconds(median(theirs)), median(theirs) / median(mine)))
    elif context.python:
        part.rows.append(Row(row.figure, "", "torch", note=failure(results["torch"])))


# --- safetensors ---


def run_files(context, part):
    inputs = context.inputs
    model, out = inputs.model("gpt2", 1024), inputs.path("written")
    os.makedirs(out, exist_ok=True)
    contestants = [Contestant("sifr", [inputs.program("bench_files"), model, out, "4"])]
    if context.python:
        contestants.append(Contestant("safetensors", context.peer("files.py") +
                                      [model, os.path.join(out, "python.safetensors"), "4"],
                                      context.peer_environment()))
    results = interleave(contestants, context.rounds, context.allowed, context.say)
    shutil.rmtree(out, ignore_errors=True)
    part.data = results
    if not good(results["sifr"]):
        part.rows.append(Row("safetensors", mark="1.0", note=failure(results["sifr"])))
        return
    size = report.gigabytes(good(results["sifr"])[0]["bytes"])
    values = lambda who, key: [s for r in good(results.get(who, [])) for s in r[key]]
    for title, key, other, note in (
            ("load into memory", "load", "load", ""),
            ("save, on the disk", "save", "save_synced", "both wait until it lies on the disk"),
            ("save", "save", "save", "the library leaves the writing to the system")):
        mine, theirs = values("sifr", key), values("safetensors", other)
        row = Row(f"safetensors, {size}: {title}",
                  seconds(median(mine)) + report.spread(spread(mine)), "safetensors, Python",
                  note=note)
        if theirs:
            row.theirs = seconds(median(theirs)) + report.spread(spread(theirs))
            row.ratio = median(theirs) / median(mine)
            row.mark = "" if other == "save" else "1.0"
        elif context.python:
            row.mark, row.note = "" if other == "save" else "1.0", failure(results["safetensors"])
        part.rows.append(row)


# --- tokens ---


def tokenise_with(context, part, kind, threads):
    inputs = context.inputs
    tokenizer, text = inputs.tokenizer(kind), inputs.documents()
    files = os.listdir(text)
    size = sum(os.path.getsize(os.path.join(text, f)) for f in files)
    contestants = [Contestant("sifr", [
        inputs.sifr, "tokenize", "--tokenizer", tokenizer, "--data", text, "--output",
        inputs.path("tokenised"), "--threads", str(threads), "--json"])]
    if context.python:
        contestants.append(Contestant(
            "tokenizers", context.peer("tokenise.py") + [tokenizer, text, "1"],
            {**context.peer_environment(threads), "RAYON_NUM_THREADS": str(threads)}))
    results = interleave(contestants, context.rounds, context.allowed / 6, context.say)
    part.data[f"{kind}, {threads} threads"] = results
    mine = [r["seconds"] for r in good(results["sifr"])]
    if not mine:
        part.rows.append(Row(f"tokenising, {kind}", mark="5.0", note=failure(results["sifr"])))
        return
    row = Row(f"{kind}, {number(size / 1e6)} MB, {threads} thread" + "s" * (threads > 1),
              f"{number(size / 1e6 / median(mine))} MB/s{report.spread(spread(mine))}",
              "tokenizers, Python")
    theirs = [s for r in good(results.get("tokenizers", [])) for s in r["seconds"]]
    if theirs:
        row.theirs = f"{number(size / 1e6 / median(theirs))} MB/s{report.spread(spread(theirs))}"
        row.ratio, row.mark = median(theirs) / median(mine), "5.0"
        ids = [good(results["sifr"])[0]["tokens"], good(results["tokenizers"])[0]["tokens"]]
        # sifr ends each document, and WordPiece's post-processor begins it as well.
        if ids[0] not in (ids[1], ids[1] + len(files), ids[1] + 2 * len(files)):
            row.note = f"other tokens: {ids[0]} and {ids[1]}"
    elif context.python:
        row.mark, row.note = "5.0", failure(results["tokenizers"])
    part.rows.append(row)


def run_tokenise(context, part):
    for kind in ("bpe", "wordpiece", "unigram"):
        for threads in (1, context.threads):
            tokenise_with(context, part, kind, threads)
    part.notes.append("Documents of 2 KB. sifr's figure includes reading the files and writing the "
                      "token store; the library's is its call alone, on texts that lie in memory.")


# --- generation ---


def weights_read(model, tiny):
    """Elements that one token reads: all but the embeddings' rows that it does not look up."""
    from inputs import gpt2_config, llama_config
    if model == "gpt2":
        c = gpt2_config(tiny, 64)
        width, words = c["n_embd"], c["vocab_size"]
        return c["n_layer"] * (12 * width * width + 13 * width) + words * width + 2 * width
    c = llama_config(tiny, 64)
    width, words = c["hidden_size"], c["vocab_size"]
    block = 4 * width * width + 3 * width * c["intermediate_size"] + 2 * width
    return c["num_hidden_layers"] * block + words * width + width


def run_generate(context, part):
    inputs = context.inputs
    count = "16" if inputs.tiny else "128"
    for model in ("gpt2", "llama"):
        folder = inputs.model(model, 1024)
        contestants = [Contestant("sifr", [
            inputs.sifr, "generate", "--model", folder, "--prompt", "And it came to pass",
            "--max-new-tokens", count, "--temperature", "0", "--precision", "bf16", "--json"]),
                       memory_contestant(inputs)]
        if context.python:
            contestants += [Contestant(f"torch {kind}", context.peer("generate.py") +
                                       [folder, "16" if inputs.tiny else "48", kind, "1"],
                                       context.peer_environment())
                            for kind in ("fp32", "bf16")]
        results = interleave(contestants, context.rounds + 1,
                             context.allowed / 2, context.say)
        limits = memory_medians(inputs, results)
        read = limits["read_gbytes_all"]
        limit = max(bandwidth(limits), read)
        part.data[model] = {"limits": limits, "results": results}
        mine = [len(r["ids"]) / r["seconds"] for r in good(results["sifr"])]
        if not mine:
            part.rows.append(Row(f"generation, {model}", mark="0.80",
                                 note=failure(results["sifr"])))
            continue
        moved = median(mine) * weights_read(model, inputs.tiny) * 2 / 1e9
        part.rows.append(Row(f"generation, {model} bf16, batch 1",
                             f"{number(median(mine))} tokens/s{report.spread(spread(mine))}",
                             "memory bandwidth", f"{number(limit)} GB/s", moved / limit, "0.80",
                             f"{number(moved)} GB/s of weights"))
        part.rows.append(Row(f"generation, {model}, its weights",
                             f"{number(moved)} GB/s", "a plain read", f"{number(read)} GB/s",
                             moved / read))
        for name in list(results)[1:]:
            if not good(results[name]):
                part.rows.append(Row(f"generation, {model}", "", name, note=failure(results[name])))
                continue
            theirs = [r["tokens"] / s for r in good(results[name]) for s in r["seconds"]]
            part.rows.append(Row(f"generation, {model}, batch 1", number(median(mine)), name,
                                 number(median(theirs)), median(mine) / median(theirs)))
