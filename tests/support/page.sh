# Sourced by tests of pages that lead through a job (tests/scripts/test_page_*.sh): `page NAME` runs
# what docs/NAME.md says, in the order of the page, at small size. A comment of one line says what
# the block below it is; a block is indented by four spaces.
#   <!-- file NAME -->       its text becomes the file NAME
#   <!-- run -->             its commands run; what they print is kept in the file `printed`
#   <!-- shows -->           the last run printed these lines; any figures will do, `…` is any text
#   <!-- shows exactly -->   the last run printed this, whole lines that follow each other; spaces at the
#                            ends of lines do not count
#   <!-- not run: WHY -->    its commands do not run
#   <!-- small: COMMAND -->  stands alone: what the suite does here, and no reader
#   <!-- small, A: B -->     stands alone: the commands below have B in place of A
# A block of commands of sifr without such a comment is an error, so that none is forgotten; blocks
# between markers of scripts/memory_page.sh are checked by its own test.
. "$SOURCE/tests/support/expect.sh"
mkdir -p bin
ln -sf "$SIFR" bin/sifr
export PATH=$PWD/bin:$PATH
page_runs=0 # blocks that ran

page_small() { # TEXT: with what differs at small size
    local text=$1 i
    for ((i = 0; i < ${#page_large[@]}; i++)); do
        case $text in *"${page_large[i]}"*) page_used[i]=1 ;; esac
        text=${text//"${page_large[i]}"/"${page_little[i]}"}
    done
    printf '%s' "$text"
}
page_bash() { # WHERE COMMANDS FILE: with what they print in FILE
    local code=0
    printf '%s' "$2" >commands
    bash -eu commands </dev/null >"$3" 2>&1 || code=$?
    [ "$code" = 0 ] || {
        cat commands "$3" >&2
        fail "$1: exit code $code"
    }
}
page_shown() { # WHERE LINES
    local line
    while IFS= read -r line; do
        [ -n "$line" ] || continue
        # A figure is any figure; other signs mean themselves.
        sed 's/[][\.*^$+?(){}|/]/\\&/g; s/[0-9]\([0-9]\|\\\.[0-9]\|,[0-9]\)*/[0-9][0-9.,]*/g
             s/…/.*/g; s/  */ +/g' <<<"$line" >pattern
        grep -qE -- "$(cat pattern)" printed || {
            cat printed >&2
            fail "$1: not printed: $line"
        }
    done <<<"$2"
}
page_exactly() { # WHERE LINES
    local lines
    lines=$(printf '%s' "$2")
    sed 's/ *$//' printed >trimmed
    case $'\n'$(cat trimmed)$'\n' in *$'\n'"$lines"$'\n'*) return ;; esac
    diff <(echo "$lines") trimmed >&2 || true
    fail "$1: not printed so"
}
page_block() { # WHERE KIND ARGUMENT TEXT: acts on a block
    case $2 in
        run)
            page_small "$4" >small
            page_bash "$1" "$(cat small)" printed
            page_runs=$((page_runs + 1))
            ;;
        file) printf '%s' "$4" >"$3" ;;
        shows) page_shown "$1" "$4" ;;
        exactly) page_exactly "$1" "$4" ;;
        '') ! grep -q '^sifr ' <<<"$4" || fail "$1: a block of commands that does not say if it runs" ;;
    esac
}
page() { # NAME
    local file=$SOURCE/docs/$1.md number=0 line kind='' argument='' text='' start=0 made='' i
    page_large=() page_little=() page_used=()
    [ -s "$file" ] || fail "no page $file"
    while IFS= read -r line; do
        number=$((number + 1))
        case $line in
            '<!-- '*': begin (scripts/memory_page.sh) -->') made=1 ;;
            '<!-- '*': end -->') made='' && continue ;;
        esac
        [ -z "$made" ] || continue
        if [ -z "$line" ]; then # between a comment and its block, or within a block
            [ -z "$text" ] || text+=$'\n'
            continue
        fi
        case $line in
            '    '*)
                [ -n "$text" ] || start=$number
                text+=${line:4}$'\n'
                continue
                ;;
        esac
        if [ -n "$text" ]; then
            page_block "docs/$1.md:$start" "$kind" "$argument" "$text"
            kind='' text=''
        fi
        [ -z "$kind" ] || fail "docs/$1.md:$number: a comment without a block"
        case $line in
            '<!-- run -->') kind=run ;;
            '<!-- shows -->') kind=shows ;;
            '<!-- shows exactly -->') kind=exactly ;;
            '<!-- not run: '*' -->') kind=not ;;
            '<!-- file '*' -->')
                kind=file argument=${line#'<!-- file '}
                argument=${argument%' -->'}
                ;;
            '<!-- small: '*' -->')
                line=${line#'<!-- small: '}
                page_bash "docs/$1.md:$number" "${line%' -->'}" aside
                ;;
            '<!-- small, '*': '*' -->')
                line=${line#'<!-- small, '}
                line=${line%' -->'}
                page_large+=("${line%%: *}")
                page_little+=("${line#*: }")
                page_used+=('')
                ;;
            '<!-- '*) fail "docs/$1.md:$number: unknown comment: $line" ;;
        esac
    done < <(cat "$file" && echo end)
    [ "$page_runs" -gt 0 ] || fail "docs/$1.md: nothing ran"
    for ((i = 0; i < ${#page_large[@]}; i++)); do
        [ -n "${page_used[i]}" ] || fail "docs/$1.md: no command has '${page_large[i]}'"
    done
}
