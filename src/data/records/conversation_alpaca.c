/* Alpaca's instruction, input and output as the text that a format makes of them, as messages or,
 * where a model has no chat template, as the text that Stanford Alpaca made of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "data/records/conversation_internal.h"

typedef struct alpaca_row {
    const char *instruction, *input, *output, *system;
    size_t instruction_size, input_size, output_size, system_size;
    const char *history; /* its field's name */
} alpaca_row;

static sifr_status read_strings(const json_t *row, const data_form *form,
                                const data_row_place *place, alpaca_row *a, sifr_error *error) {
    const struct {
        data_form_part part;
        const char **text;
        size_t *size;
    } strings[] = {{DATA_PART_PROMPT, &a->instruction, &a->instruction_size},
                   {DATA_PART_INPUT, &a->input, &a->input_size},
                   {DATA_PART_SYSTEM, &a->system, &a->system_size},
                   {DATA_PART_ANSWER, &a->output, &a->output_size}};
    bool calls = form->fields[DATA_PART_ANSWER].kind == DATA_FIELD_CALLS;
    size_t count = sizeof strings / sizeof *strings - (calls || form->type != DATA_ROW_ALPACA);
    *a = (alpaca_row){.input = "", .output = ""};
    for (size_t i = 0; i < count; i++)
        BASE_TRY(data_row_string(row, data_form_field(form, strings[i].part, row),
                                 strings[i].part != DATA_PART_PROMPT &&
                                     strings[i].part != DATA_PART_ANSWER,
                                 place, strings[i].text, strings[i].size, error));
    a->history = data_form_field(form, DATA_PART_HISTORY, row);
    return SIFR_OK;
}

/* Earlier turns: pairs of what was asked and answered. */
static sifr_status add_history(const json_t *row, const char *field, json_t *messages,
                               const data_row_place *place, sifr_error *error) {
    json_t *history, *pair;
    size_t i;
    sifr_status status = SIFR_OK;
    BASE_TRY(data_row_list(row, field, place, &history, error));
    json_array_foreach(history, i, pair) {
        const json_t *asked = json_array_get(pair, 0), *answered = json_array_get(pair, 1);
        char name[96];
        snprintf(name, sizeof name, "'%.60s[%zu]'", field, i);
        if (json_array_size(pair) != 2 || !json_is_string(asked) || !json_is_string(answered))
            status = data_row_fail(place, name, error, "must be a pair of strings");
        if (status == SIFR_OK)
            status = data_messages_add(messages, "user", json_string_value(asked),
                                       json_string_length(asked), error);
        if (status == SIFR_OK)
            status = data_messages_add(messages, "assistant", json_string_value(answered),
                                       json_string_length(answered), error);
        if (status != SIFR_OK) break;
    }
    json_decref(history);
    return status;
}

/* The instruction, and the input in the line below it. */
static json_t *question(const alpaca_row *a) {
    const char *between = a->input_size ? "\n" : "";
    return json_pack("s%++%", a->instruction, a->instruction_size, between, a->input,
                     a->input_size);
}

static sifr_status add_asked(const json_t *row, const alpaca_row *a, const data_row_place *place,
                             json_t *messages, sifr_error *error) {
    if (a->system_size)
        BASE_TRY(data_messages_add(messages, "system", a->system, a->system_size, error));
    if (a->history) BASE_TRY(add_history(row, a->history, messages, place, error));
    json_t *asked = question(a);
    if (!asked) return base_fail_alloc(error, a->instruction_size + a->input_size);
    sifr_status status = data_messages_add(messages, "user", json_string_value(asked),
                                           json_string_length(asked), error);
    json_decref(asked);
    return status;
}

static sifr_status as_messages(const json_t *row, const data_form *form, const alpaca_row *a,
                               const data_row_place *place, data_conversation *out,
                               sifr_error *error) {
    const char *answer = data_form_field(form, DATA_PART_ANSWER, row);
    char name[96];
    out->messages = json_array();
    if (!out->messages) return base_fail_alloc(error, 64);
    BASE_TRY(add_asked(row, a, place, out->messages, error));
    BASE_TRY(data_tools_read(row, form, place, &out->tools, error));
    if (form->fields[DATA_PART_ANSWER].kind != DATA_FIELD_CALLS)
        return data_messages_add(out->messages, "assistant", a->output, a->output_size, error);
    snprintf(name, sizeof name, "'%.80s'", answer);
    return data_calls_add(out->messages, json_object_get(row, answer), name, place, error);
}

/* out->strings is the prompt, or NULL for want of memory. */
static sifr_status put_text(const alpaca_row *a, data_conversation *out, sifr_error *error) {
    if (!out->strings) return base_fail_alloc(error, a->instruction_size + a->input_size);
    out->prompt = json_string_value(out->strings);
    out->prompt_size = json_string_length(out->strings);
    out->text = a->output;
    out->text_size = a->output_size;
    out->completion = true;
    return SIFR_OK;
}

