/* axolotl's datasets: files of text, or rows by the types that axolotl names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "config/config_private.h"
#include "config/import/import_private.h"

/* --- the texts of its own types --- */

#define WITH_INPUT                                                                                 \
    "Below is an instruction that describes a task, paired with an input that provides further "   \
    "context. Write a response that appropriately completes the request."
#define ALONE                                                                                      \
    "Below is an instruction that describes a task. Write a response that appropriately "          \
    "completes the request."
#define FROM_USER                                                                                  \
    "Below is an instruction from a USER that describes a task. The ASSISTANT writes a response "  \
    "that appropriately and concisely completes the request.\n\n"
#define FROM_USER_WITH_INPUT                                                                       \
    "Below is an instruction from a USER that describes a task, paired with an input that "        \
    "provides further context. The ASSISTANT writes a response that concisely and appropriately "  \
    "completes the request.\n\n"
#define INSTRUCT_INPUT "### Instruction:\n{instruction}\n\n### Input:\n{input}\n\n### Response:\n"
#define INSTRUCT "### Instruction:\n{instruction}\n\n### Response:\n"
#define CHAT_INPUT "USER: {instruction}\n{input}\nASSISTANT:"
#define CHAT "USER: {instruction}\nASSISTANT:"
#define CHATML_INPUT "<|im_start|>user\n{instruction}\n{input}<|im_end|>\n<|im_start|>assistant\n"
#define CHATML "<|im_start|>user\n{instruction}<|im_end|>\n<|im_start|>assistant\n"
#define SUMMARIZE "USER: Summarize the following article as a TL;DR.\n{instruction}\n"
#define CONTEXT                                                                                    \
    "SYSTEM: Use the following contextual information to concisely answer the question.\n\n"       \
    "USER: {input}\n===\n{instruction}\nASSISTANT:"

#define OWN_WORDS "its answers begin with words of axolotl's own, which are learned there"
#define CHOICES "its questions have lists of choices"
#define SEGMENTS "rows of segments that are learned or not have no form here"
#define TOKENS "it writes tokens of its own around turns; write its text into the rows"
#define TEMPLATE "it writes turns without the model's chat template; give rows of messages"

typedef struct axolotl_type {
    const char *name;
    const char *form;      /* here; NULL: none */
    const char *fields[3]; /* of instruction, input and output in the files; NULL: the same */
    const char *turn;      /* of alpaca: its text */
    const char *no_input, *system;
    const char *field_system, *why; /* why there is no form */
} axolotl_type;

