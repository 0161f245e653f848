#include "train/report/ran_describe.h"

static void set_count(json_t *out, const char *key, int64_t count) {
    json_object_set_new(out, key, json_integer((json_int_t)count));
}

/* A reason, where there is one. */
static void set_why(json_t *out, const char *key, const char *why) {
    if (why[0]) json_object_set_new(out, key, json_string(why));
}

static const char *who_waits(const train_ran *ran) {
    if (ran->word_waits && ran->host_waits) return "words and host";
    return ran->word_waits ? "words" : ran->host_waits ? "host" : "none";
}

static void set_gpu(json_t *out, const train_ran *ran) {
    json_object_set_new(out, "products", json_string(ran->products));
    set_count(out, "library_products", ran->library_products);
    set_count(out, "own_products", ran->own_products);
    set_why(out, "own_why", ran->own_why);
    json_object_set_new(out, "waits", json_string(who_waits(ran)));
    set_count(out, "word_waits", ran->word_waits);
    set_count(out, "host_waits", ran->host_waits);
    set_why(out, "waits_why", ran->waits_why);
    json_object_set_new(out, "pinned", json_boolean(ran->unpinned_bytes == 0));
    set_count(out, "unpinned_bytes", ran->unpinned_bytes);
}

json_t *train_ran_json(const train_ran *ran) {
    json_t *out = json_pack("{s:s}", "device", ran->device);
    if (!out) return NULL;
    if (ran->gpu) set_gpu(out, ran);
    json_object_set_new(out, "exchange", json_string(comm_exchange_name(ran->exchange)));
    set_why(out, "exchange_why", ran->exchange_why);
    return out;
}
