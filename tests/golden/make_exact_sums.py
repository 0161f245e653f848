#!/usr/bin/env python3
"""Writes exact_sums.json: sums of squares of fp32 numbers, exact by Python's fractions and rounded
once to a double (its division of integers rounds to nearest, ties to even).

    python3 make_exact_sums.py

Numbers and sums are written as the integers that their bits are. Nothing needs to be installed.
"""
import json
import os
import random
import struct
from fractions import Fraction

LARGEST, SUBNORMALS = 0x7F7FFFFF, 0x00800000


def value(bits):
    return Fraction(struct.unpack("<f", struct.pack("<I", bits))[0])


def bits_of(number):
    return struct.unpack("<I", struct.pack("<f", number))[0]


def rounded(numbers):
    total = sum((value(n) ** 2 for n in numbers), Fraction(0))
    return struct.unpack("<q", struct.pack("<d", total.numerator / total.denominator))[0]


def normals(draw, count, scale):
    return [bits_of(draw.gauss(0, scale)) for _ in range(count)]


def of_any_bits(draw, count):
    return [draw.randrange(LARGEST + 1) | draw.randrange(2) << 31 for _ in range(count)]


def ties():
    """54 bits of a sum, the last of them set: with an even and an odd double below, and a rest."""
    one, tiny = bits_of(1.0), bits_of(2.0**-149)
    for power, count in ((27, 2), (27, 6), (60, 0), (26, 1)):
        tie = [bits_of(2.0**power)] + [one] * count
        yield tie
        yield tie + [tiny]
        yield tie + [one]
    yield [bits_of(2.0**100), bits_of(2.0**73), bits_of(2.0**73), tiny]


def cases():
    draw = random.Random(1)
    yield []
    yield [0, 1 << 31]
    for one in (1, SUBNORMALS - 1, SUBNORMALS, LARGEST, bits_of(1.0), 0x3F7FFFFF):
        yield [one]
        yield [one] * 7
    yield from ties()
    for scale in (1e-44, 1e-38, 1e-30, 1e-6, 1.0, 1e20, 1e37):
        yield normals(draw, 40, scale)
    for count in (2, 3, 5, 9, 33, 100):
        yield of_any_bits(draw, count)
    for _ in range(20):
        yield [draw.randrange(SUBNORMALS) for _ in range(10)]
    for exponent in range(1, 255, 11):
        first = exponent << 23 | 0x7FFFFF
        yield [first, max(first - (13 << 23), 1), max(first - (26 << 23), 1)]


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "exact_sums.json"), "w") as file:
        lines = [json.dumps({"sum": rounded(c), "numbers": c}, separators=(",", ":"))
                 for c in cases()]
        file.write("[\n" + ",\n".join(lines) + "\n]\n")


main()
