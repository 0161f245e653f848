/* What a row gives its chat template beside its messages: documents and further variables. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "data/records/conversation_internal.h"

static const char kwargs[] = "chat_template_kwargs";

const char *data_variables_refused(const json_t *variables) {
    /* Arguments of transformers' apply_chat_template that are none of a template's variables. */
    static const char *const arguments[] = {"add_generation_prompt",
                                            "chat_template",
                                            "continue_final_message",
                                            "conversation",
                                            "max_length",
                                            "messages",
                                            "padding",
                                            "return_assistant_tokens_mask",
                                            "return_dict",
                                            "return_tensors",
                                            "sanitize_control_tokens",
                                            "tokenize",
                                            "tokenizer_kwargs",
                                            "truncation"};
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++)
        if (json_object_get(variables, arguments[i])) return arguments[i];
    return NULL;
}

/* The object as it stands or, as in a CSV file, as JSON in a string; a new reference, or NULL. */
static sifr_status read_object(const json_t *row, const data_row_place *place, json_t **out,
                               sifr_error *error) {
    json_t *value = json_object_get(row, kwargs), *parsed = NULL;
    const char *text = json_string_value(value);
    *out = NULL;
    if (!value || json_is_null(value) || (text && !*text)) return SIFR_OK;
    BASE_TRY(data_row_sound(value, kwargs, place, error));
    sifr_error said = {0};
    sifr_status status = SIFR_OK;
    if (text) status = base_json_parse(text, json_string_length(value), "as JSON", &parsed, &said);
    if (status == SIFR_NO_MEMORY) return base_fail(error, status, "%s", said.message);
    *out = parsed ? parsed : json_incref(value);
    const char *wrong = data_variables_refused(*out);
    if (!json_is_object(*out))
        status = data_row_fail(place, "'chat_template_kwargs'", error,
                               "%s; it must be an object such as {\"enable_thinking\": false}",
                               data_json_kind(*out));
    else if (wrong)
        status = data_row_fail(place, "'chat_template_kwargs'", error,
                               "has '%s', which is no variable of a chat template but decided "
                               "by the run; leave it out",
                               wrong);
    if (status == SIFR_OK) return SIFR_OK;
    json_decref(*out);
    *out = NULL;
    return status;
}

/* A list that the template has a variable of its own for: the row's object counts first, then its
 * field (*slot), then the run's. */
static sifr_status take_list(const json_t *own, json_t *all, const char *name,
                             const data_row_place *place, json_t **slot, sifr_error *error) {
    bool first = json_object_get(own, name) != NULL;
    json_t *list = NULL;
    if (first || !*slot) {
        BASE_TRY(data_row_list(all, name, place, &list, error));
        json_decref(*slot);
        *slot = list;
    }
    json_object_del(all, name);
    return SIFR_OK;
}

/* `all` is the run's members and, over them, the row's `own`. */
static sifr_status take_variables(const json_t *row, const json_t *own, json_t *all, bool documents,
                                  const data_row_place *place, data_conversation *c,
                                  sifr_error *error) {
    if (documents) BASE_TRY(data_row_list(row, "documents", place, &c->documents, error));
    BASE_TRY(take_list(own, all, "documents", place, &c->documents, error));
    return take_list(own, all, "tools", place, &c->tools, error);
}

sifr_status data_conversation_variables(const json_t *row, const json_t *usual, bool documents,
                                        const data_row_place *place, data_conversation *c,
                                        sifr_error *error) {
    json_t *own;
    BASE_TRY(read_object(row, place, &own, error));
    json_t *all = usual ? json_copy((json_t *)(uintptr_t)usual) : json_object();
    bool whole = all && (!own || json_object_update(all, own) == 0);
    sifr_status status = whole ? take_variables(row, own, all, documents, place, c, error)
                               : base_fail_alloc(error, 64);
    json_decref(own);
    if (status == SIFR_OK && json_object_size(all))
        c->variables = all;
    else
        json_decref(all);
    return status;
}
