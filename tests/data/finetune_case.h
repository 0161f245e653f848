/* Rows to fine-tune on, of a small tokenizer in the scratch folder. Included by one test file each.
 */
#ifndef TRAIN_FINETUNE_CASE_H
#define TRAIN_FINETUNE_CASE_H

#include "support/scratch.h"

#include "base/heap.h"
#include "data/chat/chat_rows.h"
#include "text/tokenizer/tokenizer.h"

enum { LENGTH = 64, VOCAB = 400, EOS = 1 };

static char said[8192];

static void keep_line(void *user, sifr_log_level level, const char *line) {
    (void)user, (void)level;
    strncat(said, line, sizeof said - strlen(said) - 2);
    strcat(said, "\n");
}

static const sifr_log log_lines = {keep_line, NULL};

static void copy_golden(const char *name, const char *as) {
    char path[BASE_PATH_LENGTH];
    const char *source = getenv("SOURCE");
    sifr_error error = {0};
    snprintf(path, sizeof path, "%s/tests/golden/finetune/%s", source ? source : ".", name);
    if (base_copy_file(path, scratch_path(as), &error) != SIFR_OK) fail_msg("%s", error.message);
}

/* A folder with a tokenizer and, unless it is NULL, a template. */
static void set_template(const char *template) {
    copy_golden("byte.json", "tokenizer.json");
    scratch_text("tokenizer_config.json", "{\"bos_token\": \"<s>\", \"eos_token\": \"</s>\"}");
    if (template) scratch_text("chat_template.jinja", template);
}

static const char plain_template[] =
    "{% for m in messages %}{% if m.role == 'robot' %}{{ raise_exception('no robots') }}{% endif %}"
    "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

static data_chat_options options_for(const data_chat_source *sources, size_t count) {
    return (data_chat_options){.sources = sources,
                               .count = count,
                               .tokenizer = scratch,
                               .vocab_size = VOCAB,
                               .length = LENGTH,
                               .separator = EOS,
                               .special = true,
                               .threads = 2,
                               .log = &log_lines};
}

static data_chat_source source_of(const char *path) {
    return (data_chat_source){.path = path, .weight = 1};
}

static data_chat *open_rows(const data_chat_options *options) {
    data_chat *chat;
    sifr_error error = {0};
    said[0] = 0;
    if (data_chat_open(options, &chat, &error) != SIFR_OK) fail_msg("%s", error.message);
    return chat;
}

#endif
