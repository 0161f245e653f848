# label: soak
# timeout: 2400, not under sanitizers
# llama.cpp, built from the source distribution of llama-cpp-python, reads what `sifr export --format
# gguf` writes: it encodes a text to the same ids, and continues it by the same ids. LLAMA_CPP names
# its source; without that pip fetches it, and without a network the test is skipped.
. "$SOURCE/tests/support/expect.sh"
version=0.3.36
work=$BUILD/llama.cpp
mkdir -p "$work"
source=${LLAMA_CPP:-$work/llama_cpp_python-$version/vendor/llama.cpp}
if [ ! -d "$source" ]; then
    python3 -m pip download --no-deps --no-binary :all: "llama-cpp-python==$version" -d "$work" \
        >"$work/pip.log" 2>&1 ||
        { echo "no source of llama.cpp: set LLAMA_CPP, or see $work/pip.log"; exit 77; }
    tar -xzf "$work/llama_cpp_python-$version.tar.gz" -C "$work"
fi

# Its library, and a program that prints ids.
{
    cmake -S "$source" -B "$work/build" -DCMAKE_BUILD_TYPE=Release -DLLAMA_CURL=OFF \
        -DLLAMA_BUILD_COMMON=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_TOOLS=OFF \
        -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_SERVER=OFF -DGGML_OPENMP=OFF \
        -DBUILD_SHARED_LIBS=OFF &&
        cmake --build "$work/build" --target llama -j 2 &&
        cc -O2 -std=c17 -I"$source/include" -I"$source/ggml/include" -c \
            "$SOURCE/tests/soak/llama_greedy.c" -o "$work/greedy.o" &&
        c++ "$work/greedy.o" -o "$work/greedy" "$work/build/src/libllama.a" \
            "$work/build/ggml/src/libggml.a" "$work/build/ggml/src/libggml-cpu.a" \
            "$work/build/ggml/src/libggml-base.a" -lpthread -ldl -lm
} >"$work/build.log" 2>&1 || { tail -n 20 "$work/build.log"; fail "llama.cpp was not built"; }

# ids KEY: those of `sifr generate --json`, on one line
ids() { tr -d '\n' <out | sed "s/.*\"$1\": \[\([^]]*\)\].*/\1/; s/,//g" | tr -s ' '; }
compare() {
    local folder=$SOURCE/tests/golden/models/$1 type
    expect 0 "$SIFR" generate --model "$folder" --prompt "$2" --max-new-tokens 20 --temperature 0 \
        --precision fp32 --json
    printf '%s\n%s\n' "$(ids prompt_ids)" "$(ids ids)" | sed 's/^ *//; s/ *$//' >ours
    for type in f32 f16 bf16; do
        expect 0 "$SIFR" export "$folder" "$1-$type.gguf" --format gguf --type $type
        "$work/greedy" "$1-$type.gguf" 20 "$2" 2>log | sed 's/ *$//' >theirs
        cmp ours theirs || { cat ours theirs; tail -n 5 log; fail "$1-$type.gguf: other tokens"; }
    done
}
# The texts of the golden results, whose tokens are likely by a margin.
compare gpt2 "and the old mill"
compare llama3 "hills in the morning"