static const axolotl_type types[] = {
    {.name = "chat_template", .form = "messages"},
    {.name = "sharegpt", .form = "sharegpt"},
    {.name = "completion", .form = "text"},
    {.name = "alpaca",
     .form = "alpaca",
     .turn = WITH_INPUT "\n\n" INSTRUCT_INPUT,
     .no_input = ALONE "\n\n" INSTRUCT},
    {.name = "alpaca:chat",
     .form = "alpaca",
     .turn = "SYSTEM: " WITH_INPUT "\n" CHAT_INPUT,
     .no_input = "SYSTEM: " ALONE "\n" CHAT},
    {.name = "alpaca:chatml",
     .form = "alpaca",
     .turn = "<|im_start|>system\n" WITH_INPUT "<|im_end|>\n" CHATML_INPUT,
     .no_input = "<|im_start|>system\n" ALONE "<|im_end|>\n" CHATML},
    {.name = "alpaca_chat.load_concise",
     .form = "alpaca",
     .turn = "SYSTEM: " FROM_USER_WITH_INPUT "\n" CHAT_INPUT,
     .no_input = "SYSTEM: " FROM_USER "\n" CHAT},
    {.name = "alpaca_chat.load_qa",
     .form = "alpaca",
     .fields = {"question", NULL, "answer"},
     .turn = "SYSTEM: " FROM_USER "\n" CHAT},
    {.name = "alpaca_chat.load_camel_ai",
     .form = "alpaca",
     .fields = {"message_1", NULL, "message_2"},
     .turn = "SYSTEM: " FROM_USER "\n" CHAT},
    {.name = "alpaca_chat.load_no_prompt", .form = "alpaca", .turn = CHAT_INPUT, .no_input = CHAT},
    {.name = "alpaca_instruct.load_no_prompt",
     .form = "alpaca",
     .turn = INSTRUCT_INPUT,
     .no_input = INSTRUCT},
    {.name = "alpaca_w_system",
     .form = "alpaca",
     .turn = CHAT_INPUT,
     .no_input = CHAT,
     .system = "SYSTEM: {system}\n"},
    {.name = "alpaca_w_system.load_instruct",
     .form = "alpaca",
     .turn = INSTRUCT_INPUT,
     .no_input = INSTRUCT,
     .system = "{system}\n\n"},
    {.name = "alpaca_w_system.load_open_orca",
     .form = "alpaca",
     .fields = {"question", NULL, "response"},
     .field_system = "system_prompt",
     .turn = "### Human:\n{instruction}\n### Assistant:\n",
     .system = "### System:\n{system}\n"},
    {.name = "alpaca_w_system.load_open_orca_chatml",
     .form = "alpaca",
     .fields = {"question", NULL, "response"},
     .field_system = "system_prompt",
     .turn = CHATML,
     .system = "<|im_start|>system\n{system}<|im_end|>\n"},
    {.name = "gpteacher",
     .form = "alpaca",
     .fields = {NULL, NULL, "response"},
     .turn = WITH_INPUT "\n\n" INSTRUCT_INPUT,
     .no_input = ALONE "\n\n" INSTRUCT},
    {.name = "oasst",
     .form = "alpaca",
     .fields = {"INSTRUCTION", NULL, "RESPONSE"},
     .turn = ALONE "\n\n" INSTRUCT},
    {.name = "summarizetldr",
     .form = "alpaca",
     .fields = {"article", NULL, "summary"},
     .turn = SUMMARIZE "ASSISTANT:"},
    {.name = "context_qa",
     .form = "alpaca",
     .fields = {"question", "article", "answer"},
     .turn = CONTEXT},
    {.name = "context_qa.load_v2", .why = OWN_WORDS},
    {.name = "context_qa.load_404", .why = "its answer is one sentence of axolotl's own"},
    {.name = "jeopardy", .why = OWN_WORDS},
    {.name = "explainchoice", .why = CHOICES},
    {.name = "concisechoice", .why = CHOICES},
    {.name = "reflection", .why = "its answers are made of three fields"},
    {.name = "input_output", .why = SEGMENTS},
    {.name = "metharme", .why = TOKENS},
    {.name = "pygmalion", .why = TOKENS},
    {.name = "llama2_chat", .why = TEMPLATE},
    {.name = "orcamini", .why = TEMPLATE},
    {.name = "stepwise_supervised", .why = "reward models are not supported yet"},
};

/* Other names of these types: with the loader's usual function, or a style without effect. */
static const char *const same[][2] = {{"sharegpt:chat", "sharegpt"},
                                      {"alpaca:instruct", "alpaca"},
                                      {"alpaca_instruct", "alpaca"},
                                      {"alpaca_chat", "alpaca:chat"},
                                      {"alpaca_w_system.load_chat", "alpaca_w_system"}};

/* The row of a type, without ".load", which is the usual function; NULL: unknown here. */
static const axolotl_type *find_type(const char *given) {
    char name[64];
    size_t length = given ? strlen(given) : sizeof name;
    if (length >= sizeof name) return NULL;
    memcpy(name, given, length + 1);
    if (length > 5 && strcmp(name + length - 5, ".load") == 0) name[length - 5] = '\0';
    const char *wanted = name;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (strcmp(name, same[i][0]) == 0) wanted = same[i][1];
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, wanted) == 0) return &types[i];
    return NULL;
}

/* --- a set --- */

/* A set as a source of sifr.dataset, or why there is none. */
typedef struct axolotl_rows {
    json_t *source, *fields;
    const char *why;
} axolotl_rows;

static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text && *text ? text : NULL;
}

