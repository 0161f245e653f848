/* LLaMA-Factory's `template: NAME`, which stands in place of the tokenizer's chat template: as a
 * template that writes the same text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "config/config_private.h"
#include "config/import/import_private.h"

/* How its classes join the parts. */
typedef enum factory_class {
    PLAIN,   /* Template */
    IN_USER, /* Llama2Template: the system's text is part of the first message */
    THINKS   /* ReasoningTemplate: an answer without thoughts gets empty ones */
} factory_class;

/* In the parts \1 stands for the BOS token, \2 for the EOS token, \3 for what is said. */
typedef struct factory_template {
    const char *names; /* "a|b": those that write the same */
    factory_class class;
    const char *prefix, *system, *user, *assistant;
    const char *usual;       /* the system's text where there is none */
    const char *thoughts[2]; /* what encloses them */
    const char *tokens;      /* which LLaMA-Factory adds where the tokenizer has them not */
} factory_template;

#define TEMPLATE(names_, class_, prefix_, system_, user_, assistant_, usual_, open_, close_,       \
                 tokens_)                                                                          \
    {names_, class_, prefix_, system_, user_, assistant_, usual_, {open_, close_}, tokens_},
#define OTHERS(names_)
static const factory_template templates[] = {
#include "config/import/import_factory_templates.inc"
};
#undef TEMPLATE
#undef OTHERS
#define TEMPLATE(...)
#define OTHERS(names_) names_
static const char others[] =
#include "config/import/import_factory_templates.inc"
    ;
#undef TEMPLATE
#undef OTHERS

static const char key_of_it[] = "template", to_template[] = "sifr.chat_template";

static const factory_template *find(const char *name) {
    for (size_t i = 0; name && i < sizeof templates / sizeof *templates; i++)
        if (config_key_has_word(templates[i].names, name, NULL, NULL)) return &templates[i];
    return NULL;
}

/* --- the text --- */

/* What becomes of an answer that has no thoughts, and of the thoughts of one. */
typedef enum factory_thoughts { ADDED, KEPT, TAKEN_OUT } factory_thoughts;

typedef struct factory_way {
    const char *usual;                /* the system's text where a row has none */
    bool thinks;                      /* enable_thinking: empty thoughts are learned */
    factory_thoughts history, answer; /* of the turns before the last, and of the last */
} factory_way;

/* A text that grows; without memory it stays as it is, and `failed` says so. */
typedef struct factory_text {
    char *text;
    size_t size, capacity;
    bool failed;
} factory_text;

static void add(factory_text *t, const char *text, size_t size) {
    if (t->failed || base_grow(&t->text, &t->capacity, t->size + size + 1, 1, NULL) != SIFR_OK) {
        t->failed = true;
        return;
    }
    memcpy(t->text + t->size, text, size);
    t->size += size;
    t->text[t->size] = '\0';
}

static void put(factory_text *t, const char *text) {
    add(t, text, strlen(text));
}

/* As a string of the template's language. */
static void put_string(factory_text *t, const char *text, size_t size) {
    put(t, "'");
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        if (c == '\'' || c == '\\') put(t, "\\");
        if (c == '\n')
            put(t, "\\n");
        else
            add(t, &c, 1);
    }
    put(t, "'");
}

/* {{ }} of each of a part's pieces; `said` is the expression for \3. */
static void put_part(factory_text *t, const char *part, const char *said) {
    while (*part) {
        size_t size = strcspn(part, "\1\2\3");
        put(t, "{{ ");
        if (size)
            put_string(t, part, size);
        else
            put(t, *part == '\1' ? "bos_token" : *part == '\2' ? "eos_token" : said);
        put(t, " }}");
        part += size ? size : 1;
    }
}

static void put_system(factory_text *t, const factory_template *f, const char *usual) {
    put(t, "{% if messages[0]['role'] == 'system' %}{% set system = messages[0]['content'] %}"
           "{% set turns = messages[1:] %}{% else %}{% set system = '' %}"
           "{% set turns = messages %}{% endif %}");
    if (*usual) {
        put(t, "{% if not system %}{% set system = ");
        put_string(t, usual, strlen(usual));
        put(t, " %}{% endif %}");
    }
    put_part(t, f->prefix, "");
    if (f->class == IN_USER) return;
    put(t, "{% if system %}");
    put_part(t, f->system, "system");
    put(t, "{% endif %}");
}

