#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "cli/quickstart/quickstart.h"

enum { WIDTH = 100, PATH = 192 };

/* Keys that the plan chooses, or that follow from others: the first TOLD of them stand in every
 * config. */
enum { TOLD = 2 };
static const quickstart_note known[] = {
    {"train_micro_batch_size_per_gpu",
     "sequences that a rank computes at a time; the plan's choice: more take more memory"},
    {"gradient_accumulation_steps", "micro batches of a step, one after the other"},
    {"zero_optimization.stage",
     "what ranks divide among them: 0 nothing, 1 the optimizer's state, 2 also gradients, 3 also "
     "weights; the plan's choice (docs/zero.md)"},
    {"zero_optimization.offload_optimizer.device",
     "where the optimizer's state lies; nvme is a disk: the plan's choice (docs/offload.md)"},
    {"zero_optimization.offload_optimizer.nvme_path", "a folder on that disk"},
    {"zero_optimization.offload_param.device",
     "where weights lie; nvme is a disk: the plan's choice (docs/offload.md)"},
    {"zero_optimization.offload_param.nvme_path", "a folder on that disk"},
    {"scheduler.type", "how the rate rises at the beginning, and falls after it"},
    {"sifr.model", "the model folder, which stays as it is"},
    {"sifr.data", "what is trained on"},
    {"sifr.recompute",
     "none keeps all results of the forward pass; unit and auto compute some again, which takes "
     "less memory: the plan's choice (docs/memory.md)"},
    {"sifr.activation_memory", "what those that are kept may take: the plan's choice"},
    {"sifr.step_order", "the order of micro batches and layers: the plan's choice"},
    {"sifr.offload_gradients", "where sums of gradients lie: the plan's choice"},
    {"sifr.offload_activations", "where results of the forward pass lie: the plan's choice"},
};

/* Keys at their default in a blank config, but not in this one: a default may hang on other keys.
 */
enum { FORCED = 32 };
typedef struct forced_keys {
    char path[FORCED][PATH];
    int count;
} forced_keys;

typedef struct config_writer {
    FILE *to;
    const quickstart_choice *choice;
    const forced_keys *forced;
    bool first; /* of its object */
} config_writer;

static const char *noted(const quickstart_choice *choice, const char *path) {
    for (size_t i = 0; i < choice->note_count; i++)
        if (strcmp(choice->notes[i].path, path) == 0) return choice->notes[i].text;
    return NULL;
}

static const char *reason_of(const quickstart_choice *choice, const char *path) {
    const char *own = noted(choice, path);
    for (size_t i = 0; !own && i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].path, path) == 0) own = known[i].text;
    sifr_config_flag flag = {.size = sizeof flag};
    for (size_t i = 0; !own && sifr_config_flag_at(i, &flag); i++)
        if (strcmp(flag.path, path) == 0) own = flag.doc;
    return own;
}

/* Words in lines of comments. */
static void write_comment(FILE *to, const char *text, int indent) {
    int column = 0;
    for (const char *word = text; *word;) {
        int length = (int)strcspn(word, " \n");
        if (column && column + 1 + length > WIDTH) {
            fputc('\n', to);
            column = 0;
        }
        if (!column)
            column = fprintf(to, "%*s// %.*s", indent, "", length, word);
        else
            column += fprintf(to, " %.*s", length, word);
        word += length;
        if (*word == '\n') {
            fputc('\n', to);
            column = 0;
        }
        if (*word) word++;
    }
    if (column) fputc('\n', to);
}

static bool is_always_told(const config_writer *writer, const char *path) {
    for (size_t i = 0; i < TOLD; i++)
        if (strcmp(known[i].path, path) == 0) return true;
    for (int i = 0; i < writer->forced->count; i++)
        if (strcmp(writer->forced->path[i], path) == 0) return true;
    return false;
}

