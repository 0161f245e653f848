#include "device/cuda/vector/cuda_embedding.h"

#include "device/check/operands.h"
#include "device/cuda/vector/cuda_clear.h"
#include "device/cuda/vector/embedding_arguments.h"
#include "device/cuda/vector/row_launch.h"

/* Places in scratch: two orders of the tokens, one of them the other's result, and counts. */
typedef struct order_places {
    int64_t orders[2], counts, bytes;
} order_places;

static int64_t tiles_of(const device_call *call) {
    return (call->dy.rows + ORDER_TILE - 1) / ORDER_TILE;
}

static order_places places_of(const device_call *call) {
    order_places places = {0};
    int64_t rows = call->dy.rows;
    for (int i = 0; i < 2; i++)
        places.orders[i] = device_reserve(&places.bytes, rows * (int64_t)sizeof(int32_t));
    places.counts =
        device_reserve(&places.bytes, tiles_of(call) * ORDER_TILE * (int64_t)sizeof(int32_t));
    return places;
}

sifr_status cuda_prepare_embedding_backward(device *dev, device_call *call, sifr_error *error) {
    (void)dev;
    if (call->dy.rows > INT32_MAX)
        return base_fail(error, SIFR_USAGE, "%s: %lld rows, at most %d on a GPU",
                         device_kernel_name(call->kernel), (long long)call->dy.rows, INT32_MAX);
    call->scratch_bytes = places_of(call).bytes;
    return SIFR_OK;
}

/* Sorts tokens by the digits that words of the table have; *out is in scratch. */
static sifr_status sort_tokens(device *dev, const device_call *call, const int32_t **out,
                               sifr_error *error) {
    order_places places = places_of(call);
    char *scratch = call->scratch;
    order_arguments arguments = {.ids = call->x[0].data,
                                 .counts = (int32_t *)(void *)(scratch + places.counts),
                                 .rows = call->dy.rows,
                                 .ids_stride = call->x[0].stride,
                                 .tiles = (int32_t)tiles_of(call),
                                 .first = call->attributes.embedding.first};
    int turn = 0;
    do {
        static const cuda_kernel kernels[] = {cuda_kernel_order_count, cuda_kernel_order_places,
                                              cuda_kernel_order_tokens};
        arguments.order = (int32_t *)(void *)(scratch + places.orders[turn]);
        for (int k = 0; k < 3; k++) {
            cuda_launch launch = {
                .kernel = kernels[k],
                .blocks = {kernels[k] == cuda_kernel_order_places ? 1 : arguments.tiles, 1, 1},
                .threads = ORDER_TILE,
                .arguments = &arguments};
            BASE_TRY(cuda_launch_kernel(dev, &launch, error));
        }
        arguments.before = arguments.order;
        arguments.shift += ORDER_BITS;
        turn = !turn;
    } while (arguments.shift < 31 && (call->dw[0].rows - 1) >> arguments.shift > 0);
    *out = arguments.order;
    return SIFR_OK;
}

sifr_status cuda_run_embedding_backward(device *dev, const device_call *call, sifr_error *error) {
    const device_matrix *dy = &call->dy, *dw = &call->dw[0];
    device_call clear = {.kernel = DEVICE_CLEAR, .y = *dw};
    const int32_t *order;
    if (!call->accumulate_dw) BASE_TRY(cuda_run_clear(dev, &clear, error));
    BASE_TRY(sort_tokens(dev, call, &order, error));
    table_sums_arguments arguments = {.ids = call->x[0].data,
                                      .order = order,
                                      .dy = dy->data,
                                      .dw = dw->data,
                                      .rows = dy->rows,
                                      .columns = dy->columns,
                                      .ids_stride = call->x[0].stride,
                                      .dy_stride = dy->stride,
                                      .dw_stride = dw->stride,
                                      .first = call->attributes.embedding.first,
                                      .padding = call->attributes.embedding.padding,
                                      .padded = call->attributes.embedding.padded,
                                      .wide = cuda_rows_wide(dy) && cuda_rows_wide(dw),
                                      .add = call->accumulate_dw};
    int64_t each = EMBEDDING_THREADS * ROW_LAUNCH_PIECE;
    cuda_launch launch = {.kernel = cuda_kernel_of(cuda_kernel_table_sums_fp32, dy->dtype),
                          .blocks = {dy->rows, (dy->columns + each - 1) / each, 1},
                          .threads = EMBEDDING_THREADS,
                          .arguments = &arguments};
    return cuda_launch_kernel(dev, &launch, error);
}