/* Thoughts as LLaMA-Factory's regular expression takes them out. */
static void put_taken_out(factory_text *t, const factory_template *f) {
    put(t, "{% set parts = namespace(text='', open=false) %}{% for part in content.split(");
    put_string(t, f->thoughts[0], strlen(f->thoughts[0]));
    put(t, ") %}{% if loop.first %}{% set parts.text = part %}{% elif ");
    put_string(t, f->thoughts[1], strlen(f->thoughts[1]));
    put(t, " in part %}{% set rest = part.split(");
    put_string(t, f->thoughts[1], strlen(f->thoughts[1]));
    put(t, ") %}{% set parts.text = parts.text + rest[1:] | join(");
    put_string(t, f->thoughts[1], strlen(f->thoughts[1]));
    put(t, ") %}{% else %}{% set parts.text = parts.text + ");
    put_string(t, f->thoughts[0], strlen(f->thoughts[0]));
    put(t, " + part %}{% endif %}{% endfor %}{% set content = parts.text.lstrip('\\n') %}");
}

/* Without the blanks around it, as LLaMA-Factory looks for it. */
static void put_stripped(factory_text *t, const char *text) {
    size_t size = strlen(text);
    while (size && strchr(" \n", text[size - 1])) size--;
    while (size && strchr(" \n", *text)) text++, size--;
    put_string(t, text, size);
}

static void put_empty_thoughts(factory_text *t, const factory_template *f) {
    put(t, "{{ ");
    put_string(t, f->thoughts[0], strlen(f->thoughts[0]));
    put(t, " + ");
    put_string(t, f->thoughts[1], strlen(f->thoughts[1]));
    put(t, " }}");
}

static void put_thoughts(factory_text *t, const factory_template *f, const factory_way *way,
                         factory_thoughts what) {
    if (what == TAKEN_OUT || !way->thinks) put_taken_out(t, f);
    if (what != ADDED) return;
    put(t, "{% if not (");
    put_stripped(t, f->thoughts[0]);
    put(t, " in content or ");
    put_stripped(t, f->thoughts[1]);
    put(t, " in content) %}");
    put_empty_thoughts(t, f);
    put(t, "{% endif %}");
}

static void put_answer(factory_text *t, const factory_template *f, const factory_way *way) {
    put(t, "{% set content = message['content'] %}");
    if (f->class == THINKS && way->history == way->answer) {
        put_thoughts(t, f, way, way->answer);
    } else if (f->class == THINKS) {
        put(t, "{% if loop.last %}");
        put_thoughts(t, f, way, way->answer);
        put(t, "{% else %}");
        put_thoughts(t, f, way, way->history);
        put(t, "{% endif %}");
    }
    put_part(t, f->assistant, "content");
}

static void put_turns(factory_text *t, const factory_template *f, const factory_way *way) {
    put(t, "{% for message in turns %}"
           "{% if message['role'] != ('user', 'assistant')[loop.index0 % 2] %}"
           "{{ raise_exception('LLaMA-Factory leaves out rows in which user and assistant do not "
           "take turns, and calls of tools have no place in this text') }}{% endif %}"
           "{% if message['role'] == 'user' %}");
    if (f->class == IN_USER) {
        put(t, "{% set content = message['content'] %}{% if loop.first and system %}"
               "{% set content = ");
        const char *said = strchr(f->system, '\3');
        put_string(t, f->system, said ? (size_t)(said - f->system) : 0);
        put(t, " + system + ");
        put_string(t, said ? said + 1 : "", said ? strlen(said + 1) : 0);
        put(t, " + content %}{% endif %}");
        put_part(t, f->user, "content");
    } else {
        put_part(t, f->user, "message['content']");
    }
    put(t, "{% else %}");
    put_answer(t, f, way);
    put(t, "{% endif %}{% endfor %}");
    if (f->class != THINKS || way->thinks) return;
    put(t, "{% if add_generation_prompt %}");
    put_empty_thoughts(t, f);
    put(t, "{% endif %}");
}

static json_t *write_text(const factory_template *f, const factory_way *way) {
    factory_text text = {0};
    put_system(&text, f, way->usual);
    put_turns(&text, f, way);
    json_t *out = text.failed ? NULL : json_stringn(text.text, text.size);
    free(text.text);
    return out;
}

/* --- the keys --- */

static const json_t *given(const import_state *s, const char *key) {
    return json_object_get(s->source, key);
}