/* What has a place only in messages, `why` not: `tools` may be absent from the form. */
static sifr_status check_alone(const json_t *row, const data_form *form, bool system,
                               const data_row_place *place, const char *why, sifr_error *error) {
    static const data_form_part parts[] = {DATA_PART_SYSTEM, DATA_PART_HISTORY, DATA_PART_TOOLS};
    char name[96];
    for (size_t i = system ? 0 : 1; i < sizeof parts / sizeof *parts; i++) {
        const char *field = data_form_field(form, parts[i], row);
        const json_t *value = field ? json_object_get(row, field) : NULL;
        if (!json_array_size(value) && !json_string_length(value)) continue;
        snprintf(name, sizeof name, "'%.80s'", field);
        return data_row_fail(place, name, error, "%s", why);
    }
    return SIFR_OK;
}

/* Stanford Alpaca's text, but its answer; NULL without memory. */
static json_t *stanford(const alpaca_row *a) {
    static const char begin[] = "Below is an instruction that describes a task";
    static const char with[] = ", paired with an input that provides further context";
    static const char rest[] = ". Write a response that appropriately completes the "
                               "request.\n\n### Instruction:\n";
    return json_pack("s+++%+++%+", begin, a->input_size ? with : "", rest, a->instruction,
                     a->instruction_size, "\n\n", a->input_size ? "### Input:\n" : "", a->input,
                     a->input_size, a->input_size ? "\n\n### Response:" : "### Response:");
}

static const char without_template[] = "needs a chat template, which the model folder does not "
                                       "have";

static sifr_status as_text(const json_t *row, const data_form *form, const alpaca_row *a,
                           const data_row_place *place, data_conversation *out, sifr_error *error) {
    BASE_TRY(check_alone(row, form, true, place, without_template, error));
    out->strings = stanford(a);
    return put_text(a, out, error);
}

sifr_status data_read_asked(const json_t *row, const data_form *form, bool templated,
                            const data_row_place *place, json_t **out, sifr_error *error) {
    alpaca_row a;
    BASE_TRY(read_strings(row, form, place, &a, error));
    if (!templated) {
        BASE_TRY(check_alone(row, form, true, place, without_template, error));
        *out = stanford(&a);
        return *out ? SIFR_OK : base_fail_alloc(error, a.instruction_size + a.input_size);
    }
    *out = json_array();
    sifr_status status = add_asked(row, &a, place, *out, error);
    if (status == SIFR_OK) return status;
    json_decref(*out);
    *out = NULL;
    return status;
}

/* --- by a format --- */

/* What a name in braces stands for. */
static const char *value_of(const alpaca_row *a, const char *name, size_t length, size_t *size) {
    const struct {
        const char *name, *value;
        size_t size;
    } values[] = {{"instruction", a->instruction, a->instruction_size},
                  {"input", a->input, a->input_size},
                  {"system", a->system, a->system_size}};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        if (strlen(values[i].name) != length || memcmp(values[i].name, name, length) != 0) continue;
        *size = values[i].size;
        return values[i].value;
    }
    *size = 0;
    return "";
}

/* Bytes of the text of a format that was checked, which is written where `to` is not NULL. */
static size_t expand(const char *format, const alpaca_row *a, char *to) {
    size_t used = 0;
    for (const char *c = format; *c; c++) {
        const char *value = c, *end = *c == '{' && c[1] != '{' ? strchr(c, '}') : NULL;
        size_t size = 1;
        if (end) value = value_of(a, c + 1, (size_t)(end - c) - 1, &size);
        if (to) memcpy(to + used, value, size);
        used += size;
        if (end)
            c = end;
        else if ((*c == '{' || *c == '}') && c[1] == *c)
            c++;
    }
    return used;
}

static sifr_status as_formatted(const json_t *row, const data_form *form,
                                const data_row_format *format, const alpaca_row *a,
                                const data_row_place *place, data_conversation *out,
                                sifr_error *error) {
    const char *before = !a->system_size ? "" : format->system ? format->system : "{system}";
    const char *turn = a->input_size || !format->no_input ? format->turn : format->no_input;
    char *text;
    BASE_TRY(check_alone(row, form, false, place,
                         "has no place in the source's format; leave the format out", error));
    size_t first = expand(before, a, NULL), size = first + expand(turn, a, NULL);
    BASE_TRY(base_alloc(size + 1, 1, &text, error));
    expand(before, a, text);
    expand(turn, a, text + first);
    out->strings = json_stringn(text, size);
    free(text);
    return put_text(a, out, error);
}

sifr_status data_read_alpaca(const json_t *row, const data_form *form,
                             const data_row_format *format, bool templated,
                             const data_row_place *place, data_conversation *out,
                             sifr_error *error) {
    alpaca_row a;
    BASE_TRY(read_strings(row, form, place, &a, error));
    if (form->fields[DATA_PART_ANSWER].kind == DATA_FIELD_CALLS)
        return as_messages(row, form, &a, place, out, error);
    if (format && format->turn) return as_formatted(row, form, format, &a, place, out, error);
    return templated ? as_messages(row, form, &a, place, out, error)
                     : as_text(row, form, &a, place, out, error);
}
