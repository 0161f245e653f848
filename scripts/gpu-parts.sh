#!/bin/bash
# One part of scripts/gpu-check.sh, which starts it in an empty folder of its own:
#     gpu-parts.sh PART
# From the environment: SOURCE, BUILD, SIFR (the program), FAKE (empty on a real GPU),
# SIFR_TEST_GPU, PART_SECONDS, GPU_STATE (a folder in which parts leave what others read: `failed`,
# `answers`, `no-kernels`). Exit code 0: passed, 77: not run, 78: no part can run. Lines that begin
# with "note: " say why, with "ran: " what ran, with "notice: " what the program warned of; those
# with "| " are rows of the part's table.
# shellcheck disable=SC2317 # parts are called by name
set -u
tests=$BUILD/tests program=$SIFR
[ -z "$FAKE" ] || program=$tests/sifr_on_fake_gpu
failed=0 part=${1:-}
# shellcheck source-path=SCRIPTDIR source=gpu-runs.sh
. "$SOURCE/scripts/gpu-runs.sh"
# shellcheck source=gpu-steps.sh
. "$SOURCE/scripts/gpu-steps.sh"

# Tests on the GPU, some at a time: a test's references take one core. All run where one fails.
# Each ends within the part, which then still says what came out.
on_gpu() { # SECONDS "TEST ARGUMENT…"…
    local jobs=4 test code left most each=$1
    shift
    [ -z "$FAKE" ] && [ ! -e "$GPU_STATE/one-process" ] || jobs=1
    for test; do
        while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
        left=$((PART_SECONDS - 1 - SECONDS)) most=$each
        [ "$left" -ge "$most" ] || most=$left
        echo "$most" >"$test.most"
        if [ "$most" -lt 1 ]; then
            echo late >"$test.code"
            continue
        fi
        # shellcheck disable=SC2086 # a test and its arguments
        {
            code=0
            within "$most" "$tests"/$test >"$test.log" 2>&1 || code=$?
            echo $code >"$test.code"
        } &
    done
    wait
    for test; do
        echo "== $test"
        [ ! -e "$test.log" ] || cat "$test.log"
        code=$(cat "$test.code")
        [ "$code" != 0 ] || ! grep -q 'Running 0 test' "$test.log" || code=none
        case $code in
        0) continue ;;
        none) note "$test failed: no test ran" ;;
        late) note "$test was not begun: no time was left" ;;
        124 | 137) note "$test: no end within $(cat "$test.most") s" ;;
        *) note "$test failed$(cases_of "$test.log")$(gpu_error_of "$test.log")" ;;
        esac
        echo "$part $test" >>"$GPU_STATE/failed"
        failed=1
    done
}

# The first cases that failed in a log of a test.
cases_of() {
    sed -n 's/^\[ *FAILED *\] \([a-z][A-Za-z_0-9]*\)$/\1/p' "$1" | awk '!seen[$0]++' | head -n 4 |
        paste -sd ',' - | sed 's/,/, /g; s/^..*$/ (&)/'
}

# What the driver or cuBLASLt says of a failure, which is no wrong result.
gpu_error_of() { # LOG
    grep -vE '^(ran|notice): ' "$1" | grep -oE '(cu[A-Za-z]+: )?(CUDA_ERROR|CUBLAS_STATUS)_[A-Z_]+ [0-9]+( \([^)]*\))?' |
        sed 's/^/: /' | head -n 1
}

