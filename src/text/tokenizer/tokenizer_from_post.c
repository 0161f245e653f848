/* The post-processor of each class: what goes around a text. */
#include <string.h>

#include "text/tokenizer/tokenizer_files.h"

typedef struct item {
    const char *token; /* NULL: the text itself */
    int type_id;
} item;

/* One form of a template; the texts in it are A, then B. */
static json_t *write_form(const item *items, size_t count) {
    json_t *list = json_array();
    const char *text = "A";
    for (size_t i = 0; i < count; i++) {
        const char *kind = items[i].token ? "SpecialToken" : "Sequence";
        const char *id = items[i].token ? items[i].token : text;
        json_array_append_new(
            list, json_pack("{s:{s:s, s:i}}", kind, "id", id, "type_id", items[i].type_id));
        if (!items[i].token) text = "B";
    }
    return list;
}

static sifr_status set_template(text_files *files, const item *single, size_t single_count,
                                const item *pair, size_t pair_count, sifr_error *error) {
    json_t *special = json_object();
    for (size_t i = 0; i < pair_count; i++) {
        const char *token = pair[i].token;
        if (!token) continue;
        int64_t id = text_files_id(files, token);
        if (id < 0) {
            json_decref(special);
            return base_fail(error, SIFR_USAGE, "%s: the special token \"%.60s\" is not in it",
                             files->vocabulary_path, token);
        }
        json_object_set_new(
            special, token,
            json_pack("{s:s, s:[I], s:[s]}", "id", token, "ids", (json_int_t)id, "tokens", token));
    }
    json_t *value = json_pack("{s:s, s:o, s:o, s:o}", "type", "TemplateProcessing", "single",
                              write_form(single, single_count), "pair",
                              write_form(pair, pair_count), "special_tokens", special);
    if (!value || json_object_set_new(files->root, "post_processor", value))
        return base_fail_alloc(error, 256);
    return SIFR_OK;
}

/* bos and eos around each text, where the settings ask for them. */
static sifr_status set_around(text_files *files, sifr_error *error) {
    const char *bos = text_files_special(files, "bos_token");
    const char *eos = text_files_special(files, "eos_token");
    item items[6];
    size_t count = 0, single = 0;
    if (!text_files_flag(files, "add_bos_token", false)) bos = NULL;
    if (!text_files_flag(files, "add_eos_token", false)) eos = NULL;
    for (int i = 0; i < 2; i++) {
        if (bos) items[count++] = (item){bos, i};
        items[count++] = (item){NULL, i};
        if (eos) items[count++] = (item){eos, i};
        if (i == 0) single = count;
    }
    return set_template(files, items, single, items, count, error);
}

/* [CLS] A [SEP] B [SEP] */
static sifr_status set_bert(text_files *files, sifr_error *error) {
    const char *cls = text_files_special(files, "cls_token");
    const char *sep = text_files_special(files, "sep_token");
    if (!cls || !sep)
        return base_fail(error, SIFR_USAGE, "%s: a %s needs cls_token and sep_token",
                         files->config_path, files->class->name);
    const item items[] = {{cls, 0}, {NULL, 0}, {sep, 0}, {NULL, 1}, {sep, 1}};
    return set_template(files, items, 3, items, 5, error);
}

static sifr_status set_roberta(text_files *files, sifr_error *error) {
    const char *cls = text_files_special(files, "cls_token");
    const char *sep = text_files_special(files, "sep_token");
    if (!cls || !sep || text_files_id(files, cls) < 0 || text_files_id(files, sep) < 0)
        return base_fail(error, SIFR_USAGE, "%s: a %s needs cls_token and sep_token",
                         files->config_path, files->class->name);
    json_t *value = json_pack("{s:s, s:[s, I], s:[s, I], s:b, s:b}", "type", "RobertaProcessing",
                              "sep", sep, (json_int_t)text_files_id(files, sep), "cls", cls,
                              (json_int_t)text_files_id(files, cls), "trim_offsets",
                              text_files_flag(files, "trim_offsets", true), "add_prefix_space",
                              text_files_flag(files, "add_prefix_space", false));
    if (!value || json_object_set_new(files->root, "post_processor", value))
        return base_fail_alloc(error, 256);
    return SIFR_OK;
}

sifr_status text_files_post(text_files *files, sifr_error *error) {
    const char *bos = text_files_special(files, "bos_token");
    const char *eos = text_files_special(files, "eos_token");
    const item xlm_roberta[] = {{bos, 0}, {NULL, 0}, {eos, 0}, {eos, 0}, {NULL, 0}, {eos, 0}};
    switch (files->class->kind) {
    case TEXT_CLASS_T5: {
        const item around[] = {{NULL, 0}, {"</s>", 0}, {NULL, 0}, {"</s>", 0}};
        return set_template(files, around, 2, around, 4, error);
    }
    case TEXT_CLASS_XLM_ROBERTA:
        if (bos && eos) return set_template(files, xlm_roberta, 3, xlm_roberta, 6, error);
        break;
    case TEXT_CLASS_DEBERTA_V2:
    case TEXT_CLASS_BERT:
        return set_bert(files, error);
    case TEXT_CLASS_ROBERTA:
        return set_roberta(files, error);
    default:
        break;
    }
    bool asked = json_object_get(files->settings, "add_bos_token") ||
                 json_object_get(files->settings, "add_eos_token");
    if (asked || json_is_null(json_object_get(files->root, "post_processor")) ||
        files->class->kind == TEXT_CLASS_GPT_NEOX)
        return set_around(files, error);
    return SIFR_OK;
}
