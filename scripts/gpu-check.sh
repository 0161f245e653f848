#!/bin/bash
# Checks this machine's first GPU with a build that has kernels for it (make CUDA=1 tests), or with
# a pack of one (make gpu-pack):
#     gpu-check.sh [OPTION…] BUILD OUT
#     --figures      figures beside PyTorch, in place of checks
#     --parts PART,… these parts, in this order
#     --seconds N    all within N seconds (380; with --figures 180)
#     --fake         in small, on the driver that tests play in place of NVIDIA's: shows that all of
#                    this works where there is no GPU. Its limits are three times as long.
# Runs the parts of a plan (below, and scripts/gpu-parts.sh) in its order, each within a limit of
# its own. What does not fit into the time is listed as not run. After each part the files in OUT are written anew, so that whatever
# ends this, what was measured is there: gpu-check.json, the tables as gpu-check.md, and what the
# parts printed in gpu-check-logs.tar (gpu-figures.*). scripts/gpu-tables.py makes tables of them.
# Results of an earlier run in OUT stay, as gpu-check-1.json and gpu-check-1-logs.tar.
# Exit code 0: no part failed; 1: one did, there is no GPU, or results cannot be written; 2: wrong
# usage; 130, 143: interrupted.
set -u
export LC_ALL=C # what parts print may be no text of this machine's language; 0.5 is a number
parts='' seconds='' FAKE='' what=gpu-check
places=()
while [ $# -gt 0 ]; do
    case $1 in
    --fake) FAKE=1 ;;
    --figures) what="gpu-figures" ;;
    --parts) parts=${2?gpu-check.sh: --parts PART,…} && shift ;;
    --seconds) seconds=${2?gpu-check.sh: --seconds N} && shift ;;
    --help) sed -n '2,/^set -u/s/^# \{0,1\}//p' "$0" && exit ;;
    -*) echo "gpu-check.sh: unknown option $1; --help lists them" >&2 && exit 2 ;;
    *) places+=("$1") ;;
    esac
    shift
