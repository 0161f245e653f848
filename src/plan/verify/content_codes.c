/* Gradients that travel as codes (pass_quantise_sums.c). Where a rank's codes of a slice lie, they
 * have that slice's place in the vector, whatever the order in which slices are sent; what came has
 * it too, with how far it is added up. */
#include "base/block4.h"
#include "plan/encoding.h"
#include "plan/queries.h"
#include "plan/verify/content_state.h"

/* `near` ranks of a host meet first, then those of one place on all hosts. */
typedef struct sums_shape {
    int64_t near, hosts, host, in_host; /* this rank's host, and its place on it */
    int64_t slice, bytes;               /* elements of a slice, and bytes of its codes */
} sums_shape;

static sums_shape shape_of(const content_state *c, int32_t segment) {
    int64_t host = c->s->settings.mesh.host, near = host > 0 ? host : c->ranks;
    int64_t slice = c->s->segment_elements[segment] / c->ranks;
    return (sums_shape){.near = near,
                        .hosts = c->ranks / near,
                        .host = c->rank / near,
                        .in_host = c->rank % near,
                        .slice = slice,
                        .bytes = plan_encoded_bytes(PLAN_CODE_BLOCKS4, slice)};
}

/* Codes of slice `slice`, which lie at byte `at` of a buffer. */
static plan_content codes_at(const content_state *c, plan_vector vector, plan_reach reach,
                             int32_t segment, int64_t at, int64_t slice) {
    sums_shape shape = shape_of(c, segment);
    plan_content is = content_at(c, vector, segment, c->version, at, slice * shape.bytes);
    is.reach = (uint8_t)reach;
    return is;
}

static plan_access piece_of(const plan_access *a, int64_t at, int64_t bytes) {
    plan_access piece = *a;
    piece.offset = a->offset + at;
    piece.bytes = bytes;
    piece.rows = 1;
    return piece;
}

sifr_status content_run_encode_sums(const content_state *c, size_t index, const plan_access *x,
                                    const plan_access *y, sifr_error *error) {
    int32_t g = c->s->buffers[y->buffer].segment;
    sums_shape shape = shape_of(c, g);
    bool whole = y->bytes == c->ranks * shape.bytes;
    plan_reach reach = whole ? PLAN_REACH_RANK : PLAN_REACH_HOST;
    int64_t count = y->bytes / shape.bytes, values = x->bytes / count;
    for (int64_t k = 0; k < count; k++) {
        int64_t slice = whole ? k : k * shape.near + shape.in_host;
        int64_t to = whole ? k % shape.near * shape.hosts + k / shape.near : k;
        plan_access from = piece_of(x, k * values, values);
        plan_access codes = piece_of(y, to * shape.bytes, shape.bytes);
        plan_content wanted =
            content_gradient(c, g, reach, values / shape.slice, from.offset, slice * shape.slice);
        plan_content is = codes_at(c, PLAN_VECTOR_SENT, reach, g, codes.offset, slice);
        BASE_TRY(content_expect(c, index, &from, &wanted, error));
        BASE_TRY(content_leave(c, &codes, &is, error));
    }
    return SIFR_OK;
}

/* The run that goes to, or comes from, the rank at `place`, slice by slice. */
static sifr_status run_part(const content_state *c, size_t index, int o, int64_t place,
                            const comm_run *run, sifr_error *error) {
    const plan_instruction *in = &c->s->instructions[index];
    const plan_operand *operand = &c->s->operands[in->first_operand + o];
    sums_shape shape = shape_of(c, in->segment);
    bool here = place / shape.near == shape.host;
    bool first = here && (shape.hosts == 1 || run->bytes > shape.bytes);
    int64_t of = o == 0 ? place : c->rank; /* whose slices they are */
    for (int64_t at = 0; at < run->bytes; at += shape.bytes) {
        int64_t slice = first ? at / shape.bytes * shape.near + of % shape.near : of;
        plan_access piece = {.buffer = operand->buffer,
                             .role = (plan_role)operand->role,
                             .offset = operand->offset + run->at + at,
                             .bytes = shape.bytes,
                             .rows = 1};
        plan_content is =
            codes_at(c, o == 0 ? PLAN_VECTOR_SENT : PLAN_VECTOR_CAME,
                     first ? PLAN_REACH_RANK : PLAN_REACH_HOST, in->segment, piece.offset, slice);
        if (o == 0)
            BASE_TRY(content_expect(c, index, &piece, &is, error));
        else
            BASE_TRY(content_leave(c, &piece, &is, error));
    }
    return SIFR_OK;
}

sifr_status content_run_exchange_sums(const content_state *c, size_t index, sifr_error *error) {
    const comm_run *runs = c->s->runs + c->s->instructions[index].runs;
    for (int o = 0; o < 2; o++)
        for (int64_t r = 0; r < c->ranks; r++)
            BASE_TRY(run_part(c, index, o, r, &runs[o * c->ranks + r], error));
    return SIFR_OK;
}

sifr_status content_run_sum_codes(const content_state *c, size_t index, const plan_access *x,
                                  const plan_access *y, sifr_error *error) {
    int32_t g = c->s->buffers[y->buffer].segment;
    sums_shape shape = shape_of(c, g);
    int64_t parts = x->bytes / shape.bytes, size = content_sum_bytes(c);
    bool first = parts == c->ranks && shape.hosts > 1, last = !first;
    plan_reach came = shape.hosts == 1 || first ? PLAN_REACH_RANK : PLAN_REACH_HOST;
    int64_t length = first ? shape.hosts : 1;
    if (first) size = y->bytes / (length * shape.slice);
    for (int64_t k = 0; k < parts; k++) {
        int64_t slice = last ? c->rank : k % length * shape.near + shape.in_host;
        plan_access piece = piece_of(x, k * shape.bytes, shape.bytes);
        plan_content is = codes_at(c, PLAN_VECTOR_CAME, came, g, piece.offset, slice);
        BASE_TRY(content_expect(c, index, &piece, &is, error));
    }
    for (int64_t k = 0; k < length; k++) {
        int64_t slice = last ? c->rank : k * shape.near + shape.in_host;
        plan_access piece = piece_of(y, k * shape.slice * size, shape.slice * size);
        plan_content is = content_gradient(c, g, last ? PLAN_REACH_COPY : PLAN_REACH_HOST, size,
                                           piece.offset, slice * shape.slice);
        BASE_TRY(content_leave(c, &piece, &is, error));
    }
    return SIFR_OK;
}
