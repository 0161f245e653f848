/* What a message says of being learned: "weight" of OpenAI's and Mistral's rows, "train" and
 * "training" of axolotl's, "loss" of ms-swift's. */
#include <stdio.h>
#include <string.h>

#include "data/records/conversation_internal.h"

static const char *const data_names[] = {"train", "training"};

enum { DATA_NAMES = sizeof data_names / sizeof *data_names };

static const json_t *given(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);
    return json_is_null(value) ? NULL : value;
}

/* 0 or 1; -1: it says nothing, -2: something else. */
static int weight_of(const json_t *message) {
    const json_t *weight = given(message, "weight");
    double number = json_number_value(weight);
    if (!weight) return -1;
    return json_is_number(weight) && (number == 0 || number == 1) ? (int)number : -2;
}

int data_message_loss(const json_t *message) {
    const json_t *loss = given(message, "loss");
    double number = json_number_value(loss);
    if (json_is_boolean(loss)) return json_is_true(loss);
    return json_is_number(loss) && (number == 0 || number == 1) ? (int)number : -1;
}

/* The next of train, training and loss that says something, from *i on: 0 or 1; -1: none is left,
 * -2: something else. "loss" that is neither is no flag, but named as not read. */
static int next_train(const json_t *message, int *i, const char **name) {
    while (*i < DATA_NAMES) {
        const json_t *train = given(message, *name = data_names[(*i)++]);
        if (train) return json_is_boolean(train) ? json_is_true(train) : -2;
    }
    *name = "loss";
    return (*i)++ == DATA_NAMES ? data_message_loss(message) : -1;
}

/* What the first of them says. */
static int data_of(const json_t *message, const char **name) {
    int i = 0;
    return next_train(message, &i, name);
}

bool data_message_learned(const json_t *message) {
    const char *name;
    return data_of(message, &name) == 1;
}

bool data_message_unlearned(const json_t *message) {
    const char *name;
    return weight_of(message) == 0 || data_of(message, &name) == 0;
}

/* What says more than whether the whole message is learned; NULL: nothing. */
static const char *find_detail(const json_t *message) {
    static const char *const names[] = {"train_detail", "training_detail",
                                        "reasoning_training_detail"};
    const json_t *parts = json_object_get(message, "content");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (given(message, names[i])) return names[i];
    for (size_t i = 0; i < json_array_size(parts); i++) {
        const json_t *part = json_array_get(parts, i);
        if (given(part, "weight")) return "weight of a part";
        for (int k = 0; k < DATA_NAMES; k++)
            if (given(part, data_names[k])) return "train of a part";
    }
    return NULL;
}

/* Whether what the first of them says is what the others say. */
static sifr_status check_agreed(const json_t *message, const char *name,
                                const data_row_place *place, sifr_error *error) {
    const char *first, *flag;
    int i = 0, train = next_train(message, &i, &first), other;
    while ((other = next_train(message, &i, &flag)) != -1) {
        if (other == -2)
            return data_row_fail(place, name, error, "has '%s', which must be true or false", flag);
        if (other != train)
            return data_row_fail(place, name, error, "has '%s' %s and '%s' %s; leave one out",
                                 first, train ? "true" : "false", flag, other ? "true" : "false");
    }
    return SIFR_OK;
}

sifr_status data_flags_check(const json_t *message, const char *name, const data_row_place *place,
                             sifr_error *error) {
    const char *flag;
    const char *detail = find_detail(message);
    int weight = weight_of(message), train = data_of(message, &flag);
    if (detail)
        return data_row_fail(place, name, error,
                             "has '%s', which is not supported yet (supported: weight, train or "
                             "training of a whole message)",
                             detail);
    if (weight == -2)
        return data_row_fail(place, name, error,
                             "has a weight that is neither 0, not learned, nor 1, learned");
    if (train == -2)
        return data_row_fail(place, name, error, "has '%s', which must be true or false", flag);
    if (weight >= 0 && train >= 0 && weight != train)
        return data_row_fail(place, name, error, "has 'weight' %d and '%s' %s; leave one out",
                             weight, flag, train ? "true" : "false");
    return check_agreed(message, name, place, error);
}

sifr_status data_messages_answer(const json_t *messages, const data_row_place *place,
                                 sifr_error *error) {
    size_t i;
    json_t *message;
    json_array_foreach(messages, i, message) {
        const char *role = json_string_value(json_object_get(message, "role")), *flag;
        char name[48];
        if (data_of(message, &flag) != 1 || (role && strcmp(role, "assistant") == 0)) continue;
        snprintf(name, sizeof name, "'messages[%zu]'", i);
        return data_row_fail(place, name, error,
                             "has '%s' true, but only what the assistant writes is learned; "
                             "leave it out, or give roles_to_train",
                             flag);
    }
    return SIFR_OK;
}

sifr_status data_flags_copy(const json_t *turn, json_t *message, sifr_error *error) {
    static const char *const names[] = {
        "weight",       "train",           "training",
        "train_detail", "training_detail", "reasoning_training_detail",
        "loss"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        json_t *value = json_object_get(turn, names[i]);
        if (value && json_object_set(message, names[i], value) != 0)
            return base_fail_alloc(error, 64);
    }
    return SIFR_OK;
}
