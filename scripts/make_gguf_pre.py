"""Makes src/formats/gguf/gguf_pre_names.c from llama.cpp's converter.

    python scripts/make_gguf_pre.py llama.cpp/conversion/base.py >src/formats/gguf/gguf_pre_names.c

The converter encodes a test text and looks the SHA-256 of the ids up to name the splitting of a
byte-level BPE (get_vocab_base_pre). The text and the table are taken from there.
"""
import ast
import re
import sys

source = open(sys.argv[1], encoding="utf-8").read()
part = source.split("Marker: Start get_vocab_base_pre")[1].split("Marker: End")[0]
text = ast.literal_eval(re.search(r"^\s*chktxt = ('.*')$", part, re.M).group(1)).encode()
rows = re.findall(r'chkhsh == "([0-9a-f]{64})":\s*#[^\n]*\n\s*res = "([^"]+)"', part)
assert len(rows) == part.count("chkhsh ==") and b"\0" not in text

print("/* Made by scripts/make_gguf_pre.py from llama.cpp's converter: edit nothing here. */")
print('#include "formats/gguf/gguf_vocab.h"\n')
print("const char formats_gguf_pre_text[] =")
for i in range(0, len(text), 16):
    end = ";" * (i + 16 >= len(text))
    print('    "' + "".join(f"\\{byte:03o}" for byte in text[i:i + 16]) + '"' + end)
print("\nconst formats_gguf_pre_name formats_gguf_pre_names[] = {")
print("    // clang-format off")
for digest, name in rows:
    print(f'    {{"{digest}", "{name}"}},')
print("    // clang-format on")
print("};\n")
print("const size_t formats_gguf_pre_count =")
print("    sizeof formats_gguf_pre_names / sizeof *formats_gguf_pre_names;")
