# label: full
# scripts/gpu-check.sh where a part's program, the machine or the caller does something odd: its
# files stay readable, it ends in time and leaves nothing behind, and nothing passes that was not
# tested. Programs that are no tests stand in for some of the build's.
# timeout: 300, not under sanitizers
fail() { cat out 2>/dev/null; echo "$1" >&2; exit 1; }
check="$SOURCE/scripts/gpu-check.sh"
unset FAKE_GPU SIFR_TEST_NO_CUBLASLT
mkdir -p odd/tests
ln -s "$BUILD/sifr" odd
ln -s "$BUILD"/tests/{gpu_look,gpu_speed,sifr_on_fake_gpu,test_cuda_gemm,test_gpu_repeat} odd/tests
# In place of a test, or of the program on the played driver, which `real` is.
plant() { # NAME SCRIPT
    rm -f "odd/tests/$1"
    printf '#!/bin/bash\nreal=%q\n%s\n' "$BUILD/tests/$1" "$2" >"odd/tests/$1"
    chmod +x "odd/tests/$1"
}
checked() { # CODE OPTION…
    local want=$1 code=0
    shift
    "$check" --fake "$@" odd results >out 2>&1 || code=$?
    [ $code = "$want" ] || fail "$*: exit code $code, not $want"
}
row() { grep -qE "^\| $1" out || fail "no row '$1'"; }
json() { # ASSERTION…: of `parts`
    printf '%s\n' 'import json, sys' 'run = json.load(open("results/gpu-check.json", encoding="utf-8"))' \
        'parts = {p["part"]: p for p in run["parts"]}' "$@" | /usr/bin/env python3 - || fail "gpu-check.json: $*"
}

# What no JSON may have, half a row, and more than people read.
plant test_cuda_sums 'printf "| a\t\"q\\\\ | \351 |\n| c || d |\r\nnote: \377\nran: x\0y\nnotice: a \033 | b\n| half | a r"'
checked 0 --parts bits
json 'assert parts["bits"]["rows"] == [["a \"q\\", ""], ["c", "", "d"]], parts'
"$SOURCE/scripts/gpu-tables.py" results >tables || fail "gpu-tables.py"
plant test_cuda_sums 'seq -f "notice: %.0f times" 100000; printf "ran: "; head -c 3000000 /dev/zero | tr "\0" x'
checked 0 --parts bits
[ "$(cat results/gpu-check.json | wc -c)" -lt 20000 ] || fail "a large file"
grep -q 'and 99980 more' out || fail "how many more"
# Results of runs before stay, and count where the last run has none.
[ "$(find results -name 'gpu-check-1*' | wc -l)" = 2 ] || fail "results of an earlier run"
checked 0 --parts twins
"$SOURCE/scripts/gpu-tables.py" results | grep -q '^gpu.md, Parts: bits: filled' || fail "an earlier run"

# A test that is cut has said something.
plant test_cuda_sums 'echo "ran: words"; trap "" TERM; sleep 60'
checked 0 --parts bits --seconds 20
row 'bits \| cut off after 1[0-9] s \| .* \| words \|'

