#include "text/chat_template_given.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/heap.h"

enum { TEMPLATE_LIMIT = 4 << 20 };

static bool is_template(const char *text) {
    return strstr(text, "{{") || strstr(text, "{%");
}

static sifr_status unknown(const char *given, sifr_error *error) {
    char names[256] = "";
    size_t used = 0;
    const char *name;
    for (size_t i = 0; (name = text_chat_template_name_at(i)) && used + 40 < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", name);
    if (text_chat_template_foreign(given))
        return base_fail(error, SIFR_USAGE,
                         "chat_template %s: axolotl's template of this name is not here (here: "
                         "%s); save its text and give the file",
                         given, names);
    return base_fail(error, SIFR_USAGE,
                     "chat_template %.200s: %s; give a file with a Jinja template, or a name (%s)",
                     given, base_is_directory(given) ? "is a folder" : "no such file or name",
                     names);
}

static sifr_status take_text(const char *text, const char *where, text_given_template *out,
                             sifr_error *error) {
    out->size = strlen(text);
    snprintf(out->where, sizeof out->where, "%s", where);
    return base_copy_text(text, out->size, &out->text, error);
}

sifr_status text_chat_template_given(const char *given, bool own, text_given_template *out,
                                     sifr_error *error) {
    static const char folders[] = "tokenizer_default", fallback[] = "tokenizer_default_fallback_";
    size_t length = sizeof fallback - 1;
    *out = (text_given_template){0};
    if (!given || strcmp(given, folders) == 0) return SIFR_OK;
    if (is_template(given)) return take_text(given, "chat_template", out, error);
    bool falls = strncmp(given, fallback, length) == 0;
    if (falls && own) return SIFR_OK;
    const char *name = falls ? given + length : given;
    if (base_is_file(name)) {
        snprintf(out->where, sizeof out->where, "%s", name);
        return base_read_file(name, TEMPLATE_LIMIT, &out->text, &out->size, error);
    }
    const char *text = text_chat_template_named(name);
    return text ? take_text(text, name, out, error) : unknown(name, error);
}
