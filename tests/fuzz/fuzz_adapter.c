/* An adapter_config.json on any bytes: no crash, one line of message, in bounded time, and a model
 * with such an adapter has the weights that it says. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "model/lora.h"
#include "model/model_config.h"
#include "model/registry.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int truth) {
    if (!truth) abort();
}

static void check_said(sifr_status status, const sifr_error *error) {
    must(status == SIFR_OK || (error->message[0] && !strpbrk(error->message, "\n\r")));
}

static void make_model(const model_lora *lora) {
    static const char text[] =
        "{\"model_type\": \"llama\", \"architectures\": [\"LlamaForCausalLM\"], \"vocab_size\": 8, "
        "\"hidden_size\": 8, \"intermediate_size\": 8, \"num_hidden_layers\": 2, "
        "\"num_attention_heads\": 2, \"max_position_embeddings\": 8}";
    const model_choice choice = {.lora = lora};
    model_config config;
    sifr_model *model = NULL;
    sifr_error error = {0};
    must(model_config_parse_as(text, sizeof text - 1, "model", &choice, &config, &error) ==
         SIFR_OK);
    sifr_status status = model_from_config(&config, &model, &error);
    check_said(status, &error);
    if (status != SIFR_OK) return;
    must(model_is_adapter(model));
    json_t *json = model_lora_describe(lora, model, &config, "base");
    must(json != NULL);
    json_decref(json);
    for (size_t i = 0; i < model->weight_count; i++) {
        char name[MODEL_LORA_NAME];
        must(strlen(model_lora_tensor(&model->weights[i], name)) < sizeof name);
    }
    sifr_model_free(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    json_t *json = NULL;
    model_lora lora = {0};
    sifr_error error = {0};
    if (base_json_parse(size ? (const char *)data : "", size, "fuzz", &json, NULL) != SIFR_OK)
        return 0;
    sifr_status status = model_lora_read(json, "fuzz", &lora, &error);
    check_said(status, &error);
    if (status == SIFR_OK) make_model(&lora);
    model_lora_free(&lora);
    json_decref(json);
    return 0;
}
