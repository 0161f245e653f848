"""Runs contestants in turns and sums up what they measured. Nothing here knows what is measured.

A contestant is a command that prints a JSON object last on its standard output; one that prints
what it has after each step loses nothing when it is ended because it takes too long. One that fails
leaves {"failed": why} and is not asked again."""
import json
import os
import signal
import socket
import statistics
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, field

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CACHE = os.environ.get("SIFR_BENCH_CACHE", os.path.join(ROOT, ".cache", "bench"))

# What makes a library run slower than it can: set in some shells, never for a measurement.
SLOWING = ("OPENBLAS_CORETYPE", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS",
           "OMP_PROC_BIND", "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY",
           "LD_PRELOAD", "GLIBC_TUNABLES", "MALLOC_ARENA_MAX")


@dataclass
class Contestant:
    name: str
    command: list
    environment: dict = field(default_factory=dict)
    ranks: int = 1      # more: one process each, with RANK and WORLD_SIZE; the first one answers
    program: str = ""   # the ranks are descendants of the command, of this name (mpirun's)
    timeout: float = 300


def cores():
    return sorted(os.sched_getaffinity(0))


def clean_environment(more=None):
    environment = {k: v for k, v in os.environ.items() if k not in SLOWING}
    environment.update(more or {})
    return environment


def last_object(text):
    """The last whole JSON object of a text that has other lines before it, and may break off."""
    text = "\n" + text
    while (at := text.rfind("\n{")) >= 0:
        try:
            return json.loads(text[at:])
        except ValueError:
            text = text[:at]
    raise ValueError("no JSON object on standard output")


