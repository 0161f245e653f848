#include "cli/chat_prompt.h"

#include <time.h>

#include "base/json.h"

enum { TOOLS_LIMIT = 16 << 20 };

sifr_status cli_chat_open(const cli_generation *g, const char *tools, cli_chat_prompt *out,
                          sifr_error *error) {
    *out = (cli_chat_prompt){0};
    BASE_TRY(formats_chat_template_load(g->model.files, false, &out->template, error));
    if (!tools) return SIFR_OK;
    BASE_TRY(base_json_load(tools, TOOLS_LIMIT, &out->tools, error));
    bool objects = json_is_array(out->tools) && json_array_size(out->tools) > 0;
    for (size_t i = 0; i < json_array_size(out->tools); i++)
        objects &= json_is_object(json_array_get(out->tools, i));
    if (objects) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "--tools %s: must be an array of JSON objects, each the description of a "
                     "function",
                     tools);
}

void cli_chat_close(cli_chat_prompt *chat) {
    formats_chat_template_free(&chat->template);
    json_decref(chat->tools);
}

sifr_status cli_chat_add(json_t *messages, const char *role, const char *content, size_t size,
                         sifr_error *error) {
    json_t *text = json_stringn(content, size);
    if (!text) return base_fail(error, SIFR_FAILED, "the %s's message is not valid UTF-8", role);
    json_t *message = json_pack("{s:s, s:o}", "role", role, "content", text);
    if (json_array_append_new(messages, message) == 0) return SIFR_OK;
    return base_fail(error, SIFR_NO_MEMORY, "out of memory");
}

sifr_status cli_chat_encode(const cli_generation *g, const cli_chat_prompt *chat,
                            const json_t *messages, formats_tokenizer_ids *ids, sifr_error *error) {
    time_t now = time(NULL);
    struct tm local;
    formats_template_output out = {0};
    formats_template_input input = {.messages = messages,
                                    .tools = chat->tools,
                                    .add_generation_prompt = true,
                                    .now = localtime_r(&now, &local)};
    BASE_TRY(formats_chat_template_render(&chat->template, &input, &out, error));
    ids->count = 0;
    /* The template itself writes the tokens that a post-processor would put around a text. */
    sifr_status status = cli_generation_encode(g, out.text, out.size, false, ids, error);
    formats_template_output_free(&out);
    return status;
}
