/* Vocabularies in other forms than tokenizer.json, any bytes: no crash, one line of message, pieces
 * that lie inside the input. Input: one byte that chooses the class; then a sentencepiece model, or
 * lines of base64 and rank. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/tokenizer_files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int truth) {
    if (!truth) abort();
}

static void check_message(const sifr_error *error) {
    must(error->message[0] && !strchr(error->message, '\n'));
}

static const char *const settings[] = {
    "{\"tokenizer_class\": \"LlamaTokenizer\", \"add_bos_token\": true}",
    "{\"tokenizer_class\": \"GemmaTokenizer\"}",
    "{\"tokenizer_class\": \"T5Tokenizer\", \"extra_ids\": 2}",
    "{\"tokenizer_class\": \"XLMRobertaTokenizer\"}",
    "{\"tokenizer_class\": \"DebertaV2Tokenizer\"}",
    ("{\"tokenizer_class\": \"PreTrainedTokenizerFast\", \"added_tokens_decoder\": "
     "{\"1\": {\"content\": \"<a>\"}, \"5\": {\"content\": \"<b>\", \"special\": true}}}")};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    text_proto proto = {0};
    sifr_error error = {0};
    json_t *root = NULL;
    if (size < 1) return 0;
    const char *bytes = (const char *)data + 1, *chosen = settings[data[0] % 6];
    size--;
    if (text_proto_read(bytes, size, "input", &proto, &error) == SIFR_OK) {
        must(proto.count > 0);
        for (size_t i = 0; i < proto.count; i++) {
            const text_span *text = &proto.pieces[i].text;
            must(text->size && text->bytes >= bytes && text->bytes + text->size <= bytes + size);
        }
        text_proto_free(&proto);
    } else {
        check_message(&error);
    }
    error = (sifr_error){0};
    if (text_tokenizer_convert_bytes(bytes, size, json_loads(chosen, 0, NULL), "input", &root,
                                     &error) != SIFR_OK) {
        check_message(&error);
        return 0;
    }
    must(json_is_object(json_object_get(root, "model")) &&
         json_is_array(json_object_get(root, "added_tokens")));
    json_decref(root);
    return 0;
}
