/* Rows to fine-tune on against transformers: text, ids and the mask of what the assistant writes
 * (tests/golden/make_finetune.py), by templates with {% generation %} marks and, by the difference
 * of renderings, without them; hashes for the templates and rows that lie beside the project.
 * sanitizers in the soak alone */
#include "support/scratch.h"

#include "base/json.h"
#include "data/chat/chat_encode.h"
#include "data/records/records.h"

typedef struct encoder_case {
    text_tokenizer *tokenizer;
    data_chat_templates templates;
    data_chat_encoder encoder;
    data_chat_row row;
} encoder_case;

static const char *golden(const char *name) {
    static char path[BASE_PATH_LENGTH];
    const char *source = getenv("SOURCE");
    snprintf(path, sizeof path, "%s/tests/golden/finetune/%s", source ? source : ".", name);
    return path;
}

static const char *shared(const char *folder, const char *name) {
    static char path[BASE_PATH_LENGTH];
    const char *source = getenv("SOURCE");
    snprintf(path, sizeof path, "%s/../shared/data/%s/%s", source ? source : ".", folder, name);
    return path;
}

static json_t *load(const char *path) {
    json_t *json;
    sifr_error error = {0};
    if (base_json_load(path, 1 << 26, &json, &error) != SIFR_OK) fail_msg("%s", error.message);
    return json;
}

static void must(sifr_status status, const sifr_error *error) {
    if (status != SIFR_OK) fail_msg("%s", error->message);
}

/* A folder with the template alone: the tokenizer is read from its own file. */
static void begin(encoder_case *c, const char *tokenizer, const char *template, size_t size) {
    sifr_error error = {0};
    static const char config[] = "{\"bos_token\": \"<s>\", \"eos_token\": \"</s>\"}";
    *c = (encoder_case){0};
    scratch_write("chat_template.jinja", template, size);
    scratch_write("tokenizer_config.json", config, sizeof config - 1);
    must(text_tokenizer_load(tokenizer, &c->tokenizer, &error), &error);
    must(data_chat_templates_load(scratch, NULL, &c->templates, &error), &error);
    c->encoder =
        (data_chat_encoder){.tokenizer = c->tokenizer, .templates = &c->templates, .separator = -1};
    must(text_tokenizer_scratch_new(c->tokenizer, &c->encoder.scratch, &error), &error);
}

static void end(encoder_case *c) {
    text_tokenizer_scratch_free(c->encoder.scratch);
    data_chat_encoder_free(&c->encoder);
    data_chat_row_free(&c->row);
    data_chat_templates_free(&c->templates);
    text_tokenizer_free(c->tokenizer);
}

static sifr_status encode(encoder_case *c, const json_t *row, sifr_error *error) {
    const data_row_place place = {.file = "rows", .row = 1, .line = 1};
    const data_form *form;
    BASE_TRY(data_row_form_find(row, DATA_ROW_TYPES, &place, &form, error));
    return data_chat_encode(&c->encoder, row, form, &place, &c->row, error);
}

static bool same_row(const encoder_case *c, const json_t *wanted) {
    const char *text = json_string_value(json_array_get(wanted, 3));
    const json_t *ids = json_array_get(wanted, 4);
    const char *mask = json_string_value(json_array_get(wanted, 5));
    if (strcmp(text, c->encoder.text.text) != 0 || c->row.ids.count != json_array_size(ids))
        return false;
    for (size_t i = 0; i < c->row.ids.count; i++)
        if (c->row.ids.ids[i] != json_integer_value(json_array_get(ids, i)) ||
            c->row.learned[i] != (mask[i] == '1'))
            return false;
    return true;
}

static void print_row(const encoder_case *c, const json_t *wanted, const char *name) {
    print_message("%s %s, row %lld\nwanted: %s\ngot:    %s\nwanted: %s\ngot:    ",
                  json_string_value(json_array_get(wanted, 0)), name,
                  json_integer_value(json_array_get(wanted, 2)),
                  json_string_value(json_array_get(wanted, 3)), c->encoder.text.text,
                  json_string_value(json_array_get(wanted, 5)));
    for (size_t i = 0; i < c->row.ids.count; i++) print_message("%d", c->row.learned[i]);
    print_message("\n");
}

/* 1 where the row comes out otherwise. */
static int check_row(const json_t *rows, const json_t *templates, const json_t *wanted,
                     const char *form) {
    encoder_case c;
    sifr_error error = {0};
    const char *name = json_string_value(json_array_get(wanted, 0));
    const char *kind = json_string_value(json_array_get(wanted, 1));
    const json_t *template = json_object_get(json_object_get(templates, name), form);
    char file[32];
    bool refused = json_array_size(wanted) == 4;
    snprintf(file, sizeof file, "%s.json", refused ? "byte" : kind);
    begin(&c, golden(file), json_string_value(template), json_string_length(template));
    const json_t *row = json_array_get(rows, (size_t)json_integer_value(json_array_get(wanted, 2)));
    sifr_status status = encode(&c, row, &error);
    bool good = refused ? status == SIFR_FAILED : status == SIFR_OK && same_row(&c, wanted);
    if (!good && status == SIFR_OK && !refused) print_row(&c, wanted, form);
    if (!good && status != SIFR_OK) print_message("%s %s: %s\n", name, form, error.message);
    end(&c);
    return !good;
}

