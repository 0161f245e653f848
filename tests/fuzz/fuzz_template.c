/* The template interpreter on any bytes: no crash, one line of message, bounded work. Input: the
 * template, a NUL, a JSON list of messages; without the NUL, messages of our own. */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "text/template/template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int truth) {
    if (!truth) abort();
}

static const char own[] =
    "[{\"role\": \"system\", \"content\": \" be kind \"}, {\"role\": \"user\", \"content\": "
    "\"h\\u00e9llo\\n\", \"n\": 2, \"x\": [1, 2.5, null, true, {\"a\": \"b\"}]}]";

static void check_message(sifr_status status, const sifr_error *error) {
    must(status == SIFR_USAGE || status == SIFR_NO_MEMORY);
    must(error->message[0] && !strpbrk(error->message, "\n\r"));
}

static void render(const text_template *t, const json_t *messages) {
    struct tm now = {.tm_year = 126, .tm_mday = 1};
    text_template_input input = {.messages = messages,
                                 .tools = messages,
                                 .bos_token = "<s>",
                                 .add_generation_prompt = true,
                                 .now = &now};
    text_template_output out;
    sifr_error error = {0};
    sifr_status status = text_template_render(t, &input, &out, &error);
    if (status != SIFR_OK) {
        check_message(status, &error);
        return;
    }
    must(strnlen(out.text, out.size + 1) <= out.size && out.text[out.size] == 0);
    for (size_t i = 0; i < out.span_count; i++) must(out.spans[i].begin <= out.spans[i].end);
    text_template_output_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
    size_t first = nul ? (size_t)(nul - data) : size;
    text_template *t;
    json_t *messages = NULL;
    sifr_error error = {0};
    sifr_status status =
        text_template_parse(size ? (const char *)data : "", first, "fuzz", &t, &error);
    if (status != SIFR_OK) {
        check_message(status, &error);
        return 0;
    }
    if (nul) {
        const char *json = (const char *)data + first + 1;
        if (base_json_parse(json, size - first - 1, "fuzz", &messages, NULL) != SIFR_OK)
            messages = NULL;
    }
    if (!messages) must(base_json_parse(own, sizeof own - 1, "own", &messages, NULL) == SIFR_OK);
    render(t, messages);
    json_decref(messages);
    text_template_free(t);
    return 0;
}
