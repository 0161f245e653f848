/* What other programs say of the chat template: which one, and its variables. */
#include <string.h>

#include "config/import/import_private.h"

static const char to_template[] = "sifr.chat_template",
                  to_variables[] = "sifr.chat_template_kwargs";
static const char folders[] = "the chat template is the model folder's";

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), size = strlen(end);
    return length > size && strcmp(text + length - size, end) == 0;
}

sifr_status import_template_path(import_state *s, const char *key, json_t *value) {
    const char *path = json_string_value(value);
    if (!import_asks(value)) return SIFR_OK;
    if (!path || !(ends_with(path, ".jinja") || ends_with(path, ".j2")))
        return import_refuse(s, key, value,
                             "a template of another tokenizer comes with its tokens, which are not "
                             "added here; save the template as a .jinja file");
    import_say_kept(s, key, value, to_template);
    return import_put(s, to_template, json_incref(value));
}

sifr_status import_template_text(import_state *s, const char *key, json_t *value) {
    const char *text = json_string_value(value);
    if (!import_asks(value)) return SIFR_OK;
    if (!text || !(strstr(text, "{{") || strstr(text, "{%"))) {
        import_say_left(s, key, value,
                        "the chat template is the model folder's; another one is "
                        "given by sifr.chat_template");
        return SIFR_OK;
    }
    import_say_kept(s, key, value, to_template);
    return import_put(s, to_template, json_incref(value));
}

sifr_status import_template_variables(import_state *s, const char *key, json_t *value) {
    if (!import_asks(value)) return SIFR_OK;
    if (!json_is_object(value)) return import_refuse(s, key, value, "an object is expected");
    import_say_kept(s, key, value, to_variables);
    return import_put(s, to_variables, json_incref(value));
}

/* --- axolotl --- */

/* The template that an object names or holds; NULL: none. */
static const char *choice_of(const json_t *object) {
    const char *name = json_string_value(json_object_get(object, "chat_template"));
    const char *text = json_string_value(json_object_get(object, "chat_template_jinja"));
    bool named = name && *name;
    if (text && *text && (!named || strcmp(name, "jinja") == 0)) return text;
    return named && strcmp(name, "tokenizer_default") != 0 ? name : NULL;
}

static bool is_templated(const json_t *set) {
    static const char type[] = "chat_template";
    const char *name = json_string_value(json_object_get(set, "type"));
    return name && strncmp(name, type, sizeof type - 1) == 0;
}

/* Whether all sets that go through a template have the same one, which becomes *out. */
static bool find_choice(const import_state *s, const char **out) {
    const json_t *sets = json_object_get(s->source, "datasets");
    const char *usual = choice_of(s->source), *first = NULL;
    bool found = false;
    for (size_t i = 0; i < json_array_size(sets); i++) {
        const json_t *set = json_array_get(sets, i);
        const char *own = choice_of(set);
        if (!is_templated(set)) continue;
        bool names = import_asks(json_object_get(set, "chat_template"));
        if (!own && !names) own = usual;
        if (found && strcmp(first ? first : "", own ? own : "") != 0) return false;
        first = own;
        found = true;
    }
    *out = found ? first : usual;
    return true;
}

sifr_status import_axolotl_template(import_state *s) {
    static const char *const keys[] = {"chat_template", "chat_template_jinja"};
    const char *choice = NULL;
    bool agree = find_choice(s, &choice), said = false;
    json_t *text = choice ? json_string(choice) : NULL;
    sifr_status status = SIFR_OK;
    if (!agree)
        status = import_refuse(s, "datasets", json_object_get(s->source, "datasets"),
                               "sources of one run have one chat template here");
    for (size_t i = 0; agree && i < 2; i++) {
        const json_t *value = json_object_get(s->source, keys[i]);
        bool taken = text && json_equal(value, text);
        if (!import_asks(value)) continue;
        said |= taken;
        if (taken)
            import_say_kept(s, keys[i], value, to_template);
        else
            import_say_idle(s, keys[i], value, text ? "another key gives it" : folders);
    }
    if (agree && text && !said) import_say_kept(s, "datasets[0].chat_template", text, to_template);
    if (agree && text && status == SIFR_OK) return import_put(s, to_template, text);
    json_decref(text);
    return status;
}