done
if [ ${#places[@]} != 2 ] || [ ! -x "${places[0]}/sifr" ]; then
    echo "usage: gpu-check.sh [OPTION…] BUILD OUT; BUILD holds the program, sifr; --help lists options" >&2
    exit 2
fi
set -- "${places[@]}"

# PART STARTS WORK NEEDS. STARTS: processes that start on the GPU, each of which may take 1.5 s for
# that; WORK: seconds beside. NEEDS: seconds that must be left of all for the part to begin, 0: half
# of its limit. The order says what matters most: wrong kernels first, then the rate, then ranks;
# sanitizers are slow. The parts behind memcheck run if the others were faster than their limits.
plan_of_checks='look 8 8 0
bits 4 24 0
ops 10 45 0
twins 2 12 0
golden 1 28 0
train 4 9 0
speed 4 49 0
ranks 20 30 0
peer 1 28 0
again 4 24 0
memcheck 4 29 0
runs 1 28 0
program 12 22 0'
plan_of_figures='llama 5 52 0
compile 1 78 100
ncu 3 15 0
largest 2 57 0'
if [ $what = gpu-check ]; then
    plan=$plan_of_checks
    : "${seconds:=380}"
else
    plan=$plan_of_figures
    : "${seconds:=180}"
fi
case $seconds in
'' | *[!0-9]* | ??????*) echo "gpu-check.sh: --seconds $seconds: a whole number, at most 99999" >&2 && exit 2 ;;
esac
seconds=$((10#$seconds))
: "${parts:=$(awk '{ print $1 }' <<<"$plan" | paste -sd ,)}"

# Of a part of either plan, its line.
line_of() { awk -v part="$1" '$1 == part' <<<"$plan_of_checks"$'\n'"$plan_of_figures"; }
for part in ${parts//,/ }; do
    [ "$(line_of "$part")" ] || { echo "gpu-check.sh: no part $part" >&2 && exit 2; }
done
parts=$(tr -s ', ' '\n' <<<"$parts" | awk 'NF && !seen[$0]++' | paste -sd , -)
[ "$parts" ] || { echo "gpu-check.sh: --parts names none; awk, paste and tr are needed" >&2 && exit 2; }

begun=$SECONDS
BUILD=$(realpath "$1") SOURCE=$(realpath "$(dirname "$0")/..")
SIFR=$BUILD/sifr
mkdir -p "$2" && out=$(realpath "$2") || exit 2
# Models and checkpoints of some GB are written: in memory, where it has room for them.
room=$(df --output=avail -BG /dev/shm 2>/dev/null | tr -dc 0-9) # GiB
[ "${TMPDIR:-}" ] || [ "${room:-0}" -lt 40 ] || TMPDIR=/dev/shm
work=$(mktemp -d "${TMPDIR:-/tmp}/sifr-gpu.XXXXXX") || exit 2
mkdir "$work/logs" "$work/state"
export SOURCE BUILD SIFR FAKE SIFR_TEST_GPU=${FAKE:+fake} CMOCKA_MESSAGE_OUTPUT=stdout
export GPU_STATE=$work/state # what parts tell each other
: "${SIFR_TEST_GPU:=1}"

# Ends what a part left running: ranks that stand still outlive their launcher. Each has the name
# of this run's folder in its environment. Some may start others meanwhile.
reap() {
    local place process turn found
    for turn in 1 2 3; do
        found=
        while read -r place; do
            process=${place#/proc/} process=${process%/environ}
            case $process in "$$" | "${holder:-$$}") continue ;; esac
            ! kill -KILL "$process" 2>/dev/null || found=$turn
        done < <(grep -lzxF "GPU_STATE=$GPU_STATE" /proc/[0-9]*/environ 2>/dev/null)
        [ "$found" ] || return 0
    done
}
holder=
# shellcheck disable=SC2317 # by the trap
leave() {
    reap
    [ ! "$holder" ] || kill "$holder" 2>/dev/null || :
    rm -rf "$work"
}
trap leave EXIT

# A process that stands inside the driver may outlive its SIGKILL: its timeout is ended in turn, and
# nobody waits for the end of what it prints.
briefly() { # SECONDS FILE COMMAND…
    timeout -s KILL $(($1 + 4)) timeout -k 2 "$1" "${@:3}" >"$2" 2>"$2.err" </dev/null
}
briefly 20 "$work/doctor" "$SIFR" doctor --json
gpu=$(sed -n '/"gpus": \[$/,/\]/s/^ *"name": "\(.*\)",*$/\1/p' "$work/doctor" | head -n 1)
# One that sifr cannot use, or that does not answer: `look` says why, and that stays as a result.
if [ ! "$gpu" ] && [ ! "$FAKE" ] && command -v nvidia-smi >/dev/null; then
    briefly 10 "$work/smi" nvidia-smi -L || :
    gpu=$(sed -n 's/^GPU 0: \(.*\) (UUID.*/\1, which sifr doctor does not list/p' "$work/smi")
fi
[ "$FAKE" ] && gpu="none: a driver that a test plays"
stop='' failed=0
if [ -z "$gpu" ]; then
    echo "gpu-check: no GPU that this program can use; sifr doctor says:"
    briefly 20 "$work/text" "$SIFR" doctor || :
    grep -hE '^(GPU|CUDA)' "$work/text" "$work/text.err" || :
    gpu="no GPU" failed=1
    stop="no GPU that this program can use: $(sed -n 's/^ *"driver_error": "\(.*\)",*$/\1/p' "$work/doctor" |
        head -n 1 | grep . || echo 'the driver lists none')"
fi
version=$("$SIFR" --version | head -n 1)
commit=$(cat "$SOURCE/commit" 2>/dev/null || # of a pack
    git -C "$SOURCE" describe --always --dirty --exclude '*' 2>/dev/null)
started=$(date -u +'%Y-%m-%d %H:%M UTC')

# In a JSON string.
quoted() { printf '"%s"' "$(printf %s "$1" | tr '\000-\037' ' ' | sed 's/[\\"]/\\&/g')"; }

# Whole rows of a part's tables, with empty lines between tables. A part that was ended may have left
# half a row; a table is short.
tables_of() { # LOG
    [ -e "$1" ] || return 0 # of a part that did not begin
    tr '\000-\011\013-\037' ' ' <"$1" | sed 's/ *$//' | grep -E '^(\| .*\||\|[-|]+\||)$' |
        awk 'length($0) <= 4000' | head -n 1000 | cat -s
}
# The same as JSON.
rows_of() { # LOG
    tables_of "$1" | grep '^| ' |
        sed 's/[\\"]/\\&/g; s/^| */["/; s/ *|$/"]/; s/ *| */", "/g' | paste -sd ',' -
}

# Text that is not UTF-8 would make a file that no reader of JSON takes.
utf8() { if command -v iconv >/dev/null; then iconv -c -f UTF-8 -t UTF-8 || :; else tr '\200-\377' '?'; fi; }

# What the processes of a part said of themselves ("ran: TOPIC WHAT N, WHAT N (WHY); TOPIC …"): each
# kind once, without how often, and not what ran 0 times. Then what the program warned of. At most
# some of each: a row is read by people.
ran_of() { # LOG
    {
        sed -n 's/^ran: //p' "$1" 2>/dev/null | cut -b 1-2000 | sort -u | head -n 1000 | topics |
            sed -E 's/^ +//; /^(GPU|driver) /b; s/, [^,(]* 0( \([^)]*\))?(,|$)/\2/
                s/ [0-9]+(,| \(|$)/\1/g' |
            sed -E '/^$/d' | sort -u | some
        sed -n 's/^notice: //p' "$1" 2>/dev/null | cut -b 1-2000 | sort -u | some
    } | tr '|' '/' | joined
}
# A line a topic: cut at each ';' that is not in a reason's parentheses.
topics() {
    awk '{ deep = 0
        for (i = 1; i <= length($0); i++) {
            c = substr($0, i, 1)
            deep += (c == "(") - (c == ")")
            printf "%s", (c == ";" && deep <= 0 ? "\n" : c)
        }
        print "" }'
}
some() { awk 'NR <= 20; END { if (NR > 20) print "and " NR - 20 " more" }'; }
joined() { awk '{ printf "%s%s", (NR > 1 ? "; " : ""), $0 }'; } # lines into one

declare -A result=() took=() why=() ran=() answer=()

# Results of an earlier run, of which the second one may be a part: what they say is not lost.
keep_earlier() {
    local n=1
    [ -e "$out/$what.json" ] || return 0
    while [ -e "$out/$what-$n.json" ]; do n=$((n + 1)); done
    mv "$out/$what.json" "$out/$what-$n.json"
    [ ! -e "$out/$what-logs.tar" ] || mv "$out/$what-logs.tar" "$out/$what-$n-logs.tar"
}

# Writes the results so far; each file is whole at any moment.
renew() {
    local part json='' table='' more='' log
    for part in ${parts//,/ }; do
        [ "${result[$part]:-}" ] || continue
        log=$work/logs/$part.log
        local said=${why[$part]}
        [ ! "${answer[$part]:-}" ] || said="$said${said:+; }${answer[$part]}"
        table+="| $part | ${result[$part]} | ${took[$part]} | ${ran[$part]} | ${said//|//} |"$'\n'
        json+="${json:+,}"$'\n'"  {\"part\": \"$part\", \"result\": \"${result[$part]}\","
        json+=" \"seconds\": ${took[$part]}, \"limit\": $(limit_of "$part"),"$'\n'
        json+="   \"ran\": $(quoted "${ran[$part]}"), \"why\": $(quoted "${why[$part]}"),"$'\n'
        json+="   \"answer\": $(quoted "${answer[$part]:-}"), \"rows\": [$(rows_of "$log")]}"
        ! grep -q '^|' "$log" 2>/dev/null || more+=$'\n'"## $part"$'\n'"$(tables_of "$log")"$'\n'
    done
    json=$(utf8 <<END
{"gpu": $(quoted "$gpu"), "date": $(quoted "$started"),
 "sifr": $(quoted "$version"), "commit": $(quoted "$commit"),
 "seconds": $((SECONDS - begun)),
 "parts": [$json
 ]}
END
    )
    md=$(utf8 <<END
$gpu, $started, $version${commit:+, commit $commit}, in $((SECONDS - begun)) s

| part | result | seconds | what ran | why, and what answers it |
|---|---|---|---|---|
$table$more
END
    )
    unwritten=''
    put "$what.json" printf '%s\n' "$json"
    put "$what.md" printf '%s\n' "$md"
    put "$what-logs.tar" logs_as_tar
    [ ! "$unwritten" ] || echo "gpu-check: $out: not renewed:$unwritten" >&2
}
# A pack that cmake unpacked, for want of a tar that can, has its logs from cmake, too.
# shellcheck disable=SC2317 # called by put
logs_as_tar() {
    tar -C "$work" -cf - logs ||
        (cd "$work" && cmake -E tar cf logs.tar logs && cat logs.tar && rm logs.tar)
}
put() { # NAME COMMAND…: what it prints, in a file; two runs may share the folder
    local part=$out/.$1.$$
    "${@:2}" 2>/dev/null >"$part" && mv "$part" "$out/$1" && return
    rm -f "$part"
    unwritten+=" $1"
}

limit_of() { # PART: seconds
    local starts work
    read -r _ starts work _ <<<"$(line_of "$1")"
    echo $(((3 * starts + 1) / 2 + work))
}

# What the processes of a part printed that it did not pass on, since it was ended.
keep_words() { # FOLDER
    local file
    for file in "$1"/{*.log,out,err,peer,look}; do
        [ -s "$file" ] || continue
        echo
        echo "== ${file##*/}, when the part was ended"
        head -c 100000 "$file"
    done
}

# Sets result, why, took and ran of a part.
run_part() { # PART SECONDS CUT: whether the total cuts it
    local code=0 log=$work/logs/$1.log start=$SECONDS
    mkdir "$work/$1" || : # a full disk: the part says so
    (cd "$work/$1" && PART_SECONDS=$2 exec timeout -k 2 "$2" bash "$SOURCE/scripts/gpu-parts.sh" \
        "$1") >"$log" 2>&1 </dev/null &
    wait $! || code=$? # so that a signal is heard at once
    [ ! "$interrupted" ] || code=130
    reap
    case $code in
    124 | 137) keep_words "$work/$1" >>"$log" ;;
    esac
    rm -rf "${work:?}/$1"
    why[$1]=$(sed -n 's/^note: //p' "$log" | cut -b 1-2000 | awk '!seen[$0]++' | some | joined)
    ran[$1]=$(ran_of "$log")
    took[$1]=$((SECONDS - start))
    # A log that fills the files of results keeps its two ends.
    if [ "$(stat -c %s "$log")" -gt 1000000 ]; then
        { head -c 400000 "$log" && echo && echo ... && tail -c 500000 "$log"; } >"$log.short"
        mv "$log.short" "$log"
    fi
    # A part cut by the total may end by its own inner limits, a little before.
    [ ! "$3" ] || [ $code = 0 ] || [ $code = 130 ] || [ "${took[$1]}" -lt $(($2 - 2)) ] || code=124
    case $code in
    0) result[$1]=passed ;;
    77) result[$1]="not run" ;;
    78) result[$1]=failed failed=1 stop="see $1" ;;
    130) result[$1]=interrupted failed=1 ;;
    124 | 137)
        result[$1]="no end within $2 s"
        if [ "$3" ]; then
            result[$1]="cut off after $2 s"
            [[ ${why[$1]} != *" failed"* ]] || result[$1]=failed failed=1
            why[$1]="${why[$1]}${why[$1]:+; }no time was left"
        else
            failed=1
        fi
        ;;
    *) result[$1]=failed failed=1 ;;
    esac
}