static void put(json_t *object, const char *key, const char *text) {
    if (text) json_object_set_new(object, key, json_string(text));
}

/* A field whose name in the file is another one. */
static void put_field(axolotl_rows *rows, const char *here, const char *there) {
    if (there && strcmp(here, there) != 0) put(rows->fields, here, there);
}

static void put_type(axolotl_rows *rows, const char *form) {
    put(rows->source, "type", form);
}

/* --- what axolotl does not read --- */

/* What rows of a form would have read here, or be refused for, unless axolotl's type has it. */
static const char *const beside_alpaca[] = {
    "input", "context", "system", "system_prompt", "history", "tools", "label", "kto_tag", NULL};
static const char *const beside_messages[] = {"system", "system_prompt", "tools", "functions",
                                              "label",  "kto_tag",       NULL};
static const char *const beside_preference[] = {"system",      "input",         "tools",
                                                "instruction", "question",      "context",
                                                "history",     "system_prompt", NULL};
/* Of preferences in turns, whose prompt is in them. */
static const char *const beside_answers[] = {
    "prompt",      "messages", "conversations", "conversation", "system",        "input", "tools",
    "instruction", "question", "context",       "history",      "system_prompt", NULL};
static const char *const beside_text[] = {"label", "kto_tag", NULL};

/* `reads`: what of a form's own fields axolotl's type reads, by their names here. */
static void put_ignored(axolotl_rows *rows, const char *const *names, const char *const *reads) {
    import_put_ignored(rows->source, rows->fields, names, reads);
}

/* Names of the members of a message: those of messages, or ShareGPT's. */
static const char *messages_form(const json_t *set, const char **why) {
    const json_t *names = json_object_get(set, "message_property_mappings");
    const char *list = text_of(set, "field_messages");
    const char *role = text_of(names, "role"), *content = text_of(names, "content");
    if (!role) role = text_of(set, "message_field_role");
    if (!content) content = text_of(set, "message_field_content");
    bool turns = list && strcmp(list, "conversations") == 0;
    if (!role && !content) return turns ? "sharegpt" : "messages";
    if ((!role || strcmp(role, "role") == 0) && (!content || strcmp(content, "content") == 0))
        return "messages";
    if (role && content && strcmp(role, "from") == 0 && strcmp(content, "value") == 0)
        return "sharegpt";
    *why = "messages here have role and content, or from and value";
    return NULL;
}

static void read_messages(const json_t *set, axolotl_rows *rows) {
    const char *form = messages_form(set, &rows->why), *list = text_of(set, "field_messages");
    if (!form) return;
    bool turns = strcmp(form, "sharegpt") == 0;
    put_type(rows, form);
    put_field(rows, turns ? "conversations" : "messages", list);
    put_field(rows, "tools", text_of(set, "field_tools"));
    put_field(rows, "system", text_of(set, "field_system"));
    put_ignored(rows, beside_messages, (const char *const[]){"system", "tools", NULL});
}

/* The input of a row counts where a text has it, the system's where there is one for it. */
static void put_alpaca_ignored(axolotl_rows *rows, bool input, bool system) {
    const char *reads[3] = {NULL};
    int count = 0;
    if (input) reads[count++] = "input";
    if (system) reads[count++] = "system";
    put_ignored(rows, beside_alpaca, reads);
}

static void read_named(const json_t *set, const axolotl_type *type, axolotl_rows *rows) {
    static const char *const names[] = {"instruction", "input", "output"};
    if (!type->form) {
        rows->why = type->why;
        return;
    }
    if (strcmp(type->form, "messages") == 0) {
        read_messages(set, rows);
        return;
    }
    put_type(rows, type->form);
    if (strcmp(type->form, "sharegpt") == 0)
        put_field(rows, "conversations", text_of(set, "field_messages"));
    if (strcmp(type->form, "text") == 0) put_field(rows, "text", text_of(set, "field"));
    for (int i = 0; i < 3; i++) put_field(rows, names[i], type->fields[i]);
    put_field(rows, "system", type->field_system);
    put(rows->source, "format", type->turn);
    put(rows->source, "no_input_format", type->no_input);
    put(rows->source, "system_format", type->system);
    if (type->turn)
        put_alpaca_ignored(rows, strstr(type->turn, "{input}") != NULL, type->system != NULL);
    else
        put_ignored(rows, strcmp(type->form, "text") == 0 ? beside_text : beside_messages,
                    (const char *const[]){"system", "tools", NULL});
}

