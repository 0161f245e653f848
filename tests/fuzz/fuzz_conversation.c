/* Rows of fine-tuning data on any bytes: no crash, one line of message, and messages that a
 * template can take. The first byte chooses the form, or has it found. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "data/records/conversation.h"
#include "data/records/records.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int truth) {
    if (!truth) abort();
}

static void check_conversation(const data_conversation *c) {
    size_t i;
    json_t *message;
    must(!c->messages || (!c->prompt_size && !c->text_size && !c->completion));
    must(strlen(c->prompt) == c->prompt_size && strlen(c->text) == c->text_size);
    if (!c->messages) return;
    must(json_array_size(c->messages) > 0 && c->prompt_messages <= json_array_size(c->messages));
    json_array_foreach(c->messages, i, message) {
        must(json_is_string(json_object_get(message, "role")));
    }
    must(!c->tools || json_is_array(c->tools));
}

/* Both sides of a preference are rows of prompt and completion. */
static sifr_status check_pair(const json_t *row, const data_form *form, unsigned choice,
                              const data_row_place *place, sifr_error *error) {
    const data_form *side = data_form_of(DATA_ROW_PROMPT_COMPLETION);
    json_t *sides[2];
    data_conversation c;
    sifr_status status = data_preference_read(row, form, choice & 64, place, sides, error);
    if (status != SIFR_OK) return status;
    for (int i = 0; i < 2; i++) {
        if (status == SIFR_OK)
            status = data_conversation_read(sides[i], side, NULL, choice & 64, place, &c, error);
        if (status == SIFR_OK) {
            must(data_conversation_join(&c, choice & 15, error) == SIFR_OK);
            check_conversation(&c);
            data_conversation_free(&c);
        }
        json_decref(sides[i]);
    }
    return status;
}

static void check_row(const json_t *row, unsigned choice, const data_row_place *place) {
    static const data_row_format format = {"{{{instruction}}}\n{input}", NULL, "<{system}>"};
    data_conversation c;
    data_row_type type = (data_row_type)(choice % (DATA_ROW_TYPES + 1));
    const data_form *form;
    sifr_error error = {0};
    sifr_status status = data_row_form_find(row, type, place, &form, &error);
    bool pair = status == SIFR_OK && form->type == DATA_ROW_PREFERENCE;
    if (pair) status = check_pair(row, form, choice, place, &error);
    if (pair && status == SIFR_OK) return;
    if (!pair && status == SIFR_OK)
        status = data_conversation_read(row, form, choice & 32 ? &format : NULL, choice & 64, place,
                                        &c, &error);
    if (status == SIFR_OK) {
        must(data_conversation_join(&c, choice & 15, &error) == SIFR_OK);
        check_conversation(&c);
        data_conversation_free(&c);
        return;
    }
    must(status == SIFR_FAILED && error.message[0] && !strchr(error.message, '\n'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    data_records *records;
    json_t *row = NULL;
    if (size == 0) return 0;
    if (data_records_parse(DATA_RECORDS_JSONL, (const char *)data + 1, size - 1, "input", &records,
                           NULL) != SIFR_OK)
        return 0;
    for (;;) {
        data_row_place place = {.file = "input", .row = 1, .line = 1};
        sifr_status status = data_records_next(records, &row, NULL);
        if (status != SIFR_OK || !row) break;
        check_row(row, data[0], &place);
        json_decref(row);
    }
    data_records_close(records);
    return 0;
}