# Why a part cannot run after what those before it found; nothing: it can.
hindered() { # PART
    [ ! "$stop" ] || { echo "$stop" && return; }
    case $1 in
    look | peer | compile) ;;
    *) [ ! -s "$GPU_STATE/no-kernels" ] || echo "the kernels do not load: $(cat "$GPU_STATE/no-kernels")" ;;
    esac
}

# The answers of the part `again` stand in the rows of the parts that failed.
take_answers() {
    local part text
    [ -s "$GPU_STATE/answers" ] || return 0
    while read -r part text; do
        answer[$part]="${answer[$part]:-}${answer[$part]:+; }$text"
    done <"$GPU_STATE/answers"
    rm "$GPU_STATE/answers"
}

# Where no process is on the GPU, the driver leaves it, and the next one waits 1 to 3 s for it. `look`
# measures that, so it comes first. Where a GPU takes one process at a time, nobody holds it.
hold_context() {
    [ ! "$holder" ] && [ ! -e "$GPU_STATE/one-process" ] && [ "$1" != look ] && [ -x "$BUILD/tests/gpu_look" ] || return 0
    "$BUILD/tests/gpu_look" --hold $((seconds + 60)) "$work/held" >/dev/null 2>&1 </dev/null &
    holder=$!
}

# What was measured stays; the parts that are left are named.
interrupted=''
# shellcheck disable=SC2317 # by traps
interrupt() { # EXIT_CODE
    interrupted=$1 stop=interrupted
}
trap 'interrupt 129' HUP
trap 'interrupt 130' INT
trap 'interrupt 143' TERM