/* A text as a format that makes it; the caller's, NULL without memory. */
static char *escape_braces(const char *text) {
    char *out, *to;
    if (base_alloc(2 * strlen(text) + 1, 1, &out, NULL) != SIFR_OK) return NULL;
    to = out;
    for (const char *c = text; *c; c++) {
        if (*c == '{' || *c == '}') *to++ = *c;
        *to++ = *c;
    }
    *to = '\0';
    return out;
}

/* A format with a fixed system prompt before it. */
static json_t *join_system(const char *system_format, const char *prompt, const char *format) {
    static const char name[] = "{system}";
    const char *hole = strstr(system_format, name);
    int before = hole ? (int)(hole - system_format) : 0;
    const char *after = hole ? hole + strlen(name) : system_format;
    char *escaped = escape_braces(hole ? prompt : "");
    json_t *out =
        escaped ? json_sprintf("%.*s%s%s%s", before, system_format, escaped, after, format) : NULL;
    free(escaped);
    return out;
}

/* "type" as an object: fields and formats of the user's own. */
static void read_custom(const json_t *type, axolotl_rows *rows) {
    static const char *const names[] = {"instruction", "input", "output", "system"};
    static const char *const keys[] = {"field_instruction", "field_input", "field_output",
                                       "field_system"};
    const char *turn = text_of(type, "format"), *alone = text_of(type, "no_input_format");
    const char *system = text_of(type, "system_format"), *prompt = text_of(type, "system_prompt");
    bool own = text_of(type, "field_system") != NULL;
    if (!turn || !text_of(type, "field_instruction") || !text_of(type, "field_output")) {
        rows->why = "a type of its own is read with field_instruction, field_output and format";
        return;
    }
    put_type(rows, "alpaca");
    for (int i = 0; i < 4; i++) put_field(rows, names[i], text_of(type, keys[i]));
    bool fixed = prompt && system && !own;
    const char *formats[][2] = {{"format", turn}, {"no_input_format", alone}};
    for (int i = 0; i < 2; i++) {
        if (fixed && formats[i][1])
            json_object_set_new(rows->source, formats[i][0],
                                join_system(system, prompt, formats[i][1]));
        else
            put(rows->source, formats[i][0], formats[i][1]);
    }
    if (!fixed) put(rows->source, "system_format", own ? system : NULL);
    put_alpaca_ignored(rows, text_of(type, "field_input") != NULL, own);
}

/* Preferences by names of axolotl's: how they are written there. */
static const struct {
    const char *module, *why; /* why: they are not taken over; NULL: they are */
} preferences[] = {
    {"chat_template", NULL},
    {"passthrough", NULL},
    {"chatml", "axolotl writes rows of this type in ChatML by itself: give the file to --data, and "
               "chatml to --chat-template"},
    {"llama3", "axolotl writes rows of this type in Llama 3's template by itself: give the file to "
               "--data, and llama3 to --chat-template"},
    {"zephyr", "axolotl writes rows of this type in Zephyr's template by itself: give the file to "
               "--data, and that template's file to --chat-template"},
    {"user_defined",
     "a type of its own is read with field_prompt, field_chosen and field_rejected"},
};