static void own_rows(void **state) {
    (void)state;
    json_t *rows = load(golden("rows.json")), *templates = load(golden("templates.json"));
    json_t *expected = load(golden("expected.json"));
    size_t count = json_array_size(expected);
    int bad = 0;
    for (size_t i = 0; i < count; i++) {
        bad += check_row(rows, templates, json_array_get(expected, i), "marked");
        bad += check_row(rows, templates, json_array_get(expected, i), "bare");
    }
    json_decref(rows);
    json_decref(templates);
    json_decref(expected);
    print_message("%zu rows, each with and without marks\n", count);
    assert_true(count > 100);
    if (bad) fail_msg("%d rows come out otherwise", bad);
}

/* --- beside the project --- */

static uint64_t hash_bytes(uint64_t value, const void *data, size_t size) {
    for (size_t i = 0; i < size; i++) value = (value ^ ((const uint8_t *)data)[i]) * 0x100000001b3;
    return value;
}

typedef struct sums {
    int64_t rows, refused, tokens, learned;
    uint64_t hash;
} sums;

static void add_row(encoder_case *c, const json_t *row, bool masks, sums *s) {
    sifr_error error = {0};
    s->rows++;
    if (encode(c, row, &error) != SIFR_OK) {
        s->refused++;
        return;
    }
    if (!masks) {
        s->hash = hash_bytes(s->hash, c->encoder.text.text, c->encoder.text.size + 1);
        return;
    }
    for (size_t i = 0; i < c->row.ids.count; i++) {
        s->tokens++;
        s->learned += c->row.learned[i];
        s->hash = hash_bytes(s->hash, &c->row.ids.ids[i], 4);
        s->hash = hash_bytes(s->hash, &c->row.learned[i], 1);
    }
}

static void add_file(encoder_case *c, const char *name, bool masks, sums *s) {
    data_records *records;
    sifr_error error = {0};
    json_t *row;
    if (strcmp(name, "own") == 0) {
        json_t *rows = load(golden("rows.json"));
        for (size_t i = 0; i < 20; i++) add_row(c, json_array_get(rows, i), masks, s);
        json_decref(rows);
        return;
    }
    must(data_records_open_rows(shared("sft", name), &records, &error), &error);
    for (;;) {
        must(data_records_next(records, &row, &error), &error);
        if (!row) break;
        add_row(c, row, masks, s);
        json_decref(row);
    }
    data_records_close(records);
}

static int check_shared(const json_t *wanted, bool masks) {
    const char *name = json_string_value(json_array_get(wanted, 0));
    size_t at = masks ? 1 : 0, size;
    char tokenizer[BASE_PATH_LENGTH + 32], *template, hash[20];
    encoder_case c;
    sums s = {.hash = 0xcbf29ce484222325};
    sifr_error error = {0};
    const char *file = json_string_value(json_array_get(wanted, at + 1));
    must(base_read_file(shared("chat_templates", name), 1 << 20, &template, &size, &error), &error);
    snprintf(tokenizer, sizeof tokenizer, "%s/tokenizer.json",
             shared("tok", masks ? json_string_value(json_array_get(wanted, 1)) : "gpt2"));
    begin(&c, tokenizer, template, size);
    if (!masks) c.encoder.mask = DATA_ON_ALL;
    add_file(&c, file, masks, &s);
    end(&c);
    free(template);
    bool none = s.rows == s.refused;
    snprintf(hash, sizeof hash, "%016llx", none ? 0ULL : (unsigned long long)s.hash);
    bool good =
        s.rows == json_integer_value(json_array_get(wanted, at + 2)) &&
        s.refused == json_integer_value(json_array_get(wanted, at + 3)) &&
        strcmp(hash, json_string_value(json_array_get(wanted, json_array_size(wanted) - 1))) == 0;
    if (masks)
        good &= s.tokens == json_integer_value(json_array_get(wanted, 5)) &&
                s.learned == json_integer_value(json_array_get(wanted, 6));
    if (!good)
        print_message("%s, %s: %lld rows, %lld refused, %lld tokens, %lld learned, %s\n", name,
                      file, (long long)s.rows, (long long)s.refused, (long long)s.tokens,
                      (long long)s.learned, hash);
    return !good;
}

static void shared_rows(void **state) {
    (void)state;
    if (!base_is_directory(shared("sft", ""))) {
        print_message("%s is not there: skipped\n", shared("sft", ""));
        skip();
    }
    json_t *rows = load(golden("shared.json"));
    size_t i;
    json_t *row;
    int bad = 0;
    json_array_foreach(rows, i, row) {
        const json_t *masks = json_object_get(row, "masks");
        bad += check_shared(masks ? masks : json_object_get(row, "texts"), masks != NULL);
    }
    print_message("%zu sums over the rows and templates beside the project\n", i);
    json_decref(rows);
    if (bad) fail_msg("%d of %zu differ", bad, i);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(own_rows, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(shared_rows, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