/* Beside its value in the blank config: whether there is something to say of it. */
static bool is_told(const config_writer *writer, const char *path, const json_t *value,
                    const json_t *blank) {
    const char *key;
    json_t *member;
    char inner[PATH];
    if (!json_is_object(value) || noted(writer->choice, path))
        return noted(writer->choice, path) || is_always_told(writer, path) ||
               !json_equal(value, blank);
    json_object_foreach((json_t *)(uintptr_t)value, key, member) {
        snprintf(inner, sizeof inner, "%s%s%s", path, *path ? "." : "", key);
        if (is_told(writer, inner, member, json_object_get(blank, key))) return true;
    }
    return false;
}

static sifr_status write_members(config_writer *writer, const char *path, const json_t *object,
                                 const json_t *blank, int indent, sifr_error *error);

static sifr_status write_member(config_writer *writer, const char *path, const char *key,
                                const json_t *value, const json_t *blank, int indent,
                                sifr_error *error) {
    const char *why = reason_of(writer->choice, path);
    if (!writer->first) fputs(",\n", writer->to);
    if (why) write_comment(writer->to, why, indent);
    fprintf(writer->to, "%*s\"%s\": ", indent, "", key);
    if (json_is_object(value) && !noted(writer->choice, path)) {
        fputs("{\n", writer->to);
        writer->first = true;
        BASE_TRY(write_members(writer, path, value, blank, indent + 2, error));
        fprintf(writer->to, "\n%*s}", indent, "");
    } else {
        char *text = base_json_text(value);
        if (!text) return base_fail_alloc(error, PATH);
        fputs(text, writer->to);
        free(text);
    }
    writer->first = false;
    return SIFR_OK;
}

static sifr_status write_members(config_writer *writer, const char *path, const json_t *object,
                                 const json_t *blank, int indent, sifr_error *error) {
    const char *key;
    json_t *value;
    char inner[PATH];
    json_object_foreach((json_t *)(uintptr_t)object, key, value) {
        const json_t *other = json_object_get(blank, key);
        snprintf(inner, sizeof inner, "%s%s%s", path, *path ? "." : "", key);
        if (!is_told(writer, inner, value, other)) continue;
        BASE_TRY(write_member(writer, inner, key, value, other, indent, error));
    }
    return SIFR_OK;
}

/* --- the whole --- */

static sifr_status read_effective(const sifr_config *config, json_t **out, sifr_error *error) {
    char *text;
    BASE_TRY(sifr_config_json(config, &text, error));
    sifr_status status = base_json_parse(text, strlen(text), "the config", out, error);
    sifr_text_free(text);
    return status;
}

/* The effective config of a text, or of nothing. */
static sifr_status effective_of(const char *text, int64_t ranks, json_t **out, sifr_error *error) {
    sifr_config *config;
    BASE_TRY(sifr_config_create(&config, error));
    sifr_status status = SIFR_OK;
    if (text) status = sifr_config_parse(config, text, strlen(text), "the config made", error);
    if (status == SIFR_OK) status = sifr_config_resolve(config, ranks, error);
    if (status == SIFR_OK) status = read_effective(config, out, error);
    sifr_config_free(config);
    return status;
}

static sifr_status make_text(const quickstart_choice *choice, const forced_keys *forced,
                             const json_t *effective, const json_t *blank, const char *head,
                             char **text, size_t *size, sifr_error *error) {
    config_writer writer = {
        .to = open_memstream(text, size), .choice = choice, .forced = forced, .first = true};
    if (!writer.to) return base_fail_alloc(error, PATH);
    write_comment(writer.to, head, 0);
    fputs("{\n", writer.to);
    sifr_status status = write_members(&writer, "", effective, blank, 2, error);
    fputs("\n}\n", writer.to);
    if (fclose(writer.to) != 0 && status == SIFR_OK) status = base_fail_alloc(error, PATH);
    return status;
}