/* Turns of role and content, or a text, with both answers beside them. */
static void read_preference_turns(const json_t *set, const char *function, axolotl_rows *rows) {
    static const char *const turns[] = {"messages", NULL}, *const lists[] = {NULL};
    bool named = import_asks(json_object_get(set, "message_property_mappings")) ||
                 import_asks(json_object_get(set, "message_field_role"));
    static const char *const names[] = {"chosen", "rejected"}, *const keys[] = {"field_chosen",
                                                                                "field_rejected"};
    bool whole = *function && strcmp(function, "default") != 0; /* argilla's: answers have all */
    const char *form = messages_form(set, &rows->why);
    if (!form) return;
    if ((named && strcmp(form, "messages") != 0) || import_asks(json_object_get(set, "roles"))) {
        rows->why = "messages of preferences have role and content of user and assistant here";
        return;
    }
    put_type(rows, "preference");
    if (!whole) put_field(rows, "messages", text_of(set, "field_messages"));
    for (int i = 0; i < 2; i++) put_field(rows, names[i], text_of(set, keys[i]));
    put_ignored(rows, beside_answers, whole ? lists : turns);
}

static void read_named_preference(const json_t *set, const char *type, axolotl_rows *rows) {
    size_t length = strcspn(type, ".");
    const char *function = type[length] ? type + length + 1 : "";
    rows->why = "rows of this type have no form here; give prompt, chosen and rejected to --data";
    for (size_t i = 0; i < sizeof preferences / sizeof *preferences; i++) {
        const char *module = preferences[i].module;
        if (strlen(module) != length || strncmp(type, module, length) != 0) continue;
        rows->why = preferences[i].why;
        if (strcmp(module, "chat_template") == 0) read_preference_turns(set, function, rows);
        if (strcmp(module, "passthrough") != 0) return;
        put_type(rows, "preference");
        put_ignored(rows, beside_preference, (const char *const[]){NULL});
        return;
    }
}

/* A type of preferences by fields alone; formats of prompts have no counterpart. */
static void read_preference(const json_t *set, axolotl_rows *rows) {
    static const char *const others[] = {"prompt_format", "chosen_format", "rejected_format",
                                         "field_system"};
    static const char *const names[] = {"prompt", "chosen", "rejected"};
    static const char *const keys[] = {"field_prompt", "field_chosen", "field_rejected"};
    const json_t *type = json_object_get(set, "type");
    if (json_is_string(type)) {
        read_named_preference(set, json_string_value(type), rows);
        return;
    }
    bool alone = json_is_object(type);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        alone &= !import_asks(json_object_get(type, others[i]));
    if (!alone) {
        rows->why = "rows of this type have no form here; give prompt, chosen and rejected to "
                    "--data";
        return;
    }
    put_type(rows, "preference");
    for (int i = 0; i < 3; i++) put_field(rows, names[i], text_of(type, keys[i]));
    put_ignored(rows, beside_preference, (const char *const[]){NULL});
}

/* The file of a set: its path, or what data_files names where the path is only a format. */
static const char *file_of(const json_t *set) {
    const json_t *files = json_object_get(set, "data_files");
    if (json_array_size(files) == 1) files = json_array_get(files, 0);
    if (json_array_size(files) > 1) return NULL;
    bool given = import_is_given(files) && !(json_is_array(files) && !json_array_size(files));
    return json_string_value(given ? files : json_object_get(set, "path"));
}

static void read_set(const json_t *set, bool pairs, axolotl_rows *rows) {
    const json_t *type = json_object_get(set, "type");
    const axolotl_type *named = find_type(json_string_value(type));
    *rows = (axolotl_rows){.source = json_object(), .fields = json_object()};
    put(rows->source, "path", file_of(set));
    if (!file_of(set))
        rows->why = "a set is one path, or one of data_files; give its files to --data";
    else if (pairs)
        read_preference(set, rows);
    else if (json_is_object(type))
        read_custom(type, rows);
    else if (named)
        read_named(set, named, rows);
    else
        rows->why = "rows of this type have no form here; give the file to --data, or name its "
                    "fields and format in sifr.dataset";
    if (json_object_size(rows->fields)) json_object_set(rows->source, "fields", rows->fields);
    json_decref(rows->fields);
}

/* What sifr does too, or what a file does not need. */
static bool says_nothing(const char *name, const json_t *value) {
    static const char *const usual[][2] = {{"split", "\"train\""},
                                           {"message_field_training", "\"train\""},
                                           {"message_field_training", "\"training\""},
                                           {"trust_remote_code", "true"}};
    char text[96];
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (strcmp(name, usual[i][0]) == 0 &&
            strcmp(config_value_text(value, text, sizeof text), usual[i][1]) == 0)
            return true;
    return !import_asks(value);
}

