#!/bin/bash
# Packs a build for a machine with a GPU and nothing else: no compiler, no network, no libraries but
# glibc, as new as this machine's.
#     gpu-pack.sh [--level N] BUILD OUT.tar.zst
#     gpu-pack.sh --targets: names what has to be built
# There: tar xf gpu.tar.zst && gpu/gpu-check (docs/gpu.md). --level: zstd's (19). Fails above
# 60 MiB.
set -eu -o pipefail
most=$((60 << 20)) level=19
tests="gpu_look gpu_speed test_attention_relative test_cuda_attention test_cuda_flat test_cuda_gemm
    test_cuda_golden test_cuda_rows test_cuda_runs test_cuda_sums test_cuda_tuning test_flat_ops
    test_gpu_repeat test_head_loss test_head_pairs test_head_targets test_linear test_magnitude
    test_row_ops sifr_on_fake_gpu"
[ "${1:-}" != --targets ] || { echo sifr "$tests" | tr -s " \n" " " && exit; }
[ "${1:-}" != --level ] || { level=$2 && shift 2; }
if [ $# != 2 ] || [ ! -x "$1/sifr" ]; then
    echo "usage: gpu-pack.sh [--level N] BUILD OUT.tar.zst" >&2
    exit 2
fi
build=$(realpath "$1") out=$(realpath "$2")
cd "$(dirname "$0")/.."
files="scripts/gpu-check.sh scripts/gpu-parts.sh examples/h100.json bench/peers/train_gpu_torch.py
    tests/support/run-script.sh tests/support/expect.sh tests/cli/test_gpu_runs.sh
    tests/golden/models tests/golden/models.json tests/golden/families tests/golden/encoders
    tests/golden/lora tests/golden/results"
work=$(mktemp -d "${TMPDIR:-/tmp}/sifr-pack.XXXXXX")
trap 'rm -rf "$work"' EXIT
tree=$work/gpu
mkdir -p "$tree/build/tests" "$tree/lib" "$tree/bin"

strip -o "$tree/build/sifr" "$build/sifr"
for test in $tests; do strip -o "$tree/build/tests/$test" "$build/tests/$test"; done
# shellcheck disable=SC2086 # lists of words
cp -r --parents $files "$tree"

# The launcher of MPICH finds its proxy beside itself; that of Open MPI needs a whole tree, and
# stays here.
if ldd "$build/sifr" | grep -q libmpich; then
    cp -L "$(command -v mpiexec.hydra)" "$tree/bin/mpirun.mpich"
    cp -L "$(command -v hydra_pmi_proxy)" "$tree/bin"
fi

# All libraries but those of glibc, which belong to the loader of the machine.
glibc='^(ld-linux.*|lib(c|m|dl|rt|pthread|util|resolv|mvec|anl|nsl|nss_.*|thread_db))\.so'
{ ldd "$tree/build/sifr" "$tree"/build/tests/* "$tree"/bin/* 2>/dev/null || :; } |
    sed -n 's/^[[:space:]]*\([^ ]*\) => \(\/[^ ]*\) .*/\1 \2/p' | sort -u >"$work/libraries"
while read -r name path; do
    [[ $name =~ $glibc ]] || cp -L "$path" "$tree/lib/$name"
done <"$work/libraries"

cat >"$tree/gpu-check" <<'END'
#!/bin/bash
# Checks this machine's first GPU:
#     gpu-check [--figures] [--fake] [--parts PART,…] [--seconds N] [OUT]
# OUT: a folder for the results (results, beside this file).
here=$(realpath "$(dirname "$0")") out=
case $# in 0) ;; *)
    last=${*: -1} before=${*: -2:1}
    case $last in -*) ;; *) case $before in --parts | --seconds) ;; *) out=$last ;; esac ;; esac ;;
esac
[ -z "$out" ] || set -- "${@:1:$#-1}"
export LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} PATH=$here/bin:$PATH
exec bash "$here/scripts/gpu-check.sh" "$@" "$here/build" "${out:-$here/results}"
END
chmod +x "$tree/gpu-check"

tar -C "$work" --sort=name --owner=0 --group=0 -cf - gpu |
    zstd -q -f -T0 "-$level" --long=27 -o "$out"
size=$(stat -c %s "$out")
echo "$out: $(awk -v b="$size" 'BEGIN { printf "%.1f", b / 1048576 }') MiB"
if [ "$size" -gt $most ]; then
    echo "gpu-pack.sh: that is more than $((most >> 20)) MiB" >&2
    exit 1
fi
