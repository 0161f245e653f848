# Manual pages in the folder `out`, one a command, from what `sifr --help=table` prints
# (src/cli/option_table.h).

# Text of roff: nothing in it is a request or an escape, and - is what a shell takes.
function plain(text) {
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    gsub(/~/, "\\(ti", text)
    gsub(/\^/, "\\(ha", text)
    gsub(/`/, "\\(ga", text)
    gsub(/'/, "\\(aq", text)
    sub(/^\./, "\\\\\\&.", text)
    return text
}
function page_of(name) {
    name = "sifr " name
    sub(/ $/, "", name)
    gsub(/ /, "-", name)
    return name
}
function put(line) { print line >file }
function value(kind, argument) {
    if (kind == "flag" || argument == "") return ""
    if (kind == "switch") return "[=\\fI" plain(argument) "\\fR]"
    return " \\fI" plain(argument) "\\fR" (kind == "list" ? "..." : "")
}

function begin(name, summary,   title) {
    file = out "/" page_of(name) ".1"
    files[++pages] = file
    title = page_of(name)
    put(".\\\" Made from the program's own table of options: scripts/make-pages.sh.")
    put(".TH " plain(toupper(title)) " 1 \"" date "\" \"" version "\" \"User Commands\"")
    put(".SH NAME")
    put(plain(title) " \\- " plain(summary))
    put(".SH SYNOPSIS")
}
BEGIN { FS = "\t" }
$1 == "commands" {
    if ($2 == "") {
        begin("", "train language models with ZeRO")
        put(".B sifr\n.I COMMAND\n[OPTION]...\n.br\n.B sifr \\-\\-version\n[\\-\\-verbose]")
        put(".SH DESCRIPTION")
        put("Trains language models of the Hugging Face hub from a DeepSpeed config, on one rank")
        put("or many, and what belongs to it. Each command has a page of its own, and a")
        put(".B \\-\\-help\nwith an example.")
        top = file
    } else {
        begin($2, $3)
        put(".B sifr " plain($2) "\n.I COMMAND\n[OPTION]...")
        put(".SH DESCRIPTION\nHas the commands below, each with a page of its own.")
    }
    parent_of[file] = $2
    if ($2 != "") count_child("", $2, $3)
    next
}
$1 == "command" {
    begin($2, $3)
    parent = index($2, " ") ? substr($2, 1, index($2, " ") - 1) : ""
    count_child(parent, $2, $3)
    command = $2
    operands = $4
    next
}
function count_child(parent, name, summary) {
    children[parent]++
    child[parent, children[parent]] = name
    child_summary[parent, children[parent]] = summary
}
$1 == "about" {
    about = $2
    next
}
$1 == "heading" {
    if (!begun[file]++) add(".SH OPTIONS")
    if ($2 != "Options") add(".SS " plain($2))
    next
}
function add(line) { options[file] = options[file] line "\n" }
$1 == "option" {
    if (!begun[file]++) add(".SH OPTIONS")
    add(".TP\n\\fB" plain("--" $2) "\\fR" value($3, $4) "\n" plain($6))
    if ($5 == "needed") required[file] = required[file] " \\fB" plain("--" $2) "\\fR" value($3, $4)
    describe(file)
    next
}
function describe(file) {
    if (file in abouts || file in parent_of) return
    abouts[file] = about
    named[file] = command
    taken[file] = operands
}
$1 == "example" {
    examples[file] = examples[file] plain($2) "\n"
    next
}
$1 == "exit" { codes = codes ".TP\n.B " plain($2) "\n" plain($3) "\n" }
END {
    for (p = 1; p <= pages; p++) {
        file = files[p]
        if (file in named) {
            put("\\fBsifr " plain(named[file]) "\\fR" required[file] " [OPTION]..." \
                (taken[file] == "" ? "" : " " plain(taken[file])))
            put(".SH DESCRIPTION\n" plain(abouts[file]))
        } else {
            parent = parent_of[file]
            put(".SH COMMANDS")
            for (c = 1; c <= children[parent]; c++) {
                put(".TP\n.BR " plain(page_of(child[parent, c])) " (1)")
                put(plain(child_summary[parent, c]))
            }
        }
        printf "%s", options[file] >file
        if (examples[file] != "") printf ".SH EXAMPLES\n.nf\n%s.fi\n", examples[file] >file
        printf ".SH EXIT STATUS\n%s", codes >file
        if (file != top) put(".SH SEE ALSO\n.BR sifr (1)")
        close(file)
    }
}