/* The first key that is another, in out; false: none is. */
static bool differs(const json_t *a, const json_t *b, const char *path, char out[PATH]) {
    const char *key;
    json_t *value;
    char inner[PATH];
    if (json_equal(a, b)) return false;
    if (json_is_object(a) && json_is_object(b)) {
        json_object_foreach((json_t *)(uintptr_t)a, key, value) {
            snprintf(inner, sizeof inner, "%s%s%s", path, *path ? "." : "", key);
            if (differs(value, json_object_get(b, key), inner, out)) return true;
        }
    }
    snprintf(out, PATH, "%s", path);
    return true;
}

/* A config that says less than the plan would be another run. *same: it is not; else a key is
 * forced. */
static sifr_status check_same(const char *text, int64_t ranks, const json_t *effective,
                              forced_keys *forced, bool *same, sifr_error *error) {
    json_t *again;
    char key[PATH];
    BASE_TRY(effective_of(text, ranks, &again, error));
    *same = !differs(effective, again, "", key);
    json_decref(again);
    if (*same) return SIFR_OK;
    bool is_forced = forced->count == FORCED;
    for (int i = 0; i < forced->count; i++) is_forced |= strcmp(forced->path[i], key) == 0;
    if (!is_forced) memcpy(forced->path[forced->count++], key, sizeof key);
    if (!is_forced) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "the config made is not the one that was planned (%s); this is a bug in sifr, "
                     "please report it",
                     key);
}

static sifr_status make_whole(const quickstart_choice *choice, const json_t *effective,
                              const json_t *blank, int64_t ranks, const char *head, char **text,
                              size_t *size, sifr_error *error) {
    forced_keys forced = {0};
    bool same = false;
    while (!same) {
        free(*text);
        *text = NULL;
        BASE_TRY(make_text(choice, &forced, effective, blank, head, text, size, error));
        BASE_TRY(check_same(*text, ranks, effective, &forced, &same, error));
    }
    return SIFR_OK;
}

/* What was there may have been edited. */
static sifr_status put_aside(const char *path, sifr_error *error) {
    enum { MOST = 1000 };
    char old[BASE_PATH_LENGTH], shown[QUICKSTART_SHOWN], kept[QUICKSTART_SHOWN];
    struct stat about;
    int number = 1;
    if (!base_is_file(path)) return SIFR_OK;
    do {
        char ending[16] = "";
        if (number > 1) snprintf(ending, sizeof ending, "-%d", number);
        if (snprintf(old, sizeof old, "%s.old%s", path, ending) >= (int)sizeof old)
            return base_fail(error, SIFR_USAGE, "%.80s…: the path is too long", path);
    } while (lstat(old, &about) == 0 && number++ < MOST);
    if (number > MOST)
        return base_fail(error, SIFR_USAGE,
                         "%s: %d earlier ones are kept beside it; remove some, or give another "
                         "--output",
                         path, (int)MOST);
    BASE_TRY(base_copy_file(path, old, error));
    printf("%-12s %s was there: it is kept as %s\n", "config", quickstart_shown(path, shown),
           quickstart_shown(old, kept));
    return SIFR_OK;
}

sifr_status quickstart_write(const quickstart_choice *choice, const sifr_config *planned,
                             int64_t ranks, const char *head, const char *path, sifr_error *error) {
    json_t *effective = NULL, *blank = NULL;
    char *text = NULL;
    size_t size = 0;
    sifr_status status;
    BASE_TRY_GOTO(status, read_effective(planned, &effective, error), done);
    BASE_TRY_GOTO(status, effective_of(NULL, ranks, &blank, error), done);
    BASE_TRY_GOTO(status, make_whole(choice, effective, blank, ranks, head, &text, &size, error),
                  done);
    BASE_TRY_GOTO(status, put_aside(path, error), done);
    status = base_write_file(path, text, size, error);
done:
    free(text);
    json_decref(effective);
    json_decref(blank);
    return status;
}