def proportional_memory(pid):
    """Bytes: what is shared counts for each of its users in part. 0 where the process is gone."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as f:
            return sum(int(line.split()[1]) for line in f if line.startswith("Pss:")) * 1024
    except OSError:
        return 0


def descendants(pid, program):
    found, todo = [], [pid]
    while todo:
        parent = todo.pop()
        try:
            with open(f"/proc/{parent}/task/{parent}/children") as f:
                children = [int(p) for p in f.read().split()]
            for child in children:
                with open(f"/proc/{child}/comm") as f:
                    if f.read().strip() == program[:15]:
                        found.append(child)
            todo += children
        except OSError:
            continue
    return found


class MemoryWatch(threading.Thread):
    """The largest sum over the ranks, looked at each second (single processes are exact: wait4)."""

    def __init__(self, pids_of):
        super().__init__(daemon=True)
        self.pids_of, self.peak, self.stop = pids_of, 0, threading.Event()

    def run(self):
        while not self.stop.wait(1.0 if self.peak else 0.2):
            self.peak = max(self.peak, sum(proportional_memory(p) for p in self.pids_of()))


def end_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (OSError, ProcessLookupError):
        pass


def short_reason(text, code):
    if code == -signal.SIGKILL:
        return "killed: out of memory?"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    wanted = [line for line in lines if "Error" in line or "error" in line] or lines
    return (wanted[-1] if wanted else f"exit code {code}")[:200]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start(contestant, rank, port, out, err):
    environment = clean_environment(contestant.environment)
    if contestant.ranks > 1 and not contestant.program:
        environment.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(contestant.ranks),
                           LOCAL_WORLD_SIZE=str(contestant.ranks), MASTER_ADDR="127.0.0.1",
                           MASTER_PORT=str(port))
    process = subprocess.Popen(contestant.command, env=environment, stdout=out, stderr=err,
                               stdin=subprocess.DEVNULL, cwd=ROOT, start_new_session=True)
    # Where memory runs out the contestant goes, and nothing else on the machine.
    try:
        with open(f"/proc/{process.pid}/oom_score_adj", "w") as f:
            f.write("900")
    except OSError:
        pass
    return process


def wait_all(processes, deadline):
    """Exit codes by process, None for one that had to be ended; the largest memory of one, and the
    processor seconds of those that ended."""
    codes, peak, processor = [None] * len(processes), 0, 0
    try:
        while any(c is None for c in codes):
            for i, process in enumerate(processes):
                if codes[i] is not None:
                    continue
                pid, status, usage = os.wait4(process.pid, os.WNOHANG)
                if pid:
                    codes[i] = process.returncode = os.waitstatus_to_exitcode(status)
                    peak = max(peak, usage.ru_maxrss * 1024)
                    processor += usage.ru_utime + usage.ru_stime
            if any(codes) or time.monotonic() > deadline:
                break
            time.sleep(0.02)
    finally:    # also where this program itself is told to end
        for i, process in enumerate(processes):
            end_group(process)
            if codes[i] is None:
                usage = os.wait4(process.pid, 0)[2]
                process.returncode = -9
                peak = max(peak, usage.ru_maxrss * 1024)
    return codes, peak, processor


def busy_seconds():
    """Processor seconds that this machine's programs and its neighbours' took of our cores so
    far."""
    ours, tick = {f"cpu{c}" for c in cores()}, os.sysconf("SC_CLK_TCK")
    with open("/proc/stat") as f:
        lines = [line.split() for line in f]
    # user nice system idle iowait irq softirq steal
    return sum(sum(map(int, n[1:4] + n[6:9])) for n in lines if n[0] in ours) / tick


class BusyWatch(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.seen, self.stop = [], threading.Event()

    def run(self):
        while not self.stop.wait(0.1):
            self.seen.append((time.monotonic(), busy_seconds()))

    def free(self, begun, ended, own):
        """The share of our cores' time that was there for a program that used `own` processor
        seconds between two times: what others took is not."""
        at = lambda t: min(self.seen, key=lambda s: abs(s[0] - t), default=None)
        first, last = at(begun), at(ended)
        if not first or last[0] - first[0] < 0.5:
            return 1
        whole = len(cores()) * (last[0] - first[0])
        others = (last[1] - first[1]) - own * (last[0] - first[0]) / (ended - begun)
        return min(1, max(0.05, 1 - others / whole))


class ProcessorWatch:
    """What the processors give meanwhile, by a command that says so in lines: time of the monotonic
    clock, core, rate; and how much of their time other programs leave."""

    def __init__(self, command):
        self.out = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(command, stdout=self.out, stderr=subprocess.DEVNULL,
                                        stdin=subprocess.DEVNULL, env=clean_environment(),
                                        start_new_session=True)
        self.busy = BusyWatch()
        self.busy.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()
        self.out.close()

    def end(self):
        end_group(self.process)
        self.process.wait()
        self.busy.stop.set()
        self.busy.join()

    def read(self):
        """[(time, rate)] of each core, all that was seen. Ends the command."""
        self.end()
        self.out.seek(0)
        seen = {}
        for line in self.out.read().splitlines()[:-1]:      # the last one may break off
            at, core, rate = line.split()
            seen.setdefault(int(core), []).append((float(at), float(rate)))
        return [seen[core] for core in sorted(seen)]


def rates_between(seen, begun, ended):
    """Of each core, the mean between two times; None where one was not seen then."""
    rates = [[rate for at, rate in core if begun <= at <= ended] for core in seen]
    return [sum(r) / len(r) for r in rates] if rates and all(rates) else None


PIECE = 1.0     # seconds: ten looks at a core, and shorter than neighbours stay


def pieces(seen, begun, ended):
    """The rates of the cores, by pieces of time of about a second."""
    count = max(1, round((ended - begun) / PIECE))
    ends = [begun + (ended - begun) * i / count for i in range(count + 1)]
    found = [rates_between(seen, *between) for between in zip(ends, ends[1:])]
    return [rates for rates in found if rates]


def counted_steps(result):
    """(begin, end) of the steps that count, all but the first; where only the end of the last one
    is known, of all as one."""
    if "began" in result:
        return [(b, b + s) for b, s in zip(result["began"][1:], result["seconds"][1:])]
    if "ended" in result:
        return [(result["ended"] - sum(result["seconds"][1:]), result["ended"])]
    return []


def add_machine(result, watching):
    """What the processors gave during the steps that count: "machine_cores", the mean of each core;
    "machine", their sum; "machine_steps", that sum by steps. Of what ranks can have that make a
    step together, one on each core: "least", by steps, the mean of the slowest core, and "uneven",
    the share of the cores' time in which the others stand still for it. Where a step's own
    processor time is known: "free", by steps, the share of the cores' time that others left."""
    steps, seen = counted_steps(result), watching.read()
    if "processor_seconds" in result:
        result["free"] = [watching.busy.free(*step, own)
                          for step, own in zip(steps, result["processor_seconds"][1:])]
    rates = [rates_between(seen, *step) for step in steps]
    if not any(rates):
        return
    result["machine_cores"] = [sum(core) / len(core) for core in zip(*filter(None, rates))]
    result["machine"] = sum(result["machine_cores"])
    result["machine_steps"] = [r and sum(r) for r in rates]
    by_step = [pieces(seen, *step) for step in steps]
    result["least"] = [sum(map(min, p)) / len(p) if p else None for p in by_step]
    still = [1 - min(rates) / r for p in by_step for rates in p for r in rates]
    result["uneven"] = sum(still) / len(still) if still else None


