"""What this machine can do at most: operations, memory, copies by processes, disk."""
import json
import mmap
import os
import shutil
import subprocess
import threading
import time

import report
from harness import CACHE, Contestant, clean_environment, good, median
from report import Row


def command(inputs, *parts):
    return [inputs.program("bench_limits"), *parts, *(["8"] if inputs.tiny else [])]


def measure(inputs, *parts):
    done = subprocess.run(command(inputs, *parts), capture_output=True, text=True,
                          env=clean_environment(), timeout=120, check=True)
    return json.loads(done.stdout)


def memory_contestant(inputs):
    """The memory's limits in turns with what is held against them: a neighbour takes of both."""
    return Contestant("limits", command(inputs, "memory"))


def memory_medians(inputs, results):
    """Of what that contestant measured, which leaves the results."""
    turns = good(results.pop("limits"))
    if not turns:
        return measure(inputs, "memory")
    return {key: median([turn[key] for turn in turns]) for key in turns[0] if "gbytes" in key}


def watch(inputs):
    """What says meanwhile how much the processors give: harness.ProcessorWatch."""
    return [inputs.program("bench_limits"), "watch"]


def bandwidth(limits):
    """GB/s that all threads together reach at most, in a triad or a copy of either kind."""
    return max(rate for key, rate in limits.items()
               if key.startswith(("triad_", "copy_")) and key.endswith("gbytes_all"))


def disk_by_fio(path, size):
    figures = {}
    for what in ("read", "write"):
        done = subprocess.run(
            ["fio", "--name=limit", f"--filename={path}", f"--rw={what}", f"--size={size}",
             "--bs=4M", "--iodepth=8", "--ioengine=io_uring", "--direct=1", "--end_fsync=1",
             "--output-format=json"], capture_output=True, text=True, timeout=120, check=True)
        job = json.loads(done.stdout[done.stdout.index("{"):])["jobs"][0][what]
        figures[what] = job["bw_bytes"] / 1e9
    return figures


def disk_by_hand(path, size, block=4 << 20, readers=4):
    """Whole blocks past the page cache, by several threads, as programs read that want it all."""
    def move(write, first):
        flags = (os.O_RDWR if write else os.O_RDONLY) | os.O_DIRECT
        file = os.open(path, flags)
        buffer = mmap.mmap(-1, block)
        for at in range(first * block, size, readers * block):
            (os.pwritev if write else os.preadv)(file, [buffer], at)
        if write:
            os.fsync(file)
        os.close(file)

    figures = {}
    with open(path, "wb") as f:
        os.posix_fallocate(f.fileno(), 0, size)
    for write in (True, False):
        threads = [threading.Thread(target=move, args=(write, i)) for i in range(readers)]
        begun = time.perf_counter()
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        figures["write" if write else "read"] = size / (time.perf_counter() - begun) / 1e9
    return figures


def disk(size):
    path = os.path.join(CACHE, "disk-limit.tmp")
    try:
        if shutil.which("fio"):
            try:
                return {**disk_by_fio(path, size), "by": "fio"}
            except (subprocess.CalledProcessError, ValueError):
                pass
        return {**disk_by_hand(path, size), "by": "own blocks"}
    except OSError as e:        # a file system without O_DIRECT
        return {"failed": str(e)}
    finally:
        if os.path.exists(path):
            os.unlink(path)


def run(context, part):
    limits = measure(context.inputs)
    limits["disk"] = disk((64 if context.inputs.tiny else 2048) << 20)
    context.limits = limits
    part.data = limits
    number = report.number

    def row(figure, one, all_, note=""):
        part.rows.append(Row(figure, note=note, theirs=f"{number(one)} / {number(all_)}",
                             beside="1 thread / all"))
    row("fp32 multiply-add, GFLOP/s", limits["fp32_gflops_one"], limits["fp32_gflops_all"],
        limits["fp32_instruction"])
    emulated = limits["bf16_instruction"] == "none"
    row("bf16 multiply-add, GFLOP/s", limits["bf16_gflops_one"], limits["bf16_gflops_all"],
        "no instructions for bf16 here: the limit is that of fp32" if emulated
        else limits["bf16_instruction"])
    for name, title in (("read", "read"), ("copy", "copy (memcpy)"),
                        ("copy_stream", "copy, streaming stores"), ("triad", "triad"),
                        ("triad_stream", "triad, streaming stores")):
        row(f"{title}, GB/s", limits[f"{name}_gbytes_one"], limits[f"{name}_gbytes_all"],
            "read and written bytes counted" if name == "copy" else "")
    part.rows.append(Row("copies by 1 / 2 processes at once, GB/s each", beside="memcpy",
                         theirs=f"{number(limits['copies_gbytes_by_1'])} / "
                                f"{number(limits['copies_gbytes_by_2'])}",
                         note="the buffer counted once"))
    d = limits["disk"]
    part.rows.append(Row("disk, direct, GB/s", beside="read / write",
                         theirs="" if "failed" in d else
                         f"{number(d['read'])} / {number(d['write'])}",
                         note=d.get("failed") or d["by"]))
