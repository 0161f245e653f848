#!/usr/bin/env python3
"""Encoding by Hugging Face's tokenizers, on as many threads as RAYON_NUM_THREADS says:
tokenise.py TOKENIZER FOLDER RUNS. A file is a document."""
import glob
import json
import os
import sys
import time

import tokenizers


def main():
    tokenizer = tokenizers.Tokenizer.from_file(os.path.join(sys.argv[1], "tokenizer.json"))
    texts = [open(path, encoding="utf-8", newline="").read()
             for path in sorted(glob.glob(os.path.join(sys.argv[2], "*")))]
    seconds, count = [], 0
    for _ in range(int(sys.argv[3])):
        start = time.perf_counter()
        encoded = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        seconds.append(time.perf_counter() - start)
        count = sum(len(e.ids) for e in encoded)
        del encoded
    print("\n" + json.dumps({"seconds": seconds, "tokens": count,
                             "bytes": sum(len(t.encode()) for t in texts),
                             "tokenizers": tokenizers.__version__}))


if __name__ == "__main__":
    main()
