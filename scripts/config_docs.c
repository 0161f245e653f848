/* Prints docs/config.md from the table that the parser uses: `make docs`. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "config/config.h"
#include "config/config_keys.h"

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
    "  `tests/engine/test_golden_lora.c`, `tests/train/test_trl_rows.c`).\n"
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
    "The column *here* says what sifr does with a key:\n"
    "\n"
    "- **built**: supported. Choices that are not supported yet are named, and refused.\n"
    "- **no effect**: accepted, and changes nothing, for the reason given.\n"
    "- **later**: not supported yet. Values that leave the feature off are accepted (the default, "
    "or\n"
    "  anything in a section that is not enabled). Others are refused.\n"
    "- **refused**: DeepSpeed removed it, or raises on it. Values that leave the feature off are\n"
    "  accepted.\n"
    "- **other name**: means the key that is named.\n";

/* A paragraph, in lines of at most 100 columns. */
static void print_wrapped(const char *text) {
    enum { COLUMNS = 100 };
    for (size_t column = 0; *text;) {
        size_t word = strcspn(text, " ");
        if (column > 0) {
            bool fits = column + 1 + word <= COLUMNS;
            putchar(fits ? ' ' : '\n');
            column = fits ? column + 1 : 0;
        }
        printf("%.*s", (int)word, text);
        column += word;
        text += word + strspn(text + word, " ");
    }
    putchar('\n');
}

/* "a|b" as "a, b"; a bar would end a cell of the table. */
static void print_words(const char *words) {
    for (const char *c = words; *c; c++) {
        if (*c == '|') {
            fputs(", ", stdout);
        } else {
            putchar(*c);
        }
    }
}

static void print_type(const config_key *key) {
    static const char *const names[] = {
        [CONFIG_SECTION] = "section",  [CONFIG_BOOL] = "true or false",
        [CONFIG_INT] = "whole number", [CONFIG_BYTES] = "bytes",
        [CONFIG_NUMBER] = "number",    [CONFIG_TEXT] = "string",
        [CONFIG_CHOICE] = "",          [CONFIG_TEXTS] = "strings",
        [CONFIG_NUMBERS] = "numbers",  [CONFIG_ANY] = "any",
    };
    fputs(names[key->type], stdout);
    if (key->choices) {
        if (names[key->type][0]) fputs(": ", stdout);
        print_words(key->choices);
    }
    if (key->range) printf(" %s", key->range);
    if (key->unit[0]) printf(", %s", key->unit);
}

static void print_status(const config_key *key) {
    static const char *const names[] = {
        [CONFIG_BUILT] = "**built**", [CONFIG_NO_EFFECT] = "no effect", [CONFIG_LATER] = "later",
        [CONFIG_REMOVED] = "refused", [CONFIG_ALIAS] = "other name",
    };
    fputs(names[key->status], stdout);
    if (key->later) {
        fputs("; later: ", stdout);
        print_words(key->later);
    }
}

static void print_row(const config_key *key) {
    printf("| `%s` | ", key->path);
    print_type(key);
    if (key->fallback) {
        printf(" | `%s` | ", key->fallback);
    } else {
        printf(" | | ");
    }
    print_status(key);
    printf(" | %s", key->doc);
    if (key->alias) printf(" Means `%s`.", key->alias);
    if (key->only) {
        fputs(" For ", stdout);
        print_words(key->only);
        putchar('.');
    }
    if ((strncmp(key->path, "sifr.", 5) == 0 && !key->alias) || key->flag) {
        char flag[64];
        snprintf(flag, sizeof flag, "%s", key->flag ? key->flag : config_key_leaf(key));
        for (char *c = flag; *c; c++) {
            if (*c == '_') *c = '-';
        }
        printf(" Flag: `--%s`.", flag);
    }
    puts(" |");
}

/* Rows [from, to) are one table. */
static void print_table(size_t from, size_t to) {
    puts("\n| key | type | default | here | what it does |\n|---|---|---|---|---|");
    for (size_t i = from; i < to; i++) {
        if (config_key_at(i)->type != CONFIG_SECTION || config_key_at(i)->alias) {
            print_row(config_key_at(i));
        }
    }
}

static bool is_top_section(const config_key *key) {
    return key->type == CONFIG_SECTION && !key->alias && !strchr(key->path, '.');
}

/* Whether row `i` still belongs to the table of the section `name` ("" is the top level). */
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
            print_wrapped(key->doc);
        } else {
            puts(i == 0 ? "\n## Top level" : "\n## More keys of the top level");
        }
        size_t to = from;
        while (to < config_key_count() && is_inside(to, name)) to++;
        print_table(from, to);
        i = to;
    }
    return 0;
}
