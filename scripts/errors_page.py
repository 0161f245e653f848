"""Writes docs/errors.md from the sources: every message that src/ makes, by room and folder, with an
ellipsis for its values: errors_page.py [SRC] >docs/errors.md

A message is the format of a call of a function that is declared SIFR_PRINTF, or of base_fail and
its kind; and a text of several words that is handed to a function whose name says that it refuses,
or stands in a table as the reason of a refusal.
"""
import pathlib
import re
import sys
import textwrap

WIDTH = 100
src = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "src")

# What a room's messages are about, and what to do where a message does not say. In the order in
# which a user meets them.
ROOMS = [
    ("", "In several places", "What more than one part of the program says.",
     "look at what stands before the message: a file or a key."),
    ("cli", "The command line", "The command, its options, ranks that are started, and the terminal.",
     "compare the command with `sifr COMMAND --help`."),
    ("config", "The config", "Keys of the config file, flags of the same keys, and configs of other "
     "programs that are imported.",
     "compare the key with [config.md](config.md), or the import with [import.md](import.md)."),
    ("model", "The model", "`config.json` and the weights' names and shapes.",
     "compare the folder with the model's original; [models.md](models.md) lists what opens."),
    ("text", "Tokenizers and chat templates", "`tokenizer.json` and its kin, and the template's "
     "language.", "take the files of the model's original; [tokenizers.md](tokenizers.md) lists "
     "what is read. Of a template: correct it at the line that is named, or give another with "
     "`--chat-template`."),
    ("data", "Data", "Text, token stores, rows and their fields, files of scores.",
     "correct the file at the row or line that is named, or leave it out; [data.md](data.md), "
     "[fine-tuning.md](fine-tuning.md) and [rows.md](rows.md) say what is read."),
    ("train", "The run", "What a run asks of config, data and output folder together.",
     "look at what each key does with `--dry-run`."),
    ("plan", "The plan", "Memory, order and ranks of a step.",
     "change the setting that is named; [memory.md](memory.md) says what takes memory."),
    ("optim", "Optimizers", "Settings of optimizers.", "see [optimizers.md](optimizers.md)."),
    ("engine", "The engine", "A step while it runs, and its weights and state.",
     "where a number is not finite: a lower rate, or bf16 in place of fp16."),
    ("checkpoint", "Checkpoints", "Saving, finding and loading state.",
     "resume from an older checkpoint: move the one that is named away; `sifr inspect` looks into "
     "it."),
    ("convert", "Export, merge, import of checkpoints", "Folders that are made of others.",
     "compare both folders with `sifr inspect`; [export.md](export.md) says what is made."),
    ("infer", "Generation and evaluation", "`sifr generate`, `chat`, `classify`, `eval`, `score`.",
     "compare the command with `sifr COMMAND --help`."),
    ("formats", "Files of weights", "safetensors, PyTorch's files, GGUF, adapters.",
     "the file is damaged or of another program: fetch or make it again."),
    ("comm", "Ranks", "MPI, NCCL, and messages between ranks.",
     "look at the first rank that failed: the others follow it; [launching.md](launching.md) has "
     "the usual reasons."),
    ("device", "Devices", "Processors, GPUs and their kernels.",
     "`sifr doctor` says what this machine has; [gpu.md](gpu.md) what runs on it."),
    ("api", "Calls of the C interface", "What a program gives to the library; some are also met "
     "through a command.", "correct the call; [c-interface.md](c-interface.md) describes it."),
    ("base", "Files, JSON, numbers and the system", "What every part of the program meets.",
     "where the text of the system stands at the end: make the file readable or writable, or free "
     "space."),
]

# More than a message says: (pattern, what to do).
REMEDIES = [
    (r"out of memory", "the machine has no memory left: end other programs, or make the run "
     "smaller ([memory.md](memory.md))"),
    (r"cannot (open|read)|reading failed", "the file is not there, or may not be read: check the "
     "path and its permissions"),
    (r"cannot (write|create|make|sync|rename|remove)|writing failed", "the disk is full, or the "
     "folder may not be written: free space, or name another folder"),
    (r"ends? (too early|in the middle|before)|truncated|too short|is shorter", "the file was cut "
     "off: fetch or make it again"),
    (r"checksum|damaged|corrupt", "the file changed after it was written: take an older one, or "
     "make it again"),
    (r"bug in sifr", "report it with the command and the config"),
]

# Words that tell a user what to do.
HELPS = re.compile(
    r"; |\b(give|use|set|leave|make|remove|name|see|install|free|choose|rename|report|write|check|"
    r"add|take|needed|must|supported|at most|at least|did you mean|expected|instead|allowed|"
    r"may be|lower|raise|start|stop|try|only|needs|has to|without)\b")

LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
SPEC = re.compile(r"%[-+ #0]*(?:\*|\d+)?(?:\.(?:\*|\d+)?)?(?:hh|h|ll|l|z|j|t|L)?[a-zA-Z]")
REFUSES = re.compile(r"(^|_)(fail|refuse|refused|refuses|complain|warn|lacks|wrong|bad|reject)(_|$)",
                     re.I)
# Of tables: why a row of one is refused.
FIELD = re.compile(r'\.(?:refused|unasked|unfit|says_undropped)\s*=\s*((?:"(?:[^"\\\n]|\\.)*"\s*)+)')
MACROS = {"base_fail": 2, "base_fail_in": 2, "base_fail_errno": 2, "base_set_error": 2,
          "base_set_error_in": 2, "base_set_error_errno": 2, "base_log": 2}


def blank(text):
    """The text without comments, whose length and lines stay."""
    pattern = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|/\*.*?\*/|//[^\n]*', re.S)

    def instead(match):
        piece = match.group(0)
        return piece if piece[0] in "\"'" else re.sub(r"[^\n]", " ", piece)
    return pattern.sub(instead, text)


