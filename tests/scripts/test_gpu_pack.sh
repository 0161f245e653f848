# label: full
# scripts/gpu-pack.sh, gpu-rent.sh: in a root that holds glibc, a shell and its usual commands, and
# nothing else, the pack says that there is no GPU, and runs its parts on the driver that tests play.
# timeout: 300, not under sanitizers, each MPI
# In `make other-mpi`, which installs MPICH, the pack has the played GPU alone, and runs ranks. `make
# soak` packs all programs with kernels (test_soak_pack.sh).
fail() { cat out 2>/dev/null; echo "$1" >&2; exit 1; }
. "$SOURCE/tests/support/bare_root.sh"
pack="$SOURCE/scripts/gpu-pack.sh"
shellcheck "$pack" "$SOURCE/scripts/gpu-rent.sh" >out || fail "shellcheck"
# What the scripts that run there name is packed: of words that are no program nothing.
mkdir -p copy/scripts
cp "$pack" copy/scripts
ln -s "$SOURCE/tests" copy
echo 'on_gpu test_cuda_sums; "$tests/gpu_speed"; gpu_of test_of_none' >copy/scripts/gpu-new.sh
[ "$(echo $(copy/scripts/gpu-pack.sh --targets))" = "sifr gpu_speed test_cuda_sums" ] ||
    fail "not what a new script names: $(copy/scripts/gpu-pack.sh --targets)"

few="--only sifr_on_fake_gpu"
[ "${SIFR_MPI:-}" ] || few=
make_pack() { "$pack" --level 1 --most 60 --together 120 "$@" "$BUILD" gpu.tar.zst >out 2>&1; }
make_pack $few || fail "gpu-pack.sh: exit code $?"
grep -qE 'gpu.tar.zst: [0-9.]+ MiB; the tree: ([0-9.]+ MiB; together: [0-9.]+ MiB|not known, .*)$' out ||
    fail "no size"
bare_root gpu.tar.zst
[ ! -e root/gpu/tests/golden/results/llama2.json ] || fail "golden data that no packed program names"

# MPICH is packed where it is, with whichever MPI this suite runs.
ranks="passed"
SIFR_MPI=mpich "$SIFR" doctor --json | grep -q '"launcher": "' ||
    ranks="not run .* no launcher of this program.s MPI here"
checks() { # PARTS: passed, on the played driver
    local part
    inside /gpu/gpu-check /tmp/results --fake --parts "$1" || fail "on the played driver: exit code $?"
    for part in ${1//,/ }; do
        [ "$part" = ranks ] || grep -q "^| $part | passed |" out || fail "$part"
    done
    ! [[ $1 =~ ranks ]] || grep -qE "^\| ranks \| $ranks" out || fail "ranks"
    [ -s root/tmp/results/gpu-check.json ] || fail "no results"
}
inside /bin/ls && fail "the root holds more than it was given"
code=0
inside /gpu/gpu-check || code=$?
[ $code = 1 ] || fail "without a GPU: exit code $code"
grep -q '^gpu-check: no GPU' out || fail "nothing said of the GPU"
grep -q 'no driver' out || fail "nothing said of the driver"
if [ "$few" ]; then
    checks ranks
    exit
fi

# Tools of that machine find their own libraries, not the pack's.
for name in nvidia-smi nvcc python3; do
    printf '#!/bin/bash\necho "${LD_LIBRARY_PATH-unset}" >>/tmp/seen\nexit 1\n' >root/bin/$name
    chmod +x root/bin/$name
done
checks look,bits,golden,ranks,again
[ "$(sort -u root/tmp/seen)" = unset ] || fail "the pack's libraries for all: $(cat root/tmp/seen)"

# In one command, also where tar has no zstd; nothing is left behind but the results.
mkdir results bin temporary
export TMPDIR=$PWD/temporary
rent() { "$SOURCE/scripts/gpu-rent.sh" gpu.tar.zst "$@" >out 2>&1; }
rent results --fake --parts look || fail "gpu-rent.sh: exit code $?"
[ -s results/gpu-check.json ] || fail "gpu-rent.sh: no results"
printf '#!/bin/sh\n[ "$1" != xf ] && exec "%s" "$@"\nexit 2\n' "$(command -v tar)" >bin/tar
chmod +x bin/tar
PATH=$PWD/bin:$PATH rent others --fake --parts look || fail "without zstd: exit code $?"
[ -s others/gpu-check.json ] || fail "without zstd: no results"
tar -tf others/gpu-check-logs.tar | grep -q look.log || fail "without zstd: no logs"
code=0
rent results --parts none || code=$?
[ $code = 2 ] && grep -q 'no part none' out || fail "the exit code of gpu-check"
[ -z "$(ls temporary)" ] || fail "left behind: $(ls temporary)"
code=0
"$SOURCE/scripts/gpu-rent.sh" absent.tar.zst results >out 2>&1 || code=$?
[ $code = 2 ] && grep -q '^usage: ' out || fail "a pack that is not there"

# Packs that are too large, alone and with the tree.
make_pack --only sifr_on_fake_gpu --most 1 && fail "no limit of the pack"
grep -q '^gpu-pack.sh: the pack takes more than 1 MiB' out || fail "why it is too large"
make_pack --only sifr_on_fake_gpu --together 1 && fail "no limit of pack and tree"
grep -q '^gpu-pack.sh: pack and tree take more than 1 MiB together' out || fail "why they are"