# What this machine can do. Without a context nothing runs on it; without kernels PyTorch alone does.
part_look() {
    local code=0 row
    [ -n "$FAKE" ] || warm_torch
    "$tests/gpu_look" --seconds $((PART_SECONDS - 2)) >look || code=$?
    cat look
    awk -F ' *[|] *' '($2 == "driver" || $2 == "GPU") && $3 == "passed" { print "ran: " $2 " " $4 }' look
    timeout -k 1 4 "$SIFR" doctor --json || :
    ! command -v nvidia-smi >/dev/null || timeout -k 1 4 nvidia-smi | sed 's/^/  /' || : # no rows of the part's table
    ! command -v nvcc >/dev/null || nvcc --version | tail -n 1
    for row in driver GPU 'first context'; do
        is_good look "$row" || { note "$(not_good look | head -n 1)" && return 78; }
    done
    while read -r row; do note "$row"; done < <(not_good look)
    is_good look 'second context' || : >"$GPU_STATE/one-process"
    is_good look kernels || not_good look | grep '^kernels: ' >"$GPU_STATE/no-kernels"
    return "$code"
}
# Of a table of trials: rows that neither passed nor tell what is there, with their words.
not_good() { # FILE
    awk -F ' *[|] *' 'NR > 2 && $3 !~ /^(passed|there|not there)$/ { print $2 ": " $3 ": " $4 }' "$1"
}
is_good() { awk -F ' *[|] *' -v row="$2" '$2 == row && $3 == "passed" { found = 1 } END { exit !found }' "$1"; }
# From now on its files are in memory. It is no work of the part's.
warm_torch() {
    ! command -v python3 >/dev/null ||
        env -u GPU_STATE python3 -c 'import torch' >/dev/null 2>&1 </dev/null &
}

# Kernels whose results are those of the CPU, or of the same source on the host, to the last bit.
part_bits() {
    [ -z "$FAKE" ] || { on_gpu 60 test_cuda_sums && return; }
    on_gpu 26 test_cuda_sums test_cuda_flat test_cuda_rows test_cuda_tuning
}

# Every kernel beside double precision, with operands in device memory; first what most of the time
# goes to.
part_ops() {
    [ -z "$FAKE" ] || { on_gpu 20 "test_cuda_gemm gemm_is_right" && return; }
    on_gpu 40 test_linear test_cuda_gemm test_cuda_attention test_head_loss test_flat_ops \
        test_row_ops test_attention_relative test_head_targets test_head_pairs test_magnitude
}

# A second attention, compiled by Triton, would stand beside sifr's own here.
part_twins() {
    note "this program has one attention, and none to compare it with"
    return 77
}

part_golden() { on_gpu $((PART_SECONDS - 1)) "test_cuda_golden${FAKE:+ least}"; }

# A tiny model beside the CPU: close losses, and what the products ran with.
part_train() {
    local steps=12 cpu gpu
    [ -z "$FAKE" ] || steps=3
    small_model
    stage 1 "$steps"
    train_here "on the CPU" 8 "$SIFR" --device cpu >cpu.log || { cat cpu.log && return 1; }
    cpu=$(number loss out)
    if ! train_here "on the GPU" $((FAKE ? 40 : 10)) "$program" --device cuda; then
        echo "train tiny" >>"$GPU_STATE/failed"
        return 1
    fi
    gpu=$(number loss out)
    echo "| steps of a tiny Llama, bf16 | loss on the CPU | loss on the GPU |" \
        "products by the library | own |"
    echo '|---|---|---|---|---|'
    echo "| $steps | $cpu | $gpu | $(number library_products out) | $(number own_products out) |"
    near "$cpu" "$gpu" && return
    note "the loss is $gpu on the GPU, and $cpu on the CPU"
    echo "train tiny" >>"$GPU_STATE/failed"
    return 1
}

part_runs() { on_gpu $((PART_SECONDS - 1)) "test_cuda_runs${FAKE:+ one_wait_of_several_ranks}"; }

part_program() {
    export SIFR_GPU_SHORT=$FAKE
    [ -n "$FAKE" ] || export SIFR_GPU_PROGRAM=$SIFR
    SIFR_GPU_SAY=$PWD/said "$SOURCE/tests/support/run-script.sh" \
        "$SOURCE/tests/cli/test_gpu_runs.sh" >runs.log 2>&1 || failed=1
    cat runs.log
    [ "$failed" = 0 ] || note "failed: $(grep . runs.log | tail -n 1)"
    say_ran said
}

