#include "infer/chat_prompt.h"

#include <time.h>

void infer_chat_close(infer_chat_prompt *chat) {
    text_chat_template_free(&chat->template);
    json_decref(chat->tools);
    json_decref(chat->documents);
    json_decref(chat->variables);
}

sifr_status infer_chat_add(json_t *messages, const char *role, const char *content, size_t size,
                           sifr_error *error) {
    json_t *text = json_stringn(content, size);
    if (!text) return base_fail(error, SIFR_FAILED, "the %s's message is not valid UTF-8", role);
    json_t *message = json_pack("{s:s, s:o}", "role", role, "content", text);
    if (json_array_append_new(messages, message) == 0) return SIFR_OK;
    return base_fail(error, SIFR_NO_MEMORY, "out of memory");
}

sifr_status infer_chat_render(const infer_chat_prompt *chat, const json_t *messages, bool prompt,
                              text_template_output *out, sifr_error *error) {
    time_t now = time(NULL);
    struct tm local;
    text_template_input input = {.messages = messages,
                                 .tools = chat->tools,
                                 .documents = chat->documents,
                                 .variables = chat->variables,
                                 .add_generation_prompt = prompt,
                                 .now = localtime_r(&now, &local)};
    return text_chat_template_render(&chat->template, &input, out, error);
}

sifr_status infer_chat_encode(const infer_generation *g, const infer_chat_prompt *chat,
                              const json_t *messages, text_tokenizer_ids *ids, sifr_error *error) {
    text_template_output out = {0};
    BASE_TRY(infer_chat_render(chat, messages, true, &out, error));
    ids->count = 0;
    /* The template itself writes the tokens that a post-processor would put around a text. */
    sifr_status status = infer_generation_encode(g, out.text, out.size, false, ids, error);
    text_template_output_free(&out);
    return status;
}