def run(contestant, watch=None):
    """`watch`: a command for ProcessorWatch; its figures for the steps that count become part of
    the result, or of each of the results "by" which it took turns."""
    if not watch:
        return run_alone(contestant)
    with ProcessorWatch(watch) as watching:
        result = run_alone(contestant)
        for one in result.get("by", [result]):
            add_machine(one, watching)
        return result


def run_alone(contestant):
    own = contestant.ranks if not contestant.program else 1
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err, \
            open(os.devnull, "w") as nowhere:
        begun = time.monotonic()
        processes, port = [], free_port()
        try:
            for rank in range(own):
                processes.append(start(contestant, rank, port, out if rank == 0 else nowhere, err))
        except OSError as e:
            for process in processes:
                end_group(process)
            return {"failed": str(e)}
        watch = None
        if contestant.ranks > 1:
            pids = (lambda: descendants(processes[0].pid, contestant.program)) \
                if contestant.program else (lambda: [p.pid for p in processes])
            watch = MemoryWatch(pids)
            watch.start()
        codes, peak, processor = wait_all(processes, begun + contestant.timeout)
        wall = time.monotonic() - begun
        if watch:
            watch.stop.set()
            watch.join()
            peak = watch.peak
        out.seek(0)
        err.seek(0)
        text, trouble = out.read(), err.read()
    if any(codes):
        bad = next(c for c in codes if c)
        return {"failed": short_reason(trouble, bad), "stderr": trouble[-3000:]}
    late = any(c is None for c in codes)
    try:
        result = last_object(text)
    except ValueError as e:
        why = f"ended after {wall:.0f} s: too slow here" if late else str(e)
        return {"failed": why, "stderr": trouble[-3000:]}
    result.update(wall_seconds=wall, peak_bytes=peak, ended_early=late, run_seconds=processor)
    return result


def interleave(contestants, rounds, seconds, say=print, watch=None):
    """{name: [results]}, in turns A B A B. The first turn is made of each, within its own time
    limit; a later one of all or of none, while it fits into so many seconds: a figure then never
    stands on minutes that the one beside it has not seen. `watch`: as run() takes it."""
    results = {c.name: [] for c in contestants}
    deadline = time.monotonic() + seconds
    for turn in range(rounds):
        able = [c for c in contestants if not turn or "failed" not in results[c.name][-1]]
        if turn and time.monotonic() + sum(results[c.name][-1]["wall_seconds"]
                                           for c in able) > deadline:
            say(f"  no time for turn {turn + 1} of {rounds}")
            break
        for c in able:
            say(f"  {c.name}, turn {turn + 1} of {rounds}")
            results[c.name].append(run(c, watch))
            if "failed" in results[c.name][-1]:
                say(f"    failed: {results[c.name][-1]['failed']}")
    return results


def good(results):
    return [r for r in results if "failed" not in r]


def failure(results):
    return next((r["failed"] for r in results if "failed" in r), "not measured")


def median(values):
    return statistics.median(values) if values else None


def spread(values):
    """(largest - least) / median"""
    if len(values) < 2:
        return None
    return (max(values) - min(values)) / statistics.median(values)


def best(values, least=True):
    return (min(values) if least else max(values)) if values else None


def stolen():
    """(jiffies that another machine's work took from this one's processors, all jiffies)"""
    with open("/proc/stat") as f:
        numbers = [int(n) for n in f.readline().split()[1:9]]
    return numbers[7], sum(numbers)


def work(result):
    """Of each step that counts, what it took of what the machine gave: its seconds, times the share
    of the cores that was free and the rate of the slowest core, for which the other one waits."""
    steps = result["seconds"][1:]
    least = result.get("least") or [None] * len(steps)
    return [s * free * (rate or 1) for s, free, rate in zip(steps, result["free"], least)]


def turn_ratios(by):
    """The second one's work beside that of the first one, of each turn."""
    own, base = (work(r) for r in by)
    return [b / a for a, b in zip(own, base)]