# same_weights NAME RANKS: those of the runs before, in $first. Exit code 77: there is no launcher,
# 124: no end.
same_weights() {
    local name=$1 n=$2 bits code=0 most
    most=$((6 + 3 * n / 2))
    [ -z "$FAKE" ] || most=$((2 * most))
    rm -rf trained
    train_here "$name, $n ranks" "$most" "$program" --device cuda --ranks "$n" || code=$?
    if [ "$code" != 0 ]; then
        ! grep -qE 'neither mpirun nor mpiexec|more than one rank needs MPI' err || return 77
        return "$code"
    fi
    if [ ! -s trained/model.safetensors ]; then
        note "$name, $n ranks: failed: no weights were written"
        return 1
    fi
    bits=$(sha256sum <trained/model.safetensors)
    : "${first:=$bits}"
    echo "| $name | $n | ${bits:0:16} | $(exchange_of out) |"
    [ "$bits" = "$first" ] && return
    note "$name, $n ranks: other weights"
    failed=1
}
exchange_of() { # JSON: how ranks exchanged and what waited
    echo "$(text_of exchange "$1"), waits: $(text_of waits "$1")"
}

# Ranks on one GPU: the same weights. First where the host waits for transfers, then where the GPU
# waits for words: if that does not end well, it runs once more with the host's waits. If it ends then,
# it is the GPU's waiting that fails, and the other runs go on with the host's.
part_ranks() {
    local first='' run s n waits=words code host='' again
    set -- "3 1" "3 2 host" "3 2" "3 4" "3 8" "1 2"
    [ -z "$FAKE" ] || set -- "3 2 host" "3 2" "1 2"
    small_model
    echo '| run | ranks | weights | exchange |'
    echo '|---|---|---|---|'
    for run; do
        read -r s n host <<<"$run"
        stage "$s" 3
        code=0
        if [ "$host" ] || [ "$waits" = host ]; then
            SIFR_DEVICE_WAITS=host same_weights "stage $s, the host waits" "$n" || code=$?
        else
            same_weights "stage $s" "$n" || code=$?
        fi
        case $code in
        0) ;;
        77) note "no launcher of this program's MPI here" && return 77 ;;
        *)
            failed=1
            echo "| stage $s${host:+, the host waits} | $n | $( ((code == 124 || code == 137)) &&
                echo 'no end' || echo failed) | |"
            if [ "$n" = 1 ]; then return 1; fi
            if [ "$host" ] || [ "$waits" = host ]; then
                answer ranks "$n ranks do not end well where the host waits, either: the fault is" \
                    "not in the GPU's waits for words"
                return 1
            fi
            if [ $((PART_SECONDS - 2 - SECONDS)) -lt $((6 + 3 * n / 2)) ]; then
                answer ranks "no time was left to try $n ranks at stage $s with the host's waits" \
                    "(SIFR_DEVICE_WAITS=host)"
                return 1
            fi
            again=0
            SIFR_DEVICE_WAITS=host same_weights "stage $s, the host waits" "$n" || again=$?
            if [ "$again" != 0 ]; then
                answer ranks "$n ranks at stage $s do not end well where the host waits, either: the" \
                    "fault is not in the GPU's waits for words"
                return 1
            fi
            waits=host
            ;;
        esac
    done
    [ "$waits" = words ] ||
        answer ranks "all ranks end with SIFR_DEVICE_WAITS=host, so the GPU's waits for words" \
            "(cuStreamWaitValue32) are at fault; train with SIFR_DEVICE_WAITS=host"
}

