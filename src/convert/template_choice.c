#include "convert/template_choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "text/chat_template.h"
#include "text/chat_template_given.h"
#include "text/tokenizer/tokenizer.h"

/* The first of the words that is no token, in `word`; false: all are. */
static bool find_missing(const text_tokenizer *tokenizer, const char *words, char word[64]) {
    for (size_t size; *words; words += size + (words[size] == ' ')) {
        size = strcspn(words, " ");
        snprintf(word, 64, "%.*s", (int)size, words);
        if (text_tokenizer_id(tokenizer, word) < 0) return true;
    }
    return false;
}

static sifr_status check_tokens(const char *folder, const char *words, bool allowed,
                                config_line *say, void *user, sifr_error *error) {
    text_tokenizer *tokenizer;
    char word[64], line[400];
    if (!*words) return SIFR_OK;
    BASE_TRY(text_tokenizer_load(folder, &tokenizer, error));
    bool missing = find_missing(tokenizer, words, word);
    text_tokenizer_free(tokenizer);
    if (!missing) return SIFR_OK;
    snprintf(line, sizeof line,
             "template: the tokenizer of %.200s has no token %s, which LLaMA-Factory adds to it",
             folder, word);
    if (!allowed)
        return base_fail(error, SIFR_USAGE,
                         "%s; take the folder of a model that has it, or give --allow template to "
                         "write it as several tokens",
                         line);
    say(user, line);
    return SIFR_OK;
}

/* Conversations that show how a template writes: the system's text, blanks at the edges, thoughts,
 * and whether a generation prompt follows. */
static const char talks[] =
    "[[{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", \"content\": \"b\"}],"
    " [{\"role\": \"system\", \"content\": \" s\\n\"}, {\"role\": \"user\", \"content\": \" a \"},"
    "  {\"role\": \"assistant\", \"content\": \"\\n b \\n\"},"
    "  {\"role\": \"user\", \"content\": \"c'\\\"\\n\"},"
    "  {\"role\": \"assistant\", \"content\": \"<think>\\nd\\n</think>\\n\\ne\"},"
    "  {\"role\": \"user\", \"content\": \"f\"},"
    "  {\"role\": \"assistant\", \"content\": \"<think>\\ng\\n</think>\\n\\nh\"}],"
    " [{\"role\": \"system\", \"content\": \"\"}, {\"role\": \"user\", \"content\": \"a\"},"
    "  {\"role\": \"assistant\", \"content\": \"\"}]]";

static bool renders_same(const text_chat_template *a, const text_chat_template *b,
                         const json_t *messages, bool prompt) {
    text_template_input input = {.messages = messages, .add_generation_prompt = prompt};
    text_template_output first, second;
    if (text_chat_template_render(a, &input, &first, NULL) != SIFR_OK) return false;
    bool same = text_chat_template_render(b, &input, &second, NULL) == SIFR_OK;
    bool rendered = same;
    same = same && first.size == second.size && memcmp(first.text, second.text, first.size) == 0;
    if (rendered) text_template_output_free(&second);
    text_template_output_free(&first);
    return same;
}

/* What is learned of a turn is the difference of two renderings, so each beginning of a
 * conversation counts, as a prompt or as it stands. */
static bool are_same(const text_chat_template *a, const text_chat_template *b) {
    json_t *all = json_loads(talks, 0, NULL), *talk;
    size_t i;
    bool same = all != NULL;
    json_array_foreach(all, i, talk) {
        for (size_t count = json_array_size(talk); same && count > 1; count--) {
            const json_t *last = json_array_get(talk, count - 1);
            const char *role = json_string_value(json_object_get(last, "role"));
            same = renders_same(a, b, talk, strcmp(role, "user") == 0);
            json_array_remove(talk, count - 1);
        }
    }
    json_decref(all);
    return same;
}

static bool is_folders(const char *folder, const char *text) {
    text_chat_template own, given;
    bool there;
    if (text_chat_template_exists(folder, &there, NULL) != SIFR_OK || !there) return false;
    if (text_chat_template_load(folder, NULL, false, &own, NULL) != SIFR_OK) return false;
    bool loaded = text_chat_template_load(folder, text, false, &given, NULL) == SIFR_OK;
    bool same = loaded && are_same(&own, &given);
    if (loaded) text_chat_template_free(&given);
    text_chat_template_free(&own);
    return same;
}

static bool is_allowed(const config_import_options *how, const char *key) {
    for (size_t i = 0; i < how->allow_count; i++)
        if (strcmp(how->allow[i], key) == 0) return true;
    return false;
}

/* A file may be elsewhere, but a name is one of those that are here. */
static sifr_status check_name(json_t *sifr, const char *given, bool allowed, config_line *say,
                              void *user, sifr_error *error) {
    static const char key[] = "chat_template";
    text_given_template found;
    sifr_error wrong = {0};
    char line[400];
    if (!given || strpbrk(given, "./\n")) return SIFR_OK;
    if (text_chat_template_given(given, true, &found, &wrong) == SIFR_OK) {
        free(found.text);
        return SIFR_OK;
    }
    if (!allowed)
        return base_fail(error, SIFR_USAGE, "%s; or pass --allow %s to keep the model folder's",
                         wrong.message, key);
    snprintf(line, sizeof line, "%s = \"%.60s\": left out, since it is allowed: %.250s", key, given,
             wrong.message);
    say(user, line);
    json_object_del(sifr, key);
    return SIFR_OK;
}

sifr_status convert_settle_template(const config_imported *made, const config_import_options *how,
                                    config_line *say, void *user, sifr_error *error) {
    json_t *sifr = json_object_get(made->config, "sifr");
    const char *folder = json_string_value(json_object_get(sifr, "model"));
    const char *text = json_string_value(json_object_get(sifr, "chat_template"));
    char line[400];
    BASE_TRY(check_name(sifr, text, is_allowed(how, "chat_template"), say, user, error));
    if (!made->tokens || !text || !folder) return SIFR_OK;
    if (!base_is_directory(folder)) {
        snprintf(line, sizeof line,
                 "template: %.200s is no folder here, so its tokens and its own chat template are "
                 "not known; import once more when it is there",
                 folder);
        say(user, line);
        return SIFR_OK;
    }
    BASE_TRY(check_tokens(folder, made->tokens, is_allowed(how, "template"), say, user, error));
    if (!is_folders(folder, text)) return SIFR_OK;
    json_object_del(sifr, "chat_template");
    say(user, "template: the model folder's own chat template writes the same, and stays");
    return SIFR_OK;
}
