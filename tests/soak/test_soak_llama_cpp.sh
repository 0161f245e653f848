# label: soak
# timeout: 900, not under sanitizers
# llama.cpp itself, as PyPI's xllamacpp has it, opens what `sifr export --format gguf` writes of each
# family's folder: the same ids of 20 texts, the same likeliest continuation (llama_cpp_reads.py).
# Skipped where pip cannot get the package.
. "$SOURCE/tests/support/expect.sh"
version=2026.10.11549
venv=$BUILD/llama-cpp-$version
if ! "$venv/bin/python" -c 'import xllamacpp' 2>/dev/null; then
    { python3 -m venv "$venv" && "$venv/bin/pip" install "xllamacpp==$version"; } >pip.log 2>&1 ||
        { tail -n 3 pip.log; echo "no xllamacpp $version from PyPI: skipped"; exit 77; }
fi
"$venv/bin/python" "$SOURCE/tests/soak/llama_cpp_reads.py" "$SIFR" . \
    "$SOURCE"/tests/golden/models/{gpt2,llama3} $(find "$SOURCE/tests/golden/gguf" -mindepth 1 -type d | sort) 2>log ||
    { tail -n 5 log; fail "llama.cpp reads other models"; }
