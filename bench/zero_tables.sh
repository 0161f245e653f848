#!/bin/bash
# The measured tables and the timeline of docs/zero.md: zero_tables.sh [BUILD]
# Runs every ZeRO stage on 1, 2 and 4 ranks of this machine (some minutes), and puts what it finds
# between the markers of that page. Nothing there is typed in. On a machine that is not quiet at the
# start it leaves the times out.
set -eu -o pipefail
cd "$(dirname "$0")/.."
tree=$PWD
sifr=$PWD/${1:-build}/sifr
page=$PWD/docs/zero.md
work=$(mktemp -d "${TMPDIR:-/tmp}/sifr-zero.XXXXXX")
trap 'rm -rf "$work"' EXIT
cat README.md docs/*.md $(find src -name '*.c' | sort) >"$work/text"
cd "$work"

cat >config.json <<'J'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 2048,
 "hidden_size": 512, "num_hidden_layers": 6, "num_attention_heads": 8, "num_key_value_heads": 8,
 "intermediate_size": 1408, "max_position_embeddings": 128, "tie_word_embeddings": false}
J
"$sifr" tokenizer train --vocab-size 2048 --data text --output tokenizer >log
"$sifr" tokenize --tokenizer tokenizer --data text --output store >log
"$sifr" init --config config.json --tokenizer tokenizer --output model --seed 1 >log

GLOBAL=8 LENGTH=128 STEPS=5
SUMS=fp32 # the type of gradient sums
settings() { # STAGE PRECISION REUSE: eight sequences a step over all ranks; nothing persists
    cat >ds.json <<J
{"train_batch_size": $GLOBAL, "train_micro_batch_size_per_gpu": 1,
 "bf16": {"enabled": $([ "$2" = bf16 ] && echo true || echo false)},
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}}, "data_types": {"grad_accum_dtype": "$SUMS"},
 "zero_optimization": {"stage": $1, "stage3_param_persistence_threshold": 0,
  "stage3_max_reuse_distance": $3},
 "sifr": {"seq_length": $LENGTH, "step_order": "unit", "logging_steps": 1}}
J
}

quiet=$(awk '{ print $1 < 1 ? 1 : 0 }' /proc/loadavg)
number() { sed -n "s/^ *\"$1\": \([0-9.e+-]*\).*/\1/p" "$2" | sed -n 1p; }
wire() { # OPERATION: bytes of a step, of the run in json
    awk -v operation="\"$1\":" -v steps=$STEPS '$1 == operation { inside = 1 }
        inside && $1 == "\"bytes\":" { print $2 / steps; exit }' json
}

# --- bytes a parameter, by class, from the plans of any number of ranks ---
class() { # STAGE NAME: largest bytes of a class, of the plan in json
    awk -v stage="$1" -v name="\"$2\":" '
        /"stages":/ { inside = 1 }
        inside && $1 == "\"stage\":" { now = $2 + 0 == stage }
        inside && now && index($0, name) { sub(/.*: /, ""); print $0 + 0; exit }' json
}
memory_table() {
    echo '| stage | ranks | parameters | gradients | optimizer state | together | the formula |'
    echo '|---|---|---|---|---|---|---|'
    for ranks in 2 4 8 64; do
        GLOBAL=$ranks settings 0 bf16 0
        "$sifr" plan --config ds.json --model model --world-size $ranks --json >json 2>log ||
            { cat log >&2; exit 1; }
        parameters=$(sed -n 's/^  "parameters": \([0-9]*\).*/\1/p' json)
        for stage in 0 1 2 3; do
            echo "$stage $ranks $parameters $(class $stage parameters) $(class $stage gradients)" \
                "$(class $stage 'master weights') $(class $stage moments)"
        done
    done | sort -n -k 1,1 -k 2,2 | awk -v sum=$([ $SUMS = fp32 ] && echo 4 || echo 2) '
        function each(bytes) { return sprintf("%.2f", bytes / $3) }
        {
            whole = 14 + sum
            formula = $1 == 0 ? whole : $1 == 1 ? 2 + sum + 12 / $2 : $1 == 2 ? 2 + (12 + sum) / $2 : whole / $2
            printf "| %d | %d | %s | %s | %s | %s | %.2f |\n", $1, $2, each($4), each($5),
                each($6 + $7), each($4 + $5 + $6 + $7), formula
        }'
}

