# cmake/cuda.cmake: which GPUs the kernels are compiled for, by default and by SIFR_CUDA_TARGETS. A
# script plays nvcc, and nothing is built.
fail() { cat out; echo "$1" >&2; exit 1; }
cat >nvcc <<'S'
#!/bin/sh
case $1 in
--version) echo "Cuda compilation tools, release $(cat "$0.release"), V0.0.0" ;;
--help) echo "Allowed values: 'compute_80','lto_90a','sm_75','sm_80','sm_90','sm_90a','sm_120a'." ;;
esac
S
chmod +x nvcc
configure() { # RELEASE OPTION…
    echo "$1" >nvcc.release
    shift
    cmake -G Ninja -S "$SOURCE" -B tree -DSIFR_TESTS=OFF -DSIFR_CUDA=ON \
        -DSIFR_NVCC="$PWD/nvcc" "$@" >out 2>&1
}
# The targets of every file alike, as nvcc gets them, in one line.
codes() {
    grep -o -e "-gencode.* -MD" tree/build.ninja | sort -u >codes
    [ "$(wc -l <codes)" = 1 ] || fail "not one list of targets"
    grep -o 'code=[a-z_0-9]*' codes | tr '\n' ' '
}
expect() { # WANTED TEXT
    [ "$(codes)" = "$1 " ] || fail "not $1: $(codes)"
    grep -q "return \"$2\";" tree/cuda/cuda_images.c || fail "the program does not say $2"
}
configure 13.0 || fail "by default"
expect "code=compute_80 code=sm_80 code=sm_86 code=sm_89 code=sm_90a code=sm_100a code=sm_120a" \
    "80 86 89 90a 100a 120a"
configure 12.4 || fail "by default, an older nvcc"
expect "code=compute_80 code=sm_80 code=sm_86 code=sm_89 code=sm_90a" "80 86 89 90a"

# Chosen ones alone, without PTX; again without the option, and by default again.
configure 13.0 -DSIFR_CUDA_TARGETS=90a || fail "one target"
expect "code=sm_90a" 90a
configure 13.0 || fail "as before"
expect "code=sm_90a" 90a
configure 13.0 "-DSIFR_CUDA_TARGETS=80 90a" || fail "two targets"
expect "code=sm_80 code=sm_90a" "80 90a"
configure 13.0 -DSIFR_CUDA_TARGETS= || fail "by default again"
expect "code=compute_80 code=sm_80 code=sm_86 code=sm_89 code=sm_90a code=sm_100a code=sm_120a" \
    "80 86 89 90a 100a 120a"

# Refused: of compute capability below 8.0, unknown to nvcc, and no name of nvcc's.
for wrong in 75 91 sm_90 "90a x"; do
    configure 13.0 "-DSIFR_CUDA_TARGETS=$wrong" && fail "SIFR_CUDA_TARGETS=$wrong is taken"
    tr -s ' \n' ' ' <out | grep -q "SIFR_CUDA_TARGETS=$wrong: ${wrong#90a } is none .*: 80 90 90a 120a " ||
        fail "what is allowed in place of $wrong"
done
