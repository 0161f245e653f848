/* Objects in a pickle that are no tensors: loss scalers, settings, sets, bytes. They are passed
 * over; nothing is made of them and nothing is run. */
#include "formats/torch/torch_pickle_internal.h"

static sifr_status pass_bytes(pickle_machine *m, int length_bytes, sifr_error *error) {
    uint64_t length;
    const uint8_t *from;
    BASE_TRY(formats_pickle_number(m, length_bytes, &length, error));
    if (length > m->size) return formats_pickle_fail(m, error, "cut short");
    BASE_TRY(formats_pickle_take(m, (size_t)length, &from, error));
    return formats_pickle_opaque(m, error);
}

/* Those values become one object. */
static sifr_status replace(pickle_machine *m, size_t count, sifr_error *error) {
    BASE_TRY(formats_pickle_drop(m, count, error));
    return formats_pickle_opaque(m, error);
}

static sifr_status twice(pickle_machine *m, sifr_error *error) {
    if (!m->stack.count) return formats_pickle_fail(m, error, "there is no value to repeat");
    return formats_pickle_add(&m->stack, m->stack.at[m->stack.count - 1], error);
}

sifr_status formats_pickle_lenient(pickle_machine *m, uint8_t code, bool *known,
                                   sifr_error *error) {
    *known = true;
    switch (code) {
    case '0':
        return formats_pickle_drop(m, 1, error);
    case '1':
        return formats_pickle_drop_marked(m, error);
    case '2':
        return twice(m, error);
    case 0x81: /* an object of a class and its arguments */
        return replace(m, 2, error);
    case 0x92:
        return replace(m, 3, error);
    case 0x8f: /* sets */
        return formats_pickle_opaque(m, error);
    case 0x90:
        return formats_pickle_drop_marked(m, error);
    case 0x91:
        BASE_TRY(formats_pickle_drop_marked(m, error));
        return formats_pickle_opaque(m, error);
    case 'C': /* bytes */
    case 'U':
        return pass_bytes(m, 1, error);
    case 'B':
    case 'T':
    case 0x8b: /* a long int */
        return pass_bytes(m, 4, error);
    case 0x8e:
    case 0x96:
        return pass_bytes(m, 8, error);
    default:
        *known = false;
        return SIFR_OK;
    }
}