# --- runs ---
train() { # RANKS OPTION...
    rm -rf out
    "$sifr" train --config ds.json --model model --data store --output out --max-steps $STEPS \
        --ranks "$1" --json "${@:2}" >json 2>log || { cat log >&2; exit 1; }
}
# Seconds of the middle one of all steps but the first.
step_seconds() {
    awk -F, -v tokens=$((GLOBAL * LENGTH)) 'NR > 2 { print tokens / $6 }' out/metrics.csv | sort -n |
        awk '{ s[NR] = $1 } END { print s[int((NR + 1) / 2)] }'
}
row() { # STAGE RANKS
    echo "$1 $2 $(number planned_bytes json) $(number measured_bytes json) $(wire gathered)" \
        "$(wire reduced) $([ "$quiet" = 1 ] && step_seconds || echo -1)"
}
runs_table() { # PRECISION REUSE
    echo '| stage | ranks | memory planned, MiB | measured, MiB | gathered, MB | reduced, MB | sent beside stage 0 | seconds a step |'
    echo '|---|---|---|---|---|---|---|---|'
    settings 0 "$1" "$2"
    train 1
    row 0 1 >rows
    bits=$(sha256sum <out/model.safetensors)
    for ranks in 2 4; do
        for stage in 0 1 2 3; do
            settings $stage "$1" "$2"
            train $ranks
            row $stage $ranks >>rows
            [ "$(sha256sum <out/model.safetensors)" = "$bits" ] ||
                { echo "$1, stage $stage, $ranks ranks: other weights than one rank's" >&2; exit 1; }
        done
    done
    awk '{
        sent = $5 + $6
        if ($1 == 0) first[$2] = sent
        share = first[$2] ? sprintf("%.2f", sent / first[$2]) : "-"
        printf "| %d | %d | %.0f | %.0f | %.1f | %.1f | %s | %s |\n", $1, $2, $3 / 1048576,
            $4 / 1048576, $5 / 1e6, $6 / 1e6, share, $7 < 0 ? "-" : sprintf("%.3f", $7)
    }' rows
}

# --- a timeline: a step of stage 3 on two ranks, a column for an equal part of its time ---
timeline() {
    GLOBAL=2 settings 3 bf16 0
    train 2 --trace trace.json --trace-steps 5
    awk -v width=96 '
        function value(name, text) {
            if (!match($0, "\"" name "\":\"?[^,\"}]*")) return ""
            text = substr($0, RSTART, RLENGTH)
            sub(/^"[a-z]*":"?/, "", text)
            return text
        }
        /"ph":"X"/ {
            kind = value("cat"); rank = value("pid") + 0; queue = value("tid") + 0
            from = value("ts") + 0; till = from + value("dur")
            if (kind == "step") {
                if (first == "" || from < first) first = from
                if (till > last) last = till
                next
            }
            n++
            k[n] = kind; r[n] = rank; q[n] = queue; a[n] = from; b[n] = till
        }
        END {
            split("forward F backward B update U gather G reduce R wait . squares n norm n add + loss l", w, " ")
            for (i = 1; i in w; i += 2) letter[w[i]] = w[i + 1]
            each = (last - first) / width
            for (i = 1; i <= n; i++) {
                c = int((a[i] - first) / each)
                for (; c < width && first + c * each < b[i]; c++) {
                    low = first + c * each; high = low + each
                    part = (b[i] < high ? b[i] : high) - (a[i] > low ? a[i] : low)
                    sum[r[i], q[i], c, k[i]] += part
                }
            }
            for (rank = 0; rank < 2; rank++) for (queue = 0; queue < 2; queue++) {
                line = ""
                for (c = 0; c < width; c++) {
                    best = " "; most = each / 4
                    for (name in letter) if (sum[rank, queue, c, name] > most) {
                        most = sum[rank, queue, c, name]; best = letter[name]
                    }
                    line = line best
                }
                printf "    rank %d %-13s|%s|\n", rank, queue ? "communication" : "compute", line
            }
            printf "    %.0f ms in all; %.1f ms a column\n", (last - first) / 1000, each / 1000
        }' trace.json
}

put() { "$tree/scripts/page-part.sh" "$page" "$1"; } # NAME: standard input there

machine() {
    echo "$(nproc) cores, $(sed -n '/^model name/{s/.*: //p;q}' /proc/cpuinfo)," \
        "$(awk '/MemTotal/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo);" \
        "$("$sifr" --version); a model of $(number parameters plan.json) parameters," \
        "$GLOBAL sequences of $LENGTH tokens a step over all ranks."
}
settings 0 bf16 0
"$sifr" plan --config ds.json --model model --json >plan.json
sed -i '/"classes"/,/}/d' plan.json
machine | put machine
memory_table | put memory
SUMS=bf16 memory_table | put memory-narrow
runs_table fp32 0 | put runs-fp32
runs_table bf16 0 | put runs-bf16
timeline | put timeline
echo "$page: tables and timeline are new"
