# label: soak
# timeout: 2400, not under sanitizers, runs alone
# The tarball and the wheel for glibc 2.31 and newer: made in a Debian 11, then taken to a new Debian
# 11, 12 and 13 with nothing else. The unpacked program trains the same bits as the build of this
# machine, and with that Debian's Open MPI on two ranks; so does the wheel that pip installs, beside
# PyPI's numpy, with that Debian's Python, on one rank and on two. Debian 11's is too old: there with
# CPython of Debian 12's source. Needs root, debootstrap and a network; without a Debian 11 from the
# mirror it is skipped.
fail() { tail -n 40 out 2>/dev/null; echo "failed: $1" >&2; exit 1; }
. "$SOURCE/scripts/debian-root.sh"
debian_roots=$BUILD/debian-roots
lacks=$(debian_root_lacks)
[ -z "$lacks" ] || { echo "skipped: $lacks"; exit 77; }
"$SOURCE/scripts/release.sh" --trial dist >out 2>&1 || fail "release.sh: exit code $?"
code=0
CACHE=${ROOT_CACHE:-} TMPDIR=$PWD debian_roots=$debian_roots \
    "$SOURCE/scripts/make-portable.sh" dist made tarball wheel >out 2>&1 || code=$?
[ $code != 77 ] || { echo "skipped: $(tail -n 1 out)"; exit 77; }
[ $code = 0 ] || fail "make-portable.sh: exit code $code"
cat out
"$SOURCE/scripts/small-run.sh" "$SIFR" >bits || fail "the build of this machine does not train"

numpy() { # PYTHON VERSION: PyPI's, without another look at PyPI in each Debian
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --dest wheels \
        --python-version "$1" --platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 \
        --platform manylinux2014_x86_64 'numpy>=2.2' >out 2>&1 || fail "no numpy for Python $1"
}
cpython() { # the Debian 11 in root: CPython, which is kept, as long as that Debian is the same
    kept=$debian_roots/bullseye-cpython.tar
    if [ ! -e "$kept" ] || [ "$debian_roots/bullseye.tar" -nt "$kept" ]; then
        echo "deb-src $debian_mirror bookworm main" >root/etc/apt/sources.list.d/sources.list
        cp "$SOURCE/tests/soak/cpython_inside.sh" root/root/
        root_installs root gcc libc6-dev make zlib1g-dev libffi-dev >out 2>&1 || fail "$suite: no compiler"
        in_root root sh /root/cpython_inside.sh >out 2>&1 || fail "$suite: no CPython"
        tar -C root -cf "$kept.new" opt/python
        mv "$kept.new" "$kept"
        debian_root $suite root
    fi
    tar -C root -xf "$kept"
}
trained() { # WHAT COMMAND…: by small-run.sh, with these settings
    in_root root env "${@:2}" sh -euc 'sh /opt/sifr-*/share/doc/sifr/small-run.sh sifr >/root/bits' >out 2>&1 ||
        fail "$suite: $1: exit code $?"
    cmp bits root/root/bits || fail "$suite: $1: other bits than the build of this machine"
}
numpy 3.11
numpy 3.13
tried=
for suite in bullseye bookworm trixie; do
    if ! debian_root $suite root; then
        [ $suite != bookworm ] || fail "no Debian 12: $(tail -n 3 root.log)"
        echo "skipped: no Debian $suite from $debian_mirror"
        continue
    fi
    [ $suite != bullseye ] || cpython
    tar -C root/opt -xf made/sifr-*-linux-x86_64.tar.gz
    in_root root sh -euc 'ln -s /opt/sifr-*/bin/sifr /usr/local/bin/sifr; sifr --version --verbose' >out 2>&1 ||
        fail "$suite: exit code $?"
    grep '^runs on' out
    trained "the program"
    cp -r wheels made/sifr-*.whl root/root/
    python=/opt/python/bin/python3
    [ $suite = bullseye ] || python=python3
    root_installs root openmpi-bin $([ $suite = bullseye ] || echo python3-venv) >out 2>&1 ||
        fail "$suite: no Open MPI or Python"
    trained "the program, two ranks" RANKS=2
    in_root root sh -euc "$python -m venv /root/venv
        /root/venv/bin/pip install --no-index --find-links /root/wheels /root/sifr-*.whl numpy
        /root/venv/bin/pip check" >out 2>&1 || fail "$suite: pip cannot install the wheel"
    python=/root/venv/bin/python
    trained "the wheel" PYTHON=$python
    trained "the wheel, two ranks" PYTHON="mpirun -n 2 --allow-run-as-root --oversubscribe $python"
    cp -r "$SOURCE/tests/golden/models/gpt2" root/root/
    in_root root $python -c 'import sys, numpy, sifr
values = sifr.state_dict("/root/gpt2")
assert all(numpy.isfinite(value).all() for value in values.values()) and len(values) > 10
assert sifr.next_tokens(numpy.arange(4, dtype=numpy.int32)[None]).tolist() == [[1, 2, 3, -100]]
print("wheel: Python", sys.version.split()[0], "numpy", numpy.__version__, "sifr", sifr.__version__)' >out 2>&1 ||
        fail "$suite: the wheel beside numpy"
    grep '^wheel' out
    tried="$tried $suite"
done
echo "$(wc -l <bits) runs of the tarball and of the wheel, the same bits as this machine's build in:$tried; $SECONDS s"
