#include "train/report/event_file.h"

#include <string.h>

#include "base/assert.h"

/* Fields of a message, written one behind the other. */
typedef struct message {
    uint8_t bytes[TRAIN_EVENT_BYTES];
    size_t used;
} message;

enum { VARINT = 0, FIXED_64 = 1, BYTES = 2, FIXED_32 = 5 }; /* wire types */

/* Numbers of fields, of event.proto and summary.proto. */
enum {
    EVENT_TIME = 1,
    EVENT_STEP = 2,
    EVENT_VERSION = 3,
    EVENT_SUMMARY = 5,
    EVENT_SESSION = 7,
    SUMMARY_VALUE = 1,
    VALUE_TAG = 1,
    VALUE_NUMBER = 2,
    SESSION_STATUS = 1,
    SESSION_START = 1 /* a value of the status */
};

static void put_bytes(message *m, const void *bytes, size_t size) {
    base_assert(m->used + size <= sizeof m->bytes);
    memcpy(m->bytes + m->used, bytes, size);
    m->used += size;
}

static void put_little(message *m, uint64_t value, int size) {
    uint8_t bytes[8];
    for (int i = 0; i < size; i++) bytes[i] = (uint8_t)(value >> 8 * i);
    put_bytes(m, bytes, (size_t)size);
}

static void put_varint(message *m, uint64_t value) {
    for (; value >= 0x80; value >>= 7) put_little(m, (value & 0x7f) | 0x80, 1);
    put_little(m, value, 1);
}

static void put_key(message *m, int field, int type) {
    put_varint(m, (uint64_t)(field << 3 | type));
}

static void put_double(message *m, int field, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(m, field, FIXED_64);
    put_little(m, bits, 8);
}

static void put_float(message *m, int field, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(m, field, FIXED_32);
    put_little(m, bits, 4);
}

static void put_number(message *m, int field, int64_t value) {
    put_key(m, field, VARINT);
    put_varint(m, (uint64_t)value);
}

static void put_text(message *m, int field, const char *text) {
    put_key(m, field, BYTES);
    put_varint(m, strlen(text));
    put_bytes(m, text, strlen(text));
}

static void put_message(message *m, int field, const message *inner) {
    put_key(m, field, BYTES);
    put_varint(m, inner->used);
    put_bytes(m, inner->bytes, inner->used);
}

/* CRC-32C, bit by bit: an event has some 60 bytes. Turned and shifted, as TensorFlow keeps it. */
static uint32_t checksum(const uint8_t *bytes, size_t size) {
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    crc = ~crc;
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static size_t frame(const message *event, uint8_t *out) {
    message framed = {.used = 0};
    put_little(&framed, event->used, 8);
    put_little(&framed, checksum(framed.bytes, 8), 4);
    put_bytes(&framed, event->bytes, event->used);
    put_little(&framed, checksum(event->bytes, event->used), 4);
    memcpy(out, framed.bytes, framed.used);
    return framed.used;
}

size_t train_event_version(double time, uint8_t *out) {
    message event = {.used = 0};
    put_double(&event, EVENT_TIME, time);
    put_text(&event, EVENT_VERSION, "brain.Event:2");
    return frame(&event, out);
}

size_t train_event_restart(double time, int64_t step, uint8_t *out) {
    message event = {.used = 0}, session = {.used = 0};
    put_number(&session, SESSION_STATUS, SESSION_START);
    put_double(&event, EVENT_TIME, time);
    put_number(&event, EVENT_STEP, step);
    put_message(&event, EVENT_SESSION, &session);
    return frame(&event, out);
}

size_t train_event_scalar(double time, int64_t step, const train_event *scalar, uint8_t *out) {
    message event = {.used = 0}, summary = {.used = 0}, value = {.used = 0};
    put_text(&value, VALUE_TAG, scalar->tag);
    put_float(&value, VALUE_NUMBER, (float)scalar->value);
    put_message(&summary, SUMMARY_VALUE, &value);
    put_double(&event, EVENT_TIME, time);
    if (step) put_number(&event, EVENT_STEP, step); /* 0 is left out, as by protocol buffers */
    put_message(&event, EVENT_SUMMARY, &summary);
    return frame(&event, out);
}