static const char *stage_of(const import_state *s) {
    const char *stage = json_string_value(given(s, "stage"));
    return stage ? stage : "sft";
}

/* The template that is named, where rows go through one. */
static const factory_template *named(const import_state *s) {
    if (s->kind != &import_factory || strcmp(stage_of(s), "pt") == 0) return NULL;
    return find(json_string_value(given(s, key_of_it)));
}

/* Of a conversation LLaMA-Factory learns all turns or the last one, of a preference the last. */
static factory_way way_of(const import_state *s, const factory_template *f) {
    const char *usual = json_string_value(given(s, "default_system"));
    bool keeps = json_is_true(given(s, "preserve_thinking"));
    bool last = json_is_true(given(s, "mask_history")), pairs = strcmp(stage_of(s), "dpo") == 0;
    return (factory_way){.usual = usual ? usual : f->usual,
                         .thinks = !json_is_false(given(s, "enable_thinking")),
                         .answer = ADDED,
                         .history = pairs            ? (keeps ? KEPT : TAKEN_OUT)
                                    : last && !keeps ? TAKEN_OUT
                                                     : ADDED};
}

static sifr_status refuse_name(import_state *s, const char *key, const json_t *value) {
    const char *name = json_string_value(value);
    bool known = name && config_key_has_word(others, name, NULL, NULL);
    return import_refuse(
        s, key, value,
        known ? "the labels or tokens that it makes are not those of a text; --allow template "
                "trains with the model folder's chat template, or the one of sifr.chat_template"
              : "LLaMA-Factory 0.9.5 has no template of this name; --allow template trains with "
                "the model folder's chat template, or the one of sifr.chat_template");
}

sifr_status import_factory_template(import_state *s, const char *key, json_t *value) {
    char where[200];
    if (s->kind != &import_factory) {
        if (import_asks(value))
            import_say_left(s, key, value,
                            "the chat template is the model folder's; another one is given by "
                            "sifr.chat_template");
        return SIFR_OK;
    }
    if (!import_is_given(value)) return SIFR_OK;
    if (strcmp(stage_of(s), "pt") == 0) {
        import_say_idle(s, key, value, "texts go through no chat template");
        return SIFR_OK;
    }
    const factory_template *f = find(json_string_value(value));
    if (!f) return refuse_name(s, key, value);
    const json_t *thinking = given(s, "enable_thinking");
    if (f->class == THINKS && json_is_null(thinking)) /* which the walk passes over */
        return import_refuse(s, "enable_thinking", thinking,
                             "empty thoughts are learned (true) or not (false)");
    factory_way way = way_of(s, f);
    snprintf(where, sizeof where, "%s, the text of %s%s%.100s", to_template,
             import_version(s->kind), *f->tokens ? ", which has the tokens " : "", f->tokens);
    import_say_kept(s, key, value, where);
    s->tokens = f->tokens;
    return import_put(s, to_template, write_text(f, &way));
}

sifr_status import_thinking(import_state *s, const char *key, json_t *value) {
    const factory_template *f = named(s);
    if (!value || json_is_null(value)) return SIFR_OK;
    if (!json_is_boolean(value))
        return import_refuse(s, key, value, "true, false or null is expected");
    if (f && f->class == THINKS)
        import_say_kept(s, key, value, to_template);
    else if (f)
        import_say_idle(s, key, value, "the template has no thoughts");
    if (f) return SIFR_OK;
    import_say_kept(s, key, value, "sifr.chat_template_kwargs.enable_thinking");
    return import_put(s, "sifr.chat_template_kwargs", json_pack("{s:O}", "enable_thinking", value));
}

sifr_status import_factory_system(import_state *s, const char *key, json_t *value) {
    if (!import_is_given(value)) return SIFR_OK;
    if (!named(s) || !json_is_string(value))
        return import_refuse(s, key, value, "the chat template is the model folder's");
    import_say_kept(s, key, value, to_template);
    return SIFR_OK;
}

sifr_status import_factory_preserve(import_state *s, const char *key, json_t *value) {
    const factory_template *f = named(s);
    if (!import_asks(value)) return SIFR_OK;
    if (!f && !import_asks(given(s, key_of_it)))
        return import_refuse(s, key, value, "the chat template is the model folder's");
    if (f && f->class == THINKS)
        import_say_kept(s, key, value, to_template);
    else
        import_say_idle(s, key, value, "the template has no thoughts");
    return SIFR_OK;
}