# Nothing passes that was not tested.
plant sifr_on_fake_gpu '"$real" "$@" || exit; rm -f trained/model.safetensors trained/metrics.csv'
checked 1 --parts ranks,speed
row 'ranks \| failed \| .*no weights were written'
row 'speed \| failed \| .*no step has a rate'
# Waits for words are at fault only where the same run ends without.
plant sifr_on_fake_gpu 'case "${SIFR_DEVICE_WAITS:-} $*" in
" train "*"--ranks 2"*) exit 1 ;; esac; exec "$real" "$@"'
checked 1 --parts ranks
row 'ranks \| failed \| .*all ranks end with SIFR_DEVICE_WAITS=host'
plant sifr_on_fake_gpu '! grep -q "\"stage\": 1" ds.json || exit 1; exec "$real" "$@"'
checked 1 --parts ranks
row 'ranks \| failed \| .*2 ranks at stage 1 do not end well where the host waits, either'
plant sifr_on_fake_gpu 'exec "$real" "$@"'
plant gpu_speed 'exit 3'
checked 1 --parts speed,again
row 'speed \| failed \| .*failed with exit code 3.*with sifr.s own products .*, too: '
mkdir bin
echo 'sleep 60' >bin/compute-sanitizer
printf '%s\n' 'echo "==ERROR== ERR_NVGPUCTRPERM - no permission"' 'exit 1' >bin/ncu
chmod +x bin/*
PATH=$PWD/bin:$PATH checked 0 --parts ncu,memcheck --seconds 25
row 'memcheck \| (not run|cut off after [0-9]+ s) \| .*no end in time: memcheck test_cuda_sums, '
row 'ncu \| not run \| .*ERR_NVGPUCTRPERM'

# A GPU that takes one process: nobody holds a context.
plant gpu_look '[ "$1" != --hold ] || echo >held
"$real" "$@" | sed "s/^| second context | passed/| second context | failed: busy/"'
plant test_cuda_sums 'exit 0'
(cd odd && "$check" --fake --parts look,bits . ../results >../out 2>&1) || :
row 'bits \| passed'
[ ! -e odd/held ] || fail "a context is held"

# A GPU that the program does not list has results, too: why.
printf '%s\n' '[ "$1" != -L ] || echo "GPU 0: GeForce RTX 4090 (UUID: GPU-1)"' >bin/nvidia-smi
chmod +x bin/nvidia-smi
printf '%s\n' '#!/bin/bash' '[ "$1" != doctor ] || exit 1' "exec $(printf %q "$BUILD/sifr") \"\$@\"" >sifr
chmod +x sifr && rm odd/sifr && mv sifr odd
PATH=$PWD/bin:$PATH "$check" --parts twins odd results >out 2>&1 || fail "a GPU that is not listed"
grep -q '^GeForce RTX 4090, which sifr doctor does not list' results/gpu-check.md || fail "which GPU"

# What ends it ends what it has begun.
plant test_cuda_sums 'trap "" TERM; echo $$ >"$SOURCE_OF_TEST/pid"; sleep 60'
SOURCE_OF_TEST=$PWD "$check" --fake --parts bits odd results >out 2>&1 &
checker=$!
until [ -s pid ]; do sleep 0.05; done
kill -TERM $checker
wait $checker 2>/dev/null || :
for _ in $(seq 100); do grep -qs '^State:.[^ZX]' "/proc/$(cat pid)/status" || break; sleep 0.05; done
! grep -qs '^State:.[^ZX]' "/proc/$(cat pid)/status" || fail "a test is left behind"

# A full disk: the results before stay whole, and it is said.
mkdir full
if mount -t tmpfs -o size=48k none full 2>/dev/null; then
    trap 'umount "$PWD/full"' EXIT
    plant test_cuda_sums 'exit 0'
    "$check" --fake --parts bits odd full/results >out 2>&1 || fail "a small disk"
    head -c 100000 /dev/zero >full/fill 2>/dev/null || :
    code=0
    "$check" --fake --parts bits,twins odd full/results >out 2>&1 || code=$?
    [ $code = 1 ] && grep -q '^gpu-check: .*: not renewed: gpu-check.json' out || fail "a full disk: exit code $code"
    row 'twins \| not run'
    grep -q '"part": "bits", "result": "passed"' full/results/gpu-check-1.json || fail "earlier results"
    [ -z "$(find full/results -name '.*' -type f)" ] || fail "half a file"
fi

for wrong in "--parts ," "--seconds 9999999" "--parts b*"; do
    code=0
    # shellcheck disable=SC2086
    "$check" --fake $wrong odd results >out 2>&1 || code=$?
    [ $code = 2 ] || fail "$wrong: exit code $code"
done
checked 0 --seconds 09 --parts bits,bits
[ "$(grep -c '^| bits ' out)" = 1 ] || fail "a part twice"
