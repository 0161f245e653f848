"""The peers' Python environment, made from PyPI, and the settings that their guides recommend."""
import glob
import hashlib
import os
import shutil
import subprocess
import sys

from harness import CACHE, ROOT, clean_environment, cores

# PyTorch's performance tuning guide (CPU section): threads pinned one a core, Intel's OpenMP, an
# allocator that keeps its memory, huge pages. glibc's own allocator does it with these: freed memory
# is never given back, and blocks of any size come from the heap. Page faults alone cost PyTorch up
# to 2.3 times here. The guide's tcmalloc is as quick, its jemalloc is not (NOTES.md).
ALLOCATOR = {
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1:glibc.malloc.mmap_max=0:"
                      "glibc.malloc.trim_threshold=68719476736:glibc.malloc.top_pad=268435456:"
                      "glibc.malloc.arena_max=1",
    "THP_MEM_ALLOC_ENABLE": "1",
}


def peer_environment(threads):
    """Of a peer's process; several threads are pinned, one a core; ranks of one pin themselves."""
    settings = dict(ALLOCATOR)
    settings.update(OMP_NUM_THREADS=str(threads), MKL_NUM_THREADS=str(threads),
                    TOKENIZERS_PARALLELISM="true", HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1",
                    TRANSFORMERS_VERBOSITY="error", CUDA_VISIBLE_DEVICES="", DS_ACCELERATOR="cpu",
                    PYTHONWARNINGS="ignore", MAX_JOBS=str(len(cores())),
                    TORCHINDUCTOR_CACHE_DIR=os.path.join(CACHE, "inductor"),
                    TORCH_EXTENSIONS_DIR=os.path.join(CACHE, "extensions"))
    openmp = os.path.join(CACHE, "venv", "lib", "libiomp5.so")
    if threads > 1 and os.path.exists(openmp):
        places = ",".join(str(c) for c in cores()[:threads])
        settings.update(LD_PRELOAD=openmp, KMP_BLOCKTIME="1",
                        KMP_AFFINITY=f"granularity=fine,proclist=[{places}],explicit")
    elif threads > 1:
        settings.update(OMP_PROC_BIND="close",
                        OMP_PLACES=",".join("{%d}" % c for c in cores()[:threads]))
    return settings


def run_quietly(command, log, timeout, more=None):
    with open(log, "a") as out:
        try:
            return subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, timeout=timeout,
                                  env=clean_environment(more), check=False).returncode
        except subprocess.TimeoutExpired:
            return 124


def build_operators(python, say):
    """DeepSpeed compiles its CPU Adam, its exchange in shared memory and its file I/O at their
    first use: here, so that no rank has to while the clock runs."""
    folder = os.path.join(CACHE, "extensions")
    stamp = os.path.join(folder, "built")
    # A process that was ended while it compiled leaves a lock for which others wait for ever.
    for lock in glob.glob(os.path.join(folder, "*", "lock")):
        os.unlink(lock)
    if os.path.exists(stamp):
        return
    say("compiling DeepSpeed's operators")
    os.makedirs(folder, exist_ok=True)
    settings = {k: v for k, v in peer_environment(1).items() if not k.startswith("OMP")}
    log, built = os.path.join(CACHE, "install.log"), True
    for name in ("CPUAdamBuilder", "ShareMemCommBuilder", "PinMemoryBuilder", "AsyncIOBuilder"):
        code = f"import deepspeed.ops.op_builder.cpu as b; b.{name}().load()"
        if run_quietly([python, "-c", code], log, 600, settings):
            say(f"DeepSpeed's {name} could not be compiled: see {log}")
            built = False
    if built:
        open(stamp, "w").close()


def make_python(say):
    """Path of the environment's interpreter; RuntimeError says why there is none."""
    folder = os.path.join(CACHE, "venv")
    python = os.path.join(folder, "bin", "python")
    wanted = os.path.join(ROOT, "bench", "requirements.txt")
    stamp = os.path.join(folder, "made-of")
    with open(wanted, "rb") as f:
        key = hashlib.sha256(f.read() + sys.version.encode()).hexdigest()
    if os.path.exists(stamp) and open(stamp).read() == key:
        build_operators(python, say)
        return python
    room = shutil.disk_usage(CACHE).free
    if room < 12e9:
        raise RuntimeError("the peers need 12 GB of disk to be installed, "
                           f"{room / 1e9:.0f} are free")
    say(f"installing the peers into {folder}: some minutes, 6 GB")
    shutil.rmtree(folder, ignore_errors=True)
    log = os.path.join(CACHE, "install.log")
    open(log, "w").close()
    if run_quietly([sys.executable, "-m", "venv", folder], log, 120):
        raise RuntimeError(f"python3 -m venv failed (Debian's package python3-venv?); see {log}")
    # DeepSpeed is built from source against the torch that is there: it comes second, and without
    # isolation. Its operators are compiled when they are first asked for.
    lines = [line.strip() for line in open(wanted) if line.strip() and line[0] != "#"]
    first = [line for line in lines if not line.startswith("deepspeed")]
    pip = [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    if run_quietly(pip + ["wheel", "setuptools"] + first, log, 1800):
        raise RuntimeError(f"pip could not install {', '.join(first)}; see {log}")
    os.environ.update(DS_ACCELERATOR="cpu", DS_BUILD_OPS="0")
    if run_quietly(pip + ["--no-build-isolation"] + lines, log, 900):
        say(f"pip could not install DeepSpeed: its rows will say so; see {log}")
    with open(stamp, "w") as f:
        f.write(key)
    shutil.rmtree(os.path.join(CACHE, "extensions"), ignore_errors=True)
    build_operators(python, say)
    return python