# What failed before is run once more in a way that tells its kind. Where nothing did: products and
# attention again and again, beside a second stream's work.
part_again() {
    local where what begun=$SECONDS left
    if [ ! -s "$GPU_STATE/failed" ]; then
        [ -n "$FAKE" ] || { on_gpu $((PART_SECONDS - 1)) "test_gpu_repeat bf16 20" && return; }
        on_gpu $((PART_SECONDS - 1)) "test_gpu_repeat bf16 2"
        return
    fi
    note "what failed ran once more: see the answers in its rows"
    while read -r where what; do
        left=$((PART_SECONDS - 1 - (SECONDS - begun)))
        if [ "$left" -lt 4 ]; then
            answer "$where" "$what was not run again: no time was left"
            continue
        fi
        case $where in
        train) once_more train "$left" tiny_run ;;
        speed)
            if [ "$what" = rates ]; then
                once_more speed "$left" "$tests/gpu_speed" 0 0 bf16
            else
                once_more speed "$left" again_steps
            fi
            ;;
        *)
            # shellcheck disable=SC2086 # a test and its arguments
            once_more "$where" "$left" "$tests"/$what
            ;;
        esac
    done < <(awk '!seen[$0]++' "$GPU_STATE/failed")
}
again_steps() { if [ -n "$FAKE" ]; then steps_of 4 2 32 tiny; else steps_of 4 8 1024 gpt2; fi; }
tiny_run() {
    small_model
    stage 1 3
    train_here "on the GPU" "$most" "$program" --device cuda
}

# Where cuBLASLt computed, first with sifr's own products; then with each kernel finished before the
# next.
once_more() { # PART SECONDS COMMAND…
    local where=$1 left=$2 most begun=$SECONDS
    shift 2
    if grep -qs '^ran: .*products cuBLASLt' "$GPU_STATE/../logs/$where.log" ||
        [ "$where" = train ] || [ "$where" = speed ]; then
        most=$((left > 14 ? 14 : left))
        once_own "$where" "$@" && return
    fi
    left=$((left - (SECONDS - begun))) most=$((left > 13 ? 13 : left))
    [ "$most" -lt 4 ] || once_checked "$where" "$@"
}
# Runs it in $most seconds, with its output in again.log.
run_again() { # NAME=VALUE COMMAND…
    local code=0 setting=$1
    shift
    if declare -F "$1" >/dev/null; then
        (export "${setting?}" && "$@") >again.log 2>&1 || code=$?
    else
        within "$most" env "$setting" "$@" >again.log 2>&1 || code=$?
    fi
    [ "$code" != 0 ] || ! grep -q 'Running 0 test' again.log || code=1
    echo "== $setting ${*##*/}"
    grep -vE '^(note|ran): ' again.log
    sed -n 's/^ran: //p' again.log | sort -u | sed 's/^/ran: /'
    return "$code"
}
# Its end is a failure, or the time's.
why_again() { # CODE
    local text
    text=$(gpu_error_of again.log)
    case $1 in
    124 | 137) echo "no end within $most s" ;;
    *) text=${text#: }
        [ "$text" ] || text=$(sed -n 's/^note: //p' again.log | tail -n 1)
        echo "${text:-failed$(cases_of again.log)}" ;;
    esac
}

once_own() { # PART COMMAND…: exit code 0: the fault is found
    local where=$1 code=0
    shift
    run_again SIFR_CUDA_PRODUCTS=own "$@" || code=$?
    if [ "$code" = 0 ]; then
        answer "$where" "passes with sifr's own products (SIFR_CUDA_PRODUCTS=own): the fault is in" \
            "cuBLASLt's products, or in what they take"
    else
        answer "$where" "with sifr's own products (SIFR_CUDA_PRODUCTS=own), too: $(why_again "$code")"
    fi
    return "$code"
}