def formats_of(texts):
    """Functions that take a format: name to the place of that argument, from 0. What
    quickstart_put is given are comments of a config."""
    places = dict(MACROS)
    for text in texts:
        for found in re.finditer(r"\b([a-z_0-9]+)\(((?:[^();{}]|\([^()]*\))*)\)\s*SIFR_PRINTF\((\d+)",
                                 text):
            places[found.group(1)] = int(found.group(3)) - 1
    places.pop("quickstart_put", None)
    return places


def arguments(text, at):
    """The arguments of the call whose bracket is at `at`."""
    depth, begin, out, i = 0, at + 1, [], at
    while i < len(text):
        c = text[i]
        if c in "\"'":
            end = re.compile(r'(?:[^\\%s\n]|\\.)*' % c).match(text, i + 1).end()
            i = end + 1
            continue
        if c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
            if depth == 0:
                return out + [text[begin:i]]
        elif c == "," and depth == 1:
            out.append(text[begin:i])
            begin = i + 1
        i += 1
    return out


def messages_in(argument):
    """Literals that stand side by side are one message; names between them are values."""
    out, end, whole = [], None, ""
    for found in LITERAL.finditer(argument):
        between = argument[end:found.start()] if end is not None else None
        if between is not None and re.fullmatch(r"[\sA-Za-z0-9_]*", between):
            # PRId64 ends a conversion, and other names stand for text.
            whole += ("d" if re.match(r"\s*PRI", between) else "%s" if between.strip() else "")
        elif end is not None:
            out.append(whole)
            whole = ""
        whole += found.group(1)
        end = found.end()
    return out + [whole] if end is not None else out


def shown(message):
    text = message.replace('\\"', '"').replace("\\n", " ").replace("\\t", " ").replace("\\\\", "\\")
    text = SPEC.sub("…", text.replace("%%", "\0")).replace("\0", "%")
    text = re.sub(r"…(\s*…)+", "…", text)
    return " ".join(text.split())


def is_message(text):
    return sum(bool(re.search(r"[A-Za-z]{2}", word)) for word in text.split()) >= 3


def read(path, places):
    text = blank(path.read_text())
    for found in FIELD.finditer(text):
        yield from filter(is_message, map(shown, messages_in(found.group(1))))
    for found in re.finditer(r"\b([A-Za-z_0-9]+)\(", text):
        name = found.group(1)
        if name not in places and not REFUSES.search(name):
            continue
        given = arguments(text, found.end() - 1)
        if name in places:
            given = given[places[name]:places[name] + 1]
        for argument in given:
            for message in messages_in(argument):
                if is_message(shown(message)):
                    yield shown(message)


def code(text):
    return "`` %s ``" % text if "`" in text else "`%s`" % text


def bullet(message):
    line = code(message)
    for pattern, remedy in REMEDIES:
        if not HELPS.search(message) and re.search(pattern, message):
            line += ": " + remedy
            break
    return textwrap.fill(line, WIDTH, initial_indent="- ", subsequent_indent="  ",
                         break_long_words=False, break_on_hyphens=False)


def anchor(title):
    return re.sub(r"[^a-z0-9 _-]", "", title.lower()).replace(" ", "-")


def collect():
    """By room and folder; what several rooms say stands under the room "", once."""
    files = sorted(p for p in src.rglob("*") if p.suffix in (".c", ".h", ".inc"))
    places = formats_of(blank(path.read_text()) for path in files)
    said = {path: set(read(path, places)) for path in files}
    where = {}
    for path, messages in said.items():
        for message in messages:
            where.setdefault(message, set()).add(path.relative_to(src).parts[0])
    rooms = {}
    for path, messages in said.items():
        for message in messages:
            several = len(where[message]) > 1
            room = "" if several else path.relative_to(src).parts[0]
            folder = "" if several else path.relative_to(src).parent.as_posix()
            rooms.setdefault(room, {}).setdefault(folder, set()).add(message)
    unknown = set(rooms) - {row[0] for row in ROOMS}
    if unknown:
        sys.exit("errors_page.py: no row for src/%s" % " ".join(sorted(unknown)))
    return rooms


def print_room(title, about, remedy, folders):
    print("\n## %s\n" % title)
    print(textwrap.fill("%s Where a message does not say what to do: %s" % (about, remedy), WIDTH))
    for folder, messages in sorted(folders.items()):
        print("\n### %s\n" % folder if "/" in folder else "")
        for message in sorted(messages):
            print(bullet(message))


def main():
    rooms = collect()
    print(HEAD)
    for room, title, _, _ in ROOMS:
        if room in rooms:
            print("| [%s](#%s) | %d |" % (title, anchor(title), sum(map(len, rooms[room].values()))))
    for room, title, about, remedy in ROOMS:
        if room in rooms:
            print_room(title, about, remedy, rooms[room])


HEAD = """# Error messages

Made by `scripts/errors_page.py` from the sources; `make docs` writes it.

A message is one line: the command, what is wrong and where, why, and what to do. Search for a piece
of it without names and numbers: an ellipsis (…) stands for those, and for words that are put
together from parts. The exit code says of which kind it is:

| code | kind | what to do |
|---|---|---|
| 1 | a file, the system or the data | correct what is named, and start again; a run goes on with `--resume` |
| 2 | the command, the config or the model | nothing has run: correct the option or key that is named |
| 3 | does not fit in memory or on disk | `sifr plan` says what would fit ([memory.md](memory.md)) |
| 4 | a rank is lost | look at the first rank that failed ([launching.md](launching.md)) |

Lines that begin with `warning:` end nothing. Several lines of one run: the first one counts.

| about | messages |
|---|---|"""

main()
