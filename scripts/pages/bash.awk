# Completion of bash, from what `sifr --help=table` prints (src/cli/option_table.h).

# What may stand behind an option: f files, d folders, w,A|B words, n something else; + where there
# may be more of them.
function kind_of(kind, argument,   k) {
    if (kind == "flag") return "-"
    if (kind == "switch") return "s," argument
    k = argument ~ /^(DIR|FOLDER)$/ ? "d" : argument ~ /^(FILE|PATH)$/ ? "f" : \
        argument ~ /\|/ ? "w," argument : "n"
    return k (kind == "list" ? "+" : "")
}
function finish() {
    if (name == "-") return
    printf "    '%s')\n        commands='%s'\n        options='%s'\n        operands=%s\n        ;;\n", \
        name, commands, options, operands
}
BEGIN {
    FS = "\t"
    name = "-"
    print "# Completion of sifr for bash, made from its own table of options (scripts/make-pages.sh)."
    print "# What a command has: commands below it, options as NAME=KIND, and whether it takes files."
    print "_sifr_table() {\n    case $1 in"
}
$1 == "commands" || $1 == "command" {
    table[++count] = $2
    is_group[$2] = $1 == "commands"
    if ($2 != "") {
        parent = index($2, " ") ? substr($2, 1, index($2, " ") - 1) : ""
        last = $2
        sub(/.* /, "", last)
        below[parent] = below[parent] (below[parent] == "" ? "" : " ") last
    }
    takes[$2] = $1 == "command" && $4 != "" ? "f" : "-"
    at = $2
}
$1 == "option" {
    own[at] = own[at] (own[at] == "" ? "" : " ") "--" $2 "=" kind_of($3, $4)
}
END {
    for (i = 1; i <= count; i++) {
        name = table[i]
        commands = below[name]
        options = own[name] == "" ? "--help=-" : own[name]
        operands = takes[name]
        finish()
    }
    print "    esac\n}"
    while ((getline line < fixed) > 0) print line
}
