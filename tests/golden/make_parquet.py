#!/usr/bin/env python3
"""Makes tests/golden/parquet/: files written by pyarrow, and the rows that pyarrow reads from them.

    python3 tests/golden/make_parquet.py

Needs `pip install pyarrow` (made with the version in index.json). `flat` has columns of one value
each, `nested` conversations as lists of structs, lists of lists and maps. Each is written with
other compressions, encodings, versions of pages and sizes. `index.json` names the files with their
table, `flat.json` and `nested.json` have the rows as JSON: NaN as null, columns of bytes and
decimals left out, dates and times in Python's isoformat(), maps as objects. `chats.parquet` has the rows of tests/cli/test_finetune.sh,
`brotli.parquet` pages that are refused.
"""
import datetime, decimal, json, math, os
import pyarrow as pa
import pyarrow.parquet as pq

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "parquet")
WORDS = ["", "a", "zwei", "drei Wörter hier", "👋🏽 emoji", "line\nbreak\ttab", "\"quoted\" \\", "x" * 300]
ROWS = 150


def flat():
    n = range(ROWS)
    return pa.table({
        "text": pa.array([f"{WORDS[i % 8]} {i}" for i in n]),
        "label": pa.array([["positive", "negative", None][i % 3] for i in n]),
        "large": pa.array([None if i % 5 == 0 else WORDS[i % 8] for i in n], pa.large_string()),
        "coded": pa.array([WORDS[i % 3] for i in n]).dictionary_encode(),
        "needed": pa.array([str(i * i) for i in n]),
        "i8": pa.array([i % 256 - 128 for i in n], pa.int8()),
        "u32": pa.array([2 ** 32 - 1 - i for i in n], pa.uint32()),
        "i64": pa.array([None if i == 7 else (i - 70) * 10 ** 16 for i in n], pa.int64()),
        "u64": pa.array([i for i in n], pa.uint64()),
        "f32": pa.array([i / 8 for i in n], pa.float32()),
        "f64": pa.array([[0.1 * i, math.nan, math.inf, -1e300][i % 4] for i in n], pa.float64()),
        "yes": pa.array([None if i % 11 == 0 else i % 2 == 0 for i in n]),
        "nothing": pa.nulls(ROWS),
        "bytes": pa.array([bytes([255, i]) for i in n]),
        "day": pa.array([None if i % 10 == 9 else datetime.date.fromordinal(1 + i * 24_511)
                         for i in n]),
        "time": pa.array([datetime.datetime(2024, 1, 1) + datetime.timedelta(hours=37 * (i - 75) * 400,
                                                                             microseconds=(i % 3) * 4_000)
                          for i in n]),
        "utc": pa.array([datetime.datetime(1969, 12, 31, 23, 59, 59, 999_000 + i, datetime.timezone.utc)
                         for i in n], pa.timestamp("us", "UTC")),
        "nanos": pa.array([(i - 50) * 86_399_999_999_000 for i in n], pa.timestamp("ns")),
        "clock": pa.array([datetime.time(i % 24, i % 60, (i * 7) % 60, (i % 4) * 1000) for i in n],
                          pa.time32("ms")),
        "clock64": pa.array([datetime.time(i % 24, i % 60, (i * 7) % 60, i) for i in n], pa.time64("us")),
        "money": pa.array([decimal.Decimal("1.25")] * ROWS),
    }, schema=None).cast(pa.schema([
        ("text", pa.string()), ("label", pa.string()), ("large", pa.large_string()),
        ("coded", pa.dictionary(pa.int32(), pa.string())),
        pa.field("needed", pa.string(), nullable=False), ("i8", pa.int8()), ("u32", pa.uint32()),
        ("i64", pa.int64()), ("u64", pa.uint64()), ("f32", pa.float32()), ("f64", pa.float64()),
        ("yes", pa.bool_()), ("nothing", pa.null()), ("bytes", pa.binary()), ("day", pa.date32()),
        ("time", pa.timestamp("us")), ("utc", pa.timestamp("us", "UTC")), ("nanos", pa.timestamp("ns")),
        ("clock", pa.time32("ms")), ("clock64", pa.time64("us")), ("money", pa.decimal128(10, 2))]))


def turn(i):
    call = {"type": "function", "function": {"name": "weather", "arguments": f"{{\"n\": {i}}}"}}
    return {"role": ["system", "user", "assistant"][i % 3], "content": None if i % 13 == 0 else WORDS[i % 8],
            "tool_calls": [call] * (i % 4) if i % 5 == 0 else None}


