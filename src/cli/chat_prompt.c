#include "cli/chat_prompt.h"

#include <time.h>

sifr_status cli_chat_add(json_t *messages, const char *role, const char *content, size_t size,
                         sifr_error *error) {
    json_t *text = json_stringn(content, size);
    if (!text) return base_fail(error, SIFR_FAILED, "the %s's message is not valid UTF-8", role);
    json_t *message = json_pack("{s:s, s:o}", "role", role, "content", text);
    if (json_array_append_new(messages, message) == 0) return SIFR_OK;
    return base_fail(error, SIFR_NO_MEMORY, "out of memory");
}

sifr_status cli_chat_encode(const cli_generation *g, const formats_chat_template *chat,
                            const json_t *messages, formats_tokenizer_ids *ids, sifr_error *error) {
    time_t now = time(NULL);
    struct tm local;
    formats_template_output out = {0};
    formats_template_input input = {
        .messages = messages, .add_generation_prompt = true, .now = localtime_r(&now, &local)};
    BASE_TRY(formats_chat_template_render(chat, &input, &out, error));
    ids->count = 0;
    /* The template itself writes the tokens that a post-processor would put around a text. */
    sifr_status status = cli_generation_encode(g, out.text, out.size, false, ids, error);
    formats_template_output_free(&out);
    return status;
}
