# Memory by class, planned and measured, of runs on 1, 2 and 4 ranks, at ZeRO stages 1 and 3, with
# optimizer state on a disk, and of pipeline stages: in summary.json, and in the report beside each
# other. What is measured is what is planned to some pages, and the rows add up to the process.
# label: full, not under sanitizers (the process takes what they take)
. "$SOURCE/tests/support/small_llama.sh"
command -v python3 >/dev/null || { echo "no python3 is here, which reads the files: skipped"; exit 77; }
llama_model llama 256 3 false
"$SIFR" doctor --json | grep -q '"launcher": "' && more='2:1 2:3 4:3 2:disk 2:stages' || more=

settings() { # STAGE|disk|stages
    local zero="\"stage\": $1" mesh=
    case $1 in
    disk) zero='"stage": 1, "offload_optimizer": {"device": "nvme", "nvme_path": "."}' ;;
    stages) zero='"stage": 0' mesh='"pipeline": {"stages": 2},' ;;
    esac
    cat >ds.json <<J
{"train_batch_size": 4, "train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true}, $mesh
 "zero_optimization": {$zero}, "sifr": {"seq_length": 64, "logging_steps": 1}}
J
}

for run in 1:1 1:disk $more; do
    ranks=${run%:*} kind=${run#*:}
    settings "$kind"
    out=out-$ranks-$kind
    train_llama 0 $out $ranks --max-steps 2
    expect 0 "$SIFR" report $out --output $out.html
    python3 "$SOURCE/tests/support/report_reads.py" $out.html $out >text.out || fail "$run: the page"
    python3 - $out "$ranks" "$kind" text.out <<'P' || fail "$run: memory by class"
import json, sys
out, ranks, kind = sys.argv[1], int(sys.argv[2]), sys.argv[3]
page = open(sys.argv[4]).read()
summary = json.load(open(out + "/summary.json"))
planned, measured = summary["planned_classes"], summary["measured_classes"]
print(ranks, kind, planned, measured, summary["process_bytes"])
assert "measured_classes_why" not in summary
assert set(measured) == set(planned) | {"gaps", "rest"}, measured
for name, bytes in planned.items():
    assert measured[name] <= bytes, (name, measured[name], bytes)
    assert bytes - measured[name] <= max(0.02 * bytes, 5 * 4096), (name, measured[name], bytes)
state = planned["master weights"] + planned["moments"]
assert planned["parameters"] > 1 << 18 and planned["gradients"] > 1 << 18, planned
assert (state == 0 and planned["swap buffers"] > 0) if kind == "disk" else state > 1 << 20, planned
# The rows, and what stands for several of them.
assert sum(measured.values()) == summary["process_bytes"], measured
block = sum(measured.values()) - measured["rest"]
assert 0 <= measured["gaps"] and block <= summary["planned_bytes"] + 4096, (block, summary)
# Of pipeline stages, whose blocks differ, the one with the most is measured as that much.
assert summary["measured_bytes"] + summary["baseline_bytes"] >= summary["process_bytes"], summary
records = [json.loads(line) for line in open(out + "/metrics.jsonl")]
most = max(r.get("memory_bytes", 0) for r in records)
if kind != "stages":
    assert abs(summary["process_bytes"] - most) <= 0.1 * most + (4 << 20), (summary["process_bytes"], most)
least = summary["baseline_bytes"] * 3 // 4
assert least < measured["rest"] < summary["baseline_bytes"] + (64 << 20), (measured["rest"], least)

def shown(bytes):  # as base_format_bytes
    value, unit = float(bytes), 0
    while value >= 1000 and unit < 5:
        value, unit = value / 1024, unit + 1
    digits = 0 if unit == 0 or value >= 100 else 1 if value >= 10 else 2
    return f"{value:.{digits}f} {('B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB')[unit]}"
for name in planned:
    row = f"{name} {shown(planned[name])} {shown(measured[name])} "
    assert (row in page) == (planned[name] > 0), row
assert f"the process, at its most – {shown(summary['process_bytes'])} " in page, page
P
done

# A run that is going on, one that failed, and a summary of an earlier sifr: no figures, and why.
why() { # WHY
    expect 0 "$SIFR" report made --output made.html
    python3 "$SOURCE/tests/support/report_reads.py" made.html made >text.out || fail "the page"
    grep -qF "Measured by class: not known$1." text.out || { cat text.out; fail "not: $1"; }
}
mkdir made
cp out-1-1/metrics.jsonl made
change() { # PYTHON
    python3 -c "import json
s = json.load(open('out-1-1/summary.json'))
for key in 'measured_classes', 'process_bytes': del s[key]
$1
json.dump(s, open('made/summary.json', 'w'))"
}
change 's["measured_classes_why"] = "the <b>run</b> failed"'
why ": the <b>run</b> failed"
change ""
why ""
echo ok
