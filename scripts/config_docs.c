/* Prints docs/config.md from the table that the parser uses: `make docs`. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "config/keys/config_keys.h"

static const char *const intro =
    "# The config\n"
    "\n"
    "<!-- Made by `make docs` from src/config/keys/. Edit those tables, not this page. -->\n"
    "\n"
    "`sifr train --config ds.json` takes DeepSpeed's JSON as it is, with comments (`//`, `#`,\n"
    "`/* */`) and trailing commas, as HJSON (keys and strings without quotes), or encoded in "
    "base64\n"
    "in place of the file's name. What the flags of `sifr train` give may also stand in it, "
    "under\n"
    "the extra key `\"sifr\"`, so that one file repeats a run. Flags win. `--dry-run` says "
    "what\n"
    "each given key does and where defaults are other than DeepSpeed's (`--dry-run=all`: all "
    "defaults\n"
    "too), marked `[DeepSpeed: ...]`. The effective config is written into the output.\n"
    "\n"
    "- A key that is not listed here is refused, with the nearest one that is.\n"
    "- A key whose name begins with `_` is a comment: it is ignored, and the run lists it.\n"
    "- All faults of a config are said at once.\n"
    "- `\"auto\"` takes the value of the flag, else the default of the Hugging Face Trainer, else "
    "the\n"
    "  default below. `null` counts as not given.\n"
    "- Whole numbers may be written as `5e8`, and any number in quotes. Choices may be written in "
    "any\n"
    "  case of letters.\n"
    "- `train_batch_size` = `train_micro_batch_size_per_gpu` × `gradient_accumulation_steps` × "
    "ranks:\n"
    "  any two give the third, and a contradiction is refused. With none of them, 8 × 1 × ranks.\n"
    "- What is said of other programs is said of DeepSpeed 0.19.8, PyTorch 2.15, transformers "
    "5.24.0 "
    "(the\n"
    "  Trainer), PEFT 0.21.2, TRL 1.16 and bitsandbytes 0.50.2, beside which tests compare "
    "schedules,\n"
    "  optimizers, decay, adapters and rows (`tests/config/test_lr_schedule.c`,\n"
    "  `tests/engine/test_golden_optimizers.c`, `tests/engine/test_no_decay.c`,\n"
    "  `tests/engine/test_golden_lora.c`, `tests/data/test_trl_rows.c`).\n"
    "- The first optimizer step uses the rate of iteration t = -1, as in DeepSpeed: the warm-up\n"
    "  schedules begin at their minimum, and count t = 0 after it. Where that is 0, the first two "
    "steps\n"
    "  of a warm-up change no weight (the first one of WarmupCosineLR with warmup_min_ratio); the "
    "run\n"
    "  says so.\n"
    "- A config without `gradient_clipping` is clipped at 1.0, as under the Hugging Face Trainer, "
    "through\n"
    "  which most such configs are used. DeepSpeed by itself would not clip: give 0 for that. The "
    "run's\n"
    "  first lines say which is taken.\n"
    "\n"
    "Each key is given with its type, range and unit, and its default where it has one. The range\n"
    "`0..1` has both ends, `0..<1` is without the upper one. A word before the text says what "
    "sifr\n"
    "does with the key; without one it is supported, but for the choices behind **later**, which "
    "are\n"
    "refused. The words:\n"
    "\n"
    "- **no effect**: accepted, and changes nothing, for the reason given.\n"
    "- **later**: not supported yet. Values that leave the feature off are accepted (the default, "
    "or\n"
    "  anything in a section that is not enabled). Others are refused.\n"
    "- **refused**: DeepSpeed removed it, or raises on it. Values that leave the feature off are\n"
    "  accepted.\n"
    "- **other name**: means the key that is named.\n";

/* Whether a line that begins with this word would begin a quote, a heading or a list. */
static bool is_markup(const char *word, size_t length) {
    if (length == 1) return strchr("-+*=", *word) != NULL;
    bool numbered = length == 2 && *word == '1' && strchr(".)", word[1]);
    return numbered || (length > 0 && strchr(">#", *word));
}

/* The bytes up to the next place where a line may break: before a space. */
static size_t unbroken(const char *text) {
    size_t length = strcspn(text, " ");
    while (text[length]) {
        const char *next = text + length + 1;
        size_t word = strcspn(next, " ");
        if (!is_markup(next, word)) break;
        length += 1 + word;
    }
    return length;
}

/* A paragraph, in lines of at most 100 columns: the first behind `first`, the others behind as many
 * spaces. */