md='' unwritten=''
keep_earlier
for part in ${parts//,/ }; do
    limit=$(limit_of "$part") left=$((seconds - (SECONDS - begun) - 2)) cut=''
    read -r _ _ _ needs <<<"$(line_of "$part")"
    [ "$needs" != 0 ] || needs=$(((limit + 1) / 2))
    [ -z "$FAKE" ] || limit=$((3 * limit)) # it plays beside other tests
    [ "$limit" -le "$left" ] || { limit=$left && cut=1; }
    result[$part]="not run" why[$part]=$(hindered "$part") took[$part]=0 ran[$part]=''
    [ "$gpu" != "no GPU" ] || stop="no GPU" # why, in the first row alone
    if [ ! "${why[$part]}" ]; then
        if [ "$left" -lt "$needs" ]; then
            why[$part]="no time was left: it begins with $needs s, and there are $((left > 0 ? left : 0))"
        else
            hold_context "$part"
            run_part "$part" "$limit" "$cut"
            take_answers
        fi
    fi
    [ "${result[$part]}" != "not run" ] || ran[$part]=nothing
    renew
    [ "$gpu" = "no GPU" ] || echo "gpu-check: $part: ${result[$part]}, ${took[$part]} s" >&2
done
[ "$gpu" = "no GPU" ] || echo "$md"
[ ! "$unwritten" ] || failed=1
exit "${interrupted:-$failed}"