once_checked() { # PART COMMAND…
    local where=$1 code=0 kernel name
    shift
    name=${1##*/}
    run_again SIFR_DEVICE_CHECK=1 "$@" || code=$?
    kernel=$(grep -oE '(kernel [a-z0-9_]+|product by cuBLASLt), finished at once [^:]*: .*' again.log |
        head -n 1)
    if [ "$code" = 0 ]; then
        answer "$where" "$name passes alone, where each kernel is finished before the next" \
            "(SIFR_DEVICE_CHECK=1): a wait is missing, or what ran beside it was in its way"
    elif [ "$kernel" ]; then
        answer "$where" "$name, each kernel finished before the next: $kernel"
    elif [ "$code" = 124 ] || [ "$code" = 137 ] || [ "$(gpu_error_of again.log)" ]; then
        answer "$where" "$name, each kernel finished before the next (SIFR_DEVICE_CHECK=1):" \
            "$(why_again "$code")"
    else
        answer "$where" "$name fails in the same way where each kernel is finished before the next" \
            "(SIFR_DEVICE_CHECK=1): a kernel's result is wrong$(cases_of again.log)"
    fi
}

sanitizer_path() {
    local place
    for place in compute-sanitizer "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer"; do
        command -v "$place" && return
    done
    place=$(python3 -c 'import nvidia; print(list(nvidia.__path__)[0])' 2>/dev/null) || return 1
    find "$place" -name compute-sanitizer -type f 2>/dev/null | head -n 1 | grep .
}

# Accesses outside of memory in sums and attention, with own products; races in shared memory if
# time is left. A call that the driver refused is no fault of a kernel.
part_memcheck() {
    local sanitizer tool what code begun=$SECONDS left each missing='' passed=''
    sanitizer=$(sanitizer_path) || { note "no compute-sanitizer here" && return 77; }
    export SIFR_CUDA_PRODUCTS=own
    echo '| tool | what | result |'
    echo '|---|---|---|'
    for what in "memcheck test_cuda_sums" "memcheck test_cuda_attention" "racecheck test_cuda_sums"; do
        read -r tool what <<<"$what"
        left=$((PART_SECONDS - 2 - (SECONDS - begun))) each=$((PART_SECONDS / 2))
        [ "$each" -le "$left" ] || each=$left
        if [ "$each" -lt 4 ]; then
            echo "| $tool | $what | not run: no time was left |"
            missing+="${missing:+, }$tool $what"
            continue
        fi
        code=0
        under_sanitizer "$each" >out 2>&1 || code=$?
        if [ "$code" = 9 ] && [ "$tool" = memcheck ] && only_refused_calls out; then
            echo "ran: $tool $what: calls of the driver were refused; once more without those"
            code=0
            under_sanitizer "$each" --report-api-errors no >out 2>&1 || code=$?
        fi
        grep '^ran: ' out
        case $code in
        0) echo "| $tool | $what | passed |" && passed=1 ;;
        124 | 137)
            echo "| $tool | $what | cut off after $each s: nothing found until then |"
            missing+="${missing:+, }$tool $what"
            ;;
        *)
            echo "| $tool | $what | failed |"
            note "$tool, $what: $(grep -m 1 -E '^=+ .*(Invalid|Race|Error|hazard)' out | tr -s = ' ' | grep . ||
                echo "exit code $code")"
            tail -n 40 out
            failed=1
            ;;
        esac
    done
    [ -z "$missing" ] || note "no end in time: $missing"
    [ "$passed" ] || [ "$failed" = 1 ] || return 77
}
under_sanitizer() { # SECONDS OPTION…: of $tool and $what
    local most=$1
    shift
    within "$most" "$sanitizer" --tool "$tool" "$@" --error-exitcode 9 "$tests/$what"
}
only_refused_calls() { # LOG
    grep -qE 'Program hit .* on CUDA API call' "$1" &&
        ! grep -qE '^=+ *(Invalid|Out-of-range|Misaligned|Uninitialized)' "$1"
}

case $part in
look | bits | ops | twins | golden | train | speed | ranks | peer | again | memcheck | runs | program | \
    llama | compile | ncu | largest)
    "part_$part" || exit $?
    ;;
*) echo "gpu-parts.sh: no part $part" >&2 && exit 2 ;;
esac
exit $failed