static void print_wrapped(const char *first, const char *text) {
    enum { COLUMNS = 100 };
    int indent = (int)strlen(first);
    size_t column = strlen(first);
    fputs(first, stdout);
    for (const char *from = text; *from;) {
        size_t piece = unbroken(from);
        if (from > text && column + 1 + piece <= COLUMNS) {
            putchar(' ');
            column++;
        } else if (from > text) {
            printf("\n%*s", indent, "");
            column = (size_t)indent;
        }
        printf("%.*s", (int)piece, from);
        column += piece;
        from += piece + strspn(from + piece, " ");
    }
    putchar('\n');
}

/* "a|b" as "a, b". */
static void write_words(FILE *out, const char *words) {
    for (const char *c = words; *c; c++) {
        if (*c == '|') {
            fputs(", ", out);
        } else {
            putc(*c, out);
        }
    }
}

static void write_type(FILE *out, const config_key *key) {
    static const char *const names[] = {
        [CONFIG_SECTION] = "section",  [CONFIG_BOOL] = "true or false",
        [CONFIG_INT] = "whole number", [CONFIG_BYTES] = "bytes",
        [CONFIG_NUMBER] = "number",    [CONFIG_TEXT] = "string",
        [CONFIG_CHOICE] = "",          [CONFIG_TEXTS] = "strings",
        [CONFIG_NUMBERS] = "numbers",  [CONFIG_ANY] = "any",
    };
    fputs(names[key->type], out);
    if (key->choices) {
        if (names[key->type][0]) fputs(": ", out);
        write_words(out, key->choices);
    }
    if (key->range) fprintf(out, " %s", key->range);
    if (key->unit[0]) fprintf(out, ", %s", key->unit);
}

/* "**`key`**: type; later: choices; default `value`.\": the mark at the end breaks the line. */
static void write_head(FILE *out, const config_key *key) {
    fprintf(out, "**`%s`**: ", key->path);
    write_type(out, key);
    if (key->later) {
        fputs("; **later**: ", out);
        write_words(out, key->later);
    }
    if (key->fallback) fprintf(out, "; default `%s`", key->fallback);
    fputs(".\\", out);
}

static void write_flag(FILE *out, const config_key *key) {
    fputs(" Flag: `--", out);
    for (const char *c = key->flag ? key->flag : config_key_leaf(key); *c; c++) {
        putc(*c == '_' ? '-' : *c, out);
    }
    fputs("`.", out);
}

static void write_body(FILE *out, const config_key *key) {
    static const char *const words[] = {
        [CONFIG_BUILT] = "",
        [CONFIG_NO_EFFECT] = "**no effect**: ",
        [CONFIG_LATER] = "**later**: ",
        [CONFIG_REMOVED] = "**refused**: ",
        [CONFIG_ALIAS] = "**other name**: ",
    };
    fprintf(out, "%s%s", words[key->status], key->doc);
    if (key->alias) fprintf(out, " Means `%s`.", key->alias);
    if (key->only) {
        fputs(" For ", out);
        write_words(out, key->only);
        putc('.', out);
    }
    if ((strncmp(key->path, "sifr.", 5) == 0 && !key->alias) || key->flag) write_flag(out, key);
}

/* What `write` says of a key, behind `first`. */
static bool print_part(const char *first, const config_key *key,
                       void (*write)(FILE *out, const config_key *key)) {
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (!out) return false;
    write(out, key);
    bool ok = fclose(out) == 0;
    if (ok) print_wrapped(first, text);
    free(text);
    return ok;
}

/* Rows [from, to) are one list. */
static bool print_keys(size_t from, size_t to) {
    bool ok = true;
    putchar('\n');
    for (size_t i = from; ok && i < to; i++) {
        const config_key *key = config_key_at(i);
        if (key->type == CONFIG_SECTION && !key->alias) continue;
        ok = print_part("- ", key, write_head) && print_part("  ", key, write_body);
    }
    return ok;
}

static bool is_top_section(const config_key *key) {
    return key->type == CONFIG_SECTION && !key->alias && !strchr(key->path, '.');
}

/* Whether row `i` still belongs to the list of the section `name` ("" is the top level). */
static bool is_inside(size_t i, const char *name) {
    const config_key *key = config_key_at(i);
    if (is_top_section(key)) return false;
    return name[0] ? strncmp(key->path, name, strlen(name)) == 0 && key->path[strlen(name)] == '.'
                   : !strchr(key->path, '.');
}

int main(void) {
    fputs(intro, stdout);
    for (size_t i = 0; i < config_key_count();) {
        const config_key *key = config_key_at(i);
        const char *name = "";
        size_t from = i;
        if (is_top_section(key)) {
            name = key->path;
            from = i + 1;
            printf("\n## %s\n\n", name);
            print_wrapped("", key->doc);
        } else {
            puts(i == 0 ? "\n## Top level" : "\n## More keys of the top level");
        }
        size_t to = from;
        while (to < config_key_count() && is_inside(to, name)) to++;
        if (!print_keys(from, to)) return 1;
        i = to;
    }
    return 0;
}