/* Keys of a set that are neither read above nor without effect. */
static sifr_status say_others(import_state *s, const char *key, size_t index, const json_t *set) {
    static const char *const known[] = {"path",
                                        "type",
                                        "data_files",
                                        "ds_type",
                                        "name",
                                        "field",
                                        "field_messages",
                                        "field_tools",
                                        "field_system",
                                        "field_chosen",
                                        "field_rejected",
                                        "message_property_mappings",
                                        "chat_template",
                                        "chat_template_jinja",
                                        "message_field_role",
                                        "message_field_content"};
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)set, name, value) {
        bool found = says_nothing(name, value);
        char where[200];
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            found |= strcmp(name, known[i]) == 0;
        found |= import_is_turn_key(name) && import_has_turns(s, index);
        if (found) continue;
        snprintf(where, sizeof where, "%.60s[%zu].%.60s", key, index, name);
        if (import_is_turn_key(name) && !import_asks(json_object_get(s->source, "rl"))) {
            import_say_idle(s, where, value, "rows of its type have no turns");
            continue;
        }
        const char *usual = strcmp(name, "roles") == 0 && import_has_turns(s, index)
                                ? import_usual_roles(value)
                                : NULL;
        if (usual) {
            import_say_idle(s, where, value, usual);
            continue;
        }
        bool template = strcmp(name, "conversation") == 0;
        if (template)
            import_say_left(s, where, value, "the chat template is the model folder's");
        else
            BASE_TRY(import_refuse(s, where, value, "a source of rows has no such key here"));
    }
    return SIFR_OK;
}

static sifr_status put_rows(import_state *s, const char *key, json_t *value) {
    size_t i;
    json_t *set, *sources = json_array();
    const char *fault = NULL;
    bool pairs = import_asks(json_object_get(s->source, "rl"));
    json_array_foreach(value, i, set) {
        axolotl_rows rows;
        read_set(set, pairs, &rows);
        if (rows.why) fault = rows.why;
        json_array_append_new(sources, rows.source);
    }
    if (fault) {
        json_decref(sources);
        import_say_left(s, key, value, fault);
        return SIFR_OK;
    }
    import_say_kept(s, key, value, "sifr.dataset");
    BASE_TRY(import_put(s, "sifr.dataset", sources));
    json_array_foreach(value, i, set) {
        char where[100];
        snprintf(where, sizeof where, "%.60s[%zu].path", key, i);
        if (!import_names_file(file_of(set)))
            import_say_left(s, where, json_object_get(set, "path"), import_on_hub);
        BASE_TRY(say_others(s, key, i, set));
    }
    return SIFR_OK;
}

sifr_status import_axolotl_datasets(import_state *s, const char *key, json_t *value) {
    size_t i;
    json_t *set, *paths = json_array();
    bool texts = json_array_size(value) > 0;
    json_array_foreach(value, i, set) {
        const char *type = json_string_value(json_object_get(set, "type"));
        const char *path = file_of(set);
        texts &= path && !import_names_file(path) && (!type || strcmp(type, "completion") == 0);
        if (path) json_array_append_new(paths, json_string(path));
    }
    if (texts) {
        import_say_kept(s, key, value, "sifr.data");
        return import_put(s, "sifr.data", paths);
    }
    json_decref(paths);
    return import_asks(value) ? put_rows(s, key, value) : SIFR_OK;
}

sifr_status import_axolotl_tests(import_state *s, const char *key, json_t *value) {
    const char *file = json_array_size(value) == 1 ? file_of(json_array_get(value, 0)) : NULL;
    if (!import_asks(value)) return SIFR_OK;
    if (!import_names_file(file)) {
        import_say_left(s, key, value, "one file of held-out data is given by --eval-data");
        return SIFR_OK;
    }
    import_say_kept(s, key, value, "sifr.eval_data");
    return import_put(s, "sifr.eval_data", json_string(file));
}
