
# The kind of what the word before the cursor's belongs to: that of an option that still takes
# words, else that of the command's operands.
_sifr_kind() { # FIRST END: the words behind the command
    local i entry word last=
    kind=$operands
    for ((i = $1; i < $2; i++)); do
        word=${COMP_WORDS[i]}
        case $word in
        =)
            # Behind it stands the value, also of an option whose value may be left out.
            [ -z "$last" ] || kind=${last/#s,/w,}
            ;;
        --*)
            kind=$operands last=
            for entry in $options; do
                [ "${entry%%=*}" = "$word" ] || continue
                last=${entry#*=}
                case $last in
                - | s,*) ;;
                *) kind=$last ;;
                esac
            done
            ;;
        *)
            # The value is there; a list goes on.
            case $kind in
            *+) ;;
            *) kind=$operands ;;
            esac
            last=
            ;;
        esac
    done
}

_sifr() {
    local cur=${COMP_WORDS[COMP_CWORD]} command= commands options operands kind at=1 end entry names=
    local IFS=$' \t\n'
    COMPREPLY=()
    _sifr_table ''
    while [ "$at" -lt "$COMP_CWORD" ]; do
        case " $commands " in
        *" ${COMP_WORDS[at]} "*) ;;
        *) break ;;
        esac
        command=${command:+$command }${COMP_WORDS[at]}
        at=$((at + 1))
        _sifr_table "$command"
    done
    end=$COMP_CWORD
    if [ "$cur" = = ]; then # bash cuts words there
        cur=
        end=$((end + 1))
    fi
    _sifr_kind "$at" "$end"
    for entry in $options; do names="$names ${entry%%=*}"; done
    case $kind,$cur in
    *,-*) mapfile -t COMPREPLY < <(compgen -W "$names" -- "$cur") ;;
    w,*)
        kind=${kind%+}
        kind=${kind#w,}
        mapfile -t COMPREPLY < <(compgen -W "${kind//|/ }" -- "$cur")
        ;;
    d*)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -d -- "$cur")
        ;;
    f*)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        ;;
    n*) ;;
    *) mapfile -t COMPREPLY < <(compgen -W "${commands:-$names}" -- "$cur") ;;
    esac
}
complete -F _sifr sifr
