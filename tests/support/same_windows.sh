# Sourced by tests that give an engine the run's own batches: `same_windows NAME` writes a token
# store of 128 windows of 32 tokens, all the same, so that their order does not matter. Token j is
# j * 7 % 50, for j from 0 to 31; the last one's label is 0.
same_windows() {
    python3 - "$1" <<'P'
import struct
import sys

ids = [(j % 32) * 7 % 50 for j in range(4097)]
open(sys.argv[1] + ".bin", "wb").write(struct.pack("<4097H", *ids))
open(sys.argv[1] + ".idx", "wb").write(
    b"MMIDIDX\0\0" + struct.pack("<QBQQiqqq", 1, 8, 1, 2, 4097, 0, 0, 1))
P
}