def nested():
    n = range(ROWS)
    message = pa.struct([
        ("role", pa.string()), ("content", pa.string()),
        ("tool_calls", pa.list_(pa.struct([
            ("type", pa.string()),
            ("function", pa.struct([("name", pa.string()), ("arguments", pa.string())]))])))])
    schema = pa.schema([
        ("messages", pa.list_(message)), ("source", pa.string()),
        ("deep", pa.list_(pa.list_(pa.int32()))), ("tags", pa.map_(pa.string(), pa.float64())),
        ("place", pa.struct([("town", pa.string()), ("at", pa.list_(pa.float64())),
                             ("seen", pa.timestamp("ms"))])),
        ("large", pa.large_list(pa.string())), ("images", pa.list_(pa.binary())),
        pa.field("needed", pa.list_(pa.field("item", pa.int64(), nullable=False)), nullable=False)])
    rows = [{
        "messages": None if i % 17 == 0 else [turn(i + k) for k in range(i % 5)],
        "source": f"s{i % 4}",
        "deep": None if i % 7 == 0 else [None if (i + k) % 6 == 0 else [j if j % 3 else None for j in range(k)]
                                         for k in range(i % 4)],
        "tags": None if i % 9 == 0 else [(f"k{k}", None if k == 2 else k + i / 2) for k in range(i % 4)],
        "place": None if i % 8 == 0 else {"town": None if i % 3 == 0 else WORDS[i % 8],
                                          "at": [float(i), 0.5] if i % 2 else None,
                                          "seen": None if i % 5 else datetime.datetime(1900 + i, 2, 28, i % 24)},
        "large": [WORDS[(i + k) % 8] for k in range(i % 3)],
        "images": [b"\xff"] * (i % 2),
        "needed": list(range(i % 3)),
    } for i in n]
    return pa.Table.from_pylist(rows, schema=schema)


LEFT_OUT = {"bytes", "money", "images"}


def plain(value, type):
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if pa.types.is_map(type):
        return {k: plain(v, type.item_type) for k, v in value}
    if pa.types.is_struct(type):
        return {f.name: plain(value[f.name], f.type) for f in type if f.name not in LEFT_OUT}
    if pa.types.is_list(type) or pa.types.is_large_list(type):
        return [plain(v, type.value_type) for v in value]
    return value


def rows_of(table):
    return [{f.name: plain(row[f.name], f.type) for f in table.schema if f.name not in LEFT_OUT}
            for row in table.to_pylist()]


DELTA = {"text": "DELTA_BYTE_ARRAY", "needed": "DELTA_LENGTH_BYTE_ARRAY", "i64": "DELTA_BINARY_PACKED",
         "i8": "DELTA_BINARY_PACKED", "u64": "DELTA_BINARY_PACKED", "f32": "BYTE_STREAM_SPLIT",
         "f64": "BYTE_STREAM_SPLIT", "large": "DELTA_BYTE_ARRAY", "u32": "PLAIN"}
FORMS = {
    "snappy": dict(compression="snappy"),
    "zstd-groups": dict(compression="zstd", row_group_size=40),
    "gzip-v2": dict(compression="gzip", data_page_version="2.0"),
    "plain": dict(compression="none", use_dictionary=False),
    "lz4-pages": dict(compression="lz4", data_page_size=256, write_batch_size=8),
    "zstd-v2-pages": dict(compression="zstd", data_page_version="2.0", data_page_size=256,
                          write_batch_size=8, use_dictionary=False),
    "old": dict(compression="snappy", version="1.0", dictionary_pagesize_limit=64),
}


def main():
    os.makedirs(OUT, exist_ok=True)
    index = []
    for name, table in (("flat", flat()), ("nested", nested())):
        rows = None
        forms = dict(FORMS)
        if name == "flat":
            forms["delta"] = dict(compression="zstd", use_dictionary=False, column_encoding=DELTA)
        forms["checksums"] = dict(compression="snappy", write_page_checksum=True)
        forms["bare-lists"] = dict(compression="none", use_compliant_nested_type=False)
        for form, options in forms.items():
            file = f"{name}-{form}.parquet"
            path = os.path.join(OUT, file)
            pq.write_table(table, path, **options)
            read = rows_of(pq.read_table(path))
            assert rows in (None, read), file
            rows = read
            index.append([file, name])
        with open(os.path.join(OUT, f"{name}.json"), "w", encoding="utf-8") as out:
            out.write("[\n" + ",\n".join(json.dumps(r, ensure_ascii=False, allow_nan=False)
                                         for r in rows) + "\n]\n")
    chats = [[{"role": "user", "content": f"Say {i % 3 + 1}"},
              {"role": "assistant", "content": ["red", "blue", "green"][i % 3]}] for i in range(48)]
    pq.write_table(pa.table({"messages": chats}), os.path.join(OUT, "chats.parquet"), row_group_size=20)
    pq.write_table(pa.table({"text": ["a"] * 9}), os.path.join(OUT, "brotli.parquet"), compression="brotli")
    with open(os.path.join(OUT, "index.json"), "w", encoding="utf-8") as out:
        json.dump({"pyarrow": pa.__version__, "files": index}, out, indent=1)
        out.write("\n")


if __name__ == "__main__":
    main()
