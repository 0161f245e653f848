/* Files of a model folder and of a checkpoint of DeepSpeed that have no target of their own, on any
 * bytes: no crash, one line of message. The first byte chooses the file. For DeepSpeed, the rest is
 * the pickle of a file of torch.save, which is made around it with the bytes of two
 * tensors. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/deepspeed/deepspeed_checkpoint.h"
#include "formats/generation_config.h"
#include "support/fuzz_folder.h"
#include "support/zip_case.h"
#include "text/chat_template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int truth) {
    if (!truth) abort();
}

/* NULL data: removes the file. */
static void put(const char *name, const void *data, size_t size) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
    unlink(path);
    FILE *file = data ? fopen(path, "wb") : NULL;
    must(!data || (file && fwrite(data, 1, size, file) == size));
    if (file) fclose(file);
}

static void check_said(sifr_status status, const sifr_error *error) {
    must(status == SIFR_OK || (error->message[0] && !strpbrk(error->message, "\n\r")));
}

static void try_chat_template(const char *name, const void *data, size_t size) {
    text_chat_template chat = {0};
    sifr_error error = {0};
    bool exists;
    put(name, data, size);
    check_said(text_chat_template_load(fuzz_folder(), NULL, false, &chat, &error), &error);
    text_chat_template_free(&chat);
    check_said(text_chat_template_exists(fuzz_folder(), &exists, &error), &error);
    put(name, NULL, 0);
}

static void try_generation_config(const void *data, size_t size) {
    formats_generation_config config;
    sifr_error error = {0};
    put("generation_config.json", data, size);
    sifr_status status = formats_generation_config_load(fuzz_folder(), &config, &error);
    check_said(status, &error);
    must(status != SIFR_OK || (config.eos_count >= 0 && config.eos_count <= FORMATS_EOS_LIMIT &&
                               config.stop_count >= 0 && config.stop_count <= FORMATS_STOP_LIMIT));
    put("generation_config.json", NULL, 0);
}

static void put_torch(const char *name, const void *pickle, size_t size) {
    static zip_case zip;
    static const uint8_t tensor[256] = {0, 0, 128, 63};
    memset(&zip, 0, sizeof zip);
    zip_add(&zip, "a/data.pkl", pickle, size);
    zip_add(&zip, "a/data/0", tensor, sizeof tensor);
    zip_add(&zip, "a/data/1", tensor, sizeof tensor);
    zip_finish(&zip);
    put(name, zip.bytes, zip.size);
}

/* Everything that was accepted can be read. */
static void try_deepspeed(void) {
    formats_deepspeed *c = NULL;
    sifr_error error = {0};
    float values[16];
    sifr_status status = formats_deepspeed_open(fuzz_folder(), &c, &error);
    check_said(status, &error);
    for (size_t i = 0; status == SIFR_OK && i < formats_deepspeed_count(c); i++) {
        const formats_deepspeed_weight *w = formats_deepspeed_at(c, i);
        for (int64_t at = 0; at < w->elements; at += 16)
            formats_deepspeed_read(c, i, at, w->elements - at < 16 ? w->elements - at : 16, values);
    }
    formats_deepspeed_close(c);
}

/* The pickle of the model's states, then, behind a length of two bytes, that of the optimizer's. */
static void try_zero(const uint8_t *data, size_t size) {
    size_t first = size < 2 ? 0 : (size_t)(data[0] | data[1] << 8);
    if (size < 2 || size > 1 << 15) return;
    data += 2, size -= 2;
    if (first > size) first = size;
    put_torch("mp_rank_00_model_states.pt", data, first);
    if (size > first)
        put_torch("zero_pp_rank_0_mp_rank_00_optim_states.pt", data + first, size - first);
    try_deepspeed();
    put("mp_rank_00_model_states.pt", NULL, 0);
    put("zero_pp_rank_0_mp_rank_00_optim_states.pt", NULL, 0);
}

static void try_universal(const uint8_t *data, size_t size) {
    char path[256];
    if (size > 1 << 15) return;
    snprintf(path, sizeof path, "%s/zero/w", fuzz_folder());
    must(base_make_directories(path, NULL) == SIFR_OK);
    put_torch("zero/w/fp32.pt", data, size);
    try_deepspeed();
    snprintf(path, sizeof path, "%s/zero", fuzz_folder());
    must(base_remove_tree(path, NULL) == SIFR_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    const uint8_t *rest = data + 1;
    switch (data[0] % 6) {
    case 0:
        try_chat_template("tokenizer_config.json", rest, size - 1);
        break;
    case 1:
        try_chat_template("chat_template.json", rest, size - 1);
        break;
    case 2:
        try_generation_config(rest, size - 1);
        break;
    case 3:
        try_universal(rest, size - 1);
        break;
    default:
        try_zero(rest, size - 1);
        break;
    }
    return 0;
}
